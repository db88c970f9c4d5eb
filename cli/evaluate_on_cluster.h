// `neuroshard evaluate --platform`: a plan's all-to-alls on a simulated cluster.
#pragma once

#include <functional>
#include <optional>
#include <string>

#include "neuroshard/collect/communication/all_to_all_benchmark.h"
#include "neuroshard/core/sharding_plan.h"
#include "neuroshard/cost/simulator.h"

namespace neuroshard::cli {

/// Simulates the iterations that `next` gives one after the other, on the task's devices and with
/// its batch, and hands the cost [ms] of each over. Once per process: SimGrid allows no more.
void simulate_costs(const Task& task, const std::string& platform,
                    const std::function<std::optional<IterationCase>()>& next,
                    const std::function<void(double cost_ms)>& on_cost);

/// Simulates one iteration of the plan, its computation as predicted, and prints it beside the
/// prediction. `platform` as in SimulationOptions.
void evaluate_on_cluster(const Simulator& simulator, const ShardingPlan& plan,
                         const std::string& platform, bool json);

}  // namespace neuroshard::cli
