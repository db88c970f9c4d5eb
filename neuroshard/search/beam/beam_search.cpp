// Beam search over cuts of columns and rows.
#include "neuroshard/search/beam/beam_search.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cmath>
#include <initializer_list>
#include <limits>
#include <memory>
#include <numeric>
#include <optional>
#include <set>
#include <tuple>
#include <utility>

#include "neuroshard/core/machine/parallel.h"
#include "neuroshard/search/beam/first_lists/first_lists.h"
#include "neuroshard/search/beam/kept_costs.h"
#include "neuroshard/search/beam/mean_bound.h"
#include "neuroshard/search/beam/piece_list.h"
#include "neuroshard/search/beam/plan_of_pieces.h"
#include "neuroshard/search/groups/bundled_planning.h"
#include "neuroshard/search/memory/memory_fit.h"
#include "neuroshard/search/memory/memory_needs.h"

namespace neuroshard {

namespace {

struct BeamState {
  PieceList pieces;
  Placement placement;
  ListTotals totals;  ///< of the pieces, where lists are bounded

  /// States that fit come first (or those that lack least), then the cheapest.
  [[nodiscard]] auto rank() const {
    return std::make_tuple(placement.unplaced_bytes, placement.cost_ms);
  }
};

/// One search; its parts share the catalog and the workers.
class Search {
 public:
  Search(const Simulator& simulator, const BeamSearchOptions& options, int num_threads,
         const StopClock& clock)
      : simulator_(simulator),
        options_(options),
        clock_(clock),
        catalog_(simulator, clock),
        mean_bound_(simulator, catalog_) {
    // Threads cost more to wake than a small search takes.
    pool_.emplace(simulator.task().tables.size() < kTablesWorthThreads ? 1 : num_threads);
    for (int worker = 0; worker < pool_->num_threads(); ++worker) {
      workers_.emplace_back(simulator, catalog_, options.greedy, clock);
    }
  }

  PlanningResult run() {
    fit_ = fit_memory(simulator_.task(), options_.rows, clock_);
    if (!fit_.feasible) {
      if (!options_.explains_infeasible) throw InfeasibleError("no plan was found that fits");
      throw explain_infeasible(simulator_.task(), options_.rows, clock_);
    }
    try {
      search_levels();
    } catch (const TimeIsOver&) {
      stats_.stopped_by_clock = true;
    }
    PlanningResult result = finish();
    result.stats = std::move(stats_);
    return result;
  }

 private:
  static constexpr std::size_t kTablesWorthThreads = 24;
  /// States placed between updates of the costs that the beam keeps: few, as states that it will
  /// not keep need not be priced, but enough for the threads. Which states are priced does not
  /// depend on the number of threads.
  static constexpr std::size_t kFirstLook = 4;
  /// Large tasks come to as many in steps: their states take long enough for more threads.
  static constexpr std::size_t kMostBetweenLooks = 16;
  /// Tables times devices.
  static constexpr std::size_t kLargeTask = 4096;

  [[nodiscard]] std::size_t most_between_looks() const {
    const Task& task = simulator_.task();
    const std::size_t size =
        task.tables.size() * static_cast<std::size_t>(task.topology.world_size);
    return size < kLargeTask ? kFirstLook : kMostBetweenLooks;
  }

  void search_levels() {
    const bool needs_rows = fit_.plan.has_row_slices();
    std::vector<BeamState> beam = first_states();
    record_level(beam);
    int levels_left = options_.num_levels;
    int levels_without_gain = 0;
    keep_best(beam);
    while (levels_left > 0 && pieces_tried_ < options_.max_pieces_tried) {
      const auto best_before = best_->rank();
      std::vector<BeamState> children = expand(beam);
      if (children.empty()) break;
      record_level(children);
      keep_best(children);
      beam = std::move(children);
      // A level without a feasible state is one more cut for memory, not for cost; halving ends by
      // itself. It need not lead anywhere where columns alone cannot.
      if (needs_rows || options_.counts_every_level || beam.front().placement.feasible()) {
        --levels_left;
      }
      levels_without_gain = best_->rank() < best_before ? 0 : levels_without_gain + 1;
      if (beam.front().placement.feasible() && levels_without_gain >= options_.patience) break;
    }
  }

  /// A list of pieces, and the one that it was made of by a cut, if any.
  struct Candidate {
    PieceList pieces;
    const BeamState* parent = nullptr;
    bool same_columns = true;  ///< in all, as the parent
    ListTotals totals{};       ///< where lists are bounded
    double least_ms = 0.0;     ///< no placement costs less
  };

  /// The tables with the cuts only that memory makes necessary. Where the greedy algorithm finds no
  /// room for those: also with all pieces halved to a half, a quarter, ... of a device, and with
  /// the cuts of a plan that fits, so that cheap placements are sought around every way of making
  /// it fit.
  std::vector<BeamState> first_states() {
    FirstLists lists(simulator_, catalog_, options_.rows, options_.max_first_pieces, clock_);
    if (options_.cheapest_cuts || options_.even_pieces) {
      std::vector<BeamState> states = placed(candidates_of(
          options_.cheapest_cuts ? lists.of_cheapest_cuts() : lists.of_even_pieces()));
      if (!states.empty()) return states;
    }
    KeptCosts kept(static_cast<std::size_t>(options_.beam_width));
    std::vector<BeamState> states =
        placed(candidates_of({lists.halved_to(lists.largest_device())}), kept);
    const bool fits = states.front().placement.feasible();
    // Where it does not, whether a list that costs too much fits still decides what is tried next.
    if (fits) kept.limit(options_.worth_ms);
    const auto add = [&](std::vector<PieceList> more) {
      for (BeamState& state : placed(candidates_of(std::move(more)), kept)) {
        states.push_back(std::move(state));
      }
    };
    if (options_.rows) add(lists.sliced());
    if (!fits) add(lists.that_may_fit(fit_.plan));
    return states;
  }

  static std::vector<Candidate> candidates_of(std::vector<PieceList> lists) {
    std::vector<Candidate> candidates;
    for (PieceList& pieces : lists) candidates.push_back({std::move(pieces)});
    return candidates;
  }

  /// Where the parent's search placed the first pieces, which both lists share. A cut of rows makes
  /// the columns more in all, and the limits larger.
  static KnownPlaces known_of(const Candidate& candidate) {
    if (candidate.parent == nullptr) return {};
    const PieceList& theirs = candidate.parent->pieces;
    const auto common = std::mismatch(candidate.pieces.begin(), candidate.pieces.end(),
                                      theirs.begin(), theirs.end())
                            .first -
                        candidate.pieces.begin();
    const Placement& placement = candidate.parent->placement;
    const std::size_t found =
        candidate.same_columns ? placement.under_largest_limit.size() : placement.free_of_limit;
    return {placement, std::min(found, static_cast<std::size_t>(common))};
  }

  std::vector<BeamState> placed(std::vector<Candidate> candidates) {
    KeptCosts kept(static_cast<std::size_t>(options_.beam_width));
    return placed(std::move(candidates), kept);
  }

  /// Whether lists that must cost more than what the beam keeps are recognised by their mean
  /// device. Not in the paper's search: the improvement's part of the time follows from its work,
  /// and the plans would be others.
  [[nodiscard]] bool bounds_lists() const { return options_.rows && mean_bound_.exists(); }

  /// Works out what lists cost at least, if they are bounded, and their totals where they are not
  /// known.
  void bound(std::vector<Candidate>& candidates) {
    if (!bounds_lists()) return;
    PatientClock clock(clock_);
    for (Candidate& candidate : candidates) {
      clock.check();
      if (candidate.totals.state.empty()) candidate.totals = mean_bound_.totals(candidate.pieces);
      candidate.least_ms = mean_bound_.least_ms(candidate.totals);
    }
  }

  /// The order in which lists are placed: those that may cost least, so that fewer of the others
  /// need be.
  static std::vector<std::size_t> order_of(const std::vector<Candidate>& candidates) {
    std::vector<std::size_t> order(candidates.size());
    std::iota(order.begin(), order.end(), 0);
    std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
      return candidates[a].least_ms < candidates[b].least_ms;
    });
    return order;
  }

  Placement place(const Candidate& candidate, const KeptCosts& kept,
                  GreedyGridSearch& worker) const {
    // While the beam has room, lists that are worth nothing or do not fit may be cut next, and are
    // placed; a search without levels cuts none. Which of them tie then follows from `worth_ms`,
    // which is compared without what partial sums and copies cost, as sets of copies are chosen by
    // it (replica_choice.cpp).
    const double kept_ms = options_.num_levels > 0 ? kept.of_full_beam() : kept.highest();
    // A list that costs as much is placed: of equal ones the first in the given order is kept.
    if (candidate.least_ms > kept_ms * (1.0 + kCostRounding)) {
      Placement none;
      none.cost_ms = std::numeric_limits<double>::infinity();
      return none;
    }
    const double beaten_ms = kept.highest();
    return worker.search(candidate.pieces, known_of(candidate),
                         {.worth_ms = std::min(beaten_ms, options_.worth_ms),
                          .beaten_ms = beaten_ms,
                          .kept_ms = kept_ms});
  }

  void take_best(const std::vector<BeamState>& states) {
    for (const BeamState& state : states) {
      if (state.pieces.empty()) continue;  // the clock came before its first placement
      if (!best_ || state.rank() < best_->rank()) best_ = state;
    }
  }

  /// States for the lists not met before, each with its best placement; one that costs too much to
  /// be `kept` need have none. Throws TimeIsOver, having kept the best.
  std::vector<BeamState> placed(std::vector<Candidate> candidates, KeptCosts& kept) {
    std::erase_if(candidates, [&](const Candidate& candidate) {
      return !seen_.insert(hash_of(candidate.pieces)).second;
    });
    for (const Candidate& candidate : candidates) {
      pieces_tried_ += static_cast<std::int64_t>(candidate.pieces.size());
    }
    bound(candidates);
    const std::vector<std::size_t> order = order_of(candidates);
    std::vector<BeamState> states(candidates.size());
    std::size_t between_looks = kFirstLook;
    std::size_t count = 0;
    for (std::size_t first = 0; first < states.size(); first += count) {
      count = std::min(between_looks, states.size() - first);
      between_looks = std::min(2 * between_looks, most_between_looks());
      std::atomic<bool> stopped = false;
      pool_->for_each(count, [&](std::size_t i, int worker) {
        Candidate& candidate = candidates[order[first + i]];
        BeamState& state = states[order[first + i]];
        try {
          state.placement = place(candidate, kept, workers_[worker]);
        } catch (const TimeIsOver&) {
          stopped = true;
          return;
        }
        state.pieces = std::move(candidate.pieces);
        state.totals = std::move(candidate.totals);
      });
      for (std::size_t i = first; i < first + count; ++i) {
        const BeamState& state = states[order[i]];
        if (!state.pieces.empty() && state.placement.feasible()) kept.add(state.placement.cost_ms);
      }
      if (stopped) {
        take_best(states);
        throw TimeIsOver();
      }
    }
    take_best(states);
    return states;
  }

  bool can_halve_rows(PieceType piece) const {
    return options_.rows && catalog_.can_halve_rows(piece);
  }

  /// Positions of the pieces to halve: the N largest and the N costliest, one of equal pieces.
  std::vector<std::size_t> candidates(const PieceList& pieces) const {
    std::vector<std::size_t> distinct;
    std::set<PieceType> seen;  // of slices of different types, which are cut together
    for (std::size_t i = 0; i < pieces.size(); ++i) {
      const bool repeated = i > 0 && pieces[i] == pieces[i - 1];
      if (repeated) continue;
      if (!catalog_.has_equal_slices(pieces[i]) &&
          !seen.insert(catalog_.first_slice(pieces[i])).second) {
        continue;
      }
      if (catalog_.can_halve(pieces[i]) || can_halve_rows(pieces[i])) distinct.push_back(i);
    }
    const auto count = std::min<std::size_t>(options_.num_candidates, distinct.size());
    if (catalog_.pins().restricts_devices()) {
      std::stable_sort(distinct.begin(), distinct.end(), [&](std::size_t a, std::size_t b) {
        return catalog_.costs_more(pieces[a], pieces[b]);
      });
    }  // Else the list is in the order of falling cost already.
    std::vector<std::size_t> chosen(distinct.begin(),
                                    distinct.begin() + static_cast<std::ptrdiff_t>(count));
    std::stable_sort(distinct.begin(), distinct.end(), [&](std::size_t a, std::size_t b) {
      return catalog_.bytes(pieces[a]) > catalog_.bytes(pieces[b]);
    });
    chosen.insert(chosen.end(), distinct.begin(),
                  distinct.begin() + static_cast<std::ptrdiff_t>(count));
    std::sort(chosen.begin(), chosen.end());
    chosen.erase(std::unique(chosen.begin(), chosen.end()), chosen.end());
    return chosen;
  }

  /// The state's list with other pieces in place of all slices of the columns of one.
  Candidate cut(const BeamState& state, std::size_t position,
                std::initializer_list<PieceType> by) const {
    Candidate result{replaced(catalog_, state.pieces, position, by), &state};
    if (!bounds_lists()) return result;
    result.totals = state.totals;
    mean_bound_.add_columns_of(state.pieces[position], -1.0, result.totals);
    for (const PieceType piece : by) mean_bound_.add_columns_of(piece, 1.0, result.totals);
    return result;
  }

  std::vector<BeamState> expand(const std::vector<BeamState>& beam) {
    std::vector<Candidate> lists;
    for (const BeamState& state : beam) {
      for (const std::size_t position : candidates(state.pieces)) {
        clock_.check();
        const PieceType piece = state.pieces[position];
        if (catalog_.can_halve(piece)) {
          const auto [wide, narrow] = catalog_.halves(piece);
          lists.push_back(cut(state, position, {wide, narrow}));
        }
        if (can_halve_rows(piece)) {
          lists.push_back(cut(state, position, {catalog_.row_half(piece)}));
          lists.back().same_columns = false;
        }
      }
    }
    return placed(std::move(lists));
  }

  void keep_best(std::vector<BeamState>& states) const {
    std::stable_sort(states.begin(), states.end(),
                     [](const BeamState& a, const BeamState& b) { return a.rank() < b.rank(); });
    if (states.size() > static_cast<std::size_t>(options_.beam_width)) {
      states.resize(options_.beam_width);
    }
  }

  static std::vector<BeamState>::const_iterator best_of(const std::vector<BeamState>& states) {
    return std::min_element(
        states.begin(), states.end(),
        [](const BeamState& a, const BeamState& b) { return a.rank() < b.rank(); });
  }

  /// Records the statistics of the level that tried these states.
  void record_level(const std::vector<BeamState>& states) {
    BeamLevelStats level;
    level.states_tried = static_cast<std::int64_t>(states.size());
    level.states_feasible = std::count_if(states.begin(), states.end(), [](const BeamState& state) {
      return state.placement.feasible();
    });
    const Placement& best = best_of(states)->placement;
    // One that is worth nothing is not priced.
    if (best.feasible() && std::isfinite(best.cost_ms)) level.best_cost_ms = best.cost_ms;
    level.unplaced_bytes = best.unplaced_bytes;
    GreedyGridSearchStats all;
    for (const GreedyGridSearch& worker : workers_) {
      all.plans_priced += worker.stats().plans_priced;
      all.head_evaluations += worker.stats().head_evaluations;
    }
    all.head_evaluations += mean_bound_.head_evaluations();
    level.plans_priced = all.plans_priced - stats_.plans_priced;
    level.head_evaluations = all.head_evaluations - stats_.head_evaluations;
    level.pieces_encoded = static_cast<std::int64_t>(catalog_.size());
    stats_.plans_priced = all.plans_priced;
    stats_.head_evaluations = all.head_evaluations;
    stats_.states_expanded += level.states_tried;
    stats_.pieces_encoded = level.pieces_encoded;
    stats_.levels.push_back(level);
    tell(options_.observer,
         {PlanningStage::first_plan, static_cast<std::int64_t>(stats_.levels.size()), 0,
          level.best_cost_ms});
  }

  /// The best state's plan, or the plan that is known to fit where the greedy algorithm found none
  /// or a worse one: slices of a device that are neighbours are one shard of a plan, which may cost
  /// another sum than they did.
  PlanningResult finish() const {
    const bool placed = best_ && best_->placement.feasible() && !best_->placement.devices.empty();
    PlanningResult fitting;
    // Encoding every piece again takes time that is over.
    const bool has_fitting = !placed || !stats_.stopped_by_clock;
    if (has_fitting) {
      fitting.plan = fit_.plan;
      fitting.predicted = simulator_.cost(fitting.plan);
      if (!placed || best_->placement.cost_ms > fitting.predicted.cost_ms) return fitting;
    }
    PlanningResult result;
    result.plan = plan_of(simulator_, catalog_, best_->pieces, best_->placement.devices);
    result.predicted = simulator_.cost(result.plan);
    if (has_fitting && result.predicted.cost_ms > fitting.predicted.cost_ms) return fitting;
    return result;
  }

  const Simulator& simulator_;
  const BeamSearchOptions& options_;
  StopClock clock_;
  MemoryFit fit_;
  PieceCatalog catalog_;
  MeanBound mean_bound_;
  std::optional<ThreadPool> pool_;
  std::vector<GreedyGridSearch> workers_;
  std::set<std::uint64_t> seen_;
  std::optional<BeamState> best_;  ///< of all levels so far
  std::int64_t pieces_tried_ = 0;  ///< of all lists that were met
  SearchStats stats_;              ///< of the levels that are done
};

}  // namespace

PlanningResult beam_search(const Simulator& simulator, const BeamSearchOptions& options,
                           int num_threads, const StopClock& clock) {
  return Search(simulator, options, num_threads, clock).run();
}

PlanningResult BeamSearchPlanner::plan(const Simulator& simulator,
                                       const PlannerOptions& options) const {
  const auto start = std::chrono::steady_clock::now();
  const StopClock clock = stop_clock_of(options);
  const std::optional<Simulator> restricted =
      options.cuts.columns ? std::nullopt : std::optional(simulator.with_cuts(cuts(options)));
  try {
    PlanningResult result = plan_bundled(
        restricted ? *restricted : simulator,
        [&](const Simulator& bundled) {
          BeamSearchOptions observed = options_;
          observed.observer = options.observer;
          return beam_search(bundled, observed, options.num_threads, clock);
        },
        options_.rows, clock);
    result.stats.wall_ms =
        std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - start).count();
    return result;
  } catch (const TimeIsOver&) {
    throw no_plan_in_time(options);
  }
}

}  // namespace neuroshard
