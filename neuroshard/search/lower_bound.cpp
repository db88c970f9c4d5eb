// The bound's two parts.
#include "neuroshard/search/lower_bound.h"

#include <algorithm>
#include <limits>
#include <span>
#include <vector>

#include "neuroshard/cost/cost_value.h"
#include "neuroshard/search/mean_device.h"
#include "neuroshard/search/row_slices.h"

namespace neuroshard {

namespace {

/// Widest table that is divided in every way [columns]; the time grows with the square.
constexpr std::int64_t kWidestDivided = 1024;
/// Divisions of all tables together that are tried: 100,000 tables of 128 columns have half.
constexpr std::int64_t kMostDivisions = 100'000'000;
/// What rounding in the last digits of a cost may amount to.
constexpr double kRounding = 1e-9;

/// Pieces of slices that are encoded, of all tables together: a second.
constexpr std::int64_t kMostSlicesEncoded = 500'000;

/// Pieces kept to be looked at again and again: some 50 MB.
constexpr std::size_t kMostPiecesKept = 40'000;

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

/// The shares of the rows that a slice may have, 1 among them.
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

/// What the bound may still look at.
struct WorkLeft {
  std::int64_t divisions = kMostDivisions;
  std::int64_t slices = kMostSlicesEncoded;
};

/// Adds a kind of pieces unless no device has memory for one.
void keep_piece(const Task& task, const Table& table, std::int64_t num_quanta,
                std::int64_t num_columns, double row_share, std::span<const double> contribution,
                MeanDevice& kept) {
  const auto num_rows =
      static_cast<std::int64_t>(static_cast<double>(table.num_embeddings) * row_share);
  const std::int64_t bytes = shard_bytes(table, num_columns, task.optimizer, num_rows);
  const auto& memory = task.topology.memory_bytes;
  if (bytes > *std::max_element(memory.begin(), memory.end())) return;
  const auto columns = static_cast<double>(pooled_columns(table, num_columns));
  MeanDevice::Extras extras{.columns = columns, .bytes = static_cast<double>(bytes)};
  // A slice is a part of each sum of its columns.
  if (row_share < 1.0) {
    extras.partial_bytes = 4.0 * columns * static_cast<double>(replica_batch_size(task));
  }
  kept.add_piece(num_quanta, row_share, contribution, extras);
}

/// Least contributions of a table's columns, however divided into pieces and these into slices.
class LeastContributions {
 public:
  /// Unknown if the table is too wide, or would take more than the work `left`, which it takes its
  /// own from. If it is known, the table and its pieces are added to `kept`, unless they are too
  /// many (`is_kept`).
  LeastContributions(const Simulator& simulator, int table, bool rows, WorkLeft& left,
                     const StopClock& clock, MeanDevice& mean_device)
      : size_(simulator.compute().state_size()) {
    const Table& of = simulator.task().tables[table];
    const std::int64_t dim = of.embedding_dim;
    if (dim > kWidestDivided) return;
    // Which rows a slice has decides what it costs there, not only how many.
    if (rows && of.allow.rows && has_row_order(of)) return;
    const std::int64_t quantum = of.allow.columns && can_cut(dim) ? kColumnGranularity : dim;
    const std::int64_t divisions = (dim / quantum) * (dim / quantum + 1) / 2;
    const std::vector<int> numbers =
        rows && of.allow.rows ? numbers_of_slices(simulator.task(), of) : std::vector<int>{};
    if ((dim / quantum) * fewest_shares(numbers) > left.slices) return;
    const std::vector<double> shares = row_shares(numbers);
    const std::int64_t slices = (dim / quantum) * (static_cast<std::int64_t>(shares.size()) - 1);
    if (divisions > left.divisions || slices > left.slices) return;
    left.divisions -= divisions;
    left.slices -= slices;
    quantum_ = quantum;
    const auto pieces_of_table = static_cast<std::size_t>(dim / quantum) * shares.size();
    is_kept_ = mean_device.num_pieces() + pieces_of_table <= kMostPiecesKept;
    if (is_kept_) mean_device.add_table(dim / quantum);
    num_quanta_ = dim / quantum_;
    least_.resize(static_cast<std::size_t>(num_quanta_ + 1) * size_, 0.0);
    std::vector<double> pieces(least_.size(), 0.0);
    std::vector<double> slice(size_);
    for (std::int64_t n = 1; n <= num_quanta_; ++n) {
      clock.check();
      const std::span<double> piece(pieces.data() + static_cast<std::size_t>(n) * size_, size_);
      simulator.encode(table, n * quantum_, piece);
      const auto keep = [&](double share, std::span<const double> contribution) {
        if (!is_kept_) return;
        keep_piece(simulator.task(), of, n, n * quantum_, share, contribution, mean_device);
      };
      keep(1.0, piece);
      for (const double share : shares) {
        if (share >= 1.0) continue;
        clock.check();
        simulator.encode({table, n * quantum_, share}, slice);
        keep(share, slice);
        for (std::size_t i = 0; i < size_; ++i) piece[i] = std::min(piece[i], slice[i] / share);
      }
      double* best = least_.data() + static_cast<std::size_t>(n) * size_;
      std::copy(piece.begin(), piece.end(), best);
      for (std::int64_t part = 1; part < n; ++part) {
        const double* last = pieces.data() + static_cast<std::size_t>(part) * size_;
        const double* rest = least_.data() + static_cast<std::size_t>(n - part) * size_;
        for (std::size_t i = 0; i < size_; ++i) best[i] = std::min(best[i], last[i] + rest[i]);
      }
    }
    has_rows_ = shares.size() > 1;
    if (!has_rows_) return;
    per_quantum_.assign(size_, std::numeric_limits<double>::infinity());
    for (std::int64_t n = 1; n <= num_quanta_; ++n) {
      const double* piece = pieces.data() + static_cast<std::size_t>(n) * size_;
      for (std::size_t i = 0; i < size_; ++i) {
        per_quantum_[i] = std::min(per_quantum_[i], piece[i] / static_cast<double>(n));
      }
    }
  }

  [[nodiscard]] bool known() const { return num_quanta_ > 0; }
  /// Whether the mean device has its pieces.
  [[nodiscard]] bool is_kept() const { return is_kept_; }
  /// True if slices of rows were looked at.
  [[nodiscard]] bool has_rows() const { return has_rows_; }
  /// Least contribution of a quantum of whole rows, with rows.
  [[nodiscard]] const std::vector<double>& per_quantum() const { return per_quantum_; }
  [[nodiscard]] std::int64_t quantum() const { return quantum_; }
  [[nodiscard]] std::int64_t num_quanta() const { return num_quanta_; }
  /// Of n quanta.
  [[nodiscard]] std::span<const double> of(std::int64_t n) const {
    return {least_.data() + static_cast<std::size_t>(n) * size_, size_};
  }

 private:
  std::size_t size_;
  std::int64_t quantum_ = 0;
  std::int64_t num_quanta_ = 0;
  std::vector<double> least_;  ///< [quanta][state]
  bool has_rows_ = false;
  bool is_kept_ = false;
  std::vector<double> per_quantum_;  ///< [state]
};

/// Whether a plan cheaper than `known_ms` may have the table on every device; if so, `copy` is what
/// it then contributes to the copies' operator.
bool may_be_replicated(const Simulator& simulator, int number, double known_ms,
                       std::span<double> copy) {
  const Task& task = simulator.task();
  const Table& table = task.tables[number];
  const auto& memory = task.topology.memory_bytes;
  const bool has_room = table.allow.replicas && task.topology.world_size > 1 &&
                        shard_bytes(table, table.embedding_dim, task.optimizer) <=
                            *std::min_element(memory.begin(), memory.end());
  if (!has_room) return false;
  simulator.encode_replica(number, copy);
  return simulator.replica_cost({{number}}, copy).all_reduce_ms < known_ms;
}

/// A table that may be on every device, what it adds to the mean device if it is not, and what its
/// copy costs at least.
struct Replicable {
  int number = 0;
  std::vector<double> share;
  double columns = 0.0;
  double least_copy_ms = 0.0;
};

std::vector<int> numbers_of(const std::vector<Replicable>& tables) {
  std::vector<int> numbers;
  for (const Replicable& table : tables) numbers.push_back(table.number);
  return numbers;
}

/// Least cost of a device that holds at least 1/D of a table.
double cheapest_share(const Simulator& simulator, const Table& table,
                      const LeastContributions& least) {
  const Task& task = simulator.task();
  const int world_size = task.topology.world_size;
  const auto floor_ms = [&](std::int64_t quanta) {
    const std::int64_t columns = pooled_columns(table, quanta * least.quantum());
    return simulator.communication().floor_ms(task.topology, task.batch_size,
                                              static_cast<double>(columns));
  };
  const std::int64_t fewest = (least.num_quanta() + world_size - 1) / world_size;
  if (least.has_rows()) {
    std::vector<double> state = least.per_quantum();
    for (double& element : state) {
      element *= static_cast<double>(least.num_quanta()) / world_size;
    }
    return simulator.compute().bound(state) + floor_ms(fewest);
  }
  double cheapest = std::numeric_limits<double>::infinity();
  for (std::int64_t n = fewest; n <= least.num_quanta(); ++n) {
    cheapest = std::min(cheapest, simulator.compute().bound(least.of(n)) + floor_ms(n));
  }
  return cheapest;
}

}  // namespace

double lower_bound_ms(const Simulator& simulator, const Cuts& cuts, double known_ms,
                      const StopClock& clock) {
  const ComputeCostModel& compute = simulator.compute();
  if (!compute.is_convex_increasing()) return 0.0;
  const Task& task = simulator.task();
  const auto floor_ms = [&](double columns) {
    return simulator.communication().floor_ms(task.topology, task.batch_size, columns);
  };
  const int world_size = task.topology.world_size;
  std::vector<double> mean(compute.state_size(), 0.0);
  double mean_columns = 0.0;
  double largest = 0.0;  // the second part: of the tables one by one
  WorkLeft left;
  std::vector<Replicable> replicable;
  std::vector<double> copy(mean.size());
  std::vector<double> state_of_copies(mean.size(), 0.0);
  MeanDevice mean_device(simulator);
  PatientClock patient(clock);
  for (std::size_t t = 0; t < task.tables.size(); ++t) {
    patient.check();
    const int number = static_cast<int>(t);
    const Table& table = task.tables[t];
    const double columns =
        static_cast<double>(pooled_columns(table, table.embedding_dim)) / world_size;
    const bool replicas = cuts.replicas && may_be_replicated(simulator, number, known_ms, copy);
    mean_columns += columns;
    const LeastContributions least(simulator, number, cuts.rows, left, clock, mean_device);
    std::vector<double> share(mean.size(), 0.0);
    if (least.known()) {
      const auto whole = least.of(least.num_quanta());
      for (std::size_t i = 0; i < mean.size(); ++i) share[i] = whole[i] / world_size;
      for (std::size_t i = 0; i < mean.size(); ++i) mean[i] += share[i];
      if (!replicas) largest = std::max(largest, cheapest_share(simulator, table, least));
    }
    const MeanDevice::Extras extras{
        .columns = columns * world_size,
        .bytes = static_cast<double>(shard_bytes(table, table.embedding_dim, task.optimizer))};
    if (!least.known()) {
      mean_device.add_table_of_least(std::vector<double>(mean.size(), 0.0), extras);
    } else if (!least.is_kept()) {
      mean_device.add_table_of_least(least.of(least.num_quanta()), extras);
    }
    if (replicas) {
      mean_device.add_copy(
          copy, {.bytes = extras.bytes, .gradient_bytes = all_reduce_bytes(task, {{number}})});
      for (std::size_t i = 0; i < copy.size(); ++i) state_of_copies[i] += copy[i];
      replicable.push_back({number, std::move(share), columns, compute.least_rise_ms(copy)});
    }
  }
  double of_mean = compute.bound(mean) + floor_ms(mean_columns);
  double saved = 0.0;
  std::vector<double> more(mean.size());
  for (const Replicable& table : replicable) {
    patient.check();
    for (std::size_t i = 0; i < mean.size(); ++i) more[i] = mean[i] + table.share[i];
    const double gain_ms = compute.bound(more) + floor_ms(mean_columns + table.columns) - of_mean;
    saved += std::max(gain_ms - table.least_copy_ms, 0.0);
  }
  of_mean = std::max(of_mean - saved, 0.0);
  double relaxed = mean_device.bound_ms(known_ms, clock);
  if (replicable.size() == task.tables.size()) {
    const auto copies = simulator.replica_cost(numbers_of(replicable), state_of_copies);
    relaxed = std::min(relaxed, copies.compute_ms + copies.all_reduce_ms);
  }
  const double bound = std::min(std::max({of_mean, largest, relaxed}), known_ms);
  if (!is_cost(bound)) throw not_a_cost(compute.name(), "any plan at least", bound);
  return bound * (1.0 - kRounding);
}

}  // namespace neuroshard
