// Tables of few rows, replicated as long as that pays.
#include "neuroshard/search/replicas/replica_choice.h"

#include <algorithm>
#include <cstdint>
#include <functional>
#include <optional>
#include <utility>
#include <vector>

#include "neuroshard/core/error.h"
#include "neuroshard/core/numbers/byte_sum.h"
#include "neuroshard/search/slices/sliced_task.h"

namespace neuroshard {

namespace {

/// Of the smallest device's memory, the share that copies usually take at most.
constexpr double kUsualMemory = 0.5;

/// Tables of which a task may have as many for copies to be compared with cuts: of few tables, one
/// that every device has may gain nothing before another one is cut. Among many that is rare, and
/// cuts take most of the search's time.
constexpr std::size_t kFewTables = 32;
/// Likewise devices: on more, cuts take long, and the lists of even pieces that come afterwards are
/// what matters.
constexpr int kFewDevices = 16;
/// Tables times devices up to which they are compared in several orders, which takes some 50 ms.
constexpr std::size_t kFewPlaces = 384;

/// Tables that may be replicated, by rising number of rows: an all-reduce sends a gradient for each
/// row, the all-to-alls an embedding for each sample.
std::vector<int> by_rows(const Task& task) {
  std::vector<int> tables;
  for (std::size_t t = 0; t < task.tables.size(); ++t) {
    if (task.tables[t].allow.replicas) tables.push_back(static_cast<int>(t));
  }
  std::stable_sort(tables.begin(), tables.end(), [&](int a, int b) {
    return task.tables[a].num_embeddings < task.tables[b].num_embeddings;
  });
  return tables;
}

/// How many of the first tables to try: those with at most 1/64, 1/16, ... of as many rows as the
/// batch has samples, up to those that take half of the memory; then as many of them as have room.
std::vector<std::size_t> counts_to_try(const Task& task, const std::vector<int>& tables) {
  const auto& memory = task.topology.memory_bytes;
  const auto room = static_cast<double>(*std::min_element(memory.begin(), memory.end()));
  std::vector<std::size_t> counts;
  const auto try_first = [&](std::size_t count) {
    if (count > 0 && (counts.empty() || counts.back() < count)) counts.push_back(count);
  };
  bool beyond_usual = false;
  std::int64_t bytes = 0;
  std::size_t count = 0;
  for (double most_rows = static_cast<double>(task.batch_size) / 64.0;
       most_rows <= 16.0 * static_cast<double>(task.batch_size); most_rows *= 4.0) {
    for (; count < tables.size(); ++count) {
      const Table& table = task.tables[tables[count]];
      if (static_cast<double>(table.num_embeddings) > most_rows) break;
      bytes = add_saturated(bytes, shard_bytes(table, table.embedding_dim, task.optimizer));
      if (!beyond_usual && static_cast<double>(bytes) > kUsualMemory * room) {
        beyond_usual = true;
        try_first(count);
      }
      if (static_cast<double>(bytes) > room) {
        try_first(count);
        return counts;
      }
    }
    if (!beyond_usual) try_first(count);
  }
  try_first(count);
  return counts;
}

/// All tables whole, on whichever device, but those that are replicated.
ShardingPlan with_replicas(const Task& task, std::vector<int> replicated) {
  std::sort(replicated.begin(), replicated.end());
  ShardingPlan plan;
  for (std::size_t t = 0; t < task.tables.size(); ++t) {
    const int table = static_cast<int>(t);
    if (!std::binary_search(replicated.begin(), replicated.end(), table)) {
      plan.shards.push_back({table, 0, task.tables[t].embedding_dim, 0});
    }
  }
  plan.replicated_tables = std::move(replicated);
  return plan;
}

/// The search for the tables to replicate, and the cheapest plan that it met.
class ReplicaChoice {
 public:
  ReplicaChoice(const Simulator& simulator, const BeamSearchOptions& beam,
                const PlannerOptions& options, const StopClock& clock)
      : simulator_(simulator), beam_(beam), options_(options), clock_(clock) {}

  PlanningResult run() {
    try {
      choose();
      BeamSearchOptions last = beam_;
      if (best_ && compares_in_all_orders()) last.worth_ms = best_->predicted.cost_ms;
      search(std::vector<int>(replicated_), last);
    } catch (const TimeIsOver&) {
      if (!best_) throw;
      stopped_by_clock_ = true;
    }
    best_->predicted = simulator_.cost(best_->plan);
    // The levels are of the search that found the plan, the totals of all of them.
    work_.levels = std::move(best_->stats.levels);
    work_.stopped_by_clock = stopped_by_clock_;
    best_->stats = std::move(work_);
    return std::move(*best_);
  }

 private:
  void choose() {
    if (simulator_.task().topology.world_size == 1) return;
    std::vector<int> tables;
    if (options_.cuts.replicas) tables = by_rows(simulator_.task());
    const std::vector<std::size_t> counts = counts_to_try(simulator_.task(), tables);
    // Of the fewest, the last search is another one, also where there is nothing to copy.
    if (counts.empty() && !compares_in_all_orders()) return;
    compare({});
    for (const std::size_t count : counts) {
      try {
        compare({tables.begin(), tables.begin() + static_cast<std::ptrdiff_t>(count)});
      } catch (const InfeasibleError&) {
        continue;  // the copies leave too little room
      }
    }
  }

  [[nodiscard]] bool compares_with_cuts() const {
    const Task& task = simulator_.task();
    return task.tables.size() <= kFewTables && task.topology.world_size <= kFewDevices;
  }

  [[nodiscard]] bool compares_in_all_orders() const {
    const Task& task = simulator_.task();
    const auto devices = static_cast<std::size_t>(task.topology.world_size);
    return compares_with_cuts() && task.tables.size() * devices <= kFewPlaces;
  }

  /// Of many tables or devices without the cuts that are no use to memory, in a fraction of the
  /// time. Of the fewest, states of any cost are ranked: one with copies may be dearer before its
  /// cuts.
  void compare(const std::vector<int>& replicated) {
    BeamSearchOptions brief = beam_;
    brief.explains_infeasible = replicated.empty();
    if (!compares_with_cuts()) {
      brief.num_levels = 0;
      brief.beam_width = 1;  // no plan but the cheapest is priced
    }
    if (best_ && !compares_in_all_orders()) brief.worth_ms = best_->predicted.cost_ms;
    search(replicated, brief);
    if (!compares_in_all_orders() || replicated.empty()) return;
    // A cut of rows that gains at once may stand in the way of columns that gain more together.
    if (brief.rows) {
      brief.rows = false;
      try {
        search(replicated, brief);
      } catch (const InfeasibleError&) {  // there is room by rows alone
      }
    }
    // And the cheapest states may be in the way of others: where those that are worth nothing tie,
    // the search takes the first ones, the largest and costliest pieces.
    brief.rows = beam_.rows;
    brief.worth_ms = best_->predicted.cost_ms;
    search(replicated, brief);
    // Where what is not copied is one or two large tables, all of their cuts matter at once.
    if (!brief.rows) return;
    brief.cheapest_cuts = true;
    search(replicated, brief);
  }

  void search(const std::vector<int>& replicated, const BeamSearchOptions& beam) {
    PlanningResult result = plan_with_replicas_of(simulator_, replicated, beam, options_, clock_);
    add_work(result.stats, work_);
    stopped_by_clock_ |= result.stats.stopped_by_clock;
    keep_if_cheaper(std::move(result), replicated);
  }

  void keep_if_cheaper(PlanningResult result, const std::vector<int>& replicated) {
    if (best_ && result.predicted.cost_ms >= best_->predicted.cost_ms) return;
    best_ = std::move(result);
    replicated_ = replicated;
  }

  const Simulator& simulator_;
  const BeamSearchOptions& beam_;
  const PlannerOptions& options_;
  const StopClock& clock_;
  std::optional<PlanningResult> best_;  ///< so far
  std::vector<int> replicated_;         ///< there
  SearchStats work_;
  bool stopped_by_clock_ = false;
};

}  // namespace

std::optional<PlanningResult> plan_with_replicas_of(
    const Simulator& simulator, const std::vector<int>& replicated, const StopClock& clock,
    const std::function<std::optional<PlanningResult>(const Simulator&)>& plan) {
  if (replicated.empty()) return plan(simulator);
  const ShardingPlan start = with_replicas(simulator.task(), replicated);
  if (start.shards.empty()) return PlanningResult{start, simulator.cost(start)};
  const SlicedTask sliced(simulator, start, clock);
  std::optional<PlanningResult> result = plan(sliced.simulator());
  if (result) result->plan = sliced.original(result->plan);
  return result;
}

PlanningResult plan_with_replicas_of(const Simulator& simulator, const std::vector<int>& replicated,
                                     const BeamSearchOptions& beam, const PlannerOptions& options,
                                     const StopClock& clock) {
  return *plan_with_replicas_of(simulator, replicated, clock, [&](const Simulator& others) {
    return std::optional(beam_search(others, beam, options.num_threads, clock));
  });
}

PlanningResult plan_with_replicas(const Simulator& simulator, const BeamSearchOptions& beam,
                                  const PlannerOptions& options, const StopClock& clock) {
  return ReplicaChoice(simulator, beam, options, clock).run();
}

}  // namespace neuroshard
