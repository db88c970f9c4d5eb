// The simulator: the one definition of what a sharding plan costs,
//   cost(plan) = max over devices of
//                compute + all-reduce + backward communication + forward communication,
// where the forward communication ends with the addition of partial sums.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "neuroshard/core/sharding_plan.h"
#include "neuroshard/core/stop_clock.h"
#include "neuroshard/cost/communication/communication_cost_model.h"
#include "neuroshard/cost/compute/compute_cost_model.h"

namespace neuroshard {

class OrderedRows;

/// Range of the predictions of the computation model's members for one device [ms].
struct MemberRange {
  double least_ms = 0.0;
  double most_ms = 0.0;

  /// Relative to the middle; 0 for a model without members and for a device without pieces.
  [[nodiscard]] double spread() const {
    return most_ms > least_ms ? 2.0 * (most_ms - least_ms) / (most_ms + least_ms) : 0.0;
  }
};

/// Prices plans of one task. Immutable after construction, so threads may share it. What it returns
/// is finite and at least 0: pricing throws InputError, which names the model, where a model's
/// prediction is not.
class Simulator {
 public:
  /// Keeps copies of the pointers and of the task. Throws InputError if the task is not valid, and
  /// TimeIsOver.
  Simulator(Task task, std::shared_ptr<const ComputeCostModel> compute,
            std::shared_ptr<const CommunicationCostModel> communication,
            const StopClock& clock = {});

  /// The same, of a task that allows these cuts alone.
  [[nodiscard]] Simulator with_cuts(const Cuts& cuts) const;

  /// The same task and communication, another computation model.
  Simulator(const Simulator& other, std::shared_ptr<const ComputeCostModel> compute);

  /// Its tables allow the cuts that both they and the task did.
  [[nodiscard]] const Task& task() const { return task_; }
  [[nodiscard]] const ComputeCostModel& compute() const { return *compute_; }
  [[nodiscard]] const std::shared_ptr<const ComputeCostModel>& shared_compute() const {
    return compute_;
  }
  [[nodiscard]] const CommunicationCostModel& communication() const { return *communication_; }

  /// Contribution of a piece of table `table` (index into the task) to its device's state.
  void encode(int table, std::int64_t num_columns, std::span<double> contribution) const;
  /// The same, of a slice of rows too.
  void encode(const Piece& piece, std::span<double> contribution) const;

  /// Contribution of a replicated table, of which each device looks up its share of the batch, to
  /// the state of the operator of replicated tables.
  void encode_replica(int table, std::span<double> contribution) const;

  /// What replicated tables cost each device [ms]. They are an operator of their own, as each
  /// device looks up its share of the batch alone.
  struct ReplicaCost {
    double compute_ms = 0.0;
    double all_reduce_ms = 0.0;  ///< of the gradients of all their rows, in fp32
  };
  [[nodiscard]] ReplicaCost replica_cost(std::span<const int> tables) const;
  /// The same, of tables whose contributions add up to `state`.
  [[nodiscard]] ReplicaCost replica_cost(std::span<const int> tables,
                                         std::span<const double> state) const;

  /// What each device takes to add up the partial sums of the plan's slices of rows, at the end of
  /// the forward all-to-all [ms]; 0 for a plan without.
  [[nodiscard]] double partial_sums_ms(const ShardingPlan& plan) const;
  /// For which it reads and writes this many bytes.
  [[nodiscard]] double partial_sums_ms(double bytes) const;
  /// A piece's part of these bytes for each column of its pooled output, if the rows are in
  /// `num_slices` slices: it is read, and the sum, written once, is shared by all. Sums of them are
  /// exact.
  [[nodiscard]] double partial_bytes_per_column(double num_slices) const;
  /// Of a piece of all rows that this task's table has, which may be a slice of another's.
  [[nodiscard]] double partial_bytes_per_column_of(int table) const {
    return partial_bytes_per_column_.empty() ? 0.0 : partial_bytes_per_column_[table];
  }

  /// How the task's tables are used, one after the other.
  [[nodiscard]] std::span<const TableStatistics> statistics() const { return statistics_; }
  /// How the rows of a slice (or of a whole table) are used.
  [[nodiscard]] TableStatistics statistics_of(const Piece& piece) const;
  /// Contribution of `num_columns` columns of such rows.
  void encode(const TableStatistics& rows, std::int64_t num_columns,
              std::span<double> contribution) const;

  /// Where to cut a table's rows into slices whose lookups cost as much as each other's
  /// (ordered_rows.h), as far as its rows and `min_shard_rows` permit, which must permit that many
  /// slices, and the largest device's memory, if that many of all columns can fit:
  /// `num_slices` + 1 rows, the first 0, the last the number of rows. Of hashed ids, slices of as
  /// many rows.
  [[nodiscard]] std::vector<std::int64_t> slice_ends(int table, int num_slices) const;

  /// The same models on a task whose tables are whole ones of the other's or slices of their rows,
  /// one of `slices` for each, of whatever columns (slices have no row order of their own), with
  /// their parts of what partial sums take; every device costs `fixed` more. The task follows
  /// from the other's. Throws TimeIsOver.
  Simulator(const Simulator& other, Task task, std::span<const Piece> slices,
            std::vector<double> partial_bytes_per_column, const ReplicaCost& fixed,
            const StopClock& clock = {});

  /// The same models on a task each of whose tables stands for some of the other's, `members`, with
  /// all their rows and columns: its contribution is the sum of theirs. The task follows from the
  /// other's, and has tables with more than one member in one piece.
  Simulator(const Simulator& other, Task task, const std::vector<std::vector<int>>& members);

  /// Cost of a plan from each device's computation cost [ms] and sum of columns: adds both
  /// all-to-alls and, before the second, an all-reduce, after it the addition of partial sums [ms].
  /// `memory_bytes` of the result is left 0. Costs of computation must be finite too.
  [[nodiscard]] PlanCost combine(std::span<const double> compute_ms,
                                 std::span<const double> columns, double all_reduce_ms = 0.0,
                                 double partial_sums_ms = 0.0) const;

  /// What every device costs more than its own pieces and all-to-alls: the copies of tables that
  /// the task leaves out [ms]; partial sums are apart.
  [[nodiscard]] double replicas_ms() const { return fixed_.compute_ms + fixed_.all_reduce_ms; }

  /// Predicted cost of a whole plan. The plan's indices must be in range; it need not be valid.
  [[nodiscard]] PlanCost cost(const ShardingPlan& plan) const;

  /// As `cost`, with computation costs [ms] known from elsewhere, e.g. measured.
  [[nodiscard]] PlanCost cost(const ShardingPlan& plan, std::span<const double> compute_ms) const;

  /// The range of the members' predictions for each device.
  [[nodiscard]] std::vector<MemberRange> member_ranges(const ShardingPlan& plan) const;

 private:
  /// A whole table among those that a table stands for.
  struct Member {
    TableStatistics statistics{};
    std::int64_t num_columns = 0;
  };

  /// Sum of the contributions of each device's pieces, one device's after another's.
  [[nodiscard]] std::vector<double> device_states(const ShardingPlan& plan) const;
  void encode_members(std::span<const Member> members, std::span<double> contribution) const;
  /// Of the devices that a table may lie on.
  [[nodiscard]] std::int64_t largest_memory(const Table& table) const;
  /// Of replicated tables.
  [[nodiscard]] std::vector<double> replica_state(std::span<const int> tables) const;

  Task task_;
  std::shared_ptr<const ComputeCostModel> compute_;
  std::shared_ptr<const CommunicationCostModel> communication_;
  std::vector<TableStatistics> statistics_;
  /// By table, of those that stand for more than one; empty if none does.
  std::vector<std::vector<Member>> members_;
  OperatorSettings settings_;
  /// Of tables with a row order; none for others.
  std::vector<std::shared_ptr<const OrderedRows>> ordered_rows_;
  std::vector<double> partial_bytes_per_column_{};  ///< by table; empty: none is a slice
  ReplicaCost fixed_{};
};

}  // namespace neuroshard
