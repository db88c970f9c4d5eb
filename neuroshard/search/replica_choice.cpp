// Tables of few rows, replicated as long as that pays.
#include "neuroshard/search/replica_choice.h"

#include <algorithm>
#include <cstdint>
#include <limits>
#include <utility>
#include <vector>

#include "neuroshard/core/byte_sum.h"
#include "neuroshard/core/error.h"
#include "neuroshard/search/sliced_task.h"

namespace neuroshard {

namespace {

/// Of the smallest device's memory, the share that copies may take.
constexpr double kMostMemory = 0.5;

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
/// batch has samples, and as have room.
std::vector<std::size_t> counts_to_try(const Task& task, const std::vector<int>& tables) {
  const auto& memory = task.topology.memory_bytes;
  const double room =
      kMostMemory * static_cast<double>(*std::min_element(memory.begin(), memory.end()));
  std::vector<std::size_t> counts;
  std::int64_t bytes = 0;
  std::size_t count = 0;
  for (double most_rows = static_cast<double>(task.batch_size) / 64.0;
       most_rows <= 16.0 * static_cast<double>(task.batch_size); most_rows *= 4.0) {
    for (; count < tables.size(); ++count) {
      const Table& table = task.tables[tables[count]];
      if (static_cast<double>(table.num_embeddings) > most_rows) break;
      bytes = add_saturated(bytes, shard_bytes(table, table.embedding_dim, task.optimizer));
      if (static_cast<double>(bytes) > room) return counts;
    }
    if (count > 0 && (counts.empty() || counts.back() < count)) counts.push_back(count);
  }
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

/// The beam search's plan with these tables on every device.
PlanningResult searched(const Simulator& simulator, const std::vector<int>& replicated,
                        const BeamSearchOptions& beam, const PlannerOptions& options) {
  if (replicated.empty()) return BeamSearchPlanner(beam).plan(simulator, options);
  const ShardingPlan start = with_replicas(simulator.task(), replicated);
  PlanningResult result;
  if (start.shards.empty()) {
    result.plan = start;
  } else {
    const SlicedTask sliced(simulator, start);
    result = BeamSearchPlanner(beam).plan(sliced.simulator(), options);
    result.plan = sliced.original(result.plan);
  }
  result.predicted = simulator.cost(result.plan);
  return result;
}

}  // namespace

PlanningResult plan_with_replicas(const Simulator& simulator, const BeamSearchOptions& beam,
                                  const PlannerOptions& options) {
  std::vector<int> best;
  if (options.cuts.replicas && simulator.task().topology.world_size > 1) {
    const std::vector<int> tables = by_rows(simulator.task());
    const std::vector<std::size_t> counts = counts_to_try(simulator.task(), tables);
    // Compared without the cuts that are no use to memory, in a fraction of the time.
    BeamSearchOptions brief = beam;
    brief.num_levels = 0;
    double least_ms = std::numeric_limits<double>::infinity();
    if (!counts.empty()) least_ms = searched(simulator, {}, brief, options).predicted.cost_ms;
    for (const std::size_t count : counts) {
      const std::vector<int> replicated(tables.begin(),
                                        tables.begin() + static_cast<std::ptrdiff_t>(count));
      try {
        const double cost_ms = searched(simulator, replicated, brief, options).predicted.cost_ms;
        if (cost_ms >= least_ms) continue;
        least_ms = cost_ms;
        best = replicated;
      } catch (const InfeasibleError&) {
        continue;  // the copies leave too little room
      }
    }
  }
  return searched(simulator, best, beam, options);
}

}  // namespace neuroshard
