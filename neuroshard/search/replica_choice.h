// Which tables a plan has on every device.
#pragma once

#include "neuroshard/search/beam/beam_search.h"
#include "neuroshard/search/planner.h"

namespace neuroshard {

/// The beam search's plan with those tables on every device for which it is predicted to be
/// cheapest, tables of few rows first; without any if the options allow none or none helps. Throws
/// InfeasibleError as the beam search does.
[[nodiscard]] PlanningResult plan_with_replicas(const Simulator& simulator,
                                                const BeamSearchOptions& beam,
                                                const PlannerOptions& options);

}  // namespace neuroshard
