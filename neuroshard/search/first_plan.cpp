// The beam search with columns alone, then with all cuts.
#include "neuroshard/search/first_plan.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "neuroshard/core/error.h"
#include "neuroshard/cost/compute/remembering_compute_model.h"
#include "neuroshard/search/beam/first_lists/even_pieces.h"
#include "neuroshard/search/beam/tight_placement.h"
#include "neuroshard/search/memory/memory_fit.h"
#include "neuroshard/search/replicas/replica_choice.h"
#include "neuroshard/search/replicas/replica_moves.h"

namespace neuroshard {

namespace {

/// Pieces that the search with all cuts places at a level after the first, of all its lists.
constexpr std::int64_t kMostPiecesOfLevel = 60'000;
/// Likewise of the first level's lists, of which there are several, with and without copies.
constexpr std::int64_t kMostFirstPieces = 25'000;
/// Lists of a level for each candidate: a cut of rows and one of columns, of the largest pieces and
/// of the costliest, for each state of the beam.
constexpr std::int64_t kListsPerCandidate = 12;

/// Levels without a gain after which it ends: a later one hardly ever gains.
constexpr int kPatience = 3;

/// Lists of even pieces are tried where they take more cuts than the search has levels, or than
/// this share of the tables: a search comes to fewer by itself, each where it gains most, and among
/// many small tables a few that are not cut do no harm.
constexpr std::int64_t kTablesForEachCut = 8;

/// A plan of even pieces must cost less than this share of the other one: where it saves less, the
/// improvement gains more from a plan whose every cut has gained something.
constexpr double kClearlyCheaper = 0.9;

/// Tables of which a task may have as many for a plan with copies to be followed by one without:
/// of more, the search takes most of the time.
constexpr std::size_t kMostTablesTwice = 200;

/// Tables times devices up to which the pieces of a beam without room are cut until there is some,
/// although a plan is known: of more, that takes far longer than all else.
constexpr std::size_t kMostPlacesUntilRoom = 1024;

/// Devices for which lists of cheapest cuts are cut further: of more, their pieces are many.
constexpr int kMostDevicesWithLevels = 16;

/// The options of the search with all cuts. It has more ways to go than with columns alone: of many
/// hundreds of tables it looks at fewer candidates a level and begins with fewer lists.
BeamSearchOptions with_all_cuts(BeamSearchOptions beam, const PlannerOptions& options,
                                std::size_t num_tables) {
  beam.rows = options.cuts.rows;
  beam.max_first_pieces = kMostFirstPieces;
  beam.patience = kPatience;
  const std::int64_t pieces_per_candidate =
      kListsPerCandidate * static_cast<std::int64_t>(num_tables);
  const std::int64_t candidates = kMostPiecesOfLevel / pieces_per_candidate;
  beam.num_candidates =
      static_cast<int>(std::clamp<std::int64_t>(candidates, 1, std::max(beam.num_candidates, 1)));
  return beam;
}

bool takes_long_until_room(const Task& task) {
  return task.tables.size() * static_cast<std::size_t>(task.topology.world_size) >
         kMostPlacesUntilRoom;
}

/// Whether columns alone are what a task is fitted by that may be cut in rows too.
bool fits_in_columns(const Task& task, const StopClock& clock) {
  const MemoryFit fit = fit_memory(task, true, clock);
  return fit.feasible && !fit.by_rows;
}

/// Takes the plan with all cuts where it costs less than this `share` of the one that there is, or
/// there is none (infinity). Returns whether the plan that was found has copies, taken or not.
bool search_all_cuts(const Simulator& simulator, const BeamSearchOptions& beam,
                     const PlannerOptions& options, const StopClock& clock, double share,
                     PlanningResult& result) {
  const bool has_plan = !std::isinf(share);
  try {
    PlanningResult all = plan_with_replicas(simulator, beam, options, clock);
    const bool has_copies = !all.plan.replicated_tables.empty();
    if (!has_plan || all.predicted.cost_ms < share * result.predicted.cost_ms) {
      std::swap(result, all);
    }
    result.stats.stopped_by_clock |= all.stats.stopped_by_clock;
    add_work(all.stats, result.stats);
    return has_copies;
  } catch (const TimeIsOver&) {
    if (!has_plan) throw;
    result.stats.stopped_by_clock = true;
    return false;
  }
}

bool may_have_other_cuts(const Task& task) {
  return std::any_of(task.tables.begin(), task.tables.end(),
                     [](const Table& table) { return table.allow.rows || table.allow.replicas; });
}

/// Takes the plan of lists of even pieces where it is clearly cheaper. Returns whether one with
/// copies was found, taken or not.
bool search_even_pieces(const Simulator& simulator, BeamSearchOptions beam,
                        const PlannerOptions& options, const StopClock& clock, bool columns_fit,
                        PlanningResult& result) {
  try {
    const auto tables = static_cast<std::int64_t>(simulator.task().tables.size());
    const std::int64_t few = std::max<std::int64_t>(beam.num_levels, tables / kTablesForEachCut);
    // Together the tables take as long as all devices, so there are hardly more cuts than devices.
    if (simulator.task().topology.world_size <= few) return false;
    if (cuts_to_even_pieces(simulator, clock) <= few) return false;
    beam.even_pieces = true;
    beam.num_levels = 0;
    if (columns_fit) {
      BeamSearchOptions of_columns = beam;
      of_columns.rows = false;
      PlanningResult columns = beam_search(simulator, of_columns, options.num_threads, clock);
      if (columns.predicted.cost_ms < kClearlyCheaper * result.predicted.cost_ms) {
        std::swap(result, columns);
      }
      result.stats.stopped_by_clock |= columns.stats.stopped_by_clock;
      add_work(columns.stats, result.stats);
    }
  } catch (const TimeIsOver&) {
    result.stats.stopped_by_clock = true;
  }
  if (result.stats.stopped_by_clock) return false;
  return search_all_cuts(simulator, beam, options, clock, kClearlyCheaper, result);
}

/// Takes the other plan, whose work is counted elsewhere, where it is cheaper.
void take_if_cheaper(const PlanningResult& other, PlanningResult& result) {
  if (other.predicted.cost_ms >= result.predicted.cost_ms) return;
  result.plan = other.plan;
  result.predicted = other.predicted;
}

/// By time and memory at once, where memory is tight, with these tables on every device.
std::optional<PlanningResult> placed_by_both(const Simulator& simulator,
                                             const std::vector<int>& replicated,
                                             const PlannerOptions& options,
                                             const StopClock& clock) {
  if (!is_memory_tight(simulator.task())) return std::nullopt;
  return plan_with_replicas_of(simulator, replicated, clock, [&](const Simulator& others) {
    return plan_by_time_and_memory(others, options.cuts.rows, kMostFirstPieces, clock);
  });
}

struct PlanOfOtherCuts {
  PlanningResult result{};
  bool met_copies = false;  ///< the search came to a plan with some, whether or not it was taken
};

/// The plan with all cuts that the options allow, or that of columns or the one that is placed by
/// time and memory where it is cheaper.
PlanOfOtherCuts with_other_cuts(const Simulator& simulator, const BeamSearchOptions& beam,
                                const PlannerOptions& options, const StopClock& clock,
                                const std::optional<PlanningResult>& of_columns,
                                const std::optional<PlanningResult>& by_both) {
  PlanOfOtherCuts found{.result = of_columns.value_or(PlanningResult{})};
  const BeamSearchOptions of_all = with_all_cuts(beam, options, simulator.task().tables.size());
  const double share = of_columns ? 1.0 : std::numeric_limits<double>::infinity();
  found.met_copies = search_all_cuts(simulator, of_all, options, clock, share, found.result);
  if (!found.result.stats.stopped_by_clock && may_have_other_cuts(simulator.task())) {
    found.met_copies |=
        search_even_pieces(simulator, of_all, options, clock, of_columns.has_value(), found.result);
  }
  if (by_both) take_if_cheaper(*by_both, found.result);
  return found;
}

/// Where columns alone are hard to fit, which slices of rows were found to do before: their plan,
/// which may be the cheaper one all the same.
std::optional<PlanningResult> late_columns(const Simulator& simulator, BeamSearchOptions beam,
                                           const PlannerOptions& options, const StopClock& clock,
                                           FirstPlan& first) {
  beam.explains_infeasible = false;  // there is a plan
  try {
    PlanningResult columns = beam_search(simulator, beam, options.num_threads, clock);
    first.head_evaluations_of_columns = columns.stats.head_evaluations;
    PlanningResult result = columns;
    if (columns.predicted.cost_ms < first.best.predicted.cost_ms) std::swap(first.best, columns);
    first.best.stats.stopped_by_clock |= columns.stats.stopped_by_clock;
    add_work(columns.stats, first.best.stats);
    return result;
  } catch (const InfeasibleError&) {
    return std::nullopt;
  } catch (const TimeIsOver&) {
    first.best.stats.stopped_by_clock = true;
    return std::nullopt;
  }
}

/// The plan with the same copies whose other tables are placed by time and memory, if it is
/// cheaper.
void place_others_by_both(const Simulator& simulator, const PlannerOptions& options,
                          const StopClock& clock, FirstPlan& first) {
  if (first.best.stats.stopped_by_clock) return;
  try {
    std::optional<PlanningResult> placed =
        placed_by_both(simulator, first.best.plan.replicated_tables, options, clock);
    if (!placed) return;
    placed->predicted = simulator.cost(placed->plan);
    take_if_cheaper(*placed, first.best);
    add_work(placed->stats, first.best.stats);
  } catch (const TimeIsOver&) {
    first.best.stats.stopped_by_clock = true;
  }
}

/// Copies are chosen by how much they save before anything is cut, and what memory they take is
/// missing for cuts: where the search met some, whatever came of them, a plan without them is made
/// too.
void add_plan_without_copies(const Simulator& simulator, const BeamSearchOptions& beam,
                             PlannerOptions options, const StopClock& clock,
                             const std::optional<PlanningResult>& of_columns,
                             const std::optional<PlanningResult>& by_both, FirstPlan& first) {
  if (!options.cuts.rows || first.best.stats.stopped_by_clock ||
      simulator.task().tables.size() > kMostTablesTwice) {
    return;
  }
  options.cuts.replicas = false;
  try {
    PlanningResult result =
        with_other_cuts(simulator, beam, options, clock, of_columns, by_both).result;
    first.best.stats.stopped_by_clock |= result.stats.stopped_by_clock;
    // From the same plan the improvement comes to the same.
    if (result.plan.shards == first.best.plan.shards) {
      add_work(result.stats, first.best.stats);
      return;
    }
    first.of_fewer_cuts.push_back({std::move(result), options.cuts});
  } catch (const InfeasibleError&) {  // the plan with copies is all that there is
  } catch (const TimeIsOver&) {
    first.best.stats.stopped_by_clock = true;
  }
}

/// What the beam searches find with columns alone and with other cuts, and the plan that is placed
/// by time and memory. Throws TimeIsOver if none of the searches came to a plan.
FirstPlan plan_of_searches(const Simulator& simulator, const BeamSearchOptions& beam,
                           const PlannerOptions& options, const StopClock& clock,
                           const std::optional<PlanningResult>& by_both) {
  FirstPlan first;
  std::optional<PlanningResult> of_columns;
  if (!options.cuts.rows || fits_in_columns(simulator.task(), clock)) {
    of_columns = beam_search(simulator, beam, options.num_threads, clock);
    first.head_evaluations_of_columns = of_columns->stats.head_evaluations;
    if (of_columns->stats.stopped_by_clock) {
      first.best = std::move(*of_columns);
      if (by_both) take_if_cheaper(*by_both, first.best);
      return first;
    }
  }
  PlanOfOtherCuts of_all = with_other_cuts(simulator, beam, options, clock, of_columns, by_both);
  first.best = std::move(of_all.result);
  if (by_both) add_work(by_both->stats, first.best.stats);
  if (!of_columns && !first.best.stats.stopped_by_clock) {
    of_columns = late_columns(simulator, beam, options, clock, first);
  }
  if (!first.best.plan.replicated_tables.empty())
    place_others_by_both(simulator, options, clock, first);
  move_replicas(simulator, options, clock, first.best);
  if (of_columns) {
    // The work of its search is counted there, and in no other plan.
    SearchStats of_levels;
    of_levels.levels = std::move(of_columns->stats.levels);
    of_columns->stats = std::move(of_levels);
  }
  if (of_all.met_copies || !first.best.plan.replicated_tables.empty()) {
    add_plan_without_copies(simulator, beam, options, clock, of_columns, by_both, first);
  }
  if (of_columns) first.of_fewer_cuts.push_back({std::move(*of_columns), kColumnsAlone});
  return first;
}

}  // namespace

void move_replicas(const Simulator& simulator, const PlannerOptions& options,
                   const StopClock& clock, PlanningResult& result, const ReplicaMoveLimit* limit) {
  if (!options.cuts.replicas || simulator.task().topology.world_size == 1) return;
  ShardingPlan moved =
      with_replica_moves(simulator, result.plan, options.cuts.rows, result.stats, clock, limit);
  if (moved.shards == result.plan.shards &&
      moved.replicated_tables == result.plan.replicated_tables) {
    return;
  }
  result.plan = std::move(moved);
  result.predicted = simulator.cost(result.plan);
}

void add_plan_of_cheapest_cuts(const Simulator& simulator, const BeamSearchOptions& beam,
                               const PlannerOptions& options, const StopClock& clock,
                               FirstPlan& first) {
  const Task& task = simulator.task();
  if (!options.cuts.rows || task.tables.size() > kMostTablesTwice ||
      first.best.plan.shards.empty()) {
    return;
  }
  BeamSearchOptions cheapest = with_all_cuts(beam, options, task.tables.size());
  cheapest.cheapest_cuts = true;
  cheapest.explains_infeasible = false;  // nobody would read it
  cheapest.counts_every_level = takes_long_until_room(task);
  if (task.topology.world_size > kMostDevicesWithLevels) cheapest.num_levels = 0;
  try {
    PlanningResult result = plan_with_replicas_of(simulator, first.best.plan.replicated_tables,
                                                  cheapest, options, clock);
    result.predicted = simulator.cost(result.plan);
    first.best.stats.stopped_by_clock |= result.stats.stopped_by_clock;
    add_work(result.stats, first.best.stats);
    if (result.predicted.cost_ms < first.best.predicted.cost_ms) {
      std::swap(result.plan, first.best.plan);
      std::swap(result.predicted, first.best.predicted);
    }
    first.other = std::move(result);
  } catch (const InfeasibleError&) {  // lists whose pieces find no room
  }
}

FirstPlan first_plan(const Simulator& given, const BeamSearchOptions& beam,
                     const PlannerOptions& options, const StopClock& clock) {
  BeamSearchOptions observed = beam;
  observed.observer = options.observer;
  if (!options.cuts.rows && !options.cuts.replicas) {
    FirstPlan first;
    first.best = beam_search(given, observed, options.num_threads, clock);
    first.head_evaluations_of_columns = first.best.stats.head_evaluations;
    return first;
  }
  // With and without replicated tables, the searches meet the same pieces.
  std::optional<Simulator> remembering;
  if (given.task().tables.size() <= RememberingComputeModel::kMostKept) {
    remembering.emplace(given, std::make_shared<RememberingComputeModel>(given.shared_compute()));
  }
  const Simulator& simulator = remembering ? *remembering : given;
  const std::optional<PlanningResult> by_both = placed_by_both(simulator, {}, options, clock);
  observed.counts_every_level = by_both && takes_long_until_room(simulator.task());
  try {
    return plan_of_searches(simulator, observed, options, clock, by_both);
  } catch (const TimeIsOver&) {
    if (!by_both) throw;
  }
  FirstPlan first{.best = *by_both};
  first.best.stats.stopped_by_clock = true;
  return first;
}

}  // namespace neuroshard
