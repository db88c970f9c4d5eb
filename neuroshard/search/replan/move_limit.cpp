// Orders of a table's pieces, and the bytes that they move.
#include "neuroshard/search/replan/move_limit.h"

#include <algorithm>
#include <limits>
#include <tuple>
#include <utility>

namespace neuroshard {

std::int64_t moved_bytes(const PlacedBefore& before, const TableOrigin& origin,
                         const Shard& shard) {
  std::int64_t moved = 0;
  for (Shard part : origin) {
    part.device = shard.device;
    if (origin.size() == 1) {
      part.column_offset += shard.column_offset;
      part.num_columns = shard.num_columns;
      if (!shard.has_all_rows()) {
        part.row_offset += shard.row_offset;
        part.num_rows = shard.num_rows;
      }
    }
    moved = add_saturated(moved, before.moved_bytes(part));
  }
  return moved;
}

std::int64_t MoveLimit::first_column(int table, int device) const {
  std::int64_t first = -1;
  if (origins_[table].size() != 1) return first;
  const Shard& origin = origins_[table].front();
  for (const HeldPart& part : before_.held(origin.table)) {
    if (part.device != device) continue;
    if (part.column_end <= origin.column_offset) continue;
    if (first < 0 || part.column_begin < first) first = part.column_begin;
  }
  return first;
}

std::vector<TablePart> MoveLimit::held(int table) const {
  if (origins_[table].size() != 1) return {};
  const Shard& origin = origins_[table].front();
  std::vector<HeldPart> parts;
  for (const HeldPart& part : before_.held(origin.table)) {
    const bool has_rows =
        origin.has_all_rows() ||
        (part.row_begin < origin.row_offset + origin.num_rows && part.row_end > origin.row_offset);
    if (has_rows && part.column_begin < origin.column_offset + origin.num_columns &&
        part.column_end > origin.column_offset) {
      parts.push_back(part);
    }
  }
  std::stable_sort(parts.begin(), parts.end(), [](const HeldPart& a, const HeldPart& b) {
    return a.column_begin < b.column_begin;
  });
  std::vector<TablePart> result;
  for (const HeldPart& part : parts) {
    const std::int64_t columns =
        std::min(part.column_end, origin.column_offset + origin.num_columns) -
        std::max(part.column_begin, origin.column_offset);
    result.push_back({part.device, columns});
  }
  return result;
}

std::int64_t MoveLimit::arrange(int table, std::vector<TablePart>& parts) const {
  if (parts.size() == 1) return moved_by(table, 0, parts.front());
  // Of those that held some, by their first column; and the others.
  std::vector<std::pair<std::int64_t, TablePart>> settled;
  std::vector<TablePart> newcomers;
  for (const TablePart& part : parts) {
    const std::int64_t first = first_column(table, part.device);
    if (first >= 0) {
      settled.emplace_back(first, part);
    } else {
      newcomers.push_back(part);
    }
  }
  std::stable_sort(settled.begin(), settled.end(),
                   [](const auto& a, const auto& b) { return a.first < b.first; });
  // least[i][j]: of the first i settled and the first j newcomers, in any mixture of the two
  // orders.
  const std::size_t rows = settled.size() + 1;
  const std::size_t columns = newcomers.size() + 1;
  std::vector<std::int64_t> least(rows * columns, 0);
  std::vector<bool> ends_settled(rows * columns, false);
  std::int64_t settled_columns = 0;
  for (std::size_t i = 0; i < rows; ++i) {
    if (i > 0) settled_columns += settled[i - 1].second.num_columns;
    std::int64_t offset = settled_columns;
    for (std::size_t j = 0; j < columns; ++j) {
      if (j > 0) offset += newcomers[j - 1].num_columns;
      if (i + j == 0) continue;
      std::int64_t best = std::numeric_limits<std::int64_t>::max();
      if (i > 0) {
        const TablePart& last = settled[i - 1].second;
        best = least[(i - 1) * columns + j] + moved_by(table, offset - last.num_columns, last);
        ends_settled[i * columns + j] = true;
      }
      if (j > 0) {
        const TablePart& last = newcomers[j - 1];
        const std::int64_t bytes =
            least[i * columns + j - 1] + moved_by(table, offset - last.num_columns, last);
        if (bytes < best) {
          best = bytes;
          ends_settled[i * columns + j] = false;
        }
      }
      least[i * columns + j] = best;
    }
  }
  std::size_t i = settled.size();
  std::size_t j = newcomers.size();
  for (std::size_t place = parts.size(); place > 0; --place) {
    parts[place - 1] = ends_settled[i * columns + j] ? settled[--i].second : newcomers[--j];
  }
  return least.back();
}

ShardingPlan MoveLimit::arranged(const ShardingPlan& plan) const {
  std::vector<std::vector<TablePart>> parts(origins_.size());
  for (const Shard& shard : plan.shards) {
    parts[shard.table].push_back({shard.device, shard.num_columns});
  }
  ShardingPlan result;
  result.replicated_tables = plan.replicated_tables;
  for (std::size_t t = 0; t < parts.size(); ++t) {
    if (parts[t].empty()) continue;
    std::stable_sort(parts[t].begin(), parts[t].end(),
                     [](const TablePart& a, const TablePart& b) { return a.device < b.device; });
    (void)arrange(static_cast<int>(t), parts[t]);
    std::int64_t offset = 0;
    for (const TablePart& part : parts[t]) {
      result.shards.push_back({static_cast<int>(t), offset, part.num_columns, part.device});
      offset += part.num_columns;
    }
  }
  sort_shards(result);
  return result;
}

MoveLedger::MoveLedger(const MoveLimit& limit, const ShardingPlan& plan)
    : limit_(limit), tables_(limit.num_tables()), candidate_of_(limit.num_tables(), -1) {
  std::vector<ColumnChange> changes;
  for (const Shard& shard : plan.shards) {
    changes.push_back({shard.table, shard.num_columns, shard.device});
  }
  (void)moved_with(changes);
  commit();
}

std::int64_t MoveLedger::moved_with(std::span<const ColumnChange> changes) {
  num_candidates_ = 0;
  const auto candidate_of = [&](int table) -> TableState& {
    int& number = candidate_of_[table];
    if (number >= 0) return candidates_[number].state;
    number = static_cast<int>(num_candidates_);
    if (num_candidates_ == candidates_.size()) candidates_.emplace_back();
    Candidate& added = candidates_[num_candidates_++];
    added.table = table;
    added.state.parts = tables_[table].parts;
    return added.state;
  };
  for (const ColumnChange& change : changes) {
    std::vector<TablePart>& parts = candidate_of(change.table).parts;
    const auto part =
        std::lower_bound(parts.begin(), parts.end(), change.device,
                         [](const TablePart& of, int device) { return of.device < device; });
    if (part == parts.end() || part->device != change.device) {
      parts.insert(part, {change.device, change.num_columns});
    } else {
      part->num_columns += change.num_columns;
    }
  }
  candidate_bytes_ = moved_bytes_;
  for (std::size_t i = 0; i < num_candidates_; ++i) {
    Candidate& changed = candidates_[i];
    candidate_of_[changed.table] = -1;
    std::erase_if(changed.state.parts, [](const TablePart& part) { return part.num_columns == 0; });
    scratch_ = changed.state.parts;
    changed.state.moved_bytes = scratch_.empty() ? 0 : limit_.arrange(changed.table, scratch_);
    candidate_bytes_ += changed.state.moved_bytes;
    candidate_bytes_ -= tables_[changed.table].moved_bytes;
  }
  return saturated(candidate_bytes_);
}

void MoveLedger::commit() {
  for (std::size_t i = 0; i < num_candidates_; ++i) {
    std::swap(tables_[candidates_[i].table], candidates_[i].state);
  }
  moved_bytes_ = candidate_bytes_;
  num_candidates_ = 0;
}

}  // namespace neuroshard
