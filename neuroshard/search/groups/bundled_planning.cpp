// Planning with each group of tables as one table.
#include "neuroshard/search/groups/bundled_planning.h"

#include "neuroshard/core/table_pins.h"
#include "neuroshard/search/groups/bundled_task.h"
#include "neuroshard/search/memory/memory_fit.h"
#include "neuroshard/search/memory/memory_needs.h"

namespace neuroshard {

PlanningResult plan_bundled(const Simulator& simulator,
                            const std::function<PlanningResult(const Simulator&)>& plan, bool rows,
                            const StopClock& clock) {
  const Task& task = simulator.task();
  if (!has_groups(task)) return plan(simulator);
  // What does not fit is told here, where the names of a group's tables are known.
  if (!fit_memory(task, rows, clock).feasible) throw explain_infeasible(task, rows, clock);
  const BundledTask bundled(task);
  PlanningResult result = plan(Simulator(simulator, bundled.task(), bundled.members()));
  result.plan = bundled.original(result.plan);
  result.predicted = simulator.cost(result.plan);
  return result;
}

}  // namespace neuroshard
