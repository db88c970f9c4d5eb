// Slices of rows as tables of their own, and back.
#include "neuroshard/search/sliced_task.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>

namespace neuroshard {

SlicedTask::SlicedTask(const Simulator& simulator, const ShardingPlan& plan)
    : slices_(slices_of(plan)),
      replicated_tables_(plan.replicated_tables),
      simulator_(simulator_of(simulator, plan, slices_)) {
  std::map<std::tuple<int, std::int64_t, std::int64_t>, int> numbers;
  for (std::size_t s = 0; s < slices_.size(); ++s) {
    const Slice& slice = slices_[s];
    numbers[{slice.table, slice.row_offset, slice.num_rows}] = static_cast<int>(s);
  }
  for (const Shard& shard : plan.shards) {
    const int number = numbers.at({shard.table, shard.row_offset, shard.num_rows});
    std::int64_t offset = 0;
    for (const Columns& columns : slices_[number].columns) {
      if (columns.offset < shard.column_offset) offset += columns.count;
    }
    plan_.shards.push_back({number, offset, shard.num_columns, shard.device});
  }
  sort_shards(plan_);
}

std::vector<SlicedTask::Slice> SlicedTask::slices_of(const ShardingPlan& plan) {
  std::map<std::tuple<int, std::int64_t, std::int64_t>, std::vector<Columns>> columns;
  for (const Shard& shard : plan.shards) {
    columns[{shard.table, shard.row_offset, shard.num_rows}].push_back(
        {shard.column_offset, shard.num_columns});
  }
  std::vector<Slice> slices;
  for (auto& [key, of_slice] : columns) {
    const auto [table, row_offset, num_rows] = key;
    std::sort(of_slice.begin(), of_slice.end(),
              [](const Columns& a, const Columns& b) { return a.offset < b.offset; });
    slices.push_back({table, row_offset, num_rows, std::move(of_slice)});
  }
  return slices;
}

Simulator SlicedTask::simulator_of(const Simulator& original, const ShardingPlan& plan,
                                   const std::vector<Slice>& slices) {
  const Task& task = original.task();
  Task sliced = task;
  sliced.tables.clear();
  std::vector<Simulator::TableSlice> origins;
  std::map<std::string_view, std::string> new_names;
  for (const Slice& slice : slices) {
    Table table = task.tables[slice.table];
    origins.push_back({slice.table, slice.num_rows == 0
                                        ? 1.0
                                        : static_cast<double>(slice.num_rows) /
                                              static_cast<double>(table.num_embeddings)});
    // Unique, as no number occurs twice; only messages show it.
    table.name = fmt::format("{}:{}", sliced.tables.size(), table.name);
    new_names[task.tables[slice.table].name] = table.name;
    if (slice.num_rows > 0) table.num_embeddings = slice.num_rows;
    table.embedding_dim = 0;
    for (const Columns& columns : slice.columns) table.embedding_dim += columns.count;
    // The statistics of the original say how its rows are used.
    table.reuse_histogram.reset();
    table.index_distribution.reset();
    table.allow.rows = table.allow.rows && slice.num_rows == 0;
    table.allow.replicas = false;
    sliced.tables.push_back(std::move(table));
  }
  // Tables that stay together are whole, so that each is one slice.
  for (Table& table : sliced.tables) {
    if (!table.same_device_as.empty()) table.same_device_as = new_names.at(table.same_device_as);
  }
  const std::vector<std::int64_t> copies = device_memory(task, {{}, plan.replicated_tables});
  for (std::size_t d = 0; d < copies.size(); ++d) sliced.topology.memory_bytes[d] -= copies[d];
  return {original, std::move(sliced), origins, original.replica_cost(plan.replicated_tables)};
}

ShardingPlan SlicedTask::original(const ShardingPlan& plan) const {
  ShardingPlan result;
  result.replicated_tables = replicated_tables_;
  for (const Shard& shard : plan.shards) {
    const Slice& slice = slices_[shard.table];
    std::int64_t begin = 0;  // of the slice's columns
    for (const Columns& columns : slice.columns) {
      const std::int64_t first = std::max(shard.column_offset, begin);
      const std::int64_t end =
          std::min(shard.column_offset + shard.num_columns, begin + columns.count);
      if (first < end) {
        const std::int64_t offset = columns.offset + first - begin;
        Shard* last = result.shards.empty() ? nullptr : &result.shards.back();
        // Columns of the slice that are neighbours in the table too.
        const bool continues = last != nullptr && first > shard.column_offset &&
                               last->column_offset + last->num_columns == offset;
        if (continues) {
          last->num_columns += end - first;
        } else {
          result.shards.push_back({slice.table, offset, end - first, shard.device,
                                   slice.row_offset + shard.row_offset,
                                   shard.has_all_rows() ? slice.num_rows : shard.num_rows});
        }
      }
      begin += columns.count;
    }
  }
  sort_shards(result);
  return result;
}

}  // namespace neuroshard
