// Which tables a plan has on every device.
#pragma once

#include <functional>
#include <optional>
#include <vector>

#include "neuroshard/search/beam/beam_search.h"
#include "neuroshard/search/planner.h"

namespace neuroshard {

/// The beam search's plan with those tables on every device for which it is predicted to be
/// cheapest, tables of few rows first; without any if the options allow none or none helps. The
/// task's tables stay with none (bundled_task.h). Throws InfeasibleError and TimeIsOver, and may be
/// stopped by the clock, as the beam search.
[[nodiscard]] PlanningResult plan_with_replicas(const Simulator& simulator,
                                                const BeamSearchOptions& beam,
                                                const PlannerOptions& options,
                                                const StopClock& clock = {});

/// The beam search's plan with these tables on every device and no others. Its cost is predicted,
/// the devices' memory is not filled in. Throws as the beam search.
[[nodiscard]] PlanningResult plan_with_replicas_of(const Simulator& simulator,
                                                   const std::vector<int>& replicated,
                                                   const BeamSearchOptions& beam,
                                                   const PlannerOptions& options,
                                                   const StopClock& clock = {});

/// The plan that `plan` makes of the tables that are not on every device, and these. Its cost is
/// that of the whole. None if `plan` finds none.
[[nodiscard]] std::optional<PlanningResult> plan_with_replicas_of(
    const Simulator& simulator, const std::vector<int>& replicated, const StopClock& clock,
    const std::function<std::optional<PlanningResult>(const Simulator&)>& plan);

}  // namespace neuroshard
