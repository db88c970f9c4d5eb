// TorchRec's estimate of what a shard costs: bytes over bandwidth, and constants of its authors.
#pragma once

#include "neuroshard/baselines/torchrec/sharding_option.h"
#include "neuroshard/core/task.h"

namespace neuroshard::torchrec {

/// What TorchRec's Topology says of the machine [bytes/ms]. The defaults are TorchRec's own.
struct MachineConstants {
  /// `hbm_mem_bw`: what the fused operator moves; the dense one, of data_parallel, half of it.
  double device = 897.0 * 1024 * 1024 * 1024 / 1000;
  double intra_host = 600.0 * 1024 * 1024 * 1024 / 1000;  ///< `intra_host_bw`
  double inter_host = 12.5 * 1024 * 1024 * 1024 / 1000;   ///< `inter_host_bw`
  /// Of an all-reduce, per device: in TorchRec inter_host times the devices of a host, unless its
  /// user gives another.
  double all_reduce = 12.5 * 1024 * 1024 * 1024 / 1000;
};

/// The formulas of EmbeddingPerfEstimator with its default configuration (TorchRec 1.8,
/// planner/estimator/estimator.py), for a pooled, unweighted table. With batch B, W devices, L of
/// them on a host, n = B * pooling factor, o = B * features * min(1, pooling factor of a feature),
/// c columns of e bytes, rates D (device), I (one host), X (all hosts, or I if there is one):
///
///   compute         forward = (8 n / s + n / s * c' * e + o c e) * penalty / D, backward = 2
///   forward
///     whole, columns  s = 1, c' = max(c, 32), penalty 1.75 below 64 columns, 1.15 below 128, else
///     1 row_wise        s = W, c' = c, penalty 1;  table_row_wise, grid_shard: s = L data_parallel
///     as row_wise, with o / W and D / 2
///   communication
///     whole, columns  forward = backward = o c e / X
///     row_wise        forward = o c e / X, backward = forward + 2.455 o c e / D
///     table_row_wise, grid_shard
///                     forward = o c e / I + (o / L) c e / X if there are several hosts,
///                     backward = forward + 2.455 o c e / D
///     data_parallel   forward = 0, backward = a * rows c e (2 h - 1) / h / all_reduce
///                     + 9.22 rows c e / (D / 2), h = min(W / L, 2), a = 2 if W > 2 L, else 1
///
/// So all shards of an option cost the same, and reuse, caches and fusion play no part.
class PerfEstimate {
 public:
  /// Keeps a pointer to the task.
  PerfEstimate(const Task& task, const MachineConstants& constants);

  /// Of one shard with this number of columns.
  [[nodiscard]] Perf operator()(ShardingType type, const Table& table,
                                std::int64_t num_columns) const;

 private:
  struct Sizes;

  [[nodiscard]] Sizes sizes(const Table& table) const;
  [[nodiscard]] Perf by_columns(const Table& table, std::int64_t num_columns) const;
  [[nodiscard]] Perf row_wise(const Table& table, std::int64_t num_columns) const;
  [[nodiscard]] Perf rows_of_host(const Table& table, std::int64_t num_columns) const;
  [[nodiscard]] Perf data_parallel(const Table& table) const;

  MachineConstants constants_;
  double samples_;  ///< of a device
  double world_size_;
  double local_world_size_;
};

}  // namespace neuroshard::torchrec
