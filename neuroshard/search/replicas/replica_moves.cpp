// Single moves of tables between one device and all.
#include "neuroshard/search/replicas/replica_moves.h"

#include <algorithm>
#include <cstdint>
#include <limits>
#include <map>
#include <numeric>
#include <optional>
#include <span>
#include <tuple>
#include <utility>
#include <vector>

#include "neuroshard/core/numbers/byte_sum.h"
#include "neuroshard/cost/compute/head_kernel.h"
#include "neuroshard/search/slices/row_slices.h"
#include "neuroshard/search/state_rows.h"

namespace neuroshard {

namespace {

/// Tables that are tried, those of the fewest rows: an all-reduce sends a gradient for each row.
constexpr std::size_t kMostTried = 64;
constexpr int kMostMoves = 32;
/// Devices to which a whole replicated table is tried to go, those with least to do.
constexpr std::size_t kMostTargets = 16;
/// What rounding in the last digits of the least cost of a move may amount to.
constexpr double kMoveRounding = 1e-9;

/// A plan, the state of its devices and its price. States are exact sums: pieces are added and
/// taken away, and those of tables that are tried are encoded once.
class ReplicaMoves {
 public:
  ReplicaMoves(const Simulator& simulator, ShardingPlan plan, bool may_slice, SearchStats& stats,
               const StopClock& clock, const ReplicaMoveLimit* limit)
      : simulator_(simulator),
        limit_(limit),
        may_slice_(may_slice),
        stats_(stats),
        clock_(clock),
        plan_(std::move(plan)),
        shards_of_(simulator.task().tables.size()),
        pieces_(simulator.compute().state_size()),
        of_others_(simulator.compute().state_size()),
        replicas_(simulator.compute().state_size()),
        replica_state_(simulator.compute().state_size(), 0.0),
        states_(simulator.compute().state_size(), static_cast<std::size_t>(num_devices())),
        devices_(static_cast<std::size_t>(num_devices())),
        columns_(devices_.size(), 0.0),
        compute_ms_(devices_.size(), 0.0),
        floor_ms_(devices_.size(), 0.0) {
    const std::vector<Table>& tables = simulator.task().tables;
    for (std::size_t t = 0; t < tables.size(); ++t) {
      if (tables[t].allow.replicas) tried_.push_back(static_cast<int>(t));
    }
    std::stable_sort(tried_.begin(), tried_.end(), [&](int a, int b) {
      return tables[a].num_embeddings < tables[b].num_embeddings;
    });
    if (tried_.size() > kMostTried) tried_.resize(kMostTried);
    is_tried_.resize(tables.size());
    for (const int table : tried_) is_tried_[table] = true;
    std::iota(devices_.begin(), devices_.end(), 0);
  }

  ShardingPlan run() {
    if (tried_.empty()) return std::move(plan_);
    try {
      sum_up();
      double least = simulator_
                         .combine(with_replicas_ms(), columns_, replica_cost_.all_reduce_ms,
                                  simulator_.partial_sums_ms(partial_bytes_))
                         .cost_ms;
      for (int moves = 0; moves < kMostMoves; ++moves) {
        const std::optional<Move> best = best_move(least);
        if (!best) break;
        least = best->cost_ms;
        make(*best);
      }
    } catch (const TimeIsOver&) {
      stats_.stopped_by_clock = true;  // the plan is that of the moves made
    }
    sort_shards(plan_);
    return std::move(plan_);
  }

 private:
  /// A table's move and the cost of the plan that results.
  struct Move {
    int table = 0;
    std::vector<Shard> shards{};  ///< none: to every device
    double cost_ms = std::numeric_limits<double>::infinity();
  };

  [[nodiscard]] int num_devices() const { return simulator_.task().topology.world_size; }
  [[nodiscard]] bool is_replicated(int table) const {
    return std::binary_search(plan_.replicated_tables.begin(), plan_.replicated_tables.end(),
                              table);
  }

  /// The cheapest move, if one lowers the cost.
  std::optional<Move> best_move(double least) {
    std::optional<Move> best;
    for (const int table : tried_) {
      clock_.check();
      const double below = least * (1.0 - kMoveRounding);
      Move move;
      if (is_replicated(table)) {
        move = from_every_device(table, below);
      } else if (has_room(table)) {
        move = to_every_device(table, below);
      }
      if (move.cost_ms >= below || !may_move(move)) continue;
      least = move.cost_ms;
      best = std::move(move);
    }
    return best;
  }

  [[nodiscard]] WideBytes moved_bytes_with(const Move& move) const {
    return moved_bytes_ - limit_->moved_bytes(move.table, shards_of_[move.table]) +
           limit_->moved_bytes(move.table, move.shards);
  }
  [[nodiscard]] bool may_move(const Move& move) const {
    return limit_ == nullptr || saturated(moved_bytes_with(move)) <=
                                    std::max(limit_->limit_bytes, saturated(moved_bytes_));
  }

  void make(const Move& move) {
    if (limit_ != nullptr) moved_bytes_ = moved_bytes_with(move);
    if (move.shards.empty()) {
      add(shards_of_[move.table], -1.0);
      refresh(shards_of_[move.table]);
      partial_bytes_ -= partial_bytes_of(shards_of_[move.table]);
      add_replica(move.table, 1.0, replica_state_);
    } else {
      add(move.shards, 1.0);
      refresh(move.shards);
      partial_bytes_ += partial_bytes_of(move.shards);
      add_replica(move.table, -1.0, replica_state_);
    }
    plan_.replicated_tables = toggled(move.table);
    replica_cost_ = simulator_.replica_cost(plan_.replicated_tables, replica_state_);
    shards_of_[move.table] = move.shards;
    std::erase_if(plan_.shards, [&](const Shard& shard) { return shard.table == move.table; });
    plan_.shards.insert(plan_.shards.end(), move.shards.begin(), move.shards.end());
    bytes_ = device_memory(simulator_.task(), plan_);
  }

  [[nodiscard]] std::span<double> state_of(int device) {
    return states_[static_cast<std::size_t>(device)];
  }

  /// Of the shard as a piece; of a table that is tried, encoded once.
  std::span<const double> contribution_of(const Shard& shard) {
    const Piece piece = piece_of(simulator_.task(), shard);
    if (!is_tried_[shard.table]) {
      simulator_.encode(piece, of_others_);
      return of_others_;
    }
    const auto [place, is_new] = piece_numbers_.try_emplace(piece, piece_numbers_.size());
    if (is_new) {
      pieces_.resize(place->second + 1);
      simulator_.encode(piece, pieces_[place->second]);
    }
    return pieces_[place->second];
  }

  /// Adds a replicated table to a state of the operator of replicated tables, or takes it away.
  void add_replica(int table, double sign, std::span<double> state) {
    const auto [place, is_new] = replica_numbers_.try_emplace(table, replica_numbers_.size());
    if (is_new) {
      replicas_.resize(place->second + 1);
      simulator_.encode_replica(table, replicas_[place->second]);
    }
    const std::span<const double> contribution = replicas_[place->second];
    (sign > 0.0 ? kernels::add : kernels::subtract)(state.data(), contribution.data(),
                                                    state.size());
  }

  /// Adds shards to the sums of their devices, or takes them from there.
  void add(std::span<const Shard> shards, double sign) {
    for (const Shard& shard : shards) {
      const std::span<double> state = state_of(shard.device);
      (sign > 0.0 ? kernels::add : kernels::subtract)(state.data(), contribution_of(shard).data(),
                                                      state.size());
      columns_[shard.device] +=
          sign * static_cast<double>(
                     pooled_columns(simulator_.task().tables[shard.table], shard.num_columns));
    }
  }

  /// Prices the devices of these shards.
  void refresh(std::span<const Shard> shards) {
    for (const Shard& shard : shards) refresh(shard.device);
  }
  void refresh(int device) {
    const Task& task = simulator_.task();
    compute_ms_[device] = simulator_.compute().cost(state_of(device));
    floor_ms_[device] = compute_ms_[device] + simulator_.communication().floor_ms(
                                                  task.topology, task.batch_size, columns_[device]);
    ++stats_.head_evaluations;
  }

  void sum_up() {
    PatientClock clock(clock_);
    for (const Shard& shard : plan_.shards) {
      clock.check();
      shards_of_[shard.table].push_back(shard);
      add({&shard, 1}, 1.0);
    }
    for (const int device : devices_) refresh(device);
    for (const std::vector<Shard>& shards : shards_of_) partial_bytes_ += partial_bytes_of(shards);
    for (const int table : plan_.replicated_tables) add_replica(table, 1.0, replica_state_);
    replica_cost_ = simulator_.replica_cost(plan_.replicated_tables, replica_state_);
    bytes_ = device_memory(simulator_.task(), plan_);
    if (limit_ == nullptr) return;
    for (std::size_t t = 0; t < shards_of_.size(); ++t) {
      moved_bytes_ += limit_->moved_bytes(static_cast<int>(t), shards_of_[t]);
    }
  }

  /// What each device reads and writes to add up the partial sums of a table in these shards.
  [[nodiscard]] double partial_bytes_of(const std::vector<Shard>& shards) const {
    const bool is_sliced = std::any_of(shards.begin(), shards.end(),
                                       [](const Shard& shard) { return !shard.has_all_rows(); });
    return is_sliced ? partial_sum_bytes(simulator_.task(), {shards, {}}) : 0.0;
  }

  /// On every device, next to the table's shards there, which is more than there will be.
  [[nodiscard]] bool has_room(int table) const {
    const Table& of = simulator_.task().tables[table];
    const auto& capacity = simulator_.task().topology.memory_bytes;
    const std::int64_t bytes = shard_bytes(of, of.embedding_dim, simulator_.task().optimizer);
    for (std::size_t d = 0; d < capacity.size(); ++d) {
      if (add_saturated(bytes_[d], bytes) > capacity[d]) return false;
    }
    return true;
  }

  [[nodiscard]] std::vector<double> with_replicas_ms() const {
    std::vector<double> compute_ms = compute_ms_;
    for (double& ms : compute_ms) ms += replica_cost_.compute_ms;
    return compute_ms;
  }

  /// The replicated tables' cost with this one taken from among them, or added.
  [[nodiscard]] Simulator::ReplicaCost replica_cost_without_or_with(int table) {
    std::vector<double> state = replica_state_;
    add_replica(table, is_replicated(table) ? -1.0 : 1.0, state);
    ++stats_.head_evaluations;
    return simulator_.replica_cost(toggled(table), state);
  }

  /// Whether devices as they are must cost that much, with these replicated tables.
  [[nodiscard]] bool cost_at_least(double ms, const Simulator::ReplicaCost& replicas,
                                   double partial_sums_ms) const {
    return *std::max_element(floor_ms_.begin(), floor_ms_.end()) + replicas.compute_ms +
               replicas.all_reduce_ms + partial_sums_ms >=
           ms;
  }

  /// Of the devices as they are, with these replicated tables; infinite if it must be `below` or
  /// more.
  double price(const Simulator::ReplicaCost& replicas, double partial_bytes, double below) {
    const double partial_sums_ms = simulator_.partial_sums_ms(partial_bytes);
    if (cost_at_least(below, replicas, partial_sums_ms)) {
      return std::numeric_limits<double>::infinity();
    }
    // Most moves gain nothing, which takes less time to see than their price.
    const Task& task = simulator_.task();
    std::vector<double> before_forward_ms = compute_ms_;
    for (double& ms : before_forward_ms) ms += replicas.compute_ms + replicas.all_reduce_ms;
    const double least_ms =
        partial_sums_ms + simulator_.communication().least_cost_ms(task.topology, task.batch_size,
                                                                   before_forward_ms, columns_);
    if (least_ms * (1.0 - kMoveRounding) >= below) return std::numeric_limits<double>::infinity();
    std::vector<double> compute_ms = compute_ms_;
    for (double& ms : compute_ms) ms += replicas.compute_ms;
    ++stats_.plans_priced;
    return simulator_.combine(compute_ms, columns_, replicas.all_reduce_ms, partial_sums_ms)
        .cost_ms;
  }

  [[nodiscard]] std::vector<int> toggled(int table) const {
    std::vector<int> replicated = plan_.replicated_tables;
    const auto place = std::lower_bound(replicated.begin(), replicated.end(), table);
    if (place != replicated.end() && *place == table) {
      replicated.erase(place);
    } else {
      replicated.insert(place, table);
    }
    return replicated;
  }

  /// Calls `price` with the shards added or taken away, and leaves everything as it was.
  template <typename Price>
  double tried(std::span<const Shard> shards, double sign, const Price& price) {
    remembered_.clear();
    for (const Shard& shard : shards) {
      remembered_.push_back({compute_ms_[shard.device], floor_ms_[shard.device]});
    }
    add(shards, sign);
    refresh(shards);
    const double cost_ms = price();
    add(shards, -sign);
    for (std::size_t i = 0; i < shards.size(); ++i) {
      compute_ms_[shards[i].device] = remembered_[i].first;
      floor_ms_[shards[i].device] = remembered_[i].second;
    }
    return cost_ms;
  }

  Move to_every_device(int table, double below) {
    const Simulator::ReplicaCost replicas = replica_cost_without_or_with(table);
    const std::vector<Shard>& shards = shards_of_[table];
    const double partial_bytes = partial_bytes_ - partial_bytes_of(shards);
    const double cost_ms =
        tried(shards, -1.0, [&] { return price(replicas, partial_bytes, below); });
    return {table, {}, cost_ms};
  }

  /// Whole on one device, or in a slice of rows on each; it has room wherever it was.
  Move from_every_device(int table, double below) {
    const Task& task = simulator_.task();
    const Table& of = task.tables[table];
    const Simulator::ReplicaCost replicas = replica_cost_without_or_with(table);
    Move best{table};
    if (cost_at_least(below, replicas, simulator_.partial_sums_ms(partial_bytes_))) return best;
    const auto keep_if_better = [&](std::vector<Shard> shards) {
      const double partial_bytes = partial_bytes_ + partial_bytes_of(shards);
      const double cost_ms = tried(shards, 1.0, [&] {
        return price(replicas, partial_bytes, std::min(below, best.cost_ms));
      });
      if (cost_ms < best.cost_ms) best = {table, std::move(shards), cost_ms};
    };
    const std::size_t targets = std::min(devices_.size(), kMostTargets);
    std::vector<int> first = devices_;
    std::partial_sort(
        first.begin(), first.begin() + static_cast<std::ptrdiff_t>(targets), first.end(),
        [&](int a, int b) { return std::tie(floor_ms_[a], a) < std::tie(floor_ms_[b], b); });
    first.resize(targets);
    std::sort(first.begin(), first.end());
    for (const int device : first) keep_if_better({{table, 0, of.embedding_dim, device}});
    if (may_slice_ && can_slice(task, of, num_devices())) {
      const std::vector<std::int64_t> ends = simulator_.slice_ends(table, num_devices());
      std::vector<Shard> slices;
      for (int device = 0; device < num_devices(); ++device) {
        slices.push_back(
            {table, 0, of.embedding_dim, device, ends[device], ends[device + 1] - ends[device]});
      }
      keep_if_better(std::move(slices));
    }
    return best;
  }

  const Simulator& simulator_;
  const ReplicaMoveLimit* limit_;  ///< nullptr: none
  WideBytes moved_bytes_ = 0;      ///< if there is a limit
  bool may_slice_;
  SearchStats& stats_;
  const StopClock& clock_;
  ShardingPlan plan_;
  std::vector<int> tried_;
  std::vector<bool> is_tried_;                 ///< by table
  std::vector<std::vector<Shard>> shards_of_;  ///< by table
  std::map<Piece, std::size_t> piece_numbers_;
  StateRows pieces_;               ///< contributions, by these numbers
  std::vector<double> of_others_;  ///< scratch
  std::map<int, std::size_t> replica_numbers_;
  StateRows replicas_;  ///< contributions of tables on every device, by these numbers
  std::vector<double> replica_state_;
  Simulator::ReplicaCost replica_cost_;
  StateRows states_;          ///< by device, without replicas
  std::vector<int> devices_;  ///< 0, 1, ...
  std::vector<double> columns_;
  std::vector<double> compute_ms_;
  std::vector<double> floor_ms_;  ///< of computation and communication
  std::vector<std::int64_t> bytes_;
  double partial_bytes_ = 0.0;  ///< that each device reads and writes to add up partial sums
  std::vector<std::pair<double, double>> remembered_;  ///< scratch
};

}  // namespace

ShardingPlan with_replica_moves(const Simulator& simulator, const ShardingPlan& plan,
                                bool may_slice, SearchStats& stats, const StopClock& clock,
                                const ReplicaMoveLimit* limit) {
  return ReplicaMoves(simulator, plan, may_slice, stats, clock, limit).run();
}

}  // namespace neuroshard
