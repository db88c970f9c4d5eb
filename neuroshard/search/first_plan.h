// The plan that the improvement starts from: the paper's search and, with rows and copies, what it
// finds with those.
#pragma once

#include <cstdint>
#include <optional>

#include "neuroshard/search/beam/beam_search.h"
#include "neuroshard/search/planner.h"
#include "neuroshard/search/replica_moves.h"

namespace neuroshard {

struct FirstPlan {
  PlanningResult best;
  /// That of columns alone, where other cuts were tried too and columns fit.
  std::optional<PlanningResult> of_columns;
  /// The least cost of the plans with columns alone that were met, where `of_columns` is set.
  double least_of_columns_ms = 0.0;
  std::int64_t head_evaluations_of_columns = 0;  ///< those of the search with columns alone
};

/// The cheaper of the beam search's plans with columns alone and with all cuts that the options
/// allow, with single tables moved to every device and from there. The task's tables stay with none
/// (bundled_task.h) and allow no more cuts than the options. Throws InfeasibleError if there is
/// none, and TimeIsOver if the clock stopped the search before there was one.
[[nodiscard]] FirstPlan first_plan(const Simulator& given, const BeamSearchOptions& beam,
                                   const PlannerOptions& options, const StopClock& clock = {});

/// The plan with other tables on every device, if options allow and that is cheaper.
/// With a limit, as far as that permits.
void move_replicas(const Simulator& simulator, const PlannerOptions& options,
                   const StopClock& clock, PlanningResult& result,
                   const ReplicaMoveLimit* limit = nullptr);

}  // namespace neuroshard
