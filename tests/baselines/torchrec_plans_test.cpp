// The same options, estimates and plans as TorchRec's own planner, by a file that
// tests/torchrec/test_sharding_types.py writes.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "neuroshard/baselines/torchrec/enumeration.h"
#include "neuroshard/baselines/torchrec/sharding_types_plan.h"
#include "neuroshard/io/file.h"
#include "neuroshard/io/json/json_reader.h"
#include "neuroshard/io/task_io.h"
#include "tests/baselines/option_rows.h"
#include "tests/search/arbitrary_simulator.h"

namespace neuroshard::torchrec {
namespace {

using testing::DoubleNear;

constexpr double kLastBits = 1e-12;  // relative

MachineConstants constants_from_json(const JsonReader& reader) {
  return {reader.field("device").number(), reader.field("intra_host").number(),
          reader.field("inter_host").number(), reader.field("all_reduce").number()};
}

void expect_option(const ShardingOption& option, const Task& task, const JsonReader& golden) {
  const Table& table = task.tables[option.table];
  EXPECT_EQ(to_string(option.type), golden.field("type").text());
  const JsonReader rows = golden.field("rows");
  std::vector<std::int64_t> expected_rows;
  for (std::size_t i = 0; i < rows.array_size(); ++i) {
    expected_rows.push_back(rows.element(i).integer());
  }
  EXPECT_EQ(rows_of(option, table), expected_rows);
  EXPECT_EQ(option.range(table, 0).num_columns, golden.field("columns").integer());
  EXPECT_EQ(static_cast<std::int64_t>(option.total_bytes), golden.field("bytes").integer());
  const JsonReader perf = golden.field("perf_ms");
  const Perf& ours = option.perf;
  std::size_t number = 0;
  for (const double ms : {ours.fwd_compute, ours.fwd_comms, ours.bwd_compute, ours.bwd_comms}) {
    const double expected = perf.element(number++).number();
    EXPECT_THAT(ms, DoubleNear(expected, kLastBits * expected));
  }
}

TEST(TorchRecPlans, AreTheBaselinesToo) {
  const std::string path =
      std::string(NEUROSHARD_SOURCE_DIR) + "/tests/baselines/golden/torchrec_plans.json";
  const Json document = parse_json(read_file(path), path);
  const JsonReader root(document, path);
  const JsonReader cases = root.field("cases");
  ASSERT_GT(cases.array_size(), 5U);
  for (std::size_t c = 0; c < cases.array_size(); ++c) {
    const JsonReader golden = cases.element(c);
    SCOPED_TRACE(golden.field("name").text());
    const Task task = task_from_json(golden.field("task"));
    ShardingTypesOptions options;
    options.min_partition = golden.field("min_partition").integer();
    options.constants = constants_from_json(golden.field("constants"));
    const SearchSpace space = enumerate(task, options.min_partition, *options.constants);
    const JsonReader golden_space = golden.field("options");
    const ShardingTypesPlan found =
        plan_sharding_types(testing_tasks::make_simulator(task), options);
    const double rating = golden.field("rating_ms").number();
    EXPECT_THAT(found.rating_ms, DoubleNear(rating, kLastBits * rating));
    EXPECT_TRUE(violations(task, found.plan).empty());
    const JsonReader types = golden.field("types");
    const JsonReader devices = golden.field("devices");
    for (std::size_t t = 0; t < task.tables.size(); ++t) {
      const JsonReader of_table = golden_space.element(t);
      ASSERT_EQ(space[t].size(), of_table.array_size());
      for (std::size_t i = 0; i < space[t].size(); ++i) {
        expect_option(space[t][i], task, of_table.element(i));
      }
      EXPECT_EQ(to_string(found.types[t]), types.element(t).text()) << task.tables[t].name;
      if (found.types[t] == ShardingType::data_parallel) continue;
      const JsonReader of_shards = devices.element(t);
      std::vector<int> ours;
      std::vector<int> theirs;
      for (const Shard& shard : found.plan.shards) {
        if (shard.table == static_cast<int>(t)) ours.push_back(shard.device);
      }
      for (std::size_t i = 0; i < of_shards.array_size(); ++i) {
        theirs.push_back(static_cast<int>(of_shards.element(i).integer()));
      }
      theirs.resize(std::min(theirs.size(), ours.size()));  // slices without rows are none of ours
      EXPECT_EQ(ours, theirs) << task.tables[t].name;
    }
  }
}

}  // namespace
}  // namespace neuroshard::torchrec
