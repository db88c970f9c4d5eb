// The search and the improvement, one after the other.
#include "neuroshard/search/neuroshard_planner.h"

#include <algorithm>
#include <chrono>
#include <memory>
#include <optional>
#include <utility>

#include "neuroshard/core/parallel.h"
#include "neuroshard/cost/compute/pessimistic_compute_model.h"

namespace neuroshard {

namespace {

/// A year: a longer limit is as good as none.
constexpr double kMostSeconds = 31'536'000.0;
/// Share of the time limit that one thread of a machine like that of docs/results.md needs: on a
/// slower or busier one it is still not the clock that ends the search.
constexpr double kNominalShare = 0.5;
/// What the beam search costs there for each evaluation of a head.
constexpr double kHead_ns = 200.0;
constexpr double kHeadPerDevice_ns = 0.5;

/// The simulator with which plans are improved.
Simulator pessimist(const Simulator& simulator, double pessimism) {
  if (pessimism == 0.0 || simulator.compute().num_members() == 1) return simulator;
  return {simulator,
          std::make_shared<PessimisticComputeModel>(simulator.shared_compute(), pessimism)};
}

/// A budget of steps has no deadline.
std::optional<std::chrono::steady_clock::time_point> deadline_of(
    const PlannerOptions& options, std::chrono::steady_clock::time_point start) {
  if (options.steps > 0 || !options.stop_by_clock) return std::nullopt;
  const std::chrono::duration<double> limit(std::min(options.time_limit_seconds, kMostSeconds));
  return start + std::chrono::duration_cast<std::chrono::steady_clock::duration>(limit);
}

double longest_compute_ms(const PlanCost& cost) {
  double longest = 0.0;
  for (const DeviceCost& device : cost.devices) longest = std::max(longest, device.compute_ms);
  return longest;
}

}  // namespace

LocalSearchBudget improvement_budget(const PlannerOptions& options, int world_size,
                                     std::int64_t head_evaluations) {
  LocalSearchBudget budget;
  budget.seed = options.seed;
  if (options.steps > 0) {
    budget.steps = options.steps;
    return budget;
  }
  const double seconds = std::min(options.time_limit_seconds, kMostSeconds);
  const double beam_search_ms =
      static_cast<double>(head_evaluations) * 1e-6 * (kHead_ns + kHeadPerDevice_ns * world_size);
  budget.nominal_ms = seconds * kNominalShare * 1e3 - beam_search_ms;
  return budget;
}

PlanningResult NeuroShardPlanner::plan(const Simulator& simulator,
                                       const PlannerOptions& options) const {
  using Clock = std::chrono::steady_clock;
  validate(options);
  const Clock::time_point start = Clock::now();
  PlanningResult result = BeamSearchPlanner(options_.beam).plan(simulator, options);
  LocalSearchBudget budget = improvement_budget(options, simulator.task().topology.world_size,
                                                result.stats.head_evaluations);
  budget.deadline = deadline_of(options, start);
  const LocalSearchOptions improvement =
      options_.improvement.value_or(local_search_options(options.improvement));
  ThreadPool pool(options.num_threads);
  PlanningResult improved =
      improve_plan(pessimist(simulator, options.pessimism), result.plan, improvement, budget, pool);
  result.stats.stopped_by_clock = budget.deadline && Clock::now() >= *budget.deadline;
  improved.predicted = simulator.cost(improved.plan);
  const double least_gain_ms = options.least_gain * longest_compute_ms(result.predicted);
  if (improved.predicted.cost_ms < result.predicted.cost_ms - least_gain_ms) {
    result.plan = std::move(improved.plan);
    result.predicted = std::move(improved.predicted);
  }
  result.stats.plans_priced += improved.stats.plans_priced;
  result.stats.head_evaluations += improved.stats.head_evaluations;
  result.stats.pieces_encoded += improved.stats.pieces_encoded;
  result.stats.rounds = std::move(improved.stats.rounds);
  result.stats.wall_ms = std::chrono::duration<double, std::milli>(Clock::now() - start).count();
  return result;
}

}  // namespace neuroshard
