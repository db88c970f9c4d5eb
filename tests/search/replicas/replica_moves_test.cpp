// Single moves of tables to every device and back: valid, cheaper, and none left that would help.
#include "neuroshard/search/replicas/replica_moves.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <cstdint>
#include <limits>
#include <span>

#include "neuroshard/search/beam/beam_search.h"
#include "neuroshard/search/memory/memory_fit.h"
#include "tests/search/arbitrary_simulator.h"

namespace neuroshard {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;
using testing_tasks::arbitrary_compute;
using testing_tasks::conditioned_task;
using testing_tasks::make_simulator;
using testing_tasks::make_table;
using testing_tasks::one_host_task;

ShardingPlan moved(const Simulator& simulator, const ShardingPlan& plan, bool may_slice = false) {
  SearchStats stats;
  return with_replica_moves(simulator, plan, may_slice, stats);
}

Task tiny_and_large() {
  Task task = one_host_task({make_table("tiny", 3, 256), make_table("large", 1'000'000, 128, 20.0)},
                            2, std::int64_t{1} << 40);
  task.batch_size = 65'536;
  return task;
}

TEST(ReplicaMoves, ATinyTableGoesToEveryDevice) {
  const Simulator simulator = make_simulator(tiny_and_large());
  const ShardingPlan plan = moved(simulator, {{{0, 0, 128, 0}, {1, 0, 128, 0}}, {}});
  EXPECT_THAT(plan.replicated_tables, ElementsAre(0));
  EXPECT_THAT(plan.shards, ElementsAre(Shard{1, 0, 128, 0}));
}

TEST(ReplicaMoves, ALargeOneComesBack) {
  Task task = tiny_and_large();
  task.tables[0].allow.replicas = false;
  const Simulator simulator = make_simulator(task);
  const ShardingPlan plan = moved(simulator, {{{0, 0, 128, 0}}, {1}});
  EXPECT_THAT(plan.replicated_tables, IsEmpty());
  EXPECT_THAT(plan.shards, ElementsAre(Shard{0, 0, 128, 0}, Shard{1, 0, 128, 1}));
  EXPECT_THAT(moved(simulator, {{{0, 0, 128, 0}}, {1}}, true).shards,
              ElementsAre(Shard{0, 0, 128, 0}, Shard{1, 0, 128, 0, 0, 500'000},
                          Shard{1, 0, 128, 1, 500'000, 500'000}));
}

TEST(ReplicaMoves, NotWhereThereIsNoMemory) {
  Task task = tiny_and_large();
  task.topology.memory_bytes = {std::int64_t{1} << 40, 3 * 128 * 4 - 1};
  const Simulator simulator = make_simulator(task);
  EXPECT_THAT(moved(simulator, {{{0, 0, 128, 0}, {1, 0, 128, 0}}, {}}).replicated_tables,
              IsEmpty());
}

/// Each table moves as much as a sum can be, but nothing where it is on every device.
TEST(ReplicaMoves, MayLowerWhatMovesBeyondTheLargestSum) {
  const ReplicaMoveLimit limit{[](int /*table*/, std::span<const Shard> shards) {
                                 return shards.empty() ? std::int64_t{0}
                                                       : std::numeric_limits<std::int64_t>::max();
                               },
                               0};
  SearchStats stats;
  const ShardingPlan plan =
      with_replica_moves(make_simulator(tiny_and_large()), {{{0, 0, 128, 0}, {1, 0, 128, 0}}, {}},
                         false, stats, {}, &limit);
  EXPECT_THAT(plan.replicated_tables, ElementsAre(0));
}

RC_GTEST_PROP(ReplicaMovesProperty, ValidNoDearerAndWithoutABetterMove, ()) {
  const Simulator simulator = make_simulator(conditioned_task(), arbitrary_compute());
  const MemoryFit fit = fit_memory(simulator.task());
  RC_PRE(fit.feasible);
  const ShardingPlan plan = moved(simulator, fit.plan);
  RC_ASSERT(violations(simulator.task(), plan).empty());
  const double cost_ms = simulator.cost(plan).cost_ms;
  RC_ASSERT(cost_ms <= simulator.cost(fit.plan).cost_ms);
  const std::vector<Table>& tables = simulator.task().tables;
  for (std::size_t t = 0; t < tables.size(); ++t) {
    const int number = static_cast<int>(t);
    ShardingPlan other = plan;
    std::erase_if(other.shards, [&](const Shard& shard) { return shard.table == number; });
    if (other.shards.size() == plan.shards.size() || !tables[t].allow.replicas) continue;
    other.replicated_tables.insert(
        std::upper_bound(other.replicated_tables.begin(), other.replicated_tables.end(), number),
        number);
    // A device that holds a part of the table already needs room for all of it next to that.
    bool has_room = true;
    const std::vector<std::int64_t> bytes = device_memory(simulator.task(), plan);
    for (std::size_t d = 0; d < bytes.size(); ++d) {
      has_room = has_room && bytes[d] + shard_bytes(tables[t], tables[t].embedding_dim,
                                                    simulator.task().optimizer) <=
                                 simulator.task().topology.memory_bytes[d];
    }
    if (has_room) RC_ASSERT(simulator.cost(other).cost_ms >= cost_ms * (1.0 - 1e-6));
  }
}

}  // namespace
}  // namespace neuroshard
