// What may stay stays; the rest is placed greedily.
#include "neuroshard/search/replan/repaired_plan.h"

#include <algorithm>
#include <cstdint>
#include <deque>
#include <limits>
#include <tuple>
#include <utility>

#include "neuroshard/core/numbers/byte_sum.h"
#include "neuroshard/core/table_pins.h"

namespace neuroshard {

namespace {

constexpr int kNoDevice = -1;
constexpr std::int64_t kAnyMemory = std::int64_t{1} << 60;

/// Whether shards are an allowed way of placing their table, whatever memory there is.
class AllowedShards {
 public:
  explicit AllowedShards(const Task& task) : task_(task) {
    alone_.batch_size = task.batch_size;
    alone_.optimizer = task.optimizer;
    alone_.topology = task.topology;
    alone_.topology.memory_bytes.assign(task.topology.world_size, kAnyMemory);
  }

  /// The shards are on devices of the task.
  bool operator()(int table, std::vector<Shard> shards) {
    alone_.tables = {task_.tables[table]};
    alone_.tables.front().same_device_as.clear();
    for (Shard& shard : shards) shard.table = 0;
    return violations(alone_, {std::move(shards), {}}).empty();
  }

 private:
  const Task& task_;
  Task alone_;  ///< of one table
};

/// The device on which all of a group's tables were, whole; kNoDevice if there is none.
int device_of_group(const PlacedBefore& before, const TableOrigin& group) {
  int device = kNoDevice;
  for (const Shard& member : group) {
    const auto held = before.held(member.table);
    if (held.size() != 1) return kNoDevice;
    if (device != kNoDevice && held.front().device != device) return kNoDevice;
    device = held.front().device;
  }
  return device;
}

/// Parts of one table that may be where they were, or the whole table on no device.
std::vector<Shard> settled_parts_of(const Task& task, const PlacedBefore& before,
                                    const TableOrigin& origin, int number, int permitted,
                                    AllowedShards& are_allowed) {
  const Table& table = task.tables[number];
  std::vector<Shard> nowhere{{number, 0, table.embedding_dim, kNoDevice}};
  if (origin.size() > 1) {
    const int device = device_of_group(before, origin);
    if (device == kNoDevice || device >= task.topology.world_size) return nowhere;
    const std::vector<Shard> there{{number, 0, table.embedding_dim, device}};
    return are_allowed(number, there) ? there : nowhere;
  }
  const int of = origin.front().table;
  if (before.rows_before(of) == 0 || before.was_replicated(of)) return nowhere;
  std::vector<Shard> parts;
  for (const HeldPart& held : before.held(of)) {
    Shard part{number, held.column_begin, held.column_end - held.column_begin, held.device};
    const bool is_last = held.row_end == before.rows_before(of);
    const std::int64_t row_end = is_last ? table.num_embeddings : held.row_end;
    if (held.row_begin > 0 || row_end < table.num_embeddings) {
      part.row_offset = held.row_begin;
      part.num_rows = row_end - held.row_begin;
    }
    parts.push_back(part);
  }
  std::vector<Shard> tested = parts;
  for (Shard& part : tested) {
    if (part.device >= task.topology.world_size) part.device = permitted;
  }
  if (!are_allowed(number, tested)) return nowhere;
  for (Shard& part : parts) {
    if (part.device >= task.topology.world_size) part.device = kNoDevice;
  }
  return parts;
}

/// The run of the repair.
class Repair {
 public:
  Repair(const Simulator& simulator, ShardingPlan settled, const StopClock& clock)
      : simulator_(simulator),
        task_(simulator.task()),
        pins_(task_),
        clock_(clock),
        state_size_(simulator.compute().state_size()),
        states_(static_cast<std::size_t>(task_.topology.world_size) * state_size_, 0.0),
        columns_(task_.topology.world_size, 0.0),
        contribution_(state_size_) {
    plan_.replicated_tables = std::move(settled.replicated_tables);
    for (const Shard& shard : settled.shards) {
      (shard.device == kNoDevice ? homeless_ : plan_.shards).push_back(shard);
    }
  }

  std::optional<ShardingPlan> run() {
    relieve();
    for (const Shard& shard : plan_.shards) count(shard);
    if (!place()) return std::nullopt;
    sort_shards(plan_);
    if (!violations(task_, plan_).empty()) return std::nullopt;
    return std::move(plan_);
  }

 private:
  [[nodiscard]] std::int64_t bytes_of(const Shard& shard) const {
    const Table& table = task_.tables[shard.table];
    return shard_bytes(table, shard.num_columns, task_.optimizer, shard.rows_of(table));
  }

  /// Takes parts off devices that hold more than they may, and copies where they alone are too
  /// much.
  void relieve() {
    relieve_devices();
    forget_taken();
  }

  void relieve_devices() {
    count_bytes();
    for (int device = 0; device < task_.topology.world_size; ++device) {
      while (bytes_[device] > task_.topology.memory_bytes[device]) {
        clock_.check();
        const bool is_saturated = bytes_[device] == std::numeric_limits<std::int64_t>::max();
        if (!take_from(device, bytes_[device] - task_.topology.memory_bytes[device])) {
          if (!take_copies()) return;
          count_bytes();
          device = 0;
        } else if (is_saturated) {
          // What is left is not what is taken less than a sum that ended before its end.
          count_bytes();
        }
      }
    }
  }

  /// What each device holds, and the numbers of its shards.
  void count_bytes() {
    forget_taken();
    bytes_ = device_memory(task_, plan_);
    shards_on_.assign(bytes_.size(), {});
    for (std::size_t i = 0; i < plan_.shards.size(); ++i) {
      shards_on_[plan_.shards[i].device].push_back(i);
    }
  }

  /// Shards that were taken off their devices keep their numbers until here.
  void forget_taken() {
    std::erase_if(plan_.shards, [](const Shard& shard) { return shard.device == kNoDevice; });
  }

  /// The fewest columns of a part that free that much when they leave; 0: the part cannot be cut
  /// so.
  [[nodiscard]] std::int64_t columns_that_free(const Shard& shard, std::int64_t bytes) const {
    const Table& table = task_.tables[shard.table];
    if (!can_cut(table, shard.num_columns)) return 0;
    const std::int64_t per_column =
        shard.rows_of(table) * element_bytes(table.data_type) + table.extra_bytes_per_column;
    std::int64_t columns = (bytes - 1) / per_column + 1;
    columns = (columns + kColumnGranularity - 1) / kColumnGranularity * kColumnGranularity;
    columns = std::max(columns, narrowest_cut(table));
    return columns <= shard.num_columns - narrowest_cut(table) ? columns : 0;
  }

  /// Takes off a device the part, whole or cut, of fewest bytes that frees so much; or else its
  /// largest part. False if it has none.
  bool take_from(int device, std::int64_t excess) {
    std::size_t best = plan_.shards.size();
    std::int64_t best_columns = 0;
    std::int64_t fewest = std::numeric_limits<std::int64_t>::max();
    std::size_t largest = plan_.shards.size();
    for (const std::size_t i : shards_on_[device]) {
      const Shard& shard = plan_.shards[i];
      const std::int64_t all = bytes_of(shard);
      if (largest == plan_.shards.size() || all > bytes_of(plan_.shards[largest])) largest = i;
      if (all >= excess && all < fewest) {
        fewest = all;
        best = i;
        best_columns = 0;
      }
      const std::int64_t columns = columns_that_free(shard, excess);
      if (columns == 0) continue;
      Shard cut = shard;
      cut.num_columns = columns;
      if (bytes_of(cut) < fewest) {
        fewest = bytes_of(cut);
        best = i;
        best_columns = columns;
      }
    }
    if (largest == plan_.shards.size()) return false;
    if (best == plan_.shards.size()) best = largest;
    take(best, best_columns);
    return true;
  }

  /// The last columns of a part, or all of it where `columns` is 0, are then on no device.
  void take(std::size_t number, std::int64_t columns) {
    Shard& shard = plan_.shards[number];
    Shard taken = shard;
    bytes_[shard.device] -= bytes_of(shard);
    if (columns > 0) {
      taken.num_columns = columns;
      taken.column_offset += shard.num_columns - columns;
      shard.num_columns -= columns;
      bytes_[shard.device] += bytes_of(shard);
    }
    taken.device = kNoDevice;
    homeless_.push_back(taken);
    if (columns == 0) {
      std::erase(shards_on_[shard.device], number);
      shard.device = kNoDevice;
    }
  }

  /// The largest replicated table is whole again, on no device. False if there is none.
  bool take_copies() {
    std::vector<int>& copies = plan_.replicated_tables;
    if (copies.empty()) return false;
    const auto whole = [&](int table) {
      return Shard{table, 0, task_.tables[table].embedding_dim, kNoDevice};
    };
    const auto largest = std::max_element(copies.begin(), copies.end(), [&](int a, int b) {
      return bytes_of(whole(a)) < bytes_of(whole(b));
    });
    homeless_.push_back(whole(*largest));
    copies.erase(largest);
    return true;
  }

  void encode(const Shard& shard) { simulator_.encode(piece_of(task_, shard), contribution_); }

  void count(const Shard& shard) {
    encode(shard);
    double* state = states_.data() + static_cast<std::size_t>(shard.device) * state_size_;
    for (std::size_t i = 0; i < state_size_; ++i) state[i] += contribution_[i];
    columns_[shard.device] +=
        static_cast<double>(pooled_columns(task_.tables[shard.table], shard.num_columns));
  }

  /// Where the part costs least and has room; kNoDevice if nowhere.
  int cheapest_device(const Shard& shard) {
    encode(shard);
    std::vector<double> compute_ms(columns_.size());
    simulator_.compute().costs_with(states_, contribution_, compute_ms);
    const auto columns =
        static_cast<double>(pooled_columns(task_.tables[shard.table], shard.num_columns));
    int cheapest = kNoDevice;
    double least = std::numeric_limits<double>::infinity();
    for (int device = 0; device < task_.topology.world_size; ++device) {
      if (!pins_.permits(shard.table, device)) continue;
      if (add_saturated(bytes_[device], bytes_of(shard)) > task_.topology.memory_bytes[device])
        continue;
      const double ms =
          compute_ms[device] + simulator_.communication().floor_ms(task_.topology, task_.batch_size,
                                                                   columns_[device] + columns);
      if (ms < least) {
        least = ms;
        cheapest = device;
      }
    }
    return cheapest;
  }

  /// The two halves of a part, of columns or else of rows; nothing if it may not be cut.
  [[nodiscard]] std::optional<std::pair<Shard, Shard>> halves(const Shard& shard) const {
    const Table& table = task_.tables[shard.table];
    Shard first = shard;
    Shard second = shard;
    if (can_cut(table, shard.num_columns)) {
      const std::int64_t quanta = shard.num_columns / kColumnGranularity;
      first.num_columns = (quanta + 1) / 2 * kColumnGranularity;
      second.num_columns = shard.num_columns - first.num_columns;
      second.column_offset += first.num_columns;
      if (second.num_columns >= narrowest_cut(table)) return std::pair(first, second);
    }
    const std::int64_t rows = shard.rows_of(table);
    const std::int64_t least = std::max<std::int64_t>(table.min_shard_rows, 1);
    if (!table.allow.rows || rows / 2 < least) return std::nullopt;
    first = second = shard;
    first.num_rows = (rows + 1) / 2;
    second.row_offset += first.num_rows;
    second.num_rows = rows - first.num_rows;
    return std::pair(first, second);
  }

  /// Devices that a part may lie on, and its cost alone, negative: parts with the least choice come
  /// first, then the costliest.
  std::pair<std::size_t, double> place_of(const Shard& shard) {
    encode(shard);
    const auto devices = pins_.devices_of(shard.table);
    return {devices.empty() ? columns_.size() : devices.size(),
            -simulator_.compute().cost(contribution_)};
  }

  bool place() {
    std::vector<std::pair<std::pair<std::size_t, double>, Shard>> ordered;
    for (const Shard& shard : homeless_) ordered.emplace_back(place_of(shard), shard);
    std::stable_sort(ordered.begin(), ordered.end(),
                     [](const auto& a, const auto& b) { return a.first < b.first; });
    std::deque<Shard> left;
    for (const auto& [place, shard] : ordered) left.push_back(shard);
    while (!left.empty()) {
      clock_.check();
      Shard shard = left.front();
      left.pop_front();
      shard.device = cheapest_device(shard);
      if (shard.device == kNoDevice) {
        const auto parts = halves(shard);
        if (!parts) return false;
        left.push_front(parts->second);
        left.push_front(parts->first);
        continue;
      }
      count(shard);
      bytes_[shard.device] += bytes_of(shard);
      plan_.shards.push_back(shard);
    }
    return true;
  }

  const Simulator& simulator_;
  const Task& task_;
  TablePins pins_;
  StopClock clock_;
  std::size_t state_size_;
  ShardingPlan plan_;
  std::vector<Shard> homeless_;
  std::vector<std::int64_t> bytes_;                  ///< by device
  std::vector<std::vector<std::size_t>> shards_on_;  ///< by device: numbers in the plan
  std::vector<double> states_;                       ///< by device
  std::vector<double> columns_;                      ///< by device
  std::vector<double> contribution_;
};

}  // namespace

ShardingPlan settled_parts(const Simulator& simulator, const PlacedBefore& before,
                           const std::vector<TableOrigin>& origins) {
  const Task& task = simulator.task();
  const TablePins pins(task);
  AllowedShards allowed(task);
  ShardingPlan settled;
  for (std::size_t t = 0; t < task.tables.size(); ++t) {
    const auto number = static_cast<int>(t);
    const TableOrigin& origin = origins[t];
    if (origin.size() == 1 && before.was_replicated(origin.front().table) &&
        task.tables[t].allow.replicas) {
      settled.replicated_tables.push_back(number);
      continue;
    }
    const auto devices = pins.devices_of(number);
    for (const Shard& shard : settled_parts_of(task, before, origin, number,
                                               devices.empty() ? 0 : devices.front(), allowed)) {
      settled.shards.push_back(shard);
    }
  }
  return settled;
}

std::optional<ShardingPlan> repaired_plan(const Simulator& simulator, ShardingPlan parts,
                                          const StopClock& clock) {
  return Repair(simulator, std::move(parts), clock).run();
}

}  // namespace neuroshard
