// Tables whose rows are ordered by frequency, planned with slices of rows: the batches that are
// drawn hit each slice as the statistics say that priced it.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <iterator>
#include <set>
#include <vector>

#include "neuroshard/search/neuroshard_planner.h"
#include "neuroshard/workload/reuse/index_batch.h"
#include "tests/search/arbitrary_simulator.h"

namespace neuroshard {
namespace {

using testing_tasks::make_simulator;
using testing_tasks::make_table;
using testing_tasks::one_host_task;

constexpr std::int64_t kBatch = 16'384;

Task skewed_task(double exponent, int num_devices) {
  Task task =
      one_host_task({make_table("hot", 4'000'000, 64, 40.0), make_table("warm", 300'000, 32, 20.0)},
                    num_devices, std::int64_t{1} << 34);
  task.batch_size = kBatch;
  for (Table& table : task.tables) {
    table.index_distribution = IndexDistribution{.zipf_exponent = exponent};
    table.row_order = RowOrder::by_frequency;
  }
  return task;
}

ShardingPlan plan_of_rows(const Simulator& simulator) {
  PlannerOptions options;
  options.cuts = {.columns = false, .rows = true, .replicas = false};
  options.steps = 1'000;
  return NeuroShardPlanner().plan(simulator, options).plan;
}

/// Lookups of a slice by whose number 5 % is more than five times what they scatter by.
constexpr double kEnoughLookups = 12'000;

/// The lookups of a batch in a shard's rows.
std::vector<std::int64_t> within(const IndexBatch& batch, const Shard& shard, const Table& table) {
  std::vector<std::int64_t> rows;
  std::copy_if(batch.indices.begin(), batch.indices.end(), std::back_inserter(rows),
               [&](std::int64_t row) {
                 return row >= shard.row_offset && row < shard.row_offset + shard.rows_of(table);
               });
  return rows;
}

TEST(PlannedSlices, HaveTheMeasuredLoadThatTheirStatisticsSay) {
  std::size_t slices = 0;
  for (const int num_devices : {2, 4, 8}) {
    for (int step = 0; step <= 9; ++step) {
      const double exponent = 1.05 + 0.05 * step;
      const Simulator simulator = make_simulator(skewed_task(exponent, num_devices));
      const Task& task = simulator.task();
      const ShardingPlan plan = plan_of_rows(simulator);
      ASSERT_TRUE(violations(task, plan).empty());
      std::vector<IndexBatch> batches(task.tables.size());
      for (std::size_t t = 0; t < batches.size(); ++t) {
        Random random(100 * t + static_cast<std::uint64_t>(step));
        IndexSampler(task.tables[t], kBatch).draw(kBatch, random, batches[t]);
      }
      for (const Shard& shard : plan.shards) {
        if (shard.has_all_rows()) continue;
        SCOPED_TRACE(testing::Message() << exponent << ", " << num_devices << " devices, table "
                                        << shard.table << ", rows from " << shard.row_offset);
        ++slices;
        const TableStatistics expected = simulator.statistics_of(piece_of(task, shard));
        const Table& table = task.tables[shard.table];
        const auto rows = within(batches[shard.table], shard, table);
        const double lookups = expected.pooling_factor * kBatch;
        // A batch's number of lookups scatters by its square root: few are counted in more batches.
        const auto more = static_cast<int>(kEnoughLookups / std::max(lookups, 1.0));
        auto counted = static_cast<double>(rows.size());
        auto distinct = static_cast<double>(std::set(rows.begin(), rows.end()).size());
        for (int i = 1; i <= more; ++i) {
          IndexBatch batch;
          Random random(1'000'000 + 1000 * static_cast<std::uint64_t>(shard.table) +
                        static_cast<std::uint64_t>(i));
          IndexSampler(table, kBatch).draw(kBatch, random, batch);
          const auto others = within(batch, shard, table);
          counted += static_cast<double>(others.size());
          distinct += static_cast<double>(std::set(others.begin(), others.end()).size());
        }
        counted /= 1 + more;
        distinct /= 1 + more;
        EXPECT_NEAR(counted, lookups, 0.05 * lookups);
        EXPECT_NEAR(distinct, expected.distinct_rows, 0.05 * expected.distinct_rows + 2.0);
        if (shard.row_offset > 0) continue;
        const auto hits = static_cast<double>(std::count(rows.begin(), rows.end(), 0));
        EXPECT_NEAR(hits, expected.hottest_row_share * lookups, 0.05 * hits);
      }
    }
  }
  EXPECT_GE(slices, 60u);
}

}  // namespace
}  // namespace neuroshard
