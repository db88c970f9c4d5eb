// Each table's columns, cut where any of its pieces begins or ends.
#include "neuroshard/core/pooled_layout.h"

#include <algorithm>
#include <cstddef>
#include <utility>

namespace neuroshard {

namespace {

/// A shard, and where its columns begin among those of its device.
struct PlacedShard {
  const Shard* shard = nullptr;
  std::int64_t first_column = 0;
};

/// The columns [first, end) of a table with these shards, which none of them begins or ends within.
PooledColumns columns_between(const Table& table, const std::vector<PlacedShard>& shards,
                              std::int64_t first, std::int64_t end) {
  PooledColumns columns;
  columns.table = shards.front().shard->table;
  columns.column_offset = pooled_columns(table, first);
  columns.num_columns = pooled_columns(table, end - first);
  for (const auto& [shard, first_column] : shards) {
    if (first < shard->column_offset || end > shard->column_offset + shard->num_columns) continue;
    columns.sources.push_back(
        {shard->device, first_column + pooled_columns(table, first - shard->column_offset)});
  }
  return columns;
}

void add_outputs(const Table& table, std::vector<PlacedShard> shards,
                 std::vector<PooledColumns>& outputs) {
  std::vector<std::int64_t> cuts;
  for (const PlacedShard& placed : shards) {
    cuts.push_back(placed.shard->column_offset);
    cuts.push_back(placed.shard->column_offset + placed.shard->num_columns);
  }
  std::sort(cuts.begin(), cuts.end());
  cuts.erase(std::unique(cuts.begin(), cuts.end()), cuts.end());
  std::stable_sort(shards.begin(), shards.end(), [](const PlacedShard& a, const PlacedShard& b) {
    return a.shard->row_offset < b.shard->row_offset;
  });
  for (std::size_t i = 0; i + 1 < cuts.size(); ++i) {
    outputs.push_back(columns_between(table, shards, cuts[i], cuts[i + 1]));
  }
}

}  // namespace

PooledLayout pooled_layout(const Task& task, const ShardingPlan& plan) {
  PooledLayout layout;
  layout.shards.resize(task.topology.world_size);
  layout.columns.assign(task.topology.world_size, 0);
  std::vector<std::vector<PlacedShard>> by_table(task.tables.size());
  for (std::size_t i = 0; i < plan.shards.size(); ++i) {
    const Shard& shard = plan.shards[i];
    std::int64_t& columns = layout.columns[shard.device];
    layout.shards[shard.device].push_back(static_cast<int>(i));
    by_table[shard.table].push_back({&shard, columns});
    columns += pooled_columns(task.tables[shard.table], shard.num_columns);
  }
  for (std::size_t t = 0; t < by_table.size(); ++t) {
    if (!by_table[t].empty()) add_outputs(task.tables[t], std::move(by_table[t]), layout.outputs);
  }
  return layout;
}

}  // namespace neuroshard
