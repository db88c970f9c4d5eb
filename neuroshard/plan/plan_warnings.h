// Warnings about the prediction of one plan: what the models were not trained on, and where their
// networks disagree.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "neuroshard/core/sharding_plan.h"
#include "neuroshard/cost/model_catalog.h"
#include "neuroshard/cost/simulator.h"

namespace neuroshard {

/// A spread of the networks' predictions for the device that decides, relative to their middle,
/// from which on they disagree so much that the plan's cost says little: five times the models' own
/// errors on measured costs.
inline constexpr double kLargeDisagreement = 0.2;

/// A line if the computation model's networks disagree by more than `kLargeDisagreement` about the
/// plan's slowest device (core/slowest_device.h). It names the piece, or the copy of a table, that
/// they disagree about most, in milliseconds of that alone: the likeliest cause. Empty for a model
/// of one network. The plan's indices must be in range; `predicted` and `member_ranges` are what
/// the simulator says of it.
[[nodiscard]] std::vector<std::string> disagreement_warnings(
    const Simulator& simulator, const ShardingPlan& plan, const PlanCost& predicted,
    std::span<const MemberRange> member_ranges);

/// What is to be said of this plan's prediction beyond the warnings `of_task` (model_warnings):
/// what of its pieces, slices of rows and copies the computation model was not trained on, unless
/// the task's warnings say so anyhow, and disagreement_warnings.
[[nodiscard]] std::vector<std::string> plan_warnings(const Simulator& simulator,
                                                     const ShardingPlan& plan,
                                                     const PlanCost& predicted,
                                                     std::span<const MemberRange> member_ranges,
                                                     std::span<const std::string> of_task);

/// All warnings about this plan's prediction by these models, which the simulator has: those of its
/// task (model_warnings), then plan_warnings. Plans record them. Who has what the simulator
/// predicts passes it on: a plan of very many pieces takes a while.
[[nodiscard]] std::vector<std::string> prediction_warnings(
    const CostModels& models, const Simulator& simulator, const ShardingPlan& plan,
    const PlanCost& predicted, std::span<const MemberRange> member_ranges);
[[nodiscard]] std::vector<std::string> prediction_warnings(const CostModels& models,
                                                           const Simulator& simulator,
                                                           const ShardingPlan& plan);

}  // namespace neuroshard
