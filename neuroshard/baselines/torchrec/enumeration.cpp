// Blocks of columns and slices of rows by sharding type.
#include "neuroshard/baselines/torchrec/enumeration.h"

#include <algorithm>

#include "neuroshard/core/piece.h"
#include "neuroshard/core/table_pins.h"

namespace neuroshard::torchrec {

namespace {

/// TorchRec's _find_base_dim.
std::int64_t columns_per_block(const Table& table, std::int64_t min_partition) {
  const std::int64_t dim = table.embedding_dim;
  if (!can_cut(table, dim)) return dim;
  for (std::int64_t columns = std::max(min_partition, narrowest_cut(table)); columns < dim;
       ++columns) {
    if (dim % columns == 0 && columns % kColumnGranularity == 0) return columns;
  }
  return dim;
}

bool cuts_columns(ShardingType type) {
  return type == ShardingType::column_wise || type == ShardingType::table_column_wise ||
         type == ShardingType::grid_shard;
}

bool cuts_rows(ShardingType type) {
  return type == ShardingType::row_wise || type == ShardingType::table_row_wise ||
         type == ShardingType::grid_shard;
}

bool is_of_one_host(ShardingType type) {
  return type == ShardingType::table_column_wise || type == ShardingType::table_row_wise ||
         type == ShardingType::grid_shard;
}

/// Whether task and table allow the type, and the devices make it another than the others. A table
/// that names its devices has shards that may lie on any of these: the other types decide
/// themselves which devices they take.
bool is_an_option(ShardingType type, const Task& task, const Table& table, bool names_devices) {
  if (type == ShardingType::table_wise) return true;
  if (names_devices && type != ShardingType::column_wise) return false;
  if (task.topology.world_size == 1) return false;
  if (is_of_one_host(type) && task.topology.local_world_size == 1) return false;
  const Cuts& allowed = table.allow;  // the task's and its own, as of a simulator's
  if (type == ShardingType::data_parallel) return allowed.replicas;
  return (allowed.columns || !cuts_columns(type)) && (allowed.rows || !cuts_rows(type));
}

ShardingOption geometry(ShardingType type, const Task& task, int index,
                        std::int64_t min_partition) {
  const Table& table = task.tables[index];
  ShardingOption option;
  option.table = index;
  option.type = type;
  if (type == ShardingType::row_wise) option.num_slices = task.topology.world_size;
  if (type == ShardingType::table_row_wise || type == ShardingType::grid_shard) {
    option.num_slices = task.topology.local_world_size;
  }
  option.rows_per_slice = (table.num_embeddings + option.num_slices - 1) / option.num_slices;
  option.columns_per_block =
      cuts_columns(type) ? columns_per_block(table, min_partition) : table.embedding_dim;
  option.num_shards =
      option.num_slices * static_cast<int>(table.embedding_dim / option.columns_per_block);
  if (type == ShardingType::data_parallel) option.num_shards = task.topology.world_size;
  return option;
}

/// Whether the shortest slice that has rows has enough of them.
bool has_enough_rows(const ShardingOption& option, const Table& table) {
  const std::int64_t rest = table.num_embeddings % option.rows_per_slice;
  return option.rows_per_slice >= table.num_embeddings ||
         (rest == 0 ? option.rows_per_slice : rest) >= table.min_shard_rows;
}

void add_estimates(const Task& task, const PerfEstimate& estimate, ShardingOption& option) {
  const Table& table = task.tables[option.table];
  option.perf = estimate(option.type, table, option.columns_per_block);
  option.total_perf_ms = option.num_shards * option.perf.total();
  option.largest_bytes = option.bytes(task, 0);
  const auto full = static_cast<int>(table.num_embeddings / option.rows_per_slice);
  const std::int64_t last = full < option.num_slices ? option.bytes(task, full) : 0;
  option.total_bytes =
      (WideBytes{option.largest_bytes} * full + last) * (option.num_shards / option.num_slices);
}

}  // namespace

SearchSpace enumerate(const Task& task, std::int64_t min_partition,
                      const MachineConstants& constants) {
  const PerfEstimate estimate(task, constants);
  const TablePins pins(task);
  SearchSpace space(task.tables.size());
  for (std::size_t t = 0; t < space.size(); ++t) {
    for (int number = 0; number < kNumShardingTypes; ++number) {
      const auto type = static_cast<ShardingType>(number);
      const auto table = static_cast<int>(t);
      const bool names_devices = !pins.devices_of(table).empty();
      if (!is_an_option(type, task, task.tables[t], names_devices)) continue;
      ShardingOption option = geometry(type, task, table, min_partition);
      if (!has_enough_rows(option, task.tables[t])) continue;
      add_estimates(task, estimate, option);
      space[t].push_back(option);
    }
  }
  return space;
}

}  // namespace neuroshard::torchrec
