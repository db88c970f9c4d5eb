// `neuroshard evaluate --platform`: a plan's all-to-alls on a simulated cluster.
#pragma once

#include <string>

#include "neuroshard/core/sharding_plan.h"
#include "neuroshard/cost/simulator.h"

namespace neuroshard::cli {

/// Simulates one iteration of the plan, its computation as predicted, and prints it beside the
/// prediction. `platform` as in SimulationOptions.
void evaluate_on_cluster(const Simulator& simulator, const ShardingPlan& plan,
                         const std::string& platform, bool json);

}  // namespace neuroshard::cli
