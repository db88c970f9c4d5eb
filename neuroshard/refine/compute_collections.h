// The files of one collection of computation costs: one for each batch size and optimizer.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "neuroshard/collect/compute/compute_collector.h"
#include "neuroshard/core/table.h"

namespace neuroshard {

struct CollectionRequest {
  /// Of the first file; `workload` is the name of the tables' workload. Further files have the next
  /// seeds; each has tables, a batch size and an optimizer of its own, by what follows.
  ComputeSamplingOptions sampling{};
  std::uint64_t workload_seed = 0;  ///< of a generated workload: of the first file
  std::vector<std::int64_t> batch_sizes{4096};
  std::vector<Optimizer> optimizers{Optimizer::sgd};
  std::optional<DataType> data_type{};  ///< of all tables; nothing: each table's own
  std::int64_t num_samples = 0;         ///< of each file
  /// Of the file, or of each: every "{batch_size}" and "{optimizer}" in it stands for the file's
  /// own.
  std::string path{};
  /// A computation model of several networks, by name or file: of `sampling.candidates` sets, that
  /// one is measured about which they disagree most. Empty: none; then there is one candidate.
  std::string least_sure{};
  /// A computation model by name or file: the sets of the devices of its plans are measured
  /// (PlannedSets), of tables that are not held out. Empty: what `sampling` says.
  std::string planned_by{};
  int num_threads = 0;  ///< of planning
};

/// Batch size by batch size, optimizer by optimizer. Throws InputError, which names options of the
/// command line, for an unknown workload or model, a model of a single network, and for paths that
/// are the same or do not tell the files apart.
[[nodiscard]] std::vector<ComputeCollection> compute_collections(const CollectionRequest& request);

}  // namespace neuroshard
