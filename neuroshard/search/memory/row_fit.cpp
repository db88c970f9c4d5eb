// Filling devices with whole tables first, then with rows.
#include "neuroshard/search/memory/row_fit.h"

#include <algorithm>
#include <cstdint>
#include <numeric>
#include <span>
#include <tuple>
#include <utility>

#include "neuroshard/core/table_pins.h"
#include "neuroshard/search/memory/memory_fit.h"
#include "neuroshard/search/memory/row_flow.h"

namespace neuroshard {

namespace {

bool can_cut_rows(const Table& table) {
  return table.allow.rows &&
         table.num_embeddings / 2 >= std::max<std::int64_t>(table.min_shard_rows, 1);
}

/// What is placed first.
enum class Order {
  unsliced_first,  ///< tables whose rows stay together: nothing else finds room so easily as rows
  pinned_first,    ///< tables that may not lie on every device
  flow,            ///< as unsliced_first, and rows move on for those of tables that lie elsewhere
};

/// The run of the algorithm.
class RowFilling {
 public:
  RowFilling(const Task& task, const StopClock& clock, Order order)
      : task_(task),
        clock_(clock),
        order_(order),
        pins_(task),
        rooms_(task.topology.memory_bytes) {}

  /// Empty if not all could be placed.
  std::vector<Shard> run() {
    std::vector<int> first;
    std::vector<int> in_rows;
    std::vector<int> others;
    for (std::size_t t = 0; t < task_.tables.size(); ++t) {
      const auto table = static_cast<int>(t);
      if (!can_cut_rows(task_.tables[t])) {
        others.push_back(table);
      } else if (order_ == Order::pinned_first && choice(table) < rooms_.size()) {
        first.push_back(table);
      } else {
        in_rows.push_back(table);
      }
    }
    if (first.empty() && (in_rows.empty() || order_ == Order::pinned_first)) return {};
    if (!place_with_rows(first) || !place_in_columns(others)) return {};
    if (order_ == Order::flow ? !place_by_flow(in_rows) : !place_with_rows(in_rows)) return {};
    ShardingPlan plan{std::move(shards_), {}};
    sort_shards(plan);
    return std::move(plan.shards);
  }

 private:
  /// Devices that a table may lie on: those with the fewest have least choice.
  [[nodiscard]] std::size_t choice(int table) const {
    const std::span<const int> devices = pins_.devices_of(table);
    return devices.empty() ? rooms_.size() : devices.size();
  }

  [[nodiscard]] std::int64_t bytes(int table) const {
    return shard_bytes(task_.tables[table], task_.tables[table].embedding_dim, task_.optimizer);
  }

  /// Those of least choice first, then those of most bytes last.
  bool place_with_rows(std::vector<int> tables) {
    std::stable_sort(tables.begin(), tables.end(), [&](int a, int b) {
      return std::tuple(choice(a), bytes(b)) < std::tuple(choice(b), bytes(a));
    });
    PatientClock clock(clock_);
    for (const int table : tables) {
      clock.check();
      if (!place_whole(table) && !place_in_slices(table)) return false;
    }
    return true;
  }

  /// Only where it may find what the others do not: where some of the tables are pinned.
  bool place_by_flow(const std::vector<int>& tables) {
    const bool is_pinned = std::any_of(tables.begin(), tables.end(),
                                       [&](int table) { return choice(table) < rooms_.size(); });
    const bool has_single_rows = std::all_of(tables.begin(), tables.end(), [&](int table) {
      return task_.tables[table].min_shard_rows <= 1;
    });
    if (!is_pinned || !has_single_rows) return false;
    const std::vector<Shard> placed = fit_by_row_flow(task_, tables, rooms_, clock_);
    shards_.insert(shards_.end(), placed.begin(), placed.end());
    return !placed.empty();
  }

  bool place_in_columns(const std::vector<int>& tables) {
    if (tables.empty()) return true;
    Task part = task_;
    part.topology.memory_bytes = rooms_;
    part.tables.clear();
    for (const int table : tables) part.tables.push_back(task_.tables[table]);
    MemoryFit fit = fit_memory(part, false, clock_);
    for (Shard& shard : fit.plan.shards) {
      shard.table = tables[shard.table];
      rooms_[shard.device] -=
          shard_bytes(task_.tables[shard.table], shard.num_columns, task_.optimizer);
      shards_.push_back(shard);
    }
    return fit.feasible;
  }

  /// On the fullest device that has room.
  bool place_whole(int table) {
    int best = -1;
    for (std::size_t d = 0; d < rooms_.size(); ++d) {
      if (rooms_[d] < bytes(table) || !pins_.permits(table, static_cast<int>(d))) continue;
      if (best < 0 || rooms_[d] < rooms_[best]) best = static_cast<int>(d);
    }
    if (best < 0) return false;
    rooms_[best] -= bytes(table);
    shards_.push_back({table, 0, task_.tables[table].embedding_dim, best});
    return true;
  }

  /// In slices of all columns or, where `min_shard_rows` leaves no room for these, of as few pieces
  /// of columns as do.
  bool place_in_slices(int number) {
    const Table& table = task_.tables[number];
    std::int64_t width = table.embedding_dim;
    for (std::int64_t pieces = 1;; pieces *= 2) {
      if (pieces > 1) {
        const std::int64_t narrower = (table.embedding_dim / pieces + kColumnGranularity - 1) /
                                      kColumnGranularity * kColumnGranularity;
        const std::int64_t narrowest = narrowest_cut(table);
        const bool is_narrower = narrower < width && narrower >= narrowest;
        if (!can_cut(table, table.embedding_dim) || !is_narrower) return false;
        width = narrower;
        const std::int64_t rest = table.embedding_dim % width;
        if (rest > 0 && rest < narrowest) continue;
      }
      const std::vector<std::int64_t> rooms = rooms_;
      const std::size_t shards = shards_.size();
      std::int64_t column = 0;
      while (column < table.embedding_dim &&
             place_in_slices(number, column, std::min(width, table.embedding_dim - column))) {
        column += width;
      }
      if (column >= table.embedding_dim) return true;
      rooms_ = rooms;
      shards_.resize(shards);
    }
  }

  /// These columns, on the devices with most room, each with one slice: on as few as have room.
  bool place_in_slices(int number, std::int64_t column, std::int64_t num_columns) {
    const Table& table = task_.tables[number];
    const std::int64_t least = std::max<std::int64_t>(table.min_shard_rows, 1);
    std::vector<std::pair<std::int64_t, int>> devices;  // rows that have room, least of all last
    for (int device = 0; device < static_cast<int>(rooms_.size()); ++device) {
      if (!pins_.permits(number, device)) continue;
      const std::int64_t rows = std::min(
          rows_within(rooms_[device], table, num_columns, task_.optimizer), table.num_embeddings);
      if (rows >= least) devices.emplace_back(rows, device);
    }
    std::stable_sort(devices.begin(), devices.end(), [&](const auto& a, const auto& b) {
      return rooms_[a.second] > rooms_[b.second];
    });
    std::size_t count = 0;
    for (std::int64_t rows = 0; rows < table.num_embeddings; rows += devices[count++].first) {
      if (count == devices.size()) return false;
    }
    // Each of those to come must have a slice too.
    std::int64_t reserved = least * static_cast<std::int64_t>(count);
    if (reserved > table.num_embeddings) return false;
    std::int64_t first = 0;
    for (std::size_t i = 0; i < count; ++i) {
      reserved -= least;
      const auto [room, device] = devices[i];
      const std::int64_t rows = std::min(room, table.num_embeddings - first - reserved);
      rooms_[device] -= shard_bytes(table, num_columns, task_.optimizer, rows);
      const std::int64_t sliced_rows = count > 1 ? rows : 0;
      shards_.push_back({number, column, num_columns, device, first, sliced_rows});
      first += rows;
    }
    return true;
  }

  const Task& task_;
  StopClock clock_;
  Order order_;
  TablePins pins_;
  std::vector<std::int64_t> rooms_;
  std::vector<Shard> shards_;
};

}  // namespace

std::vector<Shard> fit_with_rows(const Task& task, const StopClock& clock) {
  for (const Order order : {Order::unsliced_first, Order::pinned_first, Order::flow}) {
    std::vector<Shard> shards = RowFilling(task, clock, order).run();
    if (!shards.empty()) return shards;
  }
  return {};
}

}  // namespace neuroshard
