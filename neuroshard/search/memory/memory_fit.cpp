// The plan of fewest cuts among those that fill the devices.
#include "neuroshard/search/memory/memory_fit.h"

#include <utility>
#include <vector>

#include "neuroshard/search/bundled_task.h"
#include "neuroshard/search/memory/filling.h"
#include "neuroshard/search/memory/least_memory.h"
#include "neuroshard/search/memory/row_fit.h"

namespace neuroshard {

namespace {

/// Of a task whose tables stay with none.
MemoryFit fit_tables(const Task& task, const StopClock& clock) {
  const LeastMemory needs = least_memory(task, false);
  if (needs.is_too_much()) return {};
  MemoryFit best;
  const auto keep_if_better = [&](std::vector<Shard> shards) {
    if (shards.empty()) return;
    const int cuts = static_cast<int>(shards.size() - task.tables.size());
    if (best.feasible && cuts >= best.num_cuts) return;
    best = {.feasible = true, .plan = {std::move(shards)}, .num_cuts = cuts};
    sort_shards(best.plan);
  };
  for (const FillingStrategy strategy : kFillingStrategies) {
    keep_if_better(fill_devices(task, strategy, clock).shards);
    if (best.feasible && best.num_cuts == needs.necessary_cuts) break;
  }
  if (!best.feasible) keep_if_better(fill_stubbornly(task, clock));
  return best;
}

/// Likewise, with rows cut where nothing else fits.
MemoryFit fit_tables(const Task& task, bool rows, const StopClock& clock) {
  MemoryFit fit = fit_tables(task, clock);
  if (fit.feasible || !rows) return fit;
  fit.plan.shards = fit_with_rows(task, clock);
  fit.feasible = !fit.plan.shards.empty();
  if (fit.feasible) fit.num_cuts = static_cast<int>(fit.plan.shards.size() - task.tables.size());
  return fit;
}

}  // namespace

MemoryFit fit_memory(const Task& task, bool rows, const StopClock& clock) {
  if (!has_groups(task)) return fit_tables(task, rows, clock);
  const BundledTask bundled(task);
  MemoryFit fit = fit_tables(bundled.task(), rows, clock);
  fit.plan = bundled.original(fit.plan);
  return fit;
}

}  // namespace neuroshard
