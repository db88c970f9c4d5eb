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
#include "neuroshard/search/memory/memory_fit.h"
#include "neuroshard/search/replica_choice.h"
#include "neuroshard/search/replica_moves.h"
#include "neuroshard/search/sliced_task.h"

namespace neuroshard {

namespace {

/// A year: a longer limit is as good as none.
constexpr double kMostSeconds = 31'536'000.0;
/// Share of the time limit that one thread of a machine like that of docs/results.md needs: on a
/// slower or busier one it is still not the clock that ends the search.
constexpr double kNominalShare = 0.5;
/// With the search of other cuts than columns.
constexpr double kMostNominalShare = 0.75;
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
  return budget;
}

namespace {

void add(const SearchStats& more, SearchStats& stats) {
  stats.plans_priced += more.plans_priced;
  stats.head_evaluations += more.head_evaluations;
  stats.pieces_encoded += more.pieces_encoded;
  stats.states_expanded += more.states_expanded;
}

/// The result of the first step, and how many of its evaluations were of columns alone.
struct Searched {
  PlanningResult best;
  std::int64_t head_evaluations_of_columns = 0;
};

/// The cheaper of the beam search's plans with columns alone, and with all cuts.
Searched searched(const Simulator& simulator, BeamSearchOptions beam,
                  const PlannerOptions& options) {
  Searched result;
  const bool all_cuts = options.cuts.rows || options.cuts.replicas;
  const bool columns_fit = !options.cuts.rows || fit_memory(simulator.task()).feasible;
  if (columns_fit) {
    result.best = BeamSearchPlanner(beam).plan(simulator, options);
    result.head_evaluations_of_columns = result.best.stats.head_evaluations;
  }
  if (!all_cuts) return result;
  beam.rows = options.cuts.rows;
  PlanningResult all = plan_with_replicas(simulator, beam, options);
  if (!columns_fit || all.predicted.cost_ms < result.best.predicted.cost_ms) {
    std::swap(result.best, all);
  }
  add(all.stats, result.best.stats);
  return result;
}

/// The plan with other tables on every device, if options allow and that is cheaper.
void move_replicas(const Simulator& simulator, const PlannerOptions& options,
                   PlanningResult& result) {
  if (!options.cuts.replicas || simulator.task().topology.world_size == 1) return;
  result.plan = with_replica_moves(simulator, result.plan, options.cuts.rows, result.stats);
  result.predicted = simulator.cost(result.plan);
}

/// Tables whose rows the improvement may cut in other ways: the costliest, which are those that it
/// may pay for.
constexpr int kResliced = 32;

/// The plan improved; its replicated tables stay.
PlanningResult improved(const Simulator& simulator, const ShardingPlan& plan, const Cuts& cuts,
                        const LocalSearchOptions& improvement, const LocalSearchBudget& budget,
                        ThreadPool& pool) {
  if (plan.shards.empty()) return {plan};  // every table is on every device
  if (!cuts.rows && plan.replicated_tables.empty()) {
    return improve_plan(simulator, plan, improvement, budget, pool);
  }
  const SlicedTask sliced(simulator, plan, cuts.rows ? kResliced : 0);
  PlanningResult result =
      improve_plan(sliced.simulator(), sliced.plan(), improvement, budget, pool, sliced.slicings());
  result.plan = sliced.original(result.plan);
  return result;
}

}  // namespace

PlanningResult NeuroShardPlanner::plan(const Simulator& simulator,
                                       const PlannerOptions& options) const {
  validate(options);
  const auto start = std::chrono::steady_clock::now();
  const std::optional<Simulator> restricted =
      options.cuts.columns ? std::nullopt : std::optional(simulator.with_cuts(options.cuts));
  return plan_bundled(restricted ? *restricted : simulator, [&](const Simulator& bundled) {
    return plan_and_improve(bundled, options, start);
  });
}

PlanningResult NeuroShardPlanner::plan_and_improve(
    const Simulator& allowed, const PlannerOptions& options,
    std::chrono::steady_clock::time_point start) const {
  using Clock = std::chrono::steady_clock;
  Searched first = searched(allowed, options_.beam, options);
  PlanningResult& result = first.best;
  move_replicas(allowed, options, result);
  LocalSearchBudget budget = improvement_budget(
      options, allowed.task().topology.world_size, first.head_evaluations_of_columns,
      result.stats.head_evaluations - first.head_evaluations_of_columns);
  budget.deadline = deadline_of(options, start);
  const LocalSearchOptions improvement =
      options_.improvement.value_or(local_search_options(options.improvement));
  ThreadPool pool(options.num_threads);
  PlanningResult better = improved(pessimist(allowed, options.pessimism), result.plan, options.cuts,
                                   improvement, budget, pool);
  result.stats.stopped_by_clock = budget.deadline && Clock::now() >= *budget.deadline;
  better.predicted = allowed.cost(better.plan);
  move_replicas(allowed, options, better);
  const double least_gain_ms = options.least_gain * longest_compute_ms(result.predicted);
  if (better.predicted.cost_ms < result.predicted.cost_ms - least_gain_ms) {
    result.plan = std::move(better.plan);
    result.predicted = std::move(better.predicted);
  }
  result.stats.plans_priced += better.stats.plans_priced;
  result.stats.head_evaluations += better.stats.head_evaluations;
  result.stats.pieces_encoded += better.stats.pieces_encoded;
  result.stats.rounds = std::move(better.stats.rounds);
  result.stats.wall_ms = std::chrono::duration<double, std::milli>(Clock::now() - start).count();
  return std::move(result);
}

}  // namespace neuroshard
