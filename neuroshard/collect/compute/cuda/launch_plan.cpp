// Sizes of tasks and segments, and the layout in memory.
#include "neuroshard/collect/compute/cuda/launch_plan.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cassert>
#include <numeric>
#include <utility>

#include "neuroshard/core/error.h"

namespace neuroshard::cuda {

namespace {

/// Tasks per resident thread: late blocks fill the gaps that early ones leave.
constexpr std::int64_t kWaves = 8;
/// Rows that a group reads in one task, at least (so that its start is a small part of it) and at
/// the most.
constexpr std::int64_t kFewestRows = 8;
constexpr std::int64_t kMostRows = 128;
/// A bag that is longer than a range by this factor is cut.
constexpr std::int64_t kLongBag = 16;
/// Ranges of a table whose bags are cut: bounds the partial sums of one bag, which are added up one
/// after the other.
constexpr std::int64_t kMostCutRanges = 16 * 1024;
constexpr std::int64_t kMostItems = 512;
/// Items per segment in the levels above the first, which have few items.
constexpr std::int64_t kPartialsPerSegment = 64;

std::int64_t divide_up(std::int64_t a, std::int64_t b) { return (a + b - 1) / b; }

int bits_for(std::int64_t count) {  // values 0 .. count - 1
  return std::max(1, static_cast<int>(std::bit_width(static_cast<std::uint64_t>(count - 1))));
}

bool aligned(const void* pointer, std::int64_t bytes) {
  return reinterpret_cast<std::uintptr_t>(pointer) % static_cast<std::uintptr_t>(bytes) == 0;
}

/// The most columns that fit one access of 16 bytes (8 for fp16 rows of an odd number of fours),
/// where rows, outputs and gradients all are aligned for it.
int vector_elements(const OperatorTable& table, std::int64_t column_start,
                    std::int64_t total_columns) {
  if ((column_start | total_columns | table.num_columns) % 4 != 0) return 1;
  if (table.data_type == DataType::fp32) return aligned(table.weights, 16) ? 4 : 1;
  if (table.num_columns % 8 == 0 && aligned(table.weights, 16)) return 8;
  return aligned(table.weights, 8) ? 4 : 1;
}

int tile_lanes(const TableLayout& table) {
  return static_cast<int>(std::min<std::int64_t>(table.num_vectors(), kMostLanes));
}

/// How many rows a group should read in one task so that there are kWaves tasks per resident group.
std::int64_t rows_per_task(const LaunchPlan& plan, std::int64_t resident_threads,
                           std::int64_t most) {
  std::int64_t vectors = 0;
  for (const TableLayout& table : plan.tables) {
    vectors += (table.num_lookups + plan.batch_size) * table.num_vectors();
  }
  return std::clamp(vectors / (resident_threads * kWaves), kFewestRows, most);
}

PoolingPlan plan_pooling(const TableLayout& table, std::int64_t longest_bag, std::int64_t rows,
                         LaunchPlan& plan) {
  PoolingPlan result;
  result.first_block = plan.pooling_blocks;
  result.lanes = tile_lanes(table);
  result.num_tiles = static_cast<int>(divide_up(table.num_vectors(), result.lanes));
  const std::int64_t work = table.num_lookups + plan.batch_size;
  result.range_length = std::max<std::int64_t>(1, rows * plan.batch_size / work);
  const std::int64_t lookups_of_range = divide_up(table.num_lookups, plan.batch_size);
  result.splits_bags =
      longest_bag > kLongBag * std::max(rows, std::min(lookups_of_range, kMostRows));
  if (result.splits_bags) {
    result.range_length = std::max(rows, divide_up(work, kMostCutRanges));
    result.num_ranges = divide_up(work, result.range_length);
    result.first_partial = plan.pooling_partials;
    plan.pooling_partials += divide_up(result.num_ranges * table.num_columns, 8) * 8;
  } else {
    result.num_ranges = divide_up(plan.batch_size, result.range_length);
  }
  plan.pooling_blocks +=
      divide_up(result.num_ranges * result.num_tiles, kThreadsPerBlock / result.lanes);
  return result;
}

/// Places a table's segments in a level.
void add_reduction(const TableLayout& table, std::int64_t num_items, std::int64_t per_segment,
                   bool of_lookups, ReductionLevel& level) {
  ReductionPlan plan;
  plan.first_block = level.num_blocks;
  plan.num_items = num_items;
  plan.items_per_segment = per_segment;
  plan.num_segments = divide_up(num_items, per_segment);
  plan.first_item = level.num_items;
  plan.first_value = level.num_values;
  plan.lanes = static_cast<int>(std::bit_ceil(static_cast<unsigned>(tile_lanes(table))));
  level.num_blocks += divide_up(plan.num_segments, kThreadsPerBlock / plan.lanes);
  level.num_items += num_items;
  if (!of_lookups) level.num_values += divide_up(num_items * table.num_columns, 8) * 8;
  level.tables.push_back(plan);
}

void plan_levels(std::int64_t items_per_segment, LaunchPlan& plan) {
  ReductionLevel first;
  for (const TableLayout& table : plan.tables) {
    add_reduction(table, table.num_lookups, items_per_segment, true, first);
  }
  plan.levels.push_back(std::move(first));
  while (true) {
    const ReductionLevel& below = plan.levels.back();
    ReductionLevel level;
    for (std::size_t t = 0; t < plan.tables.size(); ++t) {
      // A table that one segment has reduced has left nothing.
      const std::int64_t segments = below.tables[t].num_segments;
      add_reduction(plan.tables[t], segments > 1 ? 2 * segments : 0, kPartialsPerSegment, false,
                    level);
    }
    if (level.num_items == 0) return;
    plan.levels.push_back(std::move(level));
  }
}

/// Puts the tables into the order of their kinds; returns which of those given each of them is.
std::vector<std::size_t> order_by_kind(LaunchPlan& plan) {
  std::vector<std::size_t> order(plan.tables.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
    return plan.tables[a].kind() < plan.tables[b].kind();
  });
  std::vector<TableLayout> tables;
  for (const std::size_t given : order) {
    const TableLayout& table = plan.tables[given];
    if (tables.empty() || plan.kinds.back().kind != table.kind()) {
      plan.kinds.push_back({table.kind(), static_cast<int>(tables.size()), 0});
    }
    ++plan.kinds.back().count;
    tables.push_back(table);
  }
  plan.tables = std::move(tables);
  return order;
}

}  // namespace

LaunchPlan plan_launches(std::span<const OperatorTable> tables,
                         std::span<const DeviceLookups> lookups, std::int64_t batch_size,
                         std::int64_t resident_threads) {
  assert(tables.size() == lookups.size() && batch_size > 0 && resident_threads > 0);
  LaunchPlan plan;
  plan.batch_size = batch_size;
  for (const OperatorTable& table : tables) plan.total_columns += table.num_columns;
  std::int64_t column_start = 0;
  for (std::size_t t = 0; t < tables.size(); ++t) {
    const OperatorTable& table = tables[t];
    plan.tables.push_back({table.weights, table.optimizer_state, lookups[t].indices,
                           lookups[t].offsets, table.num_columns, column_start,
                           lookups[t].num_lookups, 0, 0, table.data_type,
                           vector_elements(table, column_start, plan.total_columns)});
    column_start += table.num_columns;
  }
  const std::vector<std::size_t> order = order_by_kind(plan);
  std::int64_t first_row = 0;
  for (std::size_t i = 0; i < order.size(); ++i) {
    TableLayout& table = plan.tables[i];
    plan.keys.push_back({plan.key_blocks});
    plan.key_blocks += divide_up(table.num_lookups, kKeysPerBlock);
    table.first_row = first_row;
    table.first_lookup = plan.total_lookups;
    first_row += tables[order[i]].num_embeddings;
    plan.total_lookups += table.num_lookups;
  }
  plan.key_bits = {bits_for(first_row), bits_for(batch_size)};
  if (plan.key_bits.row_bits + plan.key_bits.bag_bits > 64) {
    throw InputError("num_embeddings", "rows of all tables * batch_size of at most 2^64",
                     fmt::format("{} * {}", first_row, batch_size));
  }
  const std::int64_t rows = rows_per_task(plan, resident_threads, kMostRows);
  for (std::size_t i = 0; i < order.size(); ++i) {
    plan.pooling.push_back(plan_pooling(plan.tables[i], lookups[order[i]].longest_bag, rows, plan));
  }
  plan_levels(rows_per_task(plan, resident_threads, kMostItems), plan);
  return plan;
}

}  // namespace neuroshard::cuda
