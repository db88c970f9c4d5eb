// Fitting into memory: every plan found is valid, ample memory is always enough, and the remedies
// that an error names work.
#include "neuroshard/search/memory/memory_fit.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "neuroshard/core/numbers/random.h"
#include "neuroshard/search/memory/memory_needs.h"
#include "tests/cost/arbitrary_task.h"

namespace neuroshard {
namespace {

using testing_tasks::arbitrary_task;
using testing_tasks::kGiB;
using testing_tasks::make_table;
using testing_tasks::make_topology;
using testing_tasks::with_conditions;

Task make_task(std::vector<Table> tables, int num_devices, std::int64_t memory_bytes,
               Optimizer optimizer = Optimizer::sgd) {
  Task task;
  task.batch_size = 64;
  task.optimizer = optimizer;
  task.tables = std::move(tables);
  task.topology = make_topology(num_devices, num_devices, memory_bytes);
  return task;
}

Task on_devices(Task task, int num_devices, std::int64_t memory_bytes) {
  task.topology = make_topology(num_devices, 1, memory_bytes);
  return task;
}

TEST(MemoryFit, WholeTablesWhereTheyFit) {
  const Task task =
      make_task({make_table("a", 60, 4), make_table("b", 50, 4), make_table("c", 40, 4)}, 2, 1600);
  const MemoryFit fit = fit_memory(task);
  ASSERT_TRUE(fit.feasible);
  EXPECT_EQ(fit.num_cuts, 0);
  EXPECT_THAT(violations(task, fit.plan), testing::IsEmpty());
}

TEST(MemoryFit, CutsOnlyWhatDoesNotFit) {
  // 64 columns of 1,000 rows are 256,000 bytes: one device of 200,000 cannot hold them.
  const Task task =
      make_task({make_table("large", 1000, 64), make_table("small", 10, 64)}, 2, 200'000);
  const MemoryFit fit = fit_memory(task);
  ASSERT_TRUE(fit.feasible);
  EXPECT_EQ(fit.num_cuts, 1);
  EXPECT_THAT(violations(task, fit.plan), testing::IsEmpty());
}

TEST(MemoryFit, FillsDevicesToTheLastColumn) {
  // Three tables of 12 columns on two devices of 18: the cut is where the device is full.
  const Task task = make_task(
      {make_table("a", 100, 12), make_table("b", 100, 12), make_table("c", 100, 12)}, 2, 7200);
  EXPECT_FALSE(fit_memory(task).feasible);  // 18 is no multiple of 4
  const Task roomier = on_devices(task, 2, 8000);
  const MemoryFit fit = fit_memory(roomier);
  ASSERT_TRUE(fit.feasible);
  EXPECT_EQ(fit.num_cuts, 1);
  EXPECT_THAT(violations(roomier, fit.plan), testing::IsEmpty());
}

TEST(MemoryFit, CountsTheOptimizerStateOfEveryPiece) {
  // 2 devices of 8 columns with their state have 100 * (8 * 4 + 4) bytes each.
  const std::vector<Table> tables{make_table("a", 100, 16)};
  EXPECT_TRUE(fit_memory(make_task(tables, 2, 3600, Optimizer::rowwise_adagrad)).feasible);
  EXPECT_FALSE(fit_memory(make_task(tables, 2, 3599, Optimizer::rowwise_adagrad)).feasible);
  EXPECT_TRUE(fit_memory(make_task(tables, 2, 3200, Optimizer::sgd)).feasible);
}

TEST(MemoryFit, UsesDevicesOfDifferentMemory) {
  Task task = make_task({make_table("a", 100, 20)}, 3, 1);
  task.topology.memory_bytes = {1600, 6400, 100};  // 4 and 16 columns
  const MemoryFit fit = fit_memory(task);
  ASSERT_TRUE(fit.feasible);
  EXPECT_THAT(violations(task, fit.plan), testing::IsEmpty());
  EXPECT_EQ(fit.num_cuts, 1);
}

TEST(MemoryFit, SizesBeyond64BitsDoNotFit) {
  std::vector<Table> tables;
  for (int i = 0; i < 20; ++i) {
    tables.push_back(make_table(fmt::format("t{}", i), kMaxEmbeddings, kMaxEmbeddingDim));
  }
  const Task task = make_task(tables, 4, kGiB);
  EXPECT_FALSE(fit_memory(task).feasible);
  const MemoryNeeds needs = memory_needs(task);
  EXPECT_FALSE(needs.sufficient_memory);
  EXPECT_FALSE(needs.sufficient_devices);
  EXPECT_STREQ(explain_infeasible(task).what(),
               "no plan fits into memory: table \"t0\" cannot be cut below 4 columns, which need "
               "64.00 TiB, and the largest device has 1.00 GiB; no memory would do for 4 devices, "
               "and no number of devices of 1.00 GiB");
}

TEST(ExplainInfeasible, TheTotal) {
  // 1 GiB per 4 columns of 2^26 rows: 32 GiB each.
  const std::vector<Table> tables{make_table("a", 1 << 26, 128), make_table("b", 1 << 26, 128)};
  EXPECT_STREQ(
      explain_infeasible(make_task(tables, 4, 15 * kGiB)).what(),
      "no plan fits into memory: the tables need 64.00 GiB, 4 devices have 60.00 GiB, 4.00 "
      "GiB too little; "
      "4 devices of 16.00 GiB (16384MiB) would do, or 5 devices of 15.00 GiB");
  EXPECT_STREQ(
      explain_infeasible(make_task(tables, 1, 15 * kGiB, Optimizer::rowwise_adagrad)).what(),
      "no plan fits into memory: the tables need 65.50 GiB (1.50 GiB of it optimizer state with "
      "the 4 necessary cuts), 1 device has 15.00 GiB, 50.50 GiB too little; 1 device of 64.50 GiB "
      "(66048MiB) would do, "
      "or 5 devices of 15.00 GiB");
}

TEST(ExplainInfeasible, SumsBeyond64BitsAreExact) {
  std::vector<Table> tables;
  for (int i = 0; i < 20; ++i)
    tables.push_back(make_table(fmt::format("t{}", i), 1LL << 42, 65536));
  const Task task = make_task(tables, 9, std::int64_t{1} << 60);
  const MemoryNeeds needs = memory_needs(task);
  EXPECT_TRUE(needs.is_too_much());
  EXPECT_EQ(needs.sufficient_devices, 20);
  EXPECT_STREQ(explain_infeasible(task).what(),
               "no plan fits into memory: the tables need 20480.00 PiB, 9 devices have 9216.00 "
               "PiB, 11264.00 PiB too little; no memory would do for 9 devices, or 20 devices of "
               "1024.00 PiB");
}

TEST(ExplainInfeasible, APieceThatCannotBeCut) {
  EXPECT_STREQ(explain_infeasible(make_task({make_table("odd", 1 << 28, 10)}, 2, 8 * kGiB)).what(),
               "no plan fits into memory: table \"odd\" cannot be cut and has 10 columns, which "
               "need 10.00 GiB, and the largest device has 8.00 GiB; 2 devices of 10.00 GiB "
               "(10240MiB) would do, and no number of devices of 8.00 GiB; with rows cut too, the "
               "tables fit");
}

TEST(ExplainInfeasible, NoWayToDivide) {
  const std::vector<Table> tables{make_table("a", 100, 4), make_table("b", 100, 4),
                                  make_table("c", 100, 4)};
  EXPECT_STREQ(explain_infeasible(make_task(tables, 2, 3000)).what(),
               "no plan fits into memory: the tables need 4.69 KiB, 2 devices have 5.86 KiB, and "
               "no way to divide it among them was found; 2 devices of 3.12 KiB (3200B) would do, "
               "or 3 devices of 2.93 KiB; with rows cut too, the tables fit");
}

/// Of a random tightness, so that some tasks fit and some do not.
Task tight_task() { return *arbitrary_task(*rc::gen::element(0.5, 0.67, 0.8, 0.9, 1.0, 1.5)); }

RC_GTEST_PROP(MemoryFitProperty, PlansAreValid, ()) {
  const bool conditions = *rc::gen::arbitrary<bool>();
  const Task task = conditions ? with_conditions(tight_task()) : tight_task();
  const MemoryFit fit = fit_memory(task);
  RC_CLASSIFY(fit.feasible, "feasible");
  if (!fit.feasible) {
    RC_ASSERT(fit.plan.shards.empty());
    return;
  }
  RC_ASSERT(violations(task, fit.plan).empty());
  RC_ASSERT(static_cast<int>(fit.plan.shards.size() - task.tables.size()) == fit.num_cuts);
  ShardingPlan sorted = fit.plan;
  sort_shards(sorted);
  RC_ASSERT(sorted.shards == fit.plan.shards);
}

RC_GTEST_PROP(MemoryFitProperty, AmpleMemoryIsEnough, ()) {
  Task task = tight_task();
  // All tables cut as finely as can be, and on every device the largest grain unused.
  std::int64_t finest = 0;
  std::int64_t grain = 0;
  for (const Table& table : task.tables) {
    const std::int64_t columns = can_cut(table.embedding_dim) ? 4 : table.embedding_dim;
    const std::int64_t bytes = shard_bytes(table, columns, task.optimizer);
    finest += table.embedding_dim / columns * bytes;
    grain = std::max(grain, bytes);
  }
  const std::vector<std::int64_t>& memory = task.topology.memory_bytes;
  const std::int64_t available = std::accumulate(memory.begin(), memory.end(), std::int64_t{0});
  const std::int64_t missing = finest + task.topology.world_size * grain - available;
  if (missing > 0) {
    const auto device = *rc::gen::inRange(0, task.topology.world_size);
    const bool shared = *rc::gen::arbitrary<bool>();
    for (int d = 0; d < task.topology.world_size; ++d) {
      if (shared) task.topology.memory_bytes[d] += missing / task.topology.world_size + 1;
      if (!shared && d == device) task.topology.memory_bytes[d] += missing;
    }
  }
  RC_ASSERT(fit_memory(task).feasible);
}

RC_GTEST_PROP(MemoryFitProperty, RemediesWorkAndAreTheSmallest, ()) {
  Task task = *arbitrary_task(*rc::gen::element(0.3, 0.5, 0.67));
  if (*rc::gen::arbitrary<bool>()) task = with_conditions(std::move(task));
  RC_PRE(!fit_memory(task).feasible);
  const MemoryNeeds needs = memory_needs(task);
  const int num_devices = task.topology.world_size;

  RC_ASSERT(needs.sufficient_memory.has_value());
  const std::int64_t memory = *needs.sufficient_memory;
  RC_ASSERT(memory % needs.memory_step == 0);
  RC_ASSERT(fit_memory(on_devices(task, num_devices, memory)).feasible);
  const std::int64_t less = memory - needs.memory_step;
  RC_ASSERT(less < 1 || !fit_memory(on_devices(task, num_devices, less)).feasible);

  RC_ASSERT(needs.sufficient_devices.has_value() == (needs.largest_piece <= needs.largest_device));
  if (needs.sufficient_devices) {
    const int devices = *needs.sufficient_devices;
    RC_ASSERT(fit_memory(on_devices(task, devices, needs.largest_device)).feasible);
    RC_ASSERT(devices == 1 ||
              !fit_memory(on_devices(task, devices - 1, needs.largest_device)).feasible);
  }
  const std::string text = explain_infeasible(task).what();
  RC_ASSERT(text.find('\n') == std::string::npos);
  RC_ASSERT(explain_infeasible(task).exit_code() == 1);
}

/// Does any plan fit? Tries every number of columns of every table on every device.
bool any_plan_fits(Task& task, std::size_t table, std::size_t device, std::int64_t grains_left) {
  if (table == task.tables.size()) return true;
  const Table& of = task.tables[table];
  const std::int64_t grain = can_cut(of.embedding_dim) ? 4 : of.embedding_dim;
  if (grains_left == 0) {
    const bool last = table + 1 == task.tables.size();
    const std::int64_t next_dim = last ? 0 : task.tables[table + 1].embedding_dim;
    return any_plan_fits(task, table + 1, 0, last ? 0 : can_cut(next_dim) ? next_dim / 4 : 1);
  }
  if (device == task.topology.memory_bytes.size()) return false;
  for (std::int64_t here = grains_left; here >= 0; --here) {
    const std::int64_t bytes = here == 0 ? 0 : shard_bytes(of, here * grain, task.optimizer);
    std::int64_t& room = task.topology.memory_bytes[device];
    if (bytes > room) continue;
    room -= bytes;
    const bool fits = any_plan_fits(task, table, device + 1, grains_left - here);
    task.topology.memory_bytes[device] += bytes;
    if (fits) return true;
  }
  return false;
}

bool any_plan_fits(Task task) {
  const std::int64_t dim = task.tables[0].embedding_dim;
  return any_plan_fits(task, 0, 0, can_cut(dim) ? dim / 4 : 1);
}

Task small_tight_task(Random& random, double slack) {
  Task task;
  task.batch_size = 1;
  task.optimizer = random.below(2) == 0 ? Optimizer::sgd : Optimizer::rowwise_adagrad;
  constexpr std::int64_t kDims[] = {4, 8, 12, 16, 3, 6};
  std::int64_t needed = 0;
  const auto num_tables = random.integer(3, 6);
  for (int t = 0; t < num_tables; ++t) {
    const auto rows = static_cast<std::int64_t>(std::exp(random.uniform(0.0, 4.0))) + 1;
    task.tables.push_back(make_table(fmt::format("t{}", t), rows, kDims[random.below(6)]));
    needed += shard_bytes(task.tables[t], task.tables[t].embedding_dim, task.optimizer);
  }
  const int num_devices = static_cast<int>(random.integer(2, 3));
  task.topology = make_topology(num_devices, 1);
  for (std::int64_t& bytes : task.topology.memory_bytes) {
    const double share = random.below(2) == 0 ? 1.0 : random.uniform(0.8, 1.2);
    bytes =
        1 + static_cast<std::int64_t>(static_cast<double>(needed) * slack * share / num_devices);
  }
  return task;
}

TEST(MemoryFit, MissesNoTightSmallTask) {
  Random random(5);
  int feasible = 0;
  int missed = 0;
  for (const double slack : {1.0, 1.02, 1.05, 1.1}) {
    for (int i = 0; i < 250; ++i) {
      const Task task = small_tight_task(random, slack);
      if (!any_plan_fits(task)) continue;
      ++feasible;
      missed += fit_memory(task).feasible ? 0 : 1;
    }
  }
  RecordProperty("feasible", feasible);
  RecordProperty("missed", missed);
  EXPECT_GT(feasible, 250);
  EXPECT_EQ(missed, 0);
}

RC_GTEST_PROP(MemoryFitProperty, SameTaskSamePlan, ()) {
  const Task task = tight_task();
  RC_ASSERT(fit_memory(task).plan.shards == fit_memory(task).plan.shards);
}

}  // namespace
}  // namespace neuroshard
