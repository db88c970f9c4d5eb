// The plan that the improvement starts from: the paper's search and, with rows and copies, what it
// finds with those.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "neuroshard/search/beam/beam_search.h"
#include "neuroshard/search/planner.h"
#include "neuroshard/search/replicas/replica_moves.h"

namespace neuroshard {

/// A plan with fewer cuts than allowed; `stats` are of work that is not counted elsewhere.
struct PlanOfFewerCuts {
  PlanningResult result{};
  Cuts cuts{};
};

struct FirstPlan {
  PlanningResult best{};
  /// With the same cuts allowed, the dearer of two plans: from lists of cheapest cuts
  /// (cheapest_cuts.h) and from others. Its work is counted in `best`.
  std::optional<PlanningResult> other{};
  /// Where other cuts than columns were tried too: the plan without copies, if the search of `best`
  /// came to some, and the one with columns alone, where they fit. Their improvement may lead
  /// further than its.
  std::vector<PlanOfFewerCuts> of_fewer_cuts{};
  /// What the improvement made of `best` before it moved tables to every device, if it did and that
  /// plan has neither slices nor copies; its work is counted in `best`.
  std::optional<PlanningResult> before_moves{};
  std::int64_t head_evaluations_of_columns = 0;  ///< those of the search with columns alone
  bool counts_columns = true;                    ///< whether `best.stats` have that search's work
};

/// The cheapest of the beam search's plans with columns alone and with all cuts that the options
/// allow and, where memory is tight and other cuts are allowed, of plans that are placed by time
/// and memory at once (beam/tight_placement.h), with single tables moved to every device and from
/// there. The task's tables stay with none (bundled_task.h), and allow no cuts of columns unless
/// the options do (Simulator::with_cuts); where they allow rows or copies that the options do not,
/// the plan has none. Throws InfeasibleError if there is none, and TimeIsOver if the clock stopped
/// the search before there was one.
[[nodiscard]] FirstPlan first_plan(const Simulator& given, const BeamSearchOptions& beam,
                                   const PlannerOptions& options, const StopClock& clock = {});

/// Adds the plan that begins with lists of cheapest cuts, with the copies of `first.best`, where
/// rows may be cut and there are not too many tables; the cheaper of the two becomes the best.
/// Throws TimeIsOver, and leaves `first` then.
void add_plan_of_cheapest_cuts(const Simulator& simulator, const BeamSearchOptions& beam,
                               const PlannerOptions& options, const StopClock& clock,
                               FirstPlan& first);

/// The plan with other tables on every device, if options allow and that is cheaper.
/// With a limit, as far as that permits.
void move_replicas(const Simulator& simulator, const PlannerOptions& options,
                   const StopClock& clock, PlanningResult& result,
                   const ReplicaMoveLimit* limit = nullptr);

}  // namespace neuroshard
