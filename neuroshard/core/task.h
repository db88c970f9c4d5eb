// A sharding task: tables, batch size, optimizer, and the devices to place the tables on.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "neuroshard/core/table.h"

namespace neuroshard {

/// The devices. Devices of one host are consecutive.
struct Topology {
  int world_size = 1;                        ///< number of devices
  int local_world_size = 1;                  ///< devices per host; divides world_size
  std::vector<std::int64_t> memory_bytes{};  ///< capacity for tables, one per device
  std::string interconnect{};  ///< an Interconnect's name, or empty: the caller chooses
};

struct Task {
  std::int64_t batch_size = 0;  ///< samples over all devices
  Optimizer optimizer = Optimizer::sgd;
  std::vector<Table> tables{};
  Topology topology{};
  Cuts allow{};  ///< of every table; a table may allow less
};

/// The cuts that each table may have, by what task and table allow and by what is pinned: a table
/// that stays with another is whole, and one that may not lie on every device is not replicated.
[[nodiscard]] std::vector<Cuts> allowed_cuts(const Task& task);

inline constexpr int kMaxWorldSize = 65'536;

/// Throws InputError at the first value out of range.
void validate(const Topology& topology);

/// Throws InputError at the first value out of range, name used twice or pin that nothing can meet.
void validate(const Task& task);

}  // namespace neuroshard
