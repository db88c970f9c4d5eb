// The search and the improvement, one after the other.
#include "neuroshard/search/neuroshard_planner.h"

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "neuroshard/core/machine/parallel.h"
#include "neuroshard/search/first_plan.h"
#include "neuroshard/search/groups/bundled_planning.h"
#include "neuroshard/search/improved_plan.h"
#include "neuroshard/search/memory/memory_needs.h"

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

/// Slices of rows and copies must promise this many times the least gain. Chosen on 150 tasks whose
/// plans were measured (docs/experiments/true_cost.md): of 12 plans that promised less and measured
/// above those with columns alone, none is left, and the mean is no worse.
constexpr double kOtherCutsGain = 2.5;

/// Share of the budget by which each of two plans is improved before one of them gets the rest.
constexpr double kShareOfEach = 0.25;

bool has_other_cuts(const ShardingPlan& plan) {
  return !plan.replicated_tables.empty() || plan.num_row_slices() > 0;
}

std::int64_t share_of_steps(std::int64_t steps, double share) {
  // As double, steps may be more than an integer holds.
  return share >= 1.0 ? steps : static_cast<std::int64_t>(static_cast<double>(steps) * share);
}

}  // namespace

LocalSearchBudget improvement_budget(const PlannerOptions& options, int world_size,
                                     std::int64_t head_evaluations, std::int64_t of_other_cuts) {
  LocalSearchBudget budget;
  budget.seed = options.seed;
  budget.observer = options.observer;
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
        [&](const Simulator& bundled) { return plan_and_improve(bundled, options, clock); },
        options.cuts.rows, clock);
    result.stats.wall_ms =
        std::chrono::duration<double, std::milli>(StopClock::Clock::now() - start).count();
    return result;
  } catch (const InfeasibleError& error) {
    if (!restricted) throw;
    throw with_cuts_that_would_do(error, simulator.task(), options.cuts, clock);
  } catch (const TimeIsOver&) {
    throw no_plan_in_time(options);
  }
}

PlanningResult NeuroShardPlanner::plan_and_improve(const Simulator& allowed,
                                                   const PlannerOptions& options,
                                                   const StopClock& clock) const {
  FirstPlan first = first_plan(allowed, options_.beam, options, clock);
  if (!first.best.stats.stopped_by_clock) improve(allowed, options, clock, first);
  prefer_fewer_cuts(allowed, options, clock, first);
  return std::move(first.best);
}

void NeuroShardPlanner::improve(const Simulator& allowed, const PlannerOptions& options,
                                const StopClock& clock, FirstPlan& first) const {
  PlanningResult& result = first.best;
  PlanningResult better;
  try {
    if (options.improvement == ImprovementSchedule::thorough) {
      add_plan_of_cheapest_cuts(allowed, options_.beam, options, clock, first);
    }
    const std::int64_t of_columns = first.head_evaluations_of_columns;
    const std::int64_t of_other_cuts =
        result.stats.head_evaluations - (first.counts_columns ? of_columns : 0);
    LocalSearchBudget budget =
        improvement_budget(options, allowed.task().topology.world_size, of_columns, of_other_cuts);
    budget.deadline = clock.end();
    better = improved(allowed, options, budget, first);
    const ShardingPlan unmoved = better.plan;
    const PlanCost of_unmoved = better.predicted;
    move_replicas(allowed, options, clock, better);
    if (!has_other_cuts(unmoved) && has_other_cuts(better.plan)) {
      first.before_moves = PlanningResult{unmoved, of_unmoved};
    }
  } catch (const TimeIsOver&) {
    result.stats.stopped_by_clock = true;
    return;
  }
  result.stats.stopped_by_clock = clock.is_over();
  const double least_gain_ms = options.least_gain * longest_compute_ms(result.predicted);
  if (better.predicted.cost_ms < result.predicted.cost_ms - least_gain_ms) {
    result.plan = std::move(better.plan);
    result.predicted = std::move(better.predicted);
  }
  add_work(better.stats, result.stats);
  result.stats.rounds = std::move(better.stats.rounds);
}

PlanningResult NeuroShardPlanner::improved(const Simulator& allowed, const PlannerOptions& options,
                                           const LocalSearchBudget& budget,
                                           const FirstPlan& first) const {
  const LocalSearchOptions improvement =
      options_.improvement.value_or(local_search_options(options.improvement));
  ThreadPool pool(options.num_threads);
  const Simulator judge = pessimist(allowed, options.pessimism);
  const auto improve = [&](const ShardingPlan& plan, double share) {
    LocalSearchBudget part = budget;
    part.nominal_ms *= share;
    part.steps = share_of_steps(part.steps, share);
    PlanningResult result = improved_plan(judge, plan, options.cuts, improvement, part, pool);
    result.predicted = allowed.cost(result.plan);
    return result;
  };
  // Steps that are too few for a share of each are all for the cheaper plan.
  const bool has_shares = budget.steps == 0 || share_of_steps(budget.steps, kShareOfEach) > 0;
  if (!first.other || !has_shares) return improve(first.best.plan, 1.0);
  PlanningResult one = improve(first.best.plan, kShareOfEach);
  try {
    PlanningResult other = improve(first.other->plan, kShareOfEach);
    if (other.predicted.cost_ms < one.predicted.cost_ms) std::swap(one, other);
    add_work(other.stats, one.stats);
    PlanningResult result = improve(one.plan, 1.0 - 2.0 * kShareOfEach);
    add_work(result.stats, one.stats);
    one.stats.rounds.insert(one.stats.rounds.end(), result.stats.rounds.begin(),
                            result.stats.rounds.end());
    if (result.predicted.cost_ms < one.predicted.cost_ms) {
      one.plan = std::move(result.plan);
      one.predicted = std::move(result.predicted);
    }
  } catch (const TimeIsOver&) {
    // What was found by then.
  }
  return one;
}

void NeuroShardPlanner::prefer_fewer_cuts(const Simulator& allowed, const PlannerOptions& options,
                                          const StopClock& clock, FirstPlan& first) const {
  std::vector<PlanningResult> found;
  bool is_stopped = first.best.stats.stopped_by_clock;
  bool has_columns_alone = false;
  found.push_back(std::move(first.best));
  if (first.before_moves) {
    found.push_back(*std::move(first.before_moves));
    found.back().stats.levels = found.front().stats.levels;
    found.back().stats.rounds = found.front().stats.rounds;
  }
  for (PlanOfFewerCuts& of_fewer : first.of_fewer_cuts) {
    FirstPlan fewer{.best = std::move(of_fewer.result),
                    .head_evaluations_of_columns = first.head_evaluations_of_columns,
                    .counts_columns = false};
    if (!is_stopped) {
      PlannerOptions fewer_options = options;
      fewer_options.cuts = of_fewer.cuts;
      improve(allowed, fewer_options, clock, fewer);
    }
    is_stopped = is_stopped || fewer.best.stats.stopped_by_clock;
    has_columns_alone = has_columns_alone || of_fewer.cuts == kColumnsAlone;
    found.push_back(std::move(fewer.best));
  }
  const PlanningResult* best = &found.front();
  const PlanningResult* plain = nullptr;  // the best of those without other cuts, whoever found it
  for (const PlanningResult& result : found) {
    const auto is_no_dearer = [&](const PlanningResult* than) {
      return than == nullptr || result.predicted.cost_ms <= than->predicted.cost_ms;
    };
    if (is_no_dearer(best)) best = &result;
    if (!has_other_cuts(result.plan) && is_no_dearer(plain)) plain = &result;
  }
  if (has_columns_alone && !is_stopped && plain != nullptr) {
    const double least_gain_ms =
        kOtherCutsGain * options.least_gain * longest_compute_ms(plain->predicted);
    if (best->predicted.cost_ms >= plain->predicted.cost_ms - least_gain_ms) best = plain;
  }
  const auto chosen = static_cast<std::size_t>(best - found.data());
  for (std::size_t i = 0; i < found.size(); ++i) {
    if (i != chosen) add_work(found[i].stats, found[chosen].stats);
  }
  first.best = std::move(found[chosen]);
  first.best.stats.stopped_by_clock = is_stopped;
}

}  // namespace neuroshard
