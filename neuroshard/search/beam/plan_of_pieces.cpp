// Columns and rows of placed pieces.
#include "neuroshard/search/beam/plan_of_pieces.h"

#include <algorithm>
#include <cassert>
#include <cstddef>
#include <cstdint>
#include <map>
#include <vector>

namespace neuroshard {

namespace {

/// Columns of a table, of which each of `devices` has a slice of rows, in their order; those of one
/// device that are neighbours are one shard.
void add_strip(const Simulator& simulator, int table, std::int64_t column_offset,
               std::int64_t num_columns, std::span<const int> devices, ShardingPlan& plan) {
  if (devices.size() == 1) {
    plan.shards.push_back({table, column_offset, num_columns, devices.front()});
    return;
  }
  const std::size_t slices = devices.size();
  const std::vector<std::int64_t> ends = simulator.slice_ends(table, static_cast<int>(slices));
  for (std::size_t slice = 0; slice < slices;) {
    std::size_t end = slice + 1;
    while (end < slices && devices[end] == devices[slice]) ++end;
    Shard shard{table, column_offset, num_columns, devices[slice]};
    if (end - slice < slices) {
      shard.row_offset = ends[slice];
      shard.num_rows = ends[end] - ends[slice];
    }
    plan.shards.push_back(shard);
    slice = end;
  }
}

}  // namespace

ShardingPlan plan_of(const Simulator& simulator, const PieceCatalog& catalog,
                     std::span<const PieceType> pieces, std::span<const int> devices) {
  assert(pieces.size() == devices.size());
  std::vector<std::int64_t> next_column(simulator.task().tables.size(), 0);
  ShardingPlan plan;
  const auto add = [&](int table, std::int64_t columns, std::span<const int> of_slices) {
    add_strip(simulator, table, next_column[table], columns, of_slices, plan);
    next_column[table] += columns;
  };
  // The devices of slices of different types: of the first's type, of each slice.
  std::map<PieceType, std::vector<std::vector<int>>> unequal;
  for (std::size_t i = 0; i < pieces.size();) {
    const PieceType piece = pieces[i];
    if (!catalog.has_equal_slices(piece)) {
      std::vector<std::vector<int>>& of_slices = unequal[catalog.first_slice(piece)];
      of_slices.resize(static_cast<std::size_t>(catalog.num_slices(piece)));
      of_slices[catalog.slice(piece)].push_back(devices[i++]);
      continue;
    }
    const auto slices = static_cast<std::size_t>(catalog.num_slices(piece));
    const std::span<const int> placed = devices.subspan(i, slices);
    std::vector<int> of_slices(placed.begin(), placed.end());
    std::sort(of_slices.begin(), of_slices.end());
    add(catalog.table(piece), catalog.num_columns(piece), of_slices);
    i += slices;
  }
  for (const auto& [first, devices_of] : unequal) {
    for (std::size_t strip = 0; strip < devices_of.front().size(); ++strip) {
      std::vector<int> of_slices;
      for (const std::vector<int>& of_slice : devices_of) of_slices.push_back(of_slice[strip]);
      add(catalog.table(first), catalog.num_columns(first), of_slices);
    }
  }
  sort_shards(plan);
  return plan;
}

}  // namespace neuroshard
