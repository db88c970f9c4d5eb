// Names of sharding types, and the shards of an option.
#include "neuroshard/baselines/torchrec/sharding_option.h"

#include <algorithm>
#include <array>
#include <cstddef>

#include "neuroshard/core/piece.h"

namespace neuroshard::torchrec {

std::string_view to_string(ShardingType type) {
  constexpr std::array<std::string_view, kNumShardingTypes> kNames{
      "data_parallel", "table_wise",     "column_wise", "table_column_wise",
      "row_wise",      "table_row_wise", "grid_shard"};
  return kNames[static_cast<std::size_t>(type)];
}

Perf& Perf::operator+=(const Perf& other) {
  fwd_compute += other.fwd_compute;
  fwd_comms += other.fwd_comms;
  bwd_compute += other.bwd_compute;
  bwd_comms += other.bwd_comms;
  return *this;
}

ShardRange ShardingOption::range(const Table& of, int shard) const {
  if (type == ShardingType::data_parallel) return {0, of.num_embeddings, 0, of.embedding_dim};
  const std::int64_t slice = shard % num_slices;
  const std::int64_t block = shard / num_slices;
  const std::int64_t from = std::min(slice * rows_per_slice, of.num_embeddings);
  const std::int64_t to = std::min(from + rows_per_slice, of.num_embeddings);
  return {from, to - from, block * columns_per_block, columns_per_block};
}

std::int64_t ShardingOption::bytes(const Task& task, int shard) const {
  const Table& of = task.tables[table];
  const ShardRange piece = range(of, shard);
  return piece.num_rows == 0 ? 0
                             : shard_bytes(of, piece.num_columns, task.optimizer, piece.num_rows);
}

}  // namespace neuroshard::torchrec
