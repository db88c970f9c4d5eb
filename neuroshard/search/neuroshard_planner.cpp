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
#include "neuroshard/search/replica_choice.h"
#include "neuroshard/search/sliced_task.h"

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

namespace {

void add(const SearchStats& more, SearchStats& stats) {
  stats.plans_priced += more.plans_priced;
  stats.head_evaluations += more.head_evaluations;
  stats.pieces_encoded += more.pieces_encoded;
  stats.states_expanded += more.states_expanded;
}

/// The cheaper of the beam search's plans with columns alone, and with all cuts.
PlanningResult searched(const Simulator& simulator, BeamSearchOptions beam,
                        const PlannerOptions& options) {
  PlanningResult columns = BeamSearchPlanner(beam).plan(simulator, options);
  if (!options.cuts.rows && !options.cuts.replicas) return columns;
  beam.rows = options.cuts.rows;
  PlanningResult all = plan_with_replicas(simulator, beam, options);
  const bool is_better = all.predicted.cost_ms < columns.predicted.cost_ms;
  PlanningResult& best = is_better ? all : columns;
  add(is_better ? columns.stats : all.stats, best.stats);
  return std::move(best);
}

/// The plan improved within its slices of rows and its replicated tables.
PlanningResult improved_within_slices(const Simulator& simulator, const ShardingPlan& plan,
                                      const LocalSearchOptions& improvement,
                                      const LocalSearchBudget& budget, ThreadPool& pool) {
  const bool has_slices = std::any_of(plan.shards.begin(), plan.shards.end(),
                                      [](const Shard& shard) { return !shard.has_all_rows(); });
  if (!has_slices && plan.replicated_tables.empty()) {
    return improve_plan(simulator, plan, improvement, budget, pool);
  }
  const SlicedTask sliced(simulator, plan);
  PlanningResult result =
      improve_plan(sliced.simulator(), sliced.plan(), improvement, budget, pool);
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
  PlanningResult result = searched(allowed, options_.beam, options);
  LocalSearchBudget budget = improvement_budget(options, allowed.task().topology.world_size,
                                                result.stats.head_evaluations);
  budget.deadline = deadline_of(options, start);
  const LocalSearchOptions improvement =
      options_.improvement.value_or(local_search_options(options.improvement));
  ThreadPool pool(options.num_threads);
  PlanningResult improved = improved_within_slices(pessimist(allowed, options.pessimism),
                                                   result.plan, improvement, budget, pool);
  result.stats.stopped_by_clock = budget.deadline && Clock::now() >= *budget.deadline;
  improved.predicted = allowed.cost(improved.plan);
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
