// The older plan improved within the limit; the way home from a new plan where that is not enough.
#include "neuroshard/search/replan/replanner.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdint>
#include <limits>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "neuroshard/core/machine/parallel.h"
#include "neuroshard/core/numbers/byte_sum.h"
#include "neuroshard/core/table_pins.h"
#include "neuroshard/core/units.h"
#include "neuroshard/cost/compute/remembering_compute_model.h"
#include "neuroshard/search/first_plan.h"
#include "neuroshard/search/groups/bundled_task.h"
#include "neuroshard/search/improved_plan.h"
#include "neuroshard/search/neuroshard_planner.h"
#include "neuroshard/search/replan/plan_path.h"
#include "neuroshard/search/replan/relabelled_plan.h"
#include "neuroshard/search/replan/repaired_plan.h"

namespace neuroshard {

namespace {

/// The tables that the search knows: of tables that stay together, one.
class TablesAtHand {
 public:
  /// Keeps a reference.
  explicit TablesAtHand(const Simulator& simulator)
      : bundled_(simulator.task()), given_(simulator) {
    const Task& task = simulator.task();
    int number = 0;
    at_hand_of_.resize(task.tables.size(), -1);
    for (const std::vector<int>& members : bundled_.members()) {
      TableOrigin origin;
      for (const int member : members) {
        origin.push_back({member, 0, task.tables[member].embedding_dim, -1});
      }
      at_hand_of_[members.front()] = number++;
      origins_.push_back(std::move(origin));
    }
    if (has_groups(task)) of_bundles_.emplace(simulator, bundled_.task(), bundled_.members());
  }

  [[nodiscard]] const Simulator& simulator() const { return of_bundles_ ? *of_bundles_ : given_; }
  /// Of the tables at hand, those that they stand for.
  [[nodiscard]] const std::vector<TableOrigin>& origins() const { return origins_; }

  /// A plan of the given task, of the tables at hand.
  [[nodiscard]] ShardingPlan at_hand(const ShardingPlan& plan) const {
    ShardingPlan result;
    for (Shard shard : plan.shards) {
      shard.table = at_hand_of_[shard.table];
      if (shard.table < 0) continue;  // a group is where its first table is
      if (origins_[shard.table].size() > 1) shard.num_columns = 1;
      result.shards.push_back(shard);
    }
    for (const int table : plan.replicated_tables) {
      result.replicated_tables.push_back(at_hand_of_[table]);
    }
    sort_shards(result);
    return result;
  }
  /// And back.
  [[nodiscard]] ShardingPlan original(const ShardingPlan& plan) const {
    return of_bundles_ ? bundled_.original(plan) : plan;
  }

 private:
  BundledTask bundled_;
  const Simulator& given_;
  std::optional<Simulator> of_bundles_;
  std::vector<TableOrigin> origins_;
  std::vector<int>
      at_hand_of_;  ///< by table of the given task; -1 for all of a group but the first
};

/// The search on a task whose tables stay with none.
class LimitedSearch {
 public:
  /// Keeps references to all but the options. `allowed` allows no more cuts than the options.
  LimitedSearch(const Simulator& allowed, const PlacedBefore& before,
                const std::vector<TableOrigin>& origins, std::int64_t limit_bytes,
                const PlannerOptions& options, const StopClock& clock)
      : allowed_(allowed),
        before_(before),
        origins_(origins),
        limit_bytes_(limit_bytes),
        options_(options),
        clock_(clock),
        replica_limit_{
            [this](int table, std::span<const Shard> shards) { return moved_by(table, shards); },
            limit_bytes} {}

  [[nodiscard]] std::int64_t moved_bytes(const ShardingPlan& plan) const {
    std::int64_t moved = 0;
    for (const Shard& shard : plan.shards) {
      moved = add_saturated(moved, neuroshard::moved_bytes(before_, origins_[shard.table], shard));
    }
    for (const int table : plan.replicated_tables) {
      moved = add_saturated(moved, moved_by(table, {}));
    }
    return moved;
  }
  [[nodiscard]] bool is_within(const ShardingPlan& plan) const {
    return moved_bytes(plan) <= limit_bytes_;
  }

  /// Whether one plan is to be taken rather than another: of two that exceed the limit, that which
  /// moves less.
  [[nodiscard]] bool is_better(const PlanningResult& one, const PlanningResult& other) const {
    const std::int64_t moved = moved_bytes(one.plan);
    const std::int64_t moved_by_other = moved_bytes(other.plan);
    if (std::min(moved, moved_by_other) <= limit_bytes_ &&
        std::max(moved, moved_by_other) > limit_bytes_) {
      return moved <= limit_bytes_;
    }
    return moved > limit_bytes_ ? moved < moved_by_other
                                : one.predicted.cost_ms < other.predicted.cost_ms;
  }

  /// Whether a plan gains as much over the given one as moves must.
  [[nodiscard]] bool gains_enough(const PlanningResult& plan, const PlanningResult& given) const {
    const double least_gain_ms = options_.least_gain * longest_compute_ms(given.predicted);
    return plan.predicted.cost_ms < given.predicted.cost_ms - least_gain_ms;
  }

  /// Whether a plan is to be taken rather than what the repaired one, `kept`, came to: where that
  /// keeps to the limit, moves must gain.
  [[nodiscard]] bool is_worth_moving(const PlanningResult& plan, const PlanningResult& of_kept,
                                     const ShardingPlan& kept) const {
    if (!is_within(kept)) return is_better(plan, of_kept);
    return is_within(plan.plan) && gains_enough(plan, of_kept);
  }

  /// The plan, with other tables on every device and improved, where that gains enough; the costs
  /// are those of the models.
  PlanningResult improved(const ShardingPlan& plan) {
    const PlanningResult given{plan, allowed_.cost(plan), {}};
    PlanningResult result = given;
    const auto stay = [&] {
      result.plan = given.plan;
      result.predicted = given.predicted;
    };
    try {
      move_replicas(allowed_, options_, clock_, result, &replica_limit_);
      if (is_within(plan) && !gains_enough(result, given)) stay();
      improve(result);
    } catch (const TimeIsOver&) {
      result.stats.stopped_by_clock = true;
    }
    if (!is_within(result.plan) && moved_bytes(result.plan) > moved_bytes(plan)) stay();
    return result;
  }

 private:
  /// In these shards or, without any, on every device.
  [[nodiscard]] std::int64_t moved_by(int table, std::span<const Shard> shards) const {
    const TableOrigin& origin = origins_[table];
    if (shards.empty()) return before_.moved_bytes_of_copies(origin.front().table);
    std::int64_t moved = 0;
    for (const Shard& shard : shards) {
      moved = add_saturated(moved, neuroshard::moved_bytes(before_, origin, shard));
    }
    return moved;
  }

  void improve(PlanningResult& result) {
    LocalSearchBudget budget = improvement_budget(options_, allowed_.task().topology.world_size, 0);
    budget.deadline = clock_.end();
    const MoveRules rules{before_, origins_, limit_bytes_};
    ThreadPool pool(options_.num_threads);
    PlanningResult better =
        improved_plan(pessimist(allowed_, options_.pessimism), result.plan, options_.cuts,
                      local_search_options(options_.improvement), budget, pool, &rules);
    better.predicted = allowed_.cost(better.plan);
    move_replicas(allowed_, options_, clock_, better, &replica_limit_);
    result.stats.stopped_by_clock |= better.stats.stopped_by_clock || clock_.is_over();
    const bool enters_limit = !is_within(result.plan) && is_within(better.plan);
    if (enters_limit || gains_enough(better, result)) {
      result.plan = std::move(better.plan);
      result.predicted = std::move(better.predicted);
    }
    add_work(better.stats, result.stats);
    result.stats.rounds = std::move(better.stats.rounds);
  }

  const Simulator& allowed_;
  const PlacedBefore& before_;
  const std::vector<TableOrigin>& origins_;
  std::int64_t limit_bytes_;
  PlannerOptions options_;
  StopClock clock_;
  ReplicaMoveLimit replica_limit_;
};

/// What a share of the bytes, from 0 to 1 or infinite, allows to move.
std::int64_t limit_of(double share, std::int64_t total_bytes) {
  if (share == kAnyMove) return std::numeric_limits<std::int64_t>::max();
  // All of them as they are: a double has no room for the largest sum, the next one is 2^63.
  if (share >= 1.0) return total_bytes;
  return static_cast<std::int64_t>(std::floor(share * static_cast<double>(total_bytes)));
}

/// `least_moved`: of all plans that were found. `reachable`: of a plan that is found again with
/// any limit that allows it.
InfeasibleError moves_too_much(double max_move, std::int64_t total_bytes, std::int64_t least_moved,
                               std::int64_t reachable) {
  const auto total = static_cast<double>(total_bytes);
  std::string message = fmt::format(
      "no plan found that moves at most {:.4g}% of the {} that the older plan placed: the least "
      "found moves {:.1f}%",
      100.0 * max_move, format_bytes(total),
      std::ceil(1000.0 * static_cast<double>(least_moved) / total) / 10.0);
  for (int percent = 1; percent <= 100; ++percent) {
    if (limit_of(percent / 100.0, total_bytes) < reachable) continue;
    return InfeasibleError(message + fmt::format("; --max-move {}% would do", percent));
  }
  return InfeasibleError(message);
}

}  // namespace

PlanningResult Replanner::plan(const Simulator& simulator, const PlannerOptions& options) const {
  validate(options);
  const auto start = StopClock::Clock::now();
  const StopClock clock = stop_clock_of(options);
  const Simulator allowed = simulator.with_cuts(options.cuts);
  const TablesAtHand tables(allowed);
  const Simulator& at_hand = tables.simulator();
  const std::vector<TableOrigin>& origins = tables.origins();
  const std::int64_t limit_bytes = limit_of(max_move_, before_->total_bytes());
  LimitedSearch search(at_hand, *before_, origins, limit_bytes, options, clock);

  PlanningResult result;
  const ShardingPlan settled = settled_parts(at_hand, *before_, origins);
  std::optional<ShardingPlan> kept;
  try {
    kept = repaired_plan(at_hand, settled, clock);
  } catch (const TimeIsOver&) {
    throw no_plan_in_time(options);
  }
  // Of a plan that is found again with any limit that allows it.
  std::int64_t reachable = std::numeric_limits<std::int64_t>::max();
  // The improvement goes on saving bytes where none may move; what it comes to may do.
  const auto improved_at_home = [&](const ShardingPlan& start_plan) {
    LimitedSearch at_home(at_hand, *before_, origins, 0, options, clock);
    PlanningResult found = at_home.improved(start_plan);
    reachable = std::min(reachable, search.moved_bytes(found.plan));
    if (limit_bytes == 0 || !search.is_within(found.plan)) return found;
    PlanningResult better = search.improved(found.plan);
    add_work(found.stats, better.stats);
    return better;
  };
  if (kept) {
    result = search.improved(*kept);
    if (!search.is_within(result.plan)) {
      PlanningResult from_there = improved_at_home(*kept);
      if (search.is_better(from_there, result)) std::swap(from_there, result);
      add_work(from_there.stats, result.stats);
    }
  }
  if (!kept || (max_move_ > 0.0 && !clock.is_over())) {
    PlannerOptions timed = options;
    timed.deadline = clock.end();
    try {
      // A new plan, and from there the way home, as far as need be and memory lets tables go.
      PlanningResult anew = NeuroShardPlanner().plan(allowed, timed);
      const ShardingPlan near =
          tables.at_hand(relabelled_plan(allowed.task(), *before_, anew.plan, clock));
      const auto home_within = [&](std::int64_t limit) {
        return way_home(
            at_hand, near, kept ? *kept : settled,
            [&](const ShardingPlan& plan) { return search.moved_bytes(plan); }, limit, clock);
      };
      PlanningResult other = search.improved(home_within(limit_bytes));
      if (!search.is_within(other.plan) && !(kept && search.is_within(result.plan))) {
        PlanningResult from_there = improved_at_home(home_within(0));
        if (search.is_better(from_there, other)) std::swap(from_there, other);
        add_work(from_there.stats, other.stats);
      }
      add_work(anew.stats, other.stats);
      if (!kept || search.is_worth_moving(other, result, *kept)) std::swap(result, other);
      add_work(other.stats, result.stats);
    } catch (const InfeasibleError&) {
      if (!kept) throw;  // the older plan fits where no new one was found, or the time is over
    }
  }
  // Of whatever part: also one whose plan was not taken, or that was left out.
  result.stats.stopped_by_clock |= clock.is_over();
  const std::int64_t moved = search.moved_bytes(result.plan);
  if (moved > limit_bytes) {
    throw moves_too_much(max_move_, before_->total_bytes(), moved, std::max(moved, reachable));
  }
  result.plan = tables.original(result.plan);
  result.predicted = simulator.cost(result.plan);
  result.stats.wall_ms =
      std::chrono::duration<double, std::milli>(StopClock::Clock::now() - start).count();
  return result;
}

PlanningResult improved_from(const Simulator& simulator, const ShardingPlan& parts,
                             const PlannerOptions& options) {
  validate(options);
  const StopClock clock = stop_clock_of(options);
  const TablesAtHand tables(simulator);
  const Simulator& at_hand = tables.simulator();
  std::optional<ShardingPlan> start;
  try {
    start = repaired_plan(at_hand, tables.at_hand(parts), clock);
  } catch (const TimeIsOver&) {
    throw no_plan_in_time(options);
  }
  if (!start) throw InfeasibleError("no plan found that fits into memory with it");
  PlanningResult result;
  try {
    LocalSearchBudget budget = improvement_budget(options, at_hand.task().topology.world_size, 0);
    budget.deadline = clock.end();
    ThreadPool pool(options.num_threads);
    Cuts cuts = options.cuts;
    cuts.rows = false;  // slices stay as they are
    result = improved_plan(pessimist(at_hand, options.pessimism), *start, cuts,
                           local_search_options(options.improvement), budget, pool);
    if (at_hand.cost(*start).cost_ms < at_hand.cost(result.plan).cost_ms) result.plan = *start;
  } catch (const TimeIsOver&) {
    result.plan = *start;  // valid, and the best so far
  }
  result.stats.stopped_by_clock = clock.is_over();
  result.plan = tables.original(result.plan);
  result.predicted = simulator.cost(result.plan);
  return result;
}

}  // namespace neuroshard
