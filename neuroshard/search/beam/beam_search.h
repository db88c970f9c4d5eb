// The search of the paper on incremental state: beam search over column cuts around the greedy grid
// search over placements.
#pragma once

#include <cstdint>
#include <limits>

#include "neuroshard/search/beam/greedy_grid_search.h"
#include "neuroshard/search/planner.h"

namespace neuroshard {

/// The paper's hyper-parameters are the defaults.
struct BeamSearchOptions {
  int num_candidates = 10;   ///< largest and costliest pieces that are halved, each; the paper's N
  int beam_width = 3;        ///< lists of cuts kept from level to level; K
  int num_levels = 10;       ///< most cuts beyond those that memory demands; L
  bool rows = false;         ///< also halve slices of rows, where tables allow it
  bool even_pieces = false;  ///< begin with lists of even pieces instead (even_pieces.h)
  bool cheapest_cuts = false;  ///< begin with lists of cheapest cuts instead (cheapest_cuts.h)
  /// Most pieces that are met, summed over all lists of all levels: once it is reached, no further
  /// level begins. A task of 100,000 tables then takes half a minute; tasks of the paper's size
  /// stay far below the limit.
  std::int64_t max_pieces_tried = 20'000'000;
  /// Whether a level whose states all lack room counts as one of `num_levels`, as where a plan is
  /// known already; else it is one more cut for memory.
  bool counts_every_level = false;
  /// A plan of higher cost is of no use, and not priced.
  double worth_ms = std::numeric_limits<double>::infinity();
  /// Levels in a row without a better plan after which the search ends.
  int patience = std::numeric_limits<int>::max();
  /// Most pieces of the lists with rows in slices that the search begins with, of which it leaves
  /// some out where they have more; and of the lists of even pieces, and of cheapest cuts.
  std::int64_t max_first_pieces = std::numeric_limits<std::int64_t>::max();
  /// Whether an InfeasibleError says what would do, which takes far longer than finding none.
  bool explains_infeasible = true;
  GreedyGridSearchOptions greedy;
  const PlanningObserver* observer = nullptr;  ///< is told after every level
};

/// A plan of a task whose tables stay with none (bundled_task.h); `num_threads` as in
/// PlannerOptions. Throws InfeasibleError if none was found, and TimeIsOver if the clock stopped
/// the search before one was; stopped later it returns the best plan so far, and says so in its
/// statistics.
[[nodiscard]] PlanningResult beam_search(const Simulator& simulator,
                                         const BeamSearchOptions& options, int num_threads,
                                         const StopClock& clock = {});

/// The algorithm "beam-search". The plan depends on the options only, not on the number of threads.
class BeamSearchPlanner final : public Planner {
 public:
  explicit BeamSearchPlanner(BeamSearchOptions options = {}) : options_(options) {}

  [[nodiscard]] std::string_view name() const override { return "beam-search"; }
  [[nodiscard]] Cuts cuts(const PlannerOptions& options) const override {
    return {.columns = options.cuts.columns, .rows = false, .replicas = false};
  }
  [[nodiscard]] PlanningResult plan(const Simulator& simulator,
                                    const PlannerOptions& options) const override;

 private:
  BeamSearchOptions options_;
};

}  // namespace neuroshard
