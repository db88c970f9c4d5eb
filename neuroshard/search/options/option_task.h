// A choice among listed sharding options: each table has one of its options, whose shards' costs
// add up on the devices that they lie on.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace neuroshard {

/// Where the shards of an option may lie.
enum class ShardPlacement {
  any_device,           ///< each on any device
  distinct_devices,     ///< each on a device of its own
  devices_of_one_host,  ///< each on any device of one host
  whole_hosts,  ///< in groups of a host's devices: shard i of a group on the host's device i, and
                ///< each group on a host of its own while there are as many hosts as groups
  all_devices,  ///< shard i on device i
};
inline constexpr int kNumShardPlacements = 5;
/// As in files, e.g. "any_device".
[[nodiscard]] std::string_view to_string(ShardPlacement placement);

/// Kinds of memory that a task may have.
inline constexpr std::size_t kMaxMemoryKinds = 4;
using BytesByKind = std::array<std::int64_t, kMaxMemoryKinds>;

/// What a shard adds to its device.
struct OptionShard {
  double cost_ms = 0.0;
  BytesByKind bytes{};  ///< of each kind of memory of the task
};

/// One way of sharding a table.
struct ShardingChoice {
  ShardPlacement placement = ShardPlacement::any_device;
  std::vector<OptionShard> shards{};
};

struct OptionTable {
  std::string name{};  ///< for messages
  std::vector<ShardingChoice> options{};
};

/// A kind of memory, such as "hbm".
struct MemoryKind {
  std::string name{};
  std::vector<std::int64_t> bytes{};  ///< on each device; below 0: it has too much already
};

struct OptionTask {
  int world_size = 1;
  /// Devices of a host: hosts are consecutive devices, the last ones may be no whole host, which
  /// has no groups of `whole_hosts`.
  int local_world_size = 1;
  std::vector<MemoryKind> memories{};
  std::vector<double> load_ms{};  ///< that each device has already; empty: none
  std::vector<OptionTable> tables{};
};

/// The option of each table and its shards' devices.
struct ChosenOption {
  int option = 0;
  std::vector<int> devices{};  ///< of each shard
  friend bool operator==(const ChosenOption&, const ChosenOption&) = default;
};

/// Throws InputError, which names the place, if the task makes no sense: no option, a number of
/// shards that its placement does not permit, costs that are no times (core/units.h), shards of
/// negative bytes.
void require_valid(const OptionTask& task);

/// Each device's cost [ms]: its load and its shards'.
[[nodiscard]] std::vector<double> device_costs_ms(const OptionTask& task,
                                                  const std::vector<ChosenOption>& chosen);

/// What is wrong with a choice: shards where they may not lie, memory exceeded. Empty: nothing.
[[nodiscard]] std::string first_violation(const OptionTask& task,
                                          const std::vector<ChosenOption>& chosen);

}  // namespace neuroshard
