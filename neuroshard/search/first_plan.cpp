// The beam search with columns alone, then with all cuts.
#include "neuroshard/search/first_plan.h"

#include <utility>

#include "neuroshard/search/memory/memory_fit.h"
#include "neuroshard/search/replica_choice.h"
#include "neuroshard/search/replica_moves.h"

namespace neuroshard {

namespace {

/// Takes the plan with all cuts where it is cheaper or `result` has none.
void search_all_cuts(const Simulator& simulator, BeamSearchOptions beam,
                     const PlannerOptions& options, const StopClock& clock, bool has_plan,
                     PlanningResult& result) {
  beam.rows = options.cuts.rows;
  try {
    PlanningResult all = plan_with_replicas(simulator, beam, options, clock);
    if (!has_plan || all.predicted.cost_ms < result.predicted.cost_ms) std::swap(result, all);
    result.stats.stopped_by_clock |= all.stats.stopped_by_clock;
    add_work(all.stats, result.stats);
  } catch (const TimeIsOver&) {
    if (!has_plan) throw;
    result.stats.stopped_by_clock = true;
  }
}

}  // namespace

void move_replicas(const Simulator& simulator, const PlannerOptions& options,
                   const StopClock& clock, PlanningResult& result) {
  if (!options.cuts.replicas || simulator.task().topology.world_size == 1) return;
  ShardingPlan moved =
      with_replica_moves(simulator, result.plan, options.cuts.rows, result.stats, clock);
  if (moved.shards == result.plan.shards &&
      moved.replicated_tables == result.plan.replicated_tables) {
    return;
  }
  result.plan = std::move(moved);
  result.predicted = simulator.cost(result.plan);
}

FirstPlan first_plan(const Simulator& simulator, const BeamSearchOptions& beam,
                     const PlannerOptions& options, const StopClock& clock) {
  FirstPlan first;
  PlanningResult& result = first.best;
  const bool all_cuts = options.cuts.rows || options.cuts.replicas;
  const bool columns_fit =
      !options.cuts.rows || fit_memory(simulator.task(), false, clock).feasible;
  if (columns_fit) {
    result = beam_search(simulator, beam, options.num_threads, clock);
    first.head_evaluations_of_columns = result.stats.head_evaluations;
  }
  if (!all_cuts || result.stats.stopped_by_clock) return first;
  search_all_cuts(simulator, beam, options, clock, columns_fit, result);
  move_replicas(simulator, options, clock, result);
  return first;
}

}  // namespace neuroshard
