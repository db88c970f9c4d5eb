// Slices of rows as tables of their own, and back.
#include "neuroshard/search/slices/sliced_task.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <iterator>
#include <map>
#include <numeric>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>

#include "neuroshard/search/slices/row_slices.h"

namespace neuroshard {

namespace {

/// A way of cutting rows: in a number of slices that cost the same, of which the first ones are
/// joined and the last one is cut again, in slices of as many rows.
struct Cutting {
  int num_slices = 1;
  int joined = 1;
  int of_last = 1;
};

/// Joined ones are for few devices, on which equal slices cannot even out the load.
constexpr std::array<Cutting, 11> kCuttings{
    {{1}, {2}, {3, 2}, {3}, {4, 3}, {4, 2}, {4}, {6}, {8}, {12}, {16}}};
/// Of rows whose order says how they are used. By frequency, the last slice has the rows that are
/// hardly used and most of the memory, which no device may have left.
constexpr std::array<Cutting, 4> kCuttingsOfOrder{{{2, 1, 2}, {2, 1, 4}, {3, 1, 2}, {4, 1, 4}}};

/// In rising number of slices: those above, and as many as there are devices, or half as many.
std::vector<Cutting> cuttings(int num_devices) {
  std::vector<Cutting> all(kCuttings.begin(), kCuttings.end());
  for (const int num_slices : {num_devices / 2, num_devices}) {
    const auto next = std::find_if(all.begin(), all.end(), [&](const Cutting& cutting) {
      return cutting.num_slices >= num_slices;
    });
    if (num_slices < 2 || num_slices > kMostEvenSlices) continue;
    if (next == all.end() || next->num_slices > num_slices) all.insert(next, {num_slices, 1});
  }
  return all;
}

/// Where a table is cut that way: rows, the first 0, the last the number of rows. Empty if it may
/// not be.
std::vector<std::int64_t> ends_of(const Cutting& cutting, const Simulator& simulator, int number) {
  const Task& task = simulator.task();
  const Table& table = task.tables[number];
  if (!can_slice(task, table, cutting.num_slices)) return {};
  std::vector<std::int64_t> ends = simulator.slice_ends(number, cutting.num_slices);
  ends.erase(ends.begin() + 1, ends.begin() + cutting.joined);
  const std::int64_t first = ends[ends.size() - 2];
  const std::int64_t rows = ends.back() - first;
  const std::int64_t least = std::max<std::int64_t>(table.min_shard_rows, 1);
  const auto num_slices = static_cast<std::int64_t>(ends.size()) - 2 + cutting.of_last;
  if (num_slices > task.topology.world_size || rows / cutting.of_last < least) return {};
  ends.pop_back();
  for (std::int64_t i = 1; i <= cutting.of_last; ++i) {
    ends.push_back(first + rows / cutting.of_last * i + std::min(i, rows % cutting.of_last));
  }
  return ends;
}

/// The tables whose rows may be cut that cost most on a device of their own.
std::vector<int> costliest_tables(const Simulator& simulator, int count, const StopClock& clock) {
  std::vector<std::pair<double, int>> costs;
  std::vector<double> contribution(simulator.compute().state_size());
  const std::vector<Table>& tables = simulator.task().tables;
  PatientClock patient(clock);
  for (std::size_t t = 0; t < tables.size(); ++t) {
    patient.check();
    if (!tables[t].allow.rows || tables[t].num_embeddings < 2) continue;
    simulator.encode(static_cast<int>(t), tables[t].embedding_dim, contribution);
    costs.emplace_back(-simulator.compute().cost(contribution), static_cast<int>(t));
  }
  const std::size_t kept = std::min(costs.size(), static_cast<std::size_t>(count));
  std::partial_sort(costs.begin(), costs.begin() + static_cast<std::ptrdiff_t>(kept), costs.end());
  std::vector<int> result;
  for (std::size_t i = 0; i < kept; ++i) result.push_back(costs[i].second);
  return result;
}

}  // namespace

SlicedTask::SlicedTask(const Simulator& simulator, const ShardingPlan& plan, const StopClock& clock)
    : SlicedTask(simulator, plan, 0, clock) {}

SlicedTask::SlicedTask(const Simulator& simulator, const ShardingPlan& plan, int num_choices,
                       const StopClock& clock)
    : slices_(with_choices(slices_of(plan), simulator, num_choices, clock, slicings_)),
      replicated_tables_(plan.replicated_tables),
      simulator_(simulator_of(simulator, plan, slices_, clock)) {
  // The slice of the plan with these rows that begins last, not after the columns.
  std::map<std::tuple<int, std::int64_t, std::int64_t, std::int64_t>, int> numbers;
  for (std::size_t s = 0; s < slices_.size() && slices_[s].way_size == 0; ++s) {
    const Slice& slice = slices_[s];
    numbers[{slice.table, slice.row_offset, slice.num_rows, slice.column_offset}] =
        static_cast<int>(s);
  }
  for (const Shard& shard : plan.shards) {
    const auto after =
        numbers.upper_bound({shard.table, shard.row_offset, shard.num_rows, shard.column_offset});
    const int number = std::prev(after)->second;
    plan_.shards.push_back({number, shard.column_offset - slices_[number].column_offset,
                            shard.num_columns, shard.device});
  }
  sort_shards(plan_);
}

std::vector<SlicedTask::Slice> SlicedTask::slices_of(const ShardingPlan& plan) {
  std::vector<Slice> parts;
  for (const Shard& shard : plan.shards) {
    parts.push_back(
        {shard.table, shard.row_offset, shard.num_rows, shard.column_offset, shard.num_columns, 0});
  }
  std::sort(parts.begin(), parts.end(), [](const Slice& a, const Slice& b) {
    return std::tie(a.table, a.row_offset, a.num_rows, a.column_offset) <
           std::tie(b.table, b.row_offset, b.num_rows, b.column_offset);
  });
  std::vector<Slice> slices;
  for (const Slice& part : parts) {
    Slice* last = slices.empty() ? nullptr : &slices.back();
    const bool continues = last != nullptr && last->table == part.table &&
                           last->row_offset == part.row_offset && last->num_rows == part.num_rows &&
                           last->column_offset + last->num_columns == part.column_offset;
    if (continues) {
      last->num_columns += part.num_columns;
    } else {
      slices.push_back(part);
    }
  }
  return slices;
}

std::vector<SlicedTask::Slice> SlicedTask::with_choices(std::vector<Slice> slices,
                                                        const Simulator& simulator, int num_choices,
                                                        const StopClock& clock,
                                                        Slicings& slicings) {
  if (num_choices == 0) return slices;
  const Task& task = simulator.task();
  std::vector<Slicing> planned(task.tables.size());  // of each table; empty if it is replicated
  for (std::size_t s = 0; s < slices.size(); ++s) {
    planned[slices[s].table].push_back(static_cast<int>(s));
  }
  const std::vector<Cutting> ways_to_cut = cuttings(task.topology.world_size);
  for (const int t : costliest_tables(simulator, num_choices, clock)) {
    if (planned[t].empty()) continue;
    const Table& table = task.tables[t];
    std::vector<Slicing> ways{planned[t]};
    const auto add = [&](const Cutting& cutting) {
      const std::vector<std::int64_t> ends = ends_of(cutting, simulator, t);
      std::vector<Slice> cut;
      for (std::size_t i = 0; i + 1 < ends.size(); ++i) {
        const std::int64_t rows = ends.size() == 2 ? 0 : ends[i + 1] - ends[i];
        cut.push_back({t, ends[i], rows, 0, table.embedding_dim, 0});
      }
      const bool is_planned = std::equal(
          cut.begin(), cut.end(), planned[t].begin(), planned[t].end(),
          [&](const Slice& slice, int number) { return slice.is_same_part(slices[number]); });
      if (cut.empty() || is_planned) return;
      for (Slice& slice : cut) slice.way_size = static_cast<int>(cut.size());
      Slicing way(cut.size());
      std::iota(way.begin(), way.end(), static_cast<int>(slices.size()));
      slices.insert(slices.end(), cut.begin(), cut.end());
      ways.push_back(std::move(way));
    };
    for (const Cutting& cutting : ways_to_cut) add(cutting);
    if (has_row_order(table)) {
      for (const Cutting& cutting : kCuttingsOfOrder) add(cutting);
    }
    if (ways.size() > 1) slicings.add(std::move(ways));
  }
  return slices;
}

std::vector<double> SlicedTask::partial_bytes_per_column(const Simulator& original,
                                                         const std::vector<Slice>& slices,
                                                         const StopClock& clock) {
  std::vector<double> result;
  result.reserve(slices.size());
  PatientClock patient(clock);
  // Of the table at hand: slices of the plan by their columns. From one multiple of the granularity
  // to the next there are as many.
  std::vector<std::int64_t> parts;
  int counted = -1;
  for (auto slice = slices.begin(); slice != slices.end(); ++slice) {
    patient.check();
    if (slice->way_size > 0) {
      result.push_back(original.partial_bytes_per_column(slice->way_size));
      continue;
    }
    if (slice->table != counted) {  // the plan's slices come first, by table
      counted = slice->table;
      const std::int64_t dim = original.task().tables[counted].embedding_dim;
      parts.assign(static_cast<std::size_t>(dim / kColumnGranularity + 1), 0);
      for (auto of_table = slice; of_table != slices.end(); ++of_table) {
        patient.check();
        if (of_table->table != counted || of_table->way_size > 0) break;
        const std::int64_t end = of_table->column_offset + of_table->num_columns;
        for (std::int64_t at = of_table->column_offset; at < end; at += kColumnGranularity) {
          ++parts[at / kColumnGranularity];
        }
      }
    }
    double bytes = 0.0;
    if (slice->num_rows > 0) {
      const std::int64_t end = slice->column_offset + slice->num_columns;
      for (std::int64_t at = slice->column_offset; at < end; at += kColumnGranularity) {
        bytes +=
            static_cast<double>(std::min(kColumnGranularity, end - at)) *
            original.partial_bytes_per_column(static_cast<double>(parts[at / kColumnGranularity]));
      }
      bytes /= static_cast<double>(slice->num_columns);
    }
    result.push_back(bytes);
  }
  return result;
}

Simulator SlicedTask::simulator_of(const Simulator& original, const ShardingPlan& plan,
                                   const std::vector<Slice>& slices, const StopClock& clock) {
  const Task& task = original.task();
  Task sliced = task;
  sliced.tables.clear();
  std::vector<Piece> origins;
  std::vector<double> partial_bytes = partial_bytes_per_column(original, slices, clock);
  std::map<std::string_view, std::string> new_names;
  PatientClock patient(clock);
  for (const Slice& slice : slices) {
    patient.check();
    Table table = task.tables[slice.table];
    origins.push_back(
        piece_of(task, {slice.table, 0, table.embedding_dim, 0, slice.row_offset, slice.num_rows}));
    // Unique, as no number occurs twice; only messages show it.
    table.name = fmt::format("{}:{}", sliced.tables.size(), table.name);
    new_names[task.tables[slice.table].name] = table.name;
    if (slice.num_rows > 0) table.num_embeddings = slice.num_rows;
    table.embedding_dim = slice.num_columns;
    // The statistics of the original say how a slice's rows are used.
    if (slice.num_rows > 0) {
      table.reuse_histogram.reset();
      table.index_distribution.reset();
      table.row_order = RowOrder::hashed;
      table.row_access.clear();
    }
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
  return {original,
          std::move(sliced),
          origins,
          std::move(partial_bytes),
          original.replica_cost(plan.replicated_tables),
          clock};
}

ShardingPlan SlicedTask::original(const ShardingPlan& plan) const {
  ShardingPlan result;
  result.replicated_tables = replicated_tables_;
  for (const Shard& shard : plan.shards) {
    const Slice& slice = slices_[shard.table];
    result.shards.push_back({slice.table, slice.column_offset + shard.column_offset,
                             shard.num_columns, shard.device, slice.row_offset + shard.row_offset,
                             shard.has_all_rows() ? slice.num_rows : shard.num_rows});
  }
  sort_shards(result);
  return result;
}

}  // namespace neuroshard
