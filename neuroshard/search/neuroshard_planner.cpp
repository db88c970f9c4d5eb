// The search and the improvement, one after the other.
#include "neuroshard/search/neuroshard_planner.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <memory>

#include "neuroshard/core/parallel.h"
#include "neuroshard/cost/pessimistic_compute_model.h"

namespace neuroshard {

namespace {

/// Up to so many devices rounds have all their steps, then fewer in proportion.
constexpr int kDevicesOfFullLength = 8;
/// Rounds are not made shorter than this before there are `kDevicesOfLeastLength` devices.
constexpr std::int64_t kLeastLength = 15'000;
constexpr int kDevicesOfLeastLength = 256;
/// A year: what is longer is as good as no limit.
constexpr double kMostSeconds = 31'536'000.0;

/// The simulator with which plans are improved.
Simulator pessimist(const Simulator& simulator, double pessimism) {
  if (pessimism == 0.0 || simulator.compute().num_members() == 1) return simulator;
  return {simulator,
          std::make_shared<PessimisticComputeModel>(simulator.shared_compute(), pessimism)};
}

double longest_compute_ms(const PlanCost& cost) {
  double longest = 0.0;
  for (const DeviceCost& device : cost.devices) longest = std::max(longest, device.compute_ms);
  return longest;
}

}  // namespace

void set_budget(LocalSearchOptions& improvement, const PlannerOptions& options, int world_size) {
  const auto shortened = [&](std::int64_t steps, int devices) {
    return std::max<std::int64_t>(steps * devices / std::max(devices, world_size), 1);
  };
  const auto steps_of_round = [&](std::int64_t steps) {
    return std::max(shortened(steps, kDevicesOfFullLength),
                    shortened(std::min(steps, kLeastLength), kDevicesOfLeastLength));
  };
  if (options.steps > 0) {
    if (options.steps < steps_of_round(improvement.num_steps)) improvement = brief_local_search();
    improvement.num_steps = std::min(steps_of_round(improvement.num_steps), options.steps);
    improvement.num_rounds = options.steps / improvement.num_steps;
    improvement.patience = improvement.num_rounds;
    return;
  }
  improvement.num_steps = steps_of_round(improvement.num_steps);
  const double seconds = std::clamp(options.time_limit_seconds, 0.0, kMostSeconds);
  const auto count = [](double value) { return static_cast<std::int64_t>(std::ceil(value)); };
  improvement.num_rounds = count(static_cast<double>(improvement.num_rounds) * seconds);
  improvement.patience = count(static_cast<double>(improvement.patience) * seconds);
}

PlanningResult NeuroShardPlanner::plan(const Simulator& simulator,
                                       const PlannerOptions& options) const {
  using Clock = std::chrono::steady_clock;
  const Clock::time_point start = Clock::now();
  PlanningResult result = BeamSearchPlanner(options_.beam).plan(simulator, options);
  LocalSearchOptions improvement = options_.improvement;
  set_budget(improvement, options, simulator.task().topology.world_size);
  improvement.seed = options.seed;
  improvement.deadline =
      start + std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(
                  std::min(options.time_limit_seconds, kMostSeconds)));
  ThreadPool pool(options.num_threads);
  PlanningResult improved =
      improve_plan(pessimist(simulator, options.pessimism), result.plan, improvement, pool);
  improved.predicted = simulator.cost(improved.plan);
  const double least_gain_ms = options.least_gain * longest_compute_ms(result.predicted);
  if (improved.predicted.cost_ms < result.predicted.cost_ms - least_gain_ms) {
    result.plan = std::move(improved.plan);
    result.predicted = std::move(improved.predicted);
  }
  result.stats.head_evaluations += improved.stats.head_evaluations;
  result.stats.pieces_encoded += improved.stats.pieces_encoded;
  result.stats.wall_ms = std::chrono::duration<double, std::milli>(Clock::now() - start).count();
  return result;
}

}  // namespace neuroshard
