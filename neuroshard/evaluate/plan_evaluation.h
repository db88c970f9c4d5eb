// A plan on real hardware: every device's pieces through the real operator, one after the other.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "neuroshard/collect/compute/compute_backend.h"
#include "neuroshard/collect/compute/speed_controls.h"
#include "neuroshard/core/sharding_plan.h"
#include "neuroshard/cost/simulator.h"
#include "neuroshard/evaluate/iteration.h"
#include "neuroshard/evaluate/speed_reference.h"

namespace neuroshard {

struct PlanEvaluation {
  PlanCost predicted;
  /// What the plan is expected to cost, its slowest device being slower than predicted
  /// (expected_cost.h) [ms]; none: that is not known.
  std::optional<double> expected_ms{};
  /// Computation measured, communication from the simulator's model with the measured starts.
  PlanCost measured;
  std::vector<double> interval;  ///< per device: relative half-width of the 95 % interval
  double compute_mape = 0.0;     ///< of predicted against measured computation, devices with pieces
  /// Kendall's rank correlation, likewise; nothing if all predicted or all measured are equal.
  std::optional<double> compute_tau;
  /// With controls: median of their cost now over their cost then; with a speed reference: median
  /// over all sets of what reference sets took meanwhile over what they usually take. The same for
  /// all plans measured together.
  std::optional<double> drift;
  /// As `measured`, the measured computation without the drift: with controls divided by `drift`,
  /// with a speed reference each set by what its own reference sets tell.
  std::optional<PlanCost> less_drift;
  PlanAdditions additions{};
};

/// A plan with its task and the models that predict its cost.
struct SimulatedPlan {
  const Simulator* simulator = nullptr;
  const ShardingPlan* plan = nullptr;
};

[[nodiscard]] PlanAdditions additions_of(const SimulatedPlan& plan);

/// How many sets of pieces `evaluate_plans` measures of these plans, controls left out: one for
/// each device that has pieces, one more for each if there are copies on all of them.
[[nodiscard]] std::int64_t num_measured_sets(std::span<const SimulatedPlan> plans);

/// Measures computation on this machine, one device's pieces after another's, each with the whole
/// batch. The devices of all plans are measured together, alternating, so that compared plans meet
/// the same conditions; what a device of each of several plans holds is measured once. A slice has
/// the lookups of its own rows, and with them a hot row or none; where a backend cannot keep rows,
/// those of a mean slice. The tasks must agree in batch size and optimizer, and so must the
/// controls, which are measured among the plans' sets and show by how much the machine's speed has
/// changed; the sets of a speed `reference` run next to them all along and show it for each set.
/// One of the two may be given. `on_set` is called after each set, with the number done. Throws
/// MachineError if the machine has no memory for one.
[[nodiscard]] std::vector<PlanEvaluation> evaluate_plans(
    std::span<const SimulatedPlan> plans, ComputeBackend& backend, std::uint64_t seed,
    const std::function<void(int sets_done)>& on_set = {},
    std::span<const SpeedControl> controls = {}, const SpeedReference* reference = nullptr);

/// That tables of several features are measured with one pooled output, where costs are predicted
/// of one for each feature; names the first such tables. Empty if there is none.
[[nodiscard]] std::string features_not_measured(std::span<const Table> tables);

/// Why a measurement here says little about the model: the model was measured on another processor
/// or number of cores, or with another operator or version of it. Empty if there is no such
/// difference, or the model is an estimate.
[[nodiscard]] std::string measurement_difference(const ComputeCostModel& model,
                                                 const BackendDescription& here);
/// The same, on this machine's CPU.
[[nodiscard]] std::string measurement_difference(const ComputeCostModel& model);

/// Why costs that are measured here are not of what is predicted, a line each: `difference`, as
/// measurement_difference or operator_difference gives it before threads are pinned to cores, and
/// tables with several features.
[[nodiscard]] std::vector<std::string> measuring_warnings(const ComputeCostModel& model,
                                                          const std::string& difference,
                                                          std::span<const Table> tables = {});

/// Likewise why costs that are measured here are not of what the model is of: another operator, or
/// another version of it, on whatever machine.
[[nodiscard]] std::string operator_difference(const ComputeCostModel& model,
                                              const BackendDescription& here);

/// The data type that the arena must hold for the task's tables.
[[nodiscard]] DataType arena_data_type(const Task& task);

}  // namespace neuroshard
