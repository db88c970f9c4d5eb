// The bound's parts.
#include "neuroshard/search/bound/lower_bound.h"

#include <algorithm>
#include <limits>
#include <map>
#include <span>
#include <vector>

#include "neuroshard/core/table_pins.h"
#include "neuroshard/cost/cost_value.h"
#include "neuroshard/search/bound/bound_pieces.h"
#include "neuroshard/search/bound/mean_device.h"
#include "neuroshard/search/groups/bundled_task.h"

namespace neuroshard {

namespace {

/// What rounding in the last digits of a cost may amount to.
constexpr double kRounding = 1e-9;

/// Pieces kept to be looked at again and again: some 50 MB.
constexpr std::size_t kMostPiecesKept = 40'000;

/// Different sets of devices that tables are pinned to; those of later tables are not looked at.
constexpr std::size_t kMostDeviceSets = 64;

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
  /// Unknown if there are no pieces. If it is known, the table and its pieces are added to the mean
  /// device, unless they are too many (`is_kept`).
  LeastContributions(const Simulator& simulator, int table, const PiecesOfTable& looked_at,
                     const StopClock& clock, MeanDevice& mean_device)
      : size_(simulator.compute().state_size()),
        quantum_(looked_at.quantum),
        num_quanta_(looked_at.num_quanta) {
    if (num_quanta_ == 0) return;
    const Table& of = simulator.task().tables[table];
    const std::vector<double>& shares = looked_at.row_shares;
    const auto pieces_of_table = static_cast<std::size_t>(num_quanta_) * shares.size();
    is_kept_ = mean_device.num_pieces() + pieces_of_table <= kMostPiecesKept;
    if (is_kept_) mean_device.add_table(num_quanta_);
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
  std::int64_t quantum_;
  std::int64_t num_quanta_;
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

/// Least cost of a device that holds at least 1/D of a table, which may lie on D devices.
double cheapest_share(const Simulator& simulator, const Table& table, int num_devices,
                      const LeastContributions& least) {
  const Task& task = simulator.task();
  const auto floor_ms = [&](std::int64_t quanta) {
    const std::int64_t columns = pooled_columns(table, quanta * least.quantum());
    return simulator.communication().floor_ms(task.topology, task.batch_size,
                                              static_cast<double>(columns));
  };
  const std::int64_t fewest = (least.num_quanta() + num_devices - 1) / num_devices;
  if (least.has_rows()) {
    std::vector<double> state = least.per_quantum();
    for (double& element : state) {
      element *= static_cast<double>(least.num_quanta()) / num_devices;
    }
    return simulator.compute().bound(state) + floor_ms(fewest);
  }
  double cheapest = std::numeric_limits<double>::infinity();
  for (std::int64_t n = fewest; n <= least.num_quanta(); ++n) {
    cheapest = std::min(cheapest, simulator.compute().bound(least.of(n)) + floor_ms(n));
  }
  return cheapest;
}

/// What tables that may lie on some devices alone add to these, at least.
class PinnedLoads {
 public:
  /// `devices` rise.
  void add(std::span<const int> devices, std::span<const double> state, double columns) {
    const std::vector<int> key(devices.begin(), devices.end());
    if (!loads_.contains(key) && loads_.size() == kMostDeviceSets) return;
    Load& load = loads_[key];
    load.state.resize(state.size());
    for (std::size_t i = 0; i < state.size(); ++i) load.state[i] += state[i];
    load.columns += columns;
  }

  /// Of every plan [ms]: what the mean device of a set costs with the tables that may lie on
  /// devices of the set alone, for the set of which that is most.
  [[nodiscard]] double bound_ms(const Simulator& simulator) const {
    const Task& task = simulator.task();
    double most_ms = 0.0;
    for (const auto& [devices, load] : loads_) {
      const auto num_devices = static_cast<double>(devices.size());
      std::vector<double> mean(load.state.size(), 0.0);
      double columns = 0.0;
      for (const auto& [within, part] : loads_) {
        if (!std::includes(devices.begin(), devices.end(), within.begin(), within.end())) continue;
        for (std::size_t i = 0; i < mean.size(); ++i) mean[i] += part.state[i] / num_devices;
        columns += part.columns / num_devices;
      }
      most_ms = std::max(
          most_ms, simulator.compute().bound(mean) +
                       simulator.communication().floor_ms(task.topology, task.batch_size, columns));
    }
    return most_ms;
  }

 private:
  struct Load {
    std::vector<double> state{};
    double columns = 0.0;
  };

  std::map<std::vector<int>, Load> loads_;  ///< by devices
};

}  // namespace

double lower_bound_ms(const Simulator& simulator, const Cuts& cuts, double known_ms,
                      const StopClock& clock) {
  const ComputeCostModel& compute = simulator.compute();
  if (!compute.is_convex_increasing()) return 0.0;
  const Task& task = simulator.task();
  if (has_groups(task)) {
    const BundledTask bundled(task);
    return lower_bound_ms(Simulator(simulator, bundled.task(), bundled.members()), cuts, known_ms,
                          clock);
  }
  const auto floor_ms = [&](double columns) {
    return simulator.communication().floor_ms(task.topology, task.batch_size, columns);
  };
  const int world_size = task.topology.world_size;
  const TablePins pins(task);
  PinnedLoads pinned;
  std::vector<double> mean(compute.state_size(), 0.0);
  double mean_columns = 0.0;
  double largest = 0.0;  // the second part: of the tables one by one
  BoundWork work(task, cuts);
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
    const LeastContributions least(simulator, number, work.pieces_of(table), clock, mean_device);
    const std::span<const int> devices = pins.devices_of(number);
    const int num_devices = devices.empty() ? world_size : static_cast<int>(devices.size());
    std::vector<double> whole(mean.size(), 0.0);
    std::vector<double> share(mean.size(), 0.0);
    if (least.known()) {
      std::ranges::copy(least.of(least.num_quanta()), whole.begin());
      for (std::size_t i = 0; i < mean.size(); ++i) share[i] = whole[i] / world_size;
      for (std::size_t i = 0; i < mean.size(); ++i) mean[i] += share[i];
      if (!replicas) {
        largest = std::max(largest, cheapest_share(simulator, table, num_devices, least));
      }
    }
    if (!devices.empty()) pinned.add(devices, whole, columns * world_size);
    const MeanDevice::Extras extras{
        .columns = columns * world_size,
        .bytes = static_cast<double>(shard_bytes(table, table.embedding_dim, task.optimizer))};
    if (!least.is_kept()) mean_device.add_table_of_least(whole, extras);
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
  const double bound =
      std::min(std::max({of_mean, largest, pinned.bound_ms(simulator), relaxed}), known_ms);
  if (!is_cost(bound)) throw not_a_cost(compute.name(), "any plan at least", bound);
  return bound * (1.0 - kRounding);
}

}  // namespace neuroshard
