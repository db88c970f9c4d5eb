// Where pooled columns come from, and what adding up partial sums moves.
#include "neuroshard/core/pooled_layout.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace neuroshard {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

Table table_of(const char* name, std::int64_t rows, std::int64_t columns) {
  Table table;
  table.name = name;
  table.num_embeddings = rows;
  table.embedding_dim = columns;
  table.pooling_factor = 1.0;
  return table;
}

Task three_tables() {
  Task task;
  task.batch_size = 10;
  task.tables = {table_of("a", 100, 16), table_of("b", 5, 8), table_of("c", 7, 4)};
  task.topology.world_size = 4;
  return task;
}

std::vector<std::vector<std::int64_t>> sources_of(const PooledColumns& columns) {
  std::vector<std::vector<std::int64_t>> result;
  for (const auto& [device, column] : columns.sources) result.push_back({device, column});
  return result;
}

TEST(PooledLayout, CutsATableWhereAnyOfItsPiecesEnds) {
  // The first 40 rows of "a" whole, the other 60 in two column pieces; "c" is replicated.
  const ShardingPlan plan{
      {{1, 0, 8, 0}, {0, 0, 16, 0, 0, 40}, {0, 8, 8, 1, 40, 60}, {0, 0, 8, 3, 40, 60}}, {2}};
  const Task task = three_tables();
  const PooledLayout layout = pooled_layout(task, plan);
  EXPECT_THAT(layout.shards,
              ElementsAre(ElementsAre(0, 1), ElementsAre(2), IsEmpty(), ElementsAre(3)));
  EXPECT_THAT(layout.columns, ElementsAre(24, 8, 0, 8));
  ASSERT_EQ(layout.outputs.size(), 3u);
  EXPECT_EQ(layout.outputs[0].table, 0);
  EXPECT_EQ(layout.outputs[0].num_columns, 8);
  EXPECT_THAT(sources_of(layout.outputs[0]), ElementsAre(ElementsAre(0, 8), ElementsAre(3, 0)));
  EXPECT_EQ(layout.outputs[1].column_offset, 8);
  EXPECT_THAT(sources_of(layout.outputs[1]), ElementsAre(ElementsAre(0, 16), ElementsAre(1, 0)));
  EXPECT_EQ(layout.outputs[2].table, 1);
  EXPECT_THAT(sources_of(layout.outputs[2]), ElementsAre(ElementsAre(0, 0)));

  // Two parts are read and one is written, of 16 columns and 3 samples: the largest share of 10.
  EXPECT_EQ(partial_sum_bytes(task, plan), 3 * 16 * 3 * 4.0);
  EXPECT_EQ(all_reduce_bytes(task, plan.replicated_tables), 7 * 4 * 4.0);
}

TEST(PooledLayout, EveryFeatureHasAnOutputOfItsOwn) {
  Task task = three_tables();
  task.tables[0].num_features = 3;
  const ShardingPlan plan{{{0, 0, 16, 0, 0, 40}, {0, 0, 16, 1, 40, 60}}, {1, 2}};
  const PooledLayout layout = pooled_layout(task, plan);
  EXPECT_THAT(layout.columns, ElementsAre(48, 48, 0, 0));
  EXPECT_EQ(layout.outputs[0].num_columns, 48);
  EXPECT_EQ(partial_sum_bytes(task, plan), 3 * 48 * 3 * 4.0);
}

TEST(PooledLayout, WithoutSlicesThereIsNothingToAdd) {
  const ShardingPlan plan{{{0, 0, 8, 0}, {0, 8, 8, 1}, {1, 0, 8, 2}}, {2}};
  EXPECT_EQ(partial_sum_bytes(three_tables(), plan), 0.0);
  for (const PooledColumns& columns : pooled_layout(three_tables(), plan).outputs) {
    EXPECT_EQ(columns.sources.size(), 1u);
  }
  EXPECT_EQ(all_reduce_bytes(three_tables(), {}), 0.0);
}

}  // namespace
}  // namespace neuroshard
