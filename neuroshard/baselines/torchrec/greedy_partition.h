// Where the shards of a proposal go: TorchRec's GreedyPerfPartitioner.
#pragma once

#include <cstdint>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "neuroshard/baselines/torchrec/proposals.h"
#include "neuroshard/baselines/torchrec/sharding_option.h"
#include "neuroshard/core/numbers/byte_sum.h"
#include "neuroshard/core/sharding_plan.h"
#include "neuroshard/core/stop_clock.h"
#include "neuroshard/core/table_pins.h"
#include "neuroshard/core/task.h"

namespace neuroshard::torchrec {

/// Why a proposal cannot be placed.
struct NoRoom {
  std::string where{};  ///< "no device has", "no host's devices have" or "device 3 has no"
  int table = -1;       ///< index into Task::tables
  ShardRange piece{};
  double bytes = 0.0;      ///< of the piece; of a host, of the shards that it would have
  double most_room = 0.0;  ///< that is left on the device, on any device, or on any host
};

/// Places one proposal after the other, each on empty devices: first the uniform options, shard i
/// on device i, then the other tables, those of the most memory first:
///   a shard of table_wise or column_wise  to the device of least cost that has room (among equals
///                                         that of the lowest index in its host, then the first)
///   table_row_wise, table_column_wise     to the host of least cost that has room: shard i on its
///                                         device i, or as column_wise within it
///   grid_shard                            to as many hosts, in the order of their cost, as there
///                                         are blocks of columns: beginning with the cheapest with
///                                         which all have room; each again if there are too few
/// Beyond TorchRec, which knows no pins: shards of table_wise and column_wise only go to devices
/// that their table may lie on, and of tables that stay together the first takes the memory of all.
class GreedyPartitioner {
 public:
  /// Keeps a reference to the task.
  explicit GreedyPartitioner(const Task& task, const StopClock& clock = {});

  /// The slowest device's estimated cost [ms]; nullopt if a table finds no room. Throws TimeIsOver;
  /// another proposal may be placed after that.
  [[nodiscard]] std::optional<double> place(const Proposal& proposal);

  /// The plan of the last proposal, which must have been placed.
  [[nodiscard]] ShardingPlan plan(const Proposal& proposal) const;

  /// Why the last proposal that was not placed could not be.
  [[nodiscard]] const NoRoom& no_room() const { return no_room_; }
  /// Over all proposals: shards to be placed, and devices that were made empty or put in order by
  /// host. Looks for a device that has room are not counted.
  [[nodiscard]] std::int64_t work() const { return work_; }

 private:
  struct Device {
    Perf perf{};
    std::int64_t room = 0;
    double rating_ms = 0.0;
  };
  /// Cost, index in the host, index.
  using Key = std::tuple<double, int, int>;

  void reset();
  [[nodiscard]] Key key(int device) const;
  void add(int device, const ShardingOption& option, int shard);
  void add_cost(int device, const Perf& perf);
  /// The device of least cost on which the table may lie and that has room; -1: none has. Looks at
  /// the clock, as the loops over hosts do: there may be 65,536 devices.
  [[nodiscard]] int cheapest_device(int table, WideBytes bytes) const;
  /// Of a device on which the table may lie.
  [[nodiscard]] std::int64_t most_room(int table) const;
  [[nodiscard]] bool place_uniform(const Proposal& proposal);
  [[nodiscard]] bool place_on_devices(const ShardingOption& option);
  [[nodiscard]] bool place_with_group(const ShardingOption& option, const TableGroup& group);
  [[nodiscard]] bool place_on_host(const ShardingOption& option);
  [[nodiscard]] bool place_on_hosts(const ShardingOption& option);
  /// Shard i on devices[i]. Returns the first that has no room, and nothing is changed; the number
  /// of shards if all have.
  [[nodiscard]] int take(const ShardingOption& option, std::span<const int> devices);
  /// The devices that the shards would go to within the host; empty, with the reason in `shortage`,
  /// if they find no room there.
  [[nodiscard]] std::vector<int> devices_in_host(const ShardingOption& option, int host,
                                                 NoRoom& shortage) const;
  [[nodiscard]] std::vector<int> hosts_by_cost();
  [[nodiscard]] WideBytes room_of_host(int host) const;
  [[nodiscard]] bool refuse(std::string where, int table, const ShardRange& piece, WideBytes bytes,
                            WideBytes most_room);
  /// For the first uniform option for whose part this device has no room.
  [[nodiscard]] bool refuse_uniform(const Proposal& proposal, int device);

  const Task& task_;
  TablePins pins_;
  StopClock clock_;
  PatientClock patient_;  ///< of the shards, each of which takes less than a look
  std::vector<Device> devices_;
  std::set<Key> by_cost_;
  double uniform_rating_ms_ = 0.0;
  std::vector<std::vector<int>> ranks_;  ///< of each table that is not uniform, its shards' devices
  std::vector<int> group_device_;        ///< of each first table of a group; -1: none yet
  NoRoom no_room_;
  std::int64_t work_ = 0;
};

}  // namespace neuroshard::torchrec
