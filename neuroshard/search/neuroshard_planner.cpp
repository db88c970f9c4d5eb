// The search and the improvement, one after the other.
#include "neuroshard/search/neuroshard_planner.h"

#include <algorithm>
#include <chrono>
#include <memory>
#include <optional>
#include <utility>

#include "neuroshard/core/parallel.h"
#include "neuroshard/cost/compute/pessimistic_compute_model.h"
#include "neuroshard/search/bundled_planning.h"
#include "neuroshard/search/first_plan.h"
#include "neuroshard/search/sliced_task.h"

namespace neuroshard {

namespace {

/// Share of the time limit that one thread of a machine like that of docs/results.md needs: on a
/// slower or busier one it is still not the clock that ends the search.
constexpr double kNominalShare = 0.5;
/// With the search of other cuts than columns.
constexpr double kMostNominalShare = 0.75;
/// Share of the time limit that the improvement has with other cuts than columns, however long the
/// search before it took.
constexpr double kLeastNominalShare = 0.25;
/// What the beam search costs there for each evaluation of a head.
constexpr double kHead_ns = 200.0;
constexpr double kHeadPerDevice_ns = 0.5;

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

LocalSearchBudget improvement_budget(const PlannerOptions& options, int world_size,
                                     std::int64_t head_evaluations, std::int64_t of_other_cuts) {
  LocalSearchBudget budget;
  budget.seed = options.seed;
  if (options.steps > 0) {
    budget.steps = options.steps;
    return budget;
  }
  const double seconds = std::min(options.time_limit_seconds, kMostSeconds);
  const auto nominal_ms = [&](std::int64_t heads) {
    return static_cast<double>(heads) * 1e-6 * (kHead_ns + kHeadPerDevice_ns * world_size);
  };
  budget.nominal_ms =
      std::min(seconds * kNominalShare * 1e3 - nominal_ms(head_evaluations),
               seconds * kMostNominalShare * 1e3 - nominal_ms(head_evaluations + of_other_cuts));
  if (options.cuts.rows || options.cuts.replicas) {
    budget.nominal_ms = std::max(budget.nominal_ms, seconds * kLeastNominalShare * 1e3);
  }
  return budget;
}

namespace {

/// Tables whose rows the improvement may cut in other ways: the costliest, which are those that it
/// may pay for.
constexpr int kResliced = 32;

/// The plan improved; its replicated tables stay. Throws TimeIsOver.
PlanningResult improved(const Simulator& simulator, const ShardingPlan& plan, const Cuts& cuts,
                        const LocalSearchOptions& improvement, const LocalSearchBudget& budget,
                        ThreadPool& pool) {
  if (plan.shards.empty()) return {plan};  // every table is on every device
  if (!cuts.rows && plan.replicated_tables.empty()) {
    return improve_plan(simulator, plan, improvement, budget, pool);
  }
  const SlicedTask sliced(simulator, plan, cuts.rows ? kResliced : 0, StopClock(budget.deadline));
  PlanningResult result =
      improve_plan(sliced.simulator(), sliced.plan(), improvement, budget, pool, sliced.slicings());
  result.plan = sliced.original(result.plan);
  return result;
}

}  // namespace

PlanningResult NeuroShardPlanner::plan(const Simulator& simulator,
                                       const PlannerOptions& options) const {
  validate(options);
  const auto start = StopClock::Clock::now();
  const StopClock clock = stop_clock_of(options);
  const std::optional<Simulator> restricted =
      options.cuts.columns ? std::nullopt : std::optional(simulator.with_cuts(options.cuts));
  try {
    PlanningResult result = plan_bundled(
        restricted ? *restricted : simulator,
        [&](const Simulator& bundled) { return plan_and_improve(bundled, options, clock); }, clock);
    result.stats.wall_ms =
        std::chrono::duration<double, std::milli>(StopClock::Clock::now() - start).count();
    return result;
  } catch (const TimeIsOver&) {
    throw no_plan_in_time(options);
  }
}

PlanningResult NeuroShardPlanner::plan_and_improve(const Simulator& allowed,
                                                   const PlannerOptions& options,
                                                   const StopClock& clock) const {
  FirstPlan first = first_plan(allowed, options_.beam, options, clock);
  if (first.best.stats.stopped_by_clock) return std::move(first.best);
  try {
    improve(allowed, options, clock, first);
  } catch (const TimeIsOver&) {
    first.best.stats.stopped_by_clock = true;
  }
  return std::move(first.best);
}

void NeuroShardPlanner::improve(const Simulator& allowed, const PlannerOptions& options,
                                const StopClock& clock, FirstPlan& first) const {
  PlanningResult& result = first.best;
  LocalSearchBudget budget = improvement_budget(
      options, allowed.task().topology.world_size, first.head_evaluations_of_columns,
      result.stats.head_evaluations - first.head_evaluations_of_columns);
  budget.deadline = clock.end();
  const LocalSearchOptions improvement =
      options_.improvement.value_or(local_search_options(options.improvement));
  ThreadPool pool(options.num_threads);
  PlanningResult better = improved(pessimist(allowed, options.pessimism), result.plan, options.cuts,
                                   improvement, budget, pool);
  better.predicted = allowed.cost(better.plan);
  move_replicas(allowed, options, clock, better);
  result.stats.stopped_by_clock = clock.is_over();
  const double least_gain_ms = options.least_gain * longest_compute_ms(result.predicted);
  if (better.predicted.cost_ms < result.predicted.cost_ms - least_gain_ms) {
    result.plan = std::move(better.plan);
    result.predicted = std::move(better.predicted);
  }
  add_work(better.stats, result.stats);
  result.stats.rounds = std::move(better.stats.rounds);
}

}  // namespace neuroshard
