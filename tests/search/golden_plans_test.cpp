// Plans of columns alone stay as they are, bit for bit: the paper's search, and the improvement.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <string>
#include <vector>

#include "neuroshard/core/numbers/random.h"
#include "neuroshard/io/checksum.h"
#include "neuroshard/search/beam/beam_search.h"
#include "neuroshard/search/neuroshard_planner.h"
#include "tests/search/arbitrary_simulator.h"

namespace neuroshard {
namespace {

using testing_tasks::make_simulator;
using testing_tasks::make_table;
using testing_tasks::one_host_task;

/// Tables of all sizes on devices that have `room` times the memory that they need.
Task golden_task(std::uint64_t seed, int num_tables, int num_devices, double room) {
  Random random(seed);
  std::vector<Table> tables;
  std::int64_t bytes = 0;
  for (int t = 0; t < num_tables; ++t) {
    const std::int64_t rows = std::int64_t{1000} << random.below(12);
    const std::int64_t columns = std::int64_t{16} << random.below(4);
    const double pooling_factor = 1.0 + static_cast<double>(random.below(40));
    tables.push_back(make_table(fmt::format("t{}", t), rows, columns, pooling_factor));
    bytes += rows * columns * 4;
  }
  const double each = room * static_cast<double>(bytes) / num_devices;
  Task task = one_host_task(std::move(tables), num_devices, static_cast<std::int64_t>(each));
  task.batch_size = 8'192;
  return task;
}

std::string hash_of(const ShardingPlan& plan) {
  std::string text;
  for (const Shard& shard : plan.shards) {
    text += fmt::format("{} {} {} {} {} {}\n", shard.table, shard.column_offset, shard.num_columns,
                        shard.device, shard.row_offset, shard.num_rows);
  }
  return sha256_hex(text).substr(0, 16);
}

struct Golden {
  std::uint64_t seed;
  int num_tables;
  int num_devices;
  double room;
  const char* beam_search;
  const char* improved;
};

constexpr Golden kGolden[] = {
    {1, 12, 4, 1.2, "e516bcab4731bdb0", "83c600287b9232ee"},
    {2, 40, 4, 1.05, "23e6aa09fcb8999a", "516b558014b0474a"},
    {3, 30, 8, 1.5, "f3b6ef47daabe0ef", "3745f5826998317c"},
    {4, 80, 8, 1.1, "9605582f62e3b382", "69b0e31fe93cd763"},
    {5, 20, 16, 4.0, "5f55a47235acc698", "d238ffdc2611d8bd"},
    {6, 100, 16, 1.3, "41b6b0553d6098bc", "459b80a1054d160e"},
};

TEST(GoldenPlans, OfColumnsAlone) {
  for (const Golden& golden : kGolden) {
    SCOPED_TRACE(golden.seed);
    const Simulator simulator = make_simulator(
        golden_task(golden.seed, golden.num_tables, golden.num_devices, golden.room));
    PlannerOptions options;
    options.cuts = kColumnsAlone;
    options.steps = 5'000;
    options.least_gain = 0.0;
    options.num_threads = 2;
    EXPECT_EQ(hash_of(BeamSearchPlanner().plan(simulator, options).plan), golden.beam_search);
    EXPECT_EQ(hash_of(NeuroShardPlanner().plan(simulator, options).plan), golden.improved);
  }
}

}  // namespace
}  // namespace neuroshard
