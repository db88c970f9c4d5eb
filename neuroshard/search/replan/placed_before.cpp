// Intersections of a new plan's rectangles with an older plan's.
#include "neuroshard/search/replan/placed_before.h"

#include <algorithm>
#include <map>
#include <string_view>
#include <unordered_map>
#include <utility>

#include "neuroshard/core/numbers/byte_sum.h"

namespace neuroshard {

namespace {

/// Disjoint ranges of rows.
class RowRanges {
 public:
  /// Adds the rows [begin, end); the number of those that are new.
  std::int64_t add(std::int64_t begin, std::int64_t end) {
    std::int64_t added = end - begin;
    std::vector<std::pair<std::int64_t, std::int64_t>> kept;
    for (const auto& [first, last] : ranges_) {
      const std::int64_t common = std::min(end, last) - std::max(begin, first);
      if (common <= 0) {
        kept.emplace_back(first, last);
      } else {
        added -= common;
      }
    }
    // Ranges that overlap the new one are joined with it.
    for (const auto& [first, last] : ranges_) {
      if (first < end && last > begin) {
        begin = std::min(begin, first);
        end = std::max(end, last);
      }
    }
    kept.emplace_back(begin, end);
    ranges_ = std::move(kept);
    return added;
  }

 private:
  std::vector<std::pair<std::int64_t, std::int64_t>> ranges_;
};

/// What a shard and a held rectangle have in common.
struct Common {
  std::int64_t row_begin;
  std::int64_t row_end;
  std::int64_t columns;

  [[nodiscard]] bool empty() const { return row_end <= row_begin || columns <= 0; }
  [[nodiscard]] std::int64_t rows() const { return row_end - row_begin; }
};

/// `row_end` is the end of the shard's rows that were there before.
Common common_of(const Shard& shard, std::int64_t row_end, const HeldPart& held) {
  return {std::max(shard.row_offset, held.row_begin), std::min(row_end, held.row_end),
          std::min(shard.column_offset + shard.num_columns, held.column_end) -
              std::max(shard.column_offset, held.column_begin)};
}

}  // namespace

/// Bytes by pair of devices.
class PlacedBefore::TransferList {
 public:
  explicit TransferList(int num_devices) : sent_(num_devices, 0) {}

  void add(int from, int to, std::int64_t bytes) {
    if (bytes <= 0) return;
    std::int64_t& between = bytes_[{from, to}];
    between = add_saturated(between, bytes);
    sent_[from] = add_saturated(sent_[from], bytes);
  }
  [[nodiscard]] std::int64_t sent(int device) const { return sent_[device]; }
  [[nodiscard]] std::vector<DeviceTransfer> all() const {
    std::vector<DeviceTransfer> transfers;
    for (const auto& [pair, bytes] : bytes_) transfers.push_back({pair.first, pair.second, bytes});
    return transfers;
  }

 private:
  std::map<std::pair<int, int>, std::int64_t> bytes_;
  std::vector<std::int64_t> sent_;
};

PlacedBefore::PlacedBefore(const Task& old_task, const ShardingPlan& plan, const Task& task)
    : old_world_size_(old_task.topology.world_size),
      world_size_(task.topology.world_size),
      local_world_size_(task.topology.local_world_size),
      state_bytes_(task.optimizer == Optimizer::rowwise_adagrad ? 4 : 0),
      weight_bytes_(task.tables.size()),
      num_rows_(task.tables.size()),
      num_columns_(task.tables.size()),
      rows_before_(task.tables.size(), 0),
      was_replicated_(task.tables.size(), false),
      held_(task.tables.size()) {
  std::unordered_map<std::string_view, int> numbers;
  for (std::size_t t = 0; t < task.tables.size(); ++t) {
    const Table& table = task.tables[t];
    numbers.emplace(table.name, static_cast<int>(t));
    weight_bytes_[t] = element_bytes(table.data_type);
    num_rows_[t] = table.num_embeddings;
    num_columns_[t] = table.embedding_dim;
  }
  std::vector<int> now(old_task.tables.size(), -1);  // the new number of each old table
  for (std::size_t t = 0; t < old_task.tables.size(); ++t) {
    const auto found = numbers.find(old_task.tables[t].name);
    if (found == numbers.end()) continue;
    const Table& table = task.tables[found->second];
    if (table.embedding_dim != old_task.tables[t].embedding_dim) continue;
    now[t] = found->second;
    rows_before_[now[t]] = std::min(old_task.tables[t].num_embeddings, table.num_embeddings);
  }
  const auto hold = [&](const Shard& shard) {
    const int table = now[shard.table];
    if (table < 0) return;
    const std::int64_t end = std::min(
        shard.row_offset + shard.rows_of(old_task.tables[shard.table]), rows_before_[table]);
    if (end <= shard.row_offset) return;
    held_[table].push_back({shard.device, shard.row_offset, end, shard.column_offset,
                            shard.column_offset + shard.num_columns});
    const std::int64_t row_bytes = shard.num_columns * weight_bytes_[table] + state_bytes_;
    total_bytes_ = add_saturated(total_bytes_, (end - shard.row_offset) * row_bytes);
  };
  for (const Shard& shard : plan.shards) hold(shard);
  for (const int table : plan.replicated_tables) {
    if (now[table] < 0) continue;
    was_replicated_[now[table]] = true;
    for (int device = 0; device < old_world_size_; ++device) {
      hold({table, 0, old_task.tables[table].embedding_dim, device});
    }
  }
  for (std::vector<HeldPart>& parts : held_) {
    std::stable_sort(parts.begin(), parts.end(),
                     [](const HeldPart& a, const HeldPart& b) { return a.device < b.device; });
  }
}

std::int64_t PlacedBefore::moved_bytes(const Shard& shard) const {
  const std::int64_t rows_end =
      std::min(shard.row_offset + (shard.has_all_rows() ? num_rows_[shard.table] : shard.num_rows),
               rows_before_[shard.table]);
  if (rows_end <= shard.row_offset) return 0;
  const std::int64_t known_rows = rows_end - shard.row_offset;
  const std::vector<HeldPart>& parts = held_[shard.table];
  auto part =
      std::lower_bound(parts.begin(), parts.end(), shard.device,
                       [](const HeldPart& held, int device) { return held.device < device; });
  std::int64_t kept_elements = 0;
  std::int64_t kept_rows = 0;
  bool is_first = true;
  RowRanges rows;
  for (; part != parts.end() && part->device == shard.device; ++part) {
    const Common common = common_of(shard, rows_end, *part);
    if (common.empty()) continue;
    kept_elements += common.rows() * common.columns;
    // Mostly a device has one rectangle of a table.
    const bool is_only =
        is_first && (std::next(part) == parts.end() || std::next(part)->device != shard.device);
    kept_rows += is_only ? common.rows() : rows.add(common.row_begin, common.row_end);
    is_first = false;
  }
  return (known_rows * shard.num_columns - kept_elements) * weight_bytes_[shard.table] +
         (known_rows - kept_rows) * state_bytes_;
}

std::int64_t PlacedBefore::moved_bytes_of_copies(int table) const {
  if (rows_before_[table] == 0) return 0;
  std::int64_t moved = 0;
  for (int device = 0; device < world_size_; ++device) {
    moved = add_saturated(moved, moved_bytes(Shard{table, 0, num_columns_[table], device}));
  }
  return moved;
}

std::int64_t PlacedBefore::moved_bytes(const ShardingPlan& plan) const {
  std::int64_t moved = 0;
  for (const Shard& shard : plan.shards) moved = add_saturated(moved, moved_bytes(shard));
  for (const int table : plan.replicated_tables) {
    moved = add_saturated(moved, moved_bytes_of_copies(table));
  }
  return moved;
}

void PlacedBefore::add_transfers(const Shard& shard, TransferList& list) const {
  if (moved_bytes(shard) == 0) return;
  const std::int64_t rows_end =
      std::min(shard.row_offset + (shard.has_all_rows() ? num_rows_[shard.table] : shard.num_rows),
               rows_before_[shard.table]);
  const std::vector<HeldPart>& parts = held_[shard.table];
  if (was_replicated_[shard.table]) {
    const auto host = [&](int device) { return device / local_world_size_; };
    const auto sender =
        std::min_element(parts.begin(), parts.end(), [&](const HeldPart& a, const HeldPart& b) {
          const bool a_far = host(a.device) != host(shard.device);
          const bool b_far = host(b.device) != host(shard.device);
          return std::pair(a_far, list.sent(a.device)) < std::pair(b_far, list.sent(b.device));
        });
    list.add(sender->device, shard.device, moved_bytes(shard));
    return;
  }
  // Each element has one holder; a row's state comes from the first device that has some of its
  // columns, unless the receiver does.
  RowRanges with_state;
  for (const HeldPart& part : parts) {
    if (part.device != shard.device) continue;
    const Common common = common_of(shard, rows_end, part);
    if (!common.empty()) (void)with_state.add(common.row_begin, common.row_end);
  }
  for (const HeldPart& part : parts) {
    if (part.device == shard.device) continue;
    const Common common = common_of(shard, rows_end, part);
    if (common.empty()) continue;
    const std::int64_t states = with_state.add(common.row_begin, common.row_end);
    list.add(part.device, shard.device,
             common.rows() * common.columns * weight_bytes_[shard.table] + states * state_bytes_);
  }
}

std::vector<DeviceTransfer> PlacedBefore::transfers(const ShardingPlan& plan) const {
  TransferList list(std::max(old_world_size_, world_size_));
  for (const Shard& shard : plan.shards) add_transfers(shard, list);
  for (const int table : plan.replicated_tables) {
    if (rows_before_[table] == 0) continue;
    for (int device = 0; device < world_size_; ++device) {
      add_transfers({table, 0, num_columns_[table], device}, list);
    }
  }
  return list.all();
}

}  // namespace neuroshard
