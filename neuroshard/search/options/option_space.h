// The options of a task as the search sees them: costs in exact units, options that another makes
// pointless left out.
#pragma once

#include <cstdint>
#include <vector>

#include "neuroshard/search/options/option_task.h"

namespace neuroshard {

/// A shard's cost in units of the space, and its bytes.
struct ScaledShard {
  std::int64_t cost = 0;
  BytesByKind bytes{};
  friend bool operator==(const ScaledShard&, const ScaledShard&) = default;
};

struct ScaledOption {
  int number = 0;  ///< in the task
  ShardPlacement placement = ShardPlacement::any_device;
  std::vector<ScaledShard> shards{};
  ScaledShard sum{};              ///< of all shards
  std::int64_t largest_cost = 0;  ///< of a shard
};

/// Costs are integers, so that sums do not depend on the order of additions and a change that is
/// undone leaves nothing behind. A unit is so small that all costs together have 60 bits.
class OptionSpace {
 public:
  /// The task must be valid. Throws InputError if sizes have more than 62 bits together.
  explicit OptionSpace(const OptionTask& task);

  [[nodiscard]] int world_size() const { return world_size_; }
  [[nodiscard]] int local_world_size() const { return local_world_size_; }
  /// Of the devices that are whole hosts.
  [[nodiscard]] int num_hosts() const { return world_size_ / local_world_size_; }
  [[nodiscard]] std::size_t num_memories() const { return capacity_.size(); }
  /// Bytes of a kind of memory on each device.
  [[nodiscard]] const std::vector<std::int64_t>& capacity(std::size_t kind) const {
    return capacity_[kind];
  }
  [[nodiscard]] const std::vector<std::int64_t>& load() const { return load_; }
  /// Of each table, those of which every shard has room on some device where it may lie and that no
  /// other one makes pointless, the least sum of costs first.
  [[nodiscard]] const std::vector<std::vector<ScaledOption>>& tables() const { return tables_; }
  /// The first table of which no option has room even on empty devices; -1: none.
  [[nodiscard]] int table_without_room() const { return table_without_room_; }
  [[nodiscard]] double unit_ms() const { return unit_ms_; }

 private:
  [[nodiscard]] bool has_room(const ScaledShard& shard, int device) const;
  [[nodiscard]] bool has_room(const ScaledOption& option) const;

  int world_size_;
  int local_world_size_;
  double unit_ms_ = 1.0;
  int table_without_room_ = -1;
  std::vector<std::vector<std::int64_t>> capacity_;
  std::vector<std::int64_t> load_;
  std::vector<std::vector<ScaledOption>> tables_;
};

}  // namespace neuroshard
