// The plan of fewest cuts among those that fill the devices.
#include "neuroshard/search/memory/memory_fit.h"

#include <cstdint>
#include <utility>
#include <vector>

#include "neuroshard/search/groups/bundled_task.h"
#include "neuroshard/search/memory/filling.h"
#include "neuroshard/search/memory/full_devices.h"
#include "neuroshard/search/memory/least_memory.h"
#include "neuroshard/search/memory/row_fit.h"

namespace neuroshard {

namespace {

MemoryFit fit_of(const Task& task, std::vector<Shard> shards) {
  if (shards.empty()) return {};
  const int cuts = static_cast<int>(shards.size() - task.tables.size());
  MemoryFit fit{.feasible = true, .plan = {std::move(shards)}, .num_cuts = cuts};
  sort_shards(fit.plan);
  return fit;
}

/// By orders of the tables.
MemoryFit fit_in_order(const Task& task, std::int64_t necessary_cuts, const StopClock& clock) {
  MemoryFit best;
  for (const FillingStrategy strategy : kFillingStrategies) {
    MemoryFit fit = fit_of(task, fill_devices(task, strategy, clock).shards);
    if (fit.feasible && (!best.feasible || fit.num_cuts < best.num_cuts)) best = std::move(fit);
    if (best.feasible && best.num_cuts == necessary_cuts) break;
  }
  return best;
}

/// Of a task whose tables stay with none. Slices of rows, where they are allowed, come before the
/// long search for pieces of columns that fill the devices, as they are quickly found.
MemoryFit fit_tables(const Task& task, bool rows, const StopClock& clock) {
  const LeastMemory needs = least_memory(task, false, clock);
  FitAnswer in_columns = FitAnswer::does_not_fit;
  if (!needs.is_too_much()) {
    MemoryFit fit = fit_in_order(task, needs.necessary_cuts, clock);
    if (fit.feasible) return fit;
    ExactFit exact = fill_stubbornly(task, clock);
    in_columns = exact.answer;
    if (in_columns == FitAnswer::fits) return fit_of(task, std::move(exact.shards));
  }
  if (rows) {
    MemoryFit fit = fit_of(task, fit_with_rows(task, clock));
    fit.by_rows = true;
    if (fit.feasible) return fit;
  }
  if (in_columns == FitAnswer::does_not_fit) return {};
  return fit_of(task, fit_full_devices(task, clock).shards);
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
