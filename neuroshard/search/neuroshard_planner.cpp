// The search and the improvement, one after the other.
#include "neuroshard/search/neuroshard_planner.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <limits>
#include <memory>
#include <optional>
#include <utility>

#include "neuroshard/core/parallel.h"
#include "neuroshard/cost/compute/pessimistic_compute_model.h"

namespace neuroshard {

namespace {

/// Up to so many devices rounds have the length that the options say.
constexpr int kDevicesOfFullLength = 8;
/// A year: what is longer is as good as no limit.
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

/// Steps are played whatever time they take.
std::optional<std::chrono::steady_clock::time_point> deadline_of(
    const PlannerOptions& options, std::chrono::steady_clock::time_point start) {
  if (options.steps > 0) return std::nullopt;
  const std::chrono::duration<double> limit(std::min(options.time_limit_seconds, kMostSeconds));
  return start + std::chrono::duration_cast<std::chrono::steady_clock::duration>(limit);
}

double longest_compute_ms(const PlanCost& cost) {
  double longest = 0.0;
  for (const DeviceCost& device : cost.devices) longest = std::max(longest, device.compute_ms);
  return longest;
}

/// Rounds of all their steps, as many as `steps` allows.
void set_steps(LocalSearchOptions& improvement, std::int64_t steps) {
  if (steps < improvement.num_steps) {
    const ImprovementMethod method = improvement.method;
    improvement = brief_local_search();
    if (method != ImprovementMethod::both) improvement.method = method;
  }
  improvement.num_steps = std::min(improvement.num_steps, steps);
  improvement.round_ms = std::numeric_limits<double>::infinity();
  improvement.num_rounds = steps / improvement.num_steps;
  improvement.patience = improvement.num_rounds;
}

/// Rounds of a nominal time, as many as `budget_ms` allows on one thread. A step's price grows with
/// the devices, and so do rounds; what is too little for one makes a shorter one.
void set_time(LocalSearchOptions& improvement, double budget_ms, int world_size) {
  improvement.num_steps = std::numeric_limits<std::int64_t>::max();
  improvement.num_rounds = 0;
  if (budget_ms <= 0.0) return;
  const double budget_of_chain_ms = budget_ms / std::max(improvement.num_chains, 1);
  const double full_ms =
      improvement.round_ms * std::max(world_size, kDevicesOfFullLength) / kDevicesOfFullLength;
  const double rounds = std::max(std::floor(budget_of_chain_ms / full_ms), 1.0);
  improvement.num_rounds = static_cast<std::int64_t>(rounds);
  improvement.round_ms = budget_of_chain_ms / rounds;
  improvement.patience = (improvement.num_rounds + 1) / 2;
}

}  // namespace

void set_budget(LocalSearchOptions& improvement, const PlannerOptions& options, int world_size,
                std::int64_t head_evaluations) {
  if (options.steps > 0) {
    set_steps(improvement, options.steps);
    return;
  }
  const double seconds = std::min(options.time_limit_seconds, kMostSeconds);
  const double beam_search_ms =
      static_cast<double>(head_evaluations) * 1e-6 * (kHead_ns + kHeadPerDevice_ns * world_size);
  const double budget_ms = seconds * kNominalShare * 1e3 - beam_search_ms;
  set_time(improvement, budget_ms, world_size);
}

PlanningResult NeuroShardPlanner::plan(const Simulator& simulator,
                                       const PlannerOptions& options) const {
  using Clock = std::chrono::steady_clock;
  validate(options);
  const Clock::time_point start = Clock::now();
  PlanningResult result = BeamSearchPlanner(options_.beam).plan(simulator, options);
  LocalSearchOptions improvement = options_.improvement;
  set_budget(improvement, options, simulator.task().topology.world_size,
             result.stats.head_evaluations);
  improvement.seed = options.seed;
  improvement.deadline = deadline_of(options, start);
  ThreadPool pool(options.num_threads);
  PlanningResult improved =
      improve_plan(pessimist(simulator, options.pessimism), result.plan, improvement, pool);
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
