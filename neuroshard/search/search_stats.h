// What a search did, level by level and round by round, as data: drawing and printing it is the
// report's job.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

namespace neuroshard {

/// One level of the beam search. In the first (level 0) tables have only the cuts that memory makes
/// necessary; every further level has one cut more.
struct BeamLevelStats {
  std::int64_t states_tried = 0;     ///< lists of pieces not met before
  std::int64_t states_feasible = 0;  ///< of these: placed entirely, or known to be dearer than
                                     ///< what the beam keeps before that was known
  /// Predicted, of the level's best state, if it is feasible and was priced (worth_ms).
  std::optional<double> best_cost_ms;
  std::int64_t unplaced_bytes = 0;    ///< of the level's best state; 0 if it is feasible
  std::int64_t plans_priced = 0;      ///< placements whose all-to-alls were predicted
  std::int64_t head_evaluations = 0;  ///< of the computation model
  std::int64_t pieces_encoded = 0;    ///< distinct (table, columns) met up to this level's end

  friend bool operator==(const BeamLevelStats&, const BeamLevelStats&) = default;
};

/// How a chain of the improvement leaves a local minimum.
enum class ChainKind {
  annealing,            ///< by neighbours that are worse, at first often
  large_neighbourhood,  ///< by several pieces taken and given at a time
};

/// One chain of a round of the improvement.
struct ChainStats {
  ChainKind kind = ChainKind::annealing;
  double best_cost_ms = 0.0;          ///< of the cheapest plan that it met, its first included
  std::int64_t steps = 0;             ///< neighbours drawn
  std::int64_t steps_accepted = 0;    ///< neighbours that it went to
  std::int64_t plans_priced = 0;      ///< neighbours whose all-to-alls were predicted
  std::int64_t head_evaluations = 0;  ///< of the computation model
  std::int64_t pieces_encoded = 0;    ///< distinct (table, columns) that it met

  friend bool operator==(const ChainStats&, const ChainStats&) = default;
};

/// One round of the improvement. Costs are those that it minimises: the pessimistic ones
/// (PlannerOptions::pessimism).
struct ImprovementRoundStats {
  double cost_before_ms = 0.0;
  double cost_after_ms = 0.0;
  std::optional<std::size_t> best_chain;  ///< whose plan was taken; nothing if none was cheaper
  std::vector<ChainStats> chains;         ///< in the round's order

  friend bool operator==(const ImprovementRoundStats&, const ImprovementRoundStats&) = default;
};

/// All but the time depends on the task, the models and the options alone, as long as no deadline
/// ended the search.
struct SearchStats {
  std::int64_t plans_priced = 0;      ///< plans whose all-to-alls were predicted, levels and rounds
  std::int64_t states_expanded = 0;   ///< lists of pieces that were met
  std::int64_t head_evaluations = 0;  ///< of the computation model, levels and rounds
  std::int64_t pieces_encoded = 0;    ///< by the levels, and by each chain, which starts anew
  std::vector<BeamLevelStats> levels;
  std::vector<ImprovementRoundStats> rounds;
  /// The clock stopped the search somewhere: with more time the plan may be another.
  bool stopped_by_clock = false;
  double wall_ms = 0.0;
};

/// Adds the totals of another part of the search, but not its levels and rounds.
inline void add_work(const SearchStats& more, SearchStats& stats) {
  stats.plans_priced += more.plans_priced;
  stats.head_evaluations += more.head_evaluations;
  stats.pieces_encoded += more.pieces_encoded;
  stats.states_expanded += more.states_expanded;
}

}  // namespace neuroshard
