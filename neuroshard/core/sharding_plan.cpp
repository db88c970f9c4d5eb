// Validity of a sharding plan: every column exactly once, granularity, memory.
#include "neuroshard/core/sharding_plan.h"

#include <fmt/format.h>

#include <algorithm>
#include <tuple>

#include "neuroshard/core/byte_sum.h"
#include "neuroshard/core/units.h"

namespace neuroshard {

std::vector<std::int64_t> device_memory(const Task& task, const ShardingPlan& plan) {
  std::vector<std::int64_t> bytes(task.topology.world_size, 0);
  for (const Shard& shard : plan.shards) {
    bytes[shard.device] =
        add_saturated(bytes[shard.device],
                      shard_bytes(task.tables[shard.table], shard.num_columns, task.optimizer));
  }
  return bytes;
}

void sort_shards(ShardingPlan& plan) {
  std::sort(plan.shards.begin(), plan.shards.end(), [](const Shard& a, const Shard& b) {
    return std::tie(a.table, a.column_offset, a.num_columns, a.device) <
           std::tie(b.table, b.column_offset, b.num_columns, b.device);
  });
}

namespace {

/// Violations of one shard on its own; empty if it may take part in the checks across shards.
std::vector<std::string> shard_violations(const Task& task, const Shard& shard, std::size_t index) {
  const std::string place = fmt::format("shards[{}]", index);
  std::vector<std::string> found;
  if (shard.table < 0 || shard.table >= static_cast<int>(task.tables.size())) {
    return {fmt::format("{}.table: expected one of {} tables, got index {}", place,
                        task.tables.size(), shard.table)};
  }
  const Table& table = task.tables[shard.table];
  if (shard.device < 0 || shard.device >= task.topology.world_size) {
    found.push_back(fmt::format("{}.device: expected 0 to {}, got {}", place,
                                task.topology.world_size - 1, shard.device));
  }
  if (shard.column_offset < 0 || shard.num_columns < 1 || shard.num_columns > table.embedding_dim ||
      shard.column_offset > table.embedding_dim - shard.num_columns) {
    found.push_back(fmt::format("{}: expected columns of \"{}\" within 0 to {}, got {} from {}",
                                place, table.name, table.embedding_dim, shard.num_columns,
                                shard.column_offset));
    return found;
  }
  const bool whole = shard.num_columns == table.embedding_dim;
  if (!whole && table.embedding_dim % kColumnGranularity != 0) {
    found.push_back(fmt::format(
        "{}: expected \"{}\" whole, as its dimension {} is no multiple of {}, got {} columns",
        place, table.name, table.embedding_dim, kColumnGranularity, shard.num_columns));
  } else if (!whole && (shard.num_columns % kColumnGranularity != 0 ||
                        shard.column_offset % kColumnGranularity != 0)) {
    found.push_back(
        fmt::format("{}: expected cuts of \"{}\" at multiples of {} columns, got {} from {}", place,
                    table.name, kColumnGranularity, shard.num_columns, shard.column_offset));
  } else if (!whole && shard.num_columns < narrowest_cut(table)) {
    found.push_back(fmt::format("{}: expected pieces of \"{}\" of at least {} columns, got {}",
                                place, table.name, narrowest_cut(table), shard.num_columns));
  }
  return found;
}

/// Gaps and overlaps of each table's columns; the shards are in canonical order.
void coverage_violations(const Task& task, const std::vector<Shard>& shards,
                         std::vector<std::string>& found) {
  std::size_t next = 0;
  for (std::size_t index = 0; index < task.tables.size(); ++index) {
    const Table& table = task.tables[index];
    std::int64_t covered = 0;
    for (; next < shards.size() && shards[next].table == static_cast<int>(index); ++next) {
      const Shard& shard = shards[next];
      if (shard.column_offset > covered) {
        found.push_back(fmt::format("table \"{}\": columns {} to {} are on no device", table.name,
                                    covered, shard.column_offset - 1));
      } else if (shard.column_offset < covered) {
        found.push_back(fmt::format("table \"{}\": columns from {} are placed more than once",
                                    table.name, shard.column_offset));
      }
      covered = std::max(covered, shard.column_offset + shard.num_columns);
    }
    if (covered < table.embedding_dim) {
      found.push_back(fmt::format("table \"{}\": columns {} to {} are on no device", table.name,
                                  covered, table.embedding_dim - 1));
    }
  }
}

}  // namespace

std::vector<std::string> violations(const Task& task, const ShardingPlan& plan) {
  std::vector<std::string> found;
  for (std::size_t i = 0; i < plan.shards.size(); ++i) {
    for (std::string& text : shard_violations(task, plan.shards[i], i)) {
      found.push_back(std::move(text));
    }
  }
  if (!found.empty()) return found;

  ShardingPlan sorted = plan;
  sort_shards(sorted);
  coverage_violations(task, sorted.shards, found);

  const std::vector<std::int64_t> used = device_memory(task, plan);
  for (int device = 0; device < task.topology.world_size; ++device) {
    const std::int64_t capacity = task.topology.memory_bytes[device];
    if (used[device] > capacity) {
      found.push_back(fmt::format("device {}: expected at most {} bytes ({}), got {} ({})", device,
                                  capacity, format_bytes(static_cast<double>(capacity)),
                                  used[device], format_bytes(static_cast<double>(used[device]))));
    }
  }
  return found;
}

}  // namespace neuroshard
