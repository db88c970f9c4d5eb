// The pieces that the lower bound looks at, as far as its work goes.
#include "neuroshard/search/bound/bound_pieces.h"

#include <algorithm>

#include "neuroshard/core/piece.h"
#include "neuroshard/core/table_pins.h"
#include "neuroshard/search/groups/bundled_task.h"
#include "neuroshard/search/slices/row_slices.h"

namespace neuroshard {

namespace {

/// Widest table whose columns are divided in every way; the time grows with the square.
constexpr std::int64_t kWidestDivided = 1024;

/// Divisions of all tables together that are tried: 100,000 tables of 128 columns have half.
constexpr std::int64_t kMostDivisions = 100'000'000;

/// Pieces of slices that are encoded, of all tables together: some seconds.
constexpr std::int64_t kMostSlicesEncoded = 500'000;

/// Where tables have more, fewer are, down to this part of them: most tables are left out anyway,
/// and what the bound then says is not worth the time.
constexpr std::int64_t kLeastPartEncoded = 4;

/// The numbers of slices into which the rows may be cut, some of them more than once.
std::vector<int> numbers_of_slices(const Task& task, const Table& table) {
  const int devices = task.topology.world_size;
  std::vector<int> numbers{12, 16, 2, 3, 4, 6, 8};
  for (std::int64_t more = 32; more <= devices; more *= 2) {
    numbers.push_back(static_cast<int>(more));
  }
  for (const int even : {devices / 2, devices}) {
    if (even >= 2 && even <= kMostEvenSlices) numbers.push_back(even);
  }
  std::erase_if(numbers, [&](int number) { return !can_slice(task, table, number); });
  return numbers;
}

/// Shares below 1 that slices have at least: those of the most slices.
std::int64_t fewest_shares(const std::vector<int>& numbers) {
  return numbers.empty() ? 0 : *std::max_element(numbers.begin(), numbers.end()) - 1;
}

std::vector<double> row_shares(const std::vector<int>& numbers) {
  std::vector<double> shares{1.0};
  for (const int number : numbers) {
    for (int joined = 1; joined < number; ++joined) {
      shares.push_back(static_cast<double>(joined) / number);
    }
  }
  std::sort(shares.begin(), shares.end());
  shares.erase(std::unique(shares.begin(), shares.end()), shares.end());
  return shares;
}

/// Which rows a slice has then decides what it costs, not only how many. A single device, too, may
/// have several slices.
bool is_cut_by_order(const Table& table, const Cuts& cuts) {
  return cuts.rows && table.allow.rows && has_row_order(table) &&
         table.num_embeddings / 2 >= std::max<std::int64_t>(table.min_shard_rows, 1);
}

/// What is to be known before the work is.
struct WaysOfCutting {
  std::int64_t quantum = 0;
  std::int64_t num_quanta = 0;  ///< 0: too wide, or cut by order
  std::vector<int> numbers{};   ///< of slices of the rows
};

WaysOfCutting ways_of_cutting(const Task& task, const Table& table, const Cuts& cuts) {
  const std::int64_t dim = table.embedding_dim;
  const bool has_columns = cuts.columns && table.allow.columns && can_cut(dim);
  if ((has_columns && dim > kWidestDivided) || is_cut_by_order(table, cuts)) return {};
  WaysOfCutting ways;
  ways.quantum = has_columns ? kColumnGranularity : dim;
  ways.num_quanta = dim / ways.quantum;
  if (cuts.rows && table.allow.rows) ways.numbers = numbers_of_slices(task, table);
  return ways;
}

/// With each group as one table, and each table allowing the cuts that it may have.
Task task_of_bound(const Task& task) {
  Task result = has_groups(task) ? BundledTask(task).task() : task;
  const std::vector<Cuts> allowed = allowed_cuts(result);
  for (std::size_t t = 0; t < allowed.size(); ++t) result.tables[t].allow = allowed[t];
  return result;
}

/// Whether neighbours among this many slices of a table, of as many rows as Simulator::slice_ends
/// says, have that many rows together.
bool are_rows_of_slices(std::int64_t rows, std::int64_t num_embeddings, std::int64_t num_slices) {
  const std::int64_t shorter = num_embeddings / num_slices;
  const std::int64_t num_longer = num_embeddings % num_slices;  // by one row, and first
  for (std::int64_t joined = rows / (shorter + 1); joined <= rows / shorter; ++joined) {
    const std::int64_t longer = rows - joined * shorter;
    if (longer >= std::max<std::int64_t>(joined - (num_slices - num_longer), 0) &&
        longer <= std::min(joined, num_longer)) {
      return true;
    }
  }
  return false;
}

}  // namespace

BoundWork::BoundWork(const Task& task, const Cuts& cuts)
    : task_(task), cuts_(cuts), divisions_(kMostDivisions), slices_(kMostSlicesEncoded) {
  std::int64_t wanted = 0;
  for (const Table& table : task.tables) {
    const WaysOfCutting ways = ways_of_cutting(task, table, cuts);
    wanted += ways.num_quanta * fewest_shares(ways.numbers);
  }
  if (wanted <= kMostSlicesEncoded) return;
  slices_ = std::max(kMostSlicesEncoded * kMostSlicesEncoded / wanted,
                     kMostSlicesEncoded / kLeastPartEncoded);
}

PiecesOfTable BoundWork::pieces_of(const Table& table) {
  const WaysOfCutting ways = ways_of_cutting(task_, table, cuts_);
  // There may be 65,535 shares, so they are not listed in vain.
  if (ways.num_quanta == 0 || ways.num_quanta * fewest_shares(ways.numbers) > slices_) return {};
  PiecesOfTable pieces{ways.quantum, ways.num_quanta, row_shares(ways.numbers)};
  const std::int64_t divisions = ways.num_quanta * (ways.num_quanta + 1) / 2;
  const std::int64_t slices =
      ways.num_quanta * (static_cast<std::int64_t>(pieces.row_shares.size()) - 1);
  if (divisions > divisions_ || slices > slices_) return {};
  divisions_ -= divisions;
  slices_ -= slices;
  return pieces;
}

UnpricedTables unpriced_tables(const Task& task, const Cuts& cuts) {
  const Task of_bound = task_of_bound(task);
  BoundWork work(of_bound, cuts);
  UnpricedTables unpriced;
  for (const Table& table : of_bound.tables) {
    if (work.pieces_of(table).num_quanta > 0) continue;
    ++(is_cut_by_order(table, cuts) ? unpriced.ordered : unpriced.others);
  }
  return unpriced;
}

bool has_other_slices(const Task& task, const ShardingPlan& plan) {
  return std::any_of(plan.shards.begin(), plan.shards.end(), [&](const Shard& shard) {
    const Table& table = task.tables[shard.table];
    if (shard.rows_of(table) == table.num_embeddings || has_row_order(table)) return false;
    const std::vector<int> numbers = numbers_of_slices(task, table);
    return std::none_of(numbers.begin(), numbers.end(), [&](int number) {
      return are_rows_of_slices(shard.num_rows, table.num_embeddings, number);
    });
  });
}

}  // namespace neuroshard
