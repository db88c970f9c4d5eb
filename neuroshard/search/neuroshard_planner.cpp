// Search, then improvement.
#include "neuroshard/search/neuroshard_planner.h"

#include <chrono>

namespace neuroshard {

PlanningResult NeuroShardPlanner::plan(const Simulator& simulator,
                                       const PlannerOptions& options) const {
  using Clock = std::chrono::steady_clock;
  const Clock::time_point start = Clock::now();
  PlanningResult searched = BeamSearchPlanner(options_.beam).plan(simulator, options);
  LocalSearchOptions improvement = options_.improvement;
  improvement.seed = options.seed;
  improvement.deadline = start + std::chrono::duration_cast<Clock::duration>(
                                     std::chrono::duration<double>(options.time_limit_seconds));
  ThreadPool pool(options.num_threads);
  PlanningResult result = improve_plan(simulator, searched.plan, improvement, pool);
  result.stats.plans_priced += searched.stats.plans_priced;
  result.stats.states_expanded += searched.stats.states_expanded;
  result.stats.head_evaluations += searched.stats.head_evaluations;
  result.stats.pieces_encoded += searched.stats.pieces_encoded;
  result.stats.wall_ms = std::chrono::duration<double, std::milli>(Clock::now() - start).count();
  return result;
}

}  // namespace neuroshard
