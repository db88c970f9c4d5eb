// Tasks for tests: small ones by hand, and random valid ones that shrink towards one table.
#pragma once

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <rapidcheck.h>

#include <algorithm>
#include <cstdint>
#include <ostream>
#include <string>
#include <vector>

#include "neuroshard/core/sharding_plan.h"
#include "neuroshard/core/task.h"

namespace neuroshard {

inline void showValue(const Task& task, std::ostream& os) {
  os << fmt::format("batch {}, {}, {} devices, {} per host, memory", task.batch_size,
                    to_string(task.optimizer), task.topology.world_size,
                    task.topology.local_world_size);
  for (const std::int64_t bytes : task.topology.memory_bytes) os << ' ' << bytes;
  for (const Table& table : task.tables) {
    os << fmt::format("\n  {}: {} x {} {} pooling {}", table.name, table.num_embeddings,
                      table.embedding_dim, to_string(table.data_type), table.pooling_factor);
    if (table.min_shard_rows > 0) os << fmt::format(" slices of {} rows", table.min_shard_rows);
    if (!table.allow.columns) os << " no columns";
    if (!table.allow.rows) os << " no rows";
    if (!table.allow.replicas) os << " no replicas";
    if (!table.devices.empty()) os << fmt::format(" on {}", fmt::join(table.devices, ","));
    if (!table.same_device_as.empty()) os << " with " << table.same_device_as;
  }
}

namespace testing_tasks {

inline constexpr std::int64_t kGiB = std::int64_t{1} << 30;

inline Table make_table(const std::string& name, std::int64_t num_embeddings,
                        std::int64_t embedding_dim, double pooling_factor = 1.0) {
  Table table;
  table.name = name;
  table.num_embeddings = num_embeddings;
  table.embedding_dim = embedding_dim;
  table.pooling_factor = pooling_factor;
  return table;
}

inline Topology make_topology(int world_size, int local_world_size, std::int64_t memory_bytes = 1) {
  Topology topology;
  topology.world_size = world_size;
  topology.local_world_size = local_world_size;
  topology.memory_bytes.assign(world_size, memory_bytes);
  return topology;
}

inline rc::Gen<Table> arbitrary_table() {
  return rc::gen::exec([] {
    Table table;
    table.num_embeddings = *rc::gen::inRange<std::int64_t>(1, 100'000);
    table.embedding_dim =
        *rc::gen::element<std::int64_t>(4, 8, 12, 16, 64, 100, 128, 256, 3, 10, 1);
    table.pooling_factor = *rc::gen::element(1.0, 0.3, 2.5, 20.0);
    table.data_type = *rc::gen::element(DataType::fp32, DataType::fp16);
    return table;
  });
}

/// Devices of 1 to 1.5 of the mean need, times `slack`; equal or not.
inline std::vector<std::int64_t> arbitrary_memory(const Task& task, double slack) {
  double needed = 0.0;
  for (const Table& table : task.tables) {
    needed += static_cast<double>(shard_bytes(table, table.embedding_dim, task.optimizer));
  }
  const double mean = slack * needed / task.topology.world_size;
  const bool equal = *rc::gen::arbitrary<bool>();
  std::vector<std::int64_t> memory;
  for (int d = 0; d < task.topology.world_size; ++d) {
    const int percent = *rc::gen::inRange(100, 151);
    memory.push_back(1 + static_cast<std::int64_t>(mean * (equal ? 125 : percent) / 100.0));
  }
  return memory;
}

/// A valid task whose tables may or may not fit: the devices have `slack` times 1 to 1.5 of what
/// the tables need in all.
inline rc::Gen<Task> arbitrary_task(double slack) {
  return rc::gen::exec([slack] {
    Task task;
    task.batch_size = *rc::gen::inRange<std::int64_t>(1, 5000);
    task.optimizer = *rc::gen::element(Optimizer::sgd, Optimizer::rowwise_adagrad);
    const int num_hosts = *rc::gen::inRange(1, 4);
    task.topology.local_world_size = *rc::gen::inRange(1, 4);
    task.topology.world_size = num_hosts * task.topology.local_world_size;
    const int num_tables = *rc::gen::inRange(1, 25);
    for (int t = 0; t < num_tables; ++t) {
      task.tables.push_back(*arbitrary_table());
      task.tables.back().name = fmt::format("t{}", t);
    }
    task.topology.memory_bytes = arbitrary_memory(task, slack);
    return task;
  });
}

/// The task with conditions on some of its tables: the least width of pieces and rows of slices,
/// the cuts that they may have, their memory beyond their rows, the number of features that look up
/// in them.
inline Task with_conditions(Task task) {
  for (Table& table : task.tables) {
    table.min_shard_columns = *rc::gen::element<std::int64_t>(0, 0, 4, 6, 16, 32, 1000);
    table.min_shard_rows = *rc::gen::element<std::int64_t>(0, 0, 0, 1, 500, 20'000);
    table.allow.columns = *rc::gen::inRange(0, 5) > 0;
    table.allow.rows = *rc::gen::inRange(0, 5) > 0;
    table.allow.replicas = *rc::gen::inRange(0, 5) > 0;
    table.extra_bytes_per_shard = *rc::gen::element<std::int64_t>(0, 1, 5000);
    table.extra_bytes_per_column = *rc::gen::element<std::int64_t>(0, 1, 100);
    table.num_features = *rc::gen::element<std::int64_t>(1, 1, 2, 5);
  }
  return task;
}

/// The task with tables whose rows are used unequally, most of them with a row order.
inline Task with_row_orders(Task task) {
  for (Table& table : task.tables) {
    if (*rc::gen::arbitrary<bool>()) {
      table.index_distribution =
          IndexDistribution{.zipf_exponent = *rc::gen::element(0.5, 1.05, 1.5)};
    }
    switch (*rc::gen::inRange(0, 3)) {
      case 0:
        table.row_order = RowOrder::by_frequency;
        break;
      case 1:
        table.row_access = {
            {*rc::gen::element(0.001, 0.2), 0.4}, {0.5, *rc::gen::element(0.4, 0.9)}, {1.0, 1.0}};
        break;
      default:
        break;
    }
  }
  return task;
}

/// The task with some tables that may lie on some devices alone, and some that stay with others.
inline Task with_pins(Task task) {
  const int num_devices = task.topology.world_size;
  for (std::size_t t = 0; t < task.tables.size(); ++t) {
    Table& table = task.tables[t];
    if (t > 0 && *rc::gen::inRange(0, 4) == 0) {
      // Where the other one may lie, and perhaps elsewhere, so that devices are left for the group.
      const Table& other = task.tables[*rc::gen::inRange<std::size_t>(0, t)];
      table.same_device_as = other.name;
      if (*rc::gen::arbitrary<bool>()) table.devices = other.devices;
    } else if (*rc::gen::inRange(0, 3) == 0) {
      table.devices = {*rc::gen::inRange(0, num_devices)};
    }
    for (int d = 0; d < num_devices && !table.devices.empty(); ++d) {
      const auto found = std::find(table.devices.begin(), table.devices.end(), d);
      if (found == table.devices.end() && *rc::gen::inRange(0, 4) == 0) table.devices.push_back(d);
    }
  }
  return task;
}

/// A random plan that covers every column once; memory is ignored.
inline rc::Gen<ShardingPlan> arbitrary_plan(const Task& task) {
  return rc::gen::exec([&task] {
    ShardingPlan plan;
    for (std::size_t t = 0; t < task.tables.size(); ++t) {
      const std::int64_t dim = task.tables[t].embedding_dim;
      const bool cut = can_cut(dim) && *rc::gen::arbitrary<bool>();
      const std::int64_t first = cut ? 4 * *rc::gen::inRange<std::int64_t>(1, dim / 4) : dim;
      const int table = static_cast<int>(t);
      plan.shards.push_back({table, 0, first, *rc::gen::inRange(0, task.topology.world_size)});
      if (cut) {
        plan.shards.push_back(
            {table, first, dim - first, *rc::gen::inRange(0, task.topology.world_size)});
      }
    }
    return plan;
  });
}

}  // namespace testing_tasks
}  // namespace neuroshard
