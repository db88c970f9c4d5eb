// TorchRec's formulas, in its order of operations, so that figures agree to the last bits.
#include "neuroshard/baselines/torchrec/perf_estimate.h"

#include <algorithm>
#include <cmath>

#include "neuroshard/core/table.h"

namespace neuroshard::torchrec {

namespace {

// torchrec/distributed/planner/constants.py: "empirical studies", of GPUs.
constexpr double kIndexBytes = 8.0;
constexpr double kBackwardMultiplier = 2.0;
constexpr double kBatchedCopyFactor = 2.455;
constexpr double kElementwiseKernelsFactor = 9.22;
constexpr double kDenseShareOfBandwidth = 0.5;

double block_usage_penalty(std::int64_t num_columns) {
  if (num_columns >= 128) return 1.0;
  return num_columns >= 64 ? 1.15 : 1.75;
}

}  // namespace

/// Of a device's share of the batch.
struct PerfEstimate::Sizes {
  double inputs = 0.0;   ///< lookups
  double outputs = 0.0;  ///< pooled rows, of all features
  double element_bytes = 0.0;
};

PerfEstimate::PerfEstimate(const Task& task, const MachineConstants& constants)
    : constants_(constants),
      samples_(static_cast<double>(task.batch_size) / task.topology.world_size),
      world_size_(task.topology.world_size),
      local_world_size_(task.topology.local_world_size) {}

PerfEstimate::Sizes PerfEstimate::sizes(const Table& table) const {
  const auto features = static_cast<double>(table.num_features);
  return {table.pooling_factor * samples_,
          std::min(1.0, table.pooling_factor / features) * samples_ * features,
          static_cast<double>(element_bytes(table.data_type))};
}

Perf PerfEstimate::operator()(ShardingType type, const Table& table,
                              std::int64_t num_columns) const {
  switch (type) {
    case ShardingType::data_parallel:
      return data_parallel(table);
    case ShardingType::row_wise:
      return row_wise(table, num_columns);
    case ShardingType::table_row_wise:
    case ShardingType::grid_shard:
      return rows_of_host(table, num_columns);
    case ShardingType::table_wise:
    case ShardingType::column_wise:
    case ShardingType::table_column_wise:
      break;
  }
  return by_columns(table, num_columns);
}

Perf PerfEstimate::by_columns(const Table& table, std::int64_t num_columns) const {
  const Sizes of = sizes(table);
  const auto columns = static_cast<double>(num_columns);
  const double input = std::ceil(of.inputs * world_size_ * kIndexBytes);
  const double lookup = of.inputs * world_size_ * std::max(columns, 32.0) * of.element_bytes;
  const double output = of.outputs * world_size_ * columns * of.element_bytes;
  const double rate =
      world_size_ <= local_world_size_ ? constants_.intra_host : constants_.inter_host;
  Perf perf;
  perf.fwd_compute =
      (input + lookup + output) * block_usage_penalty(num_columns) / constants_.device;
  perf.bwd_compute = perf.fwd_compute * kBackwardMultiplier;
  perf.fwd_comms = output / rate;
  perf.bwd_comms = output / rate;
  return perf;
}

Perf PerfEstimate::row_wise(const Table& table, std::int64_t num_columns) const {
  const Sizes of = sizes(table);
  const auto columns = static_cast<double>(num_columns);
  const double inputs = of.inputs / world_size_;
  const double input = std::ceil(inputs * world_size_ * kIndexBytes);
  const double lookup = inputs * world_size_ * columns * of.element_bytes;
  const double output = of.outputs * world_size_ * columns * of.element_bytes;
  const double rate =
      world_size_ <= local_world_size_ ? constants_.intra_host : constants_.inter_host;
  Perf perf;
  perf.fwd_compute = (input + lookup + output) / constants_.device;
  perf.bwd_compute = perf.fwd_compute * kBackwardMultiplier;
  perf.fwd_comms = output / rate;
  perf.bwd_comms = output / rate + output * kBatchedCopyFactor / constants_.device;
  return perf;
}

Perf PerfEstimate::rows_of_host(const Table& table, std::int64_t num_columns) const {
  const Sizes of = sizes(table);
  const auto columns = static_cast<double>(num_columns);
  const double hosts = world_size_ / local_world_size_;
  const double inputs = of.inputs / local_world_size_;
  const double input = std::ceil(inputs * world_size_ * kIndexBytes);
  const double lookup = inputs * world_size_ * columns * of.element_bytes;
  const double output = of.outputs * world_size_ * columns * of.element_bytes;
  const double within = output / constants_.intra_host;
  const double between =
      hosts > 1.0 ? of.outputs * hosts * columns * of.element_bytes / constants_.inter_host : 0.0;
  Perf perf;
  perf.fwd_compute = (input + lookup + output) / constants_.device;
  perf.bwd_compute = perf.fwd_compute * kBackwardMultiplier;
  perf.fwd_comms = within + between;
  perf.bwd_comms = between + within + output * kBatchedCopyFactor / constants_.device;
  return perf;
}

Perf PerfEstimate::data_parallel(const Table& table) const {
  const Sizes of = sizes(table);
  const auto columns = static_cast<double>(table.embedding_dim);
  const double device = kDenseShareOfBandwidth * constants_.device;
  const double input = std::ceil(of.inputs * kIndexBytes);
  const double lookup = of.inputs * columns * of.element_bytes;
  const double output = of.outputs * columns * of.element_bytes;
  const double table_bytes = static_cast<double>(table.num_embeddings) * columns * of.element_bytes;
  const double hosts = std::min(world_size_ / local_world_size_, 2.0);
  double all_reduce = table_bytes * (2.0 * hosts - 1.0) / hosts / constants_.all_reduce;
  if (world_size_ > 2.0 * local_world_size_) all_reduce *= 2.0;
  Perf perf;
  perf.fwd_compute = (input + lookup + output) / device;
  perf.bwd_compute = perf.fwd_compute * kBackwardMultiplier;
  perf.bwd_comms = all_reduce + table_bytes * kElementwiseKernelsFactor / device;
  return perf;
}

}  // namespace neuroshard::torchrec
