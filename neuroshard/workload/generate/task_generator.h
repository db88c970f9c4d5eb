// Random sharding tasks, as in the paper's experiments.
#pragma once

#include <cstdint>
#include <string>

#include "neuroshard/core/task.h"
#include "neuroshard/workload/workload.h"

namespace neuroshard {

struct TaskGeneratorOptions {
  int min_tables = 10;              ///< fewest tables of a task
  int max_tables = 60;              ///< most tables of a task, at most the workload's
  std::int64_t max_dim = 128;       ///< largest dimension: a power of two, at least 4 columns
  int num_devices = 4;              ///< devices of the task
  int local_devices = 0;            ///< of them on each host; 0: all
  bool own_dims = false;            ///< tables keep their dimensions, whatever max_dim is
  std::string interconnect;         ///< of the topology; may be empty
  double max_pooling_factor = 0.0;  ///< of a table; 0: any
  /// If max_fill is not 0, each task's memory is reduced so that its whole tables fill a share of
  /// it that is uniform in [min_fill, max_fill].
  double min_fill = 0.0;
  double max_fill = 0.0;
  std::int64_t memory_bytes = std::int64_t{4} << 30;  ///< capacity of each device, bytes
  std::int64_t batch_size = 0;  ///< samples over all devices; 0: the workload's
  Optimizer optimizer = Optimizer::sgd;
  std::uint64_t seed = 0;
};

/// Sets `min_tables` and `max_tables` to their defaults, or to all tables that tasks are drawn from
/// (those of at most `max_pooling_factor`) where the workload has fewer.
void set_default_tables(TaskGeneratorOptions& options, const Workload& workload);

/// Task number `index` >= 0, the same whatever other tasks are generated: the number of tables is
/// uniform in [min_tables, max_tables], the tables are drawn without replacement, and each gets a
/// dimension that is uniform among 4, 8, ..., max_dim unless tables keep their own. Tables and
/// dimensions are drawn again while they take more memory than all devices have together, or any
/// table alone cannot be cut to fit; so large tables are rarer in tasks of many tables. Throws
/// InputError for options out of range, and if 10,000 draws all need too much memory.
[[nodiscard]] Task generate_task(const Workload& all_tables, const TaskGeneratorOptions& options,
                                 std::uint64_t index);

}  // namespace neuroshard
