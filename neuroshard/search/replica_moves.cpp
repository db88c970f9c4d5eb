// Single moves of tables between one device and all.
#include "neuroshard/search/replica_moves.h"

#include <algorithm>
#include <cstdint>
#include <limits>
#include <optional>
#include <utility>
#include <vector>

#include "neuroshard/core/byte_sum.h"
#include "neuroshard/search/row_slices.h"
#include "neuroshard/search/state_rows.h"

namespace neuroshard {

namespace {

/// Tables that are tried, those of the fewest rows: an all-reduce sends a gradient for each row.
constexpr std::size_t kMostTried = 64;
constexpr int kMostMoves = 32;
/// What rounding in the last digits of a cost may amount to.
constexpr double kRounding = 1e-9;

/// A plan, the state of its devices and its price.
class ReplicaMoves {
 public:
  ReplicaMoves(const Simulator& simulator, ShardingPlan plan, bool may_slice, SearchStats& stats)
      : simulator_(simulator),
        may_slice_(may_slice),
        stats_(stats),
        plan_(std::move(plan)),
        contribution_(simulator.compute().state_size()) {
    const std::vector<Table>& tables = simulator.task().tables;
    for (std::size_t t = 0; t < tables.size(); ++t) {
      if (tables[t].allow.replicas) tried_.push_back(static_cast<int>(t));
    }
    std::stable_sort(tried_.begin(), tried_.end(), [&](int a, int b) {
      return tables[a].num_embeddings < tables[b].num_embeddings;
    });
    if (tried_.size() > kMostTried) tried_.resize(kMostTried);
  }

  ShardingPlan run() {
    double least = simulator_.cost(plan_).cost_ms;
    for (int moves = 0; moves < kMostMoves; ++moves) {
      sum_up();
      std::optional<ShardingPlan> best;
      for (const int table : tried_) {
        const bool is_replicated = std::binary_search(plan_.replicated_tables.begin(),
                                                      plan_.replicated_tables.end(), table);
        if (!is_replicated && !has_room(table)) continue;
        const Move move = is_replicated ? from_every_device(table) : to_every_device(table);
        if (move.cost_ms >= least * (1.0 - kRounding)) continue;
        least = move.cost_ms;
        best = after(table, move);
      }
      if (!best) break;
      plan_ = std::move(*best);
    }
    sort_shards(plan_);
    return plan_;
  }

 private:
  /// A table's move and the cost of the plan that results.
  struct Move {
    std::vector<Shard> shards;  ///< none: to every device
    double cost_ms = std::numeric_limits<double>::infinity();
  };

  [[nodiscard]] int num_devices() const { return simulator_.task().topology.world_size; }

  /// Adds a shard to the sums of its device, or takes it from them.
  void count(const Shard& shard, double sign) {
    const Task& task = simulator_.task();
    simulator_.encode(piece_of(task, shard), contribution_);
    const std::span<double> state = states_[static_cast<std::size_t>(shard.device)];
    for (std::size_t i = 0; i < state.size(); ++i) state[i] += sign * contribution_[i];
    columns_[shard.device] +=
        sign * static_cast<double>(pooled_columns(task.tables[shard.table], shard.num_columns));
    compute_ms_[shard.device] = simulator_.compute().cost(state);
    ++stats_.head_evaluations;
  }

  void sum_up() {
    const auto devices = static_cast<std::size_t>(num_devices());
    states_ = StateRows(contribution_.size(), devices);
    columns_.assign(devices, 0.0);
    compute_ms_.assign(devices, 0.0);
    partial_bytes_ = 0.0;
    count_partial_sums();
    for (const Shard& shard : plan_.shards) count(shard, 1.0);
    bytes_ = device_memory(simulator_.task(), plan_);
  }

  /// Of each table, and of all.
  void count_partial_sums() {
    partial_bytes_of_.assign(simulator_.task().tables.size(), 0.0);
    std::vector<ShardingPlan> parts(partial_bytes_of_.size());
    for (const Shard& shard : plan_.shards) parts[shard.table].shards.push_back(shard);
    for (std::size_t t = 0; t < parts.size(); ++t) {
      partial_bytes_of_[t] = partial_sum_bytes(simulator_.task(), parts[t]);
      partial_bytes_ += partial_bytes_of_[t];
    }
  }

  [[nodiscard]] std::int64_t whole_bytes(int table) const {
    const Table& of = simulator_.task().tables[table];
    return shard_bytes(of, of.embedding_dim, simulator_.task().optimizer);
  }

  /// On every device, next to the table's shards there, which is more than there will be.
  [[nodiscard]] bool has_room(int table) const {
    const auto& capacity = simulator_.task().topology.memory_bytes;
    const std::int64_t bytes = whole_bytes(table);
    for (std::size_t d = 0; d < capacity.size(); ++d) {
      if (add_saturated(bytes_[d], bytes) > capacity[d]) return false;
    }
    return true;
  }

  /// Of the states as they are, with these tables on every device and these partial sums.
  double cost_with(const std::vector<int>& replicated, double partial_bytes) {
    const Simulator::ReplicaCost replicas = simulator_.replica_cost(replicated);
    std::vector<double> compute_ms = compute_ms_;
    for (double& ms : compute_ms) ms += replicas.compute_ms;
    ++stats_.plans_priced;
    return simulator_
        .combine(compute_ms, columns_, replicas.all_reduce_ms,
                 simulator_.partial_sums_ms(partial_bytes))
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

  Move to_every_device(int table) {
    const auto count_all = [&](double sign) {
      for (const Shard& shard : plan_.shards) {
        if (shard.table == table) count(shard, sign);
      }
    };
    count_all(-1.0);
    const double cost_ms = cost_with(toggled(table), partial_bytes_ - partial_bytes_of_[table]);
    count_all(1.0);
    return {{}, cost_ms};
  }

  /// With the table in these shards instead of on every device.
  Move instead(int table, std::vector<Shard> shards) {
    for (const Shard& shard : shards) count(shard, 1.0);
    const double more_bytes = partial_sum_bytes(simulator_.task(), {shards, {}});
    const double cost_ms = cost_with(toggled(table), partial_bytes_ + more_bytes);
    for (const Shard& shard : shards) count(shard, -1.0);
    return {std::move(shards), cost_ms};
  }

  /// Whole on one device, or in a slice of rows on each; it has room wherever it was.
  Move from_every_device(int table) {
    const Task& task = simulator_.task();
    const Table& of = task.tables[table];
    Move best;
    const auto keep_if_better = [&](Move move) {
      if (move.cost_ms < best.cost_ms) best = std::move(move);
    };
    for (int device = 0; device < num_devices(); ++device) {
      keep_if_better(instead(table, {{table, 0, of.embedding_dim, device}}));
    }
    if (may_slice_ && can_slice(task, of, num_devices())) {
      const std::vector<std::int64_t> ends = simulator_.slice_ends(table, num_devices());
      std::vector<Shard> slices;
      for (int device = 0; device < num_devices(); ++device) {
        slices.push_back(
            {table, 0, of.embedding_dim, device, ends[device], ends[device + 1] - ends[device]});
      }
      keep_if_better(instead(table, std::move(slices)));
    }
    return best;
  }

  [[nodiscard]] ShardingPlan after(int table, const Move& move) const {
    ShardingPlan plan = plan_;
    plan.replicated_tables = toggled(table);
    std::erase_if(plan.shards, [&](const Shard& shard) { return shard.table == table; });
    plan.shards.insert(plan.shards.end(), move.shards.begin(), move.shards.end());
    return plan;
  }

  const Simulator& simulator_;
  bool may_slice_;
  SearchStats& stats_;
  ShardingPlan plan_;
  std::vector<int> tried_;
  std::vector<double> contribution_;  ///< scratch
  StateRows states_{0};               ///< by device, without replicas
  std::vector<double> columns_;
  std::vector<double> compute_ms_;
  std::vector<std::int64_t> bytes_;
  /// What each device reads and writes to add up partial sums: for each table, and in all.
  std::vector<double> partial_bytes_of_;
  double partial_bytes_ = 0.0;
};

}  // namespace

ShardingPlan with_replica_moves(const Simulator& simulator, const ShardingPlan& plan,
                                bool may_slice, SearchStats& stats) {
  return ReplicaMoves(simulator, plan, may_slice, stats).run();
}

}  // namespace neuroshard
