// A sharding plan as text.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "neuroshard/core/sharding_plan.h"
#include "neuroshard/cost/simulator.h"
#include "neuroshard/plan/bound_scope.h"
#include "neuroshard/plan/plan_task.h"

namespace neuroshard {

/// Per device: pieces, columns, memory, computation, communication, total; the slowest is marked
/// (core/slowest_device.h).
/// With more than `max_devices` devices, only the slowest ones are shown, and the number of the
/// others.
[[nodiscard]] std::string plan_table(const Task& task, const ShardingPlan& plan,
                                     const PlanCost& cost, std::size_t max_devices = 64);

/// The tables that were cut, with the widths of their pieces, e.g. "t19: 64 + 64".
[[nodiscard]] std::string cuts_text(const Task& task, const ShardingPlan& plan,
                                    std::size_t max_tables = 20);

/// The spread of an ensemble's networks on the device where it is largest: how certain the model is
/// of this plan. Above a few per cent the text says that they disagree. Empty for a model that is
/// one network.
[[nodiscard]] std::string disagreement_text(int num_members,
                                            const std::vector<MemberRange>& ranges);

/// " of whole tables and pieces of columns": which plans a lower bound is of, that of all plans
/// with these cuts. Empty for all cuts.
[[nodiscard]] std::string plans_of_cuts(const Cuts& cuts);

/// "the computation of 3 of 60 tables, whose row order is known": what a lower bound does not
/// count. Empty for nothing.
[[nodiscard]] std::string left_out_of_bound(const BoundScope& scope);

/// "plans with slices of rows of other sizes, as this one has, may cost less", of plans that a
/// lower bound does not look at; empty where the plan has no such slices.
[[nodiscard]] std::string not_of_bound(const BoundScope& scope);

/// The lower bound of a plan of cost `cost_ms` (lower_bound_ms), of what and with its limits: it
/// takes all devices for one, so a plan that cheap need not exist. Empty for a bound of 0, which is
/// none.
[[nodiscard]] std::string lower_bound_text(double bound_ms, double cost_ms,
                                           const BoundScope& scope);

/// What the plan is expected to cost when it runs, as devices that are planned alike differ by
/// `scatter` (expected_cost.h). Empty where that is not known.
[[nodiscard]] std::string expected_cost_text(const std::optional<double>& expected_ms,
                                             double scatter);

/// Cost of each algorithm's plan relative to the first one's, or why there is none.
[[nodiscard]] std::string outcomes_table(const std::vector<AlgorithmOutcome>& outcomes);

}  // namespace neuroshard
