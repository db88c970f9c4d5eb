// A choice among listed sharding options: what makes sense, and what is wrong with an answer.
#include "neuroshard/search/options/option_task.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "neuroshard/core/error.h"
#include "neuroshard/core/numbers/byte_sum.h"
#include "neuroshard/core/units.h"

namespace neuroshard {

namespace {

constexpr int kMostDevices = 65'536;

void require(bool holds, const std::string& place, const std::string& expected,
             const std::string& actual) {
  if (!holds) throw InputError(place, expected, actual);
}

/// Beyond these limits sums and units of costs would be no numbers.
void require_time(double ms, const std::string& place, const std::string& what) {
  if (is_time(ms)) return;
  throw InputError(place, what + " of 0, or between 1e-30 and 1e30 ms", fmt::format("{}", ms));
}

void require_valid_devices(const OptionTask& task) {
  require(task.world_size >= 1 && task.world_size <= kMostDevices, "world_size",
          fmt::format("1 to {} devices", kMostDevices), fmt::format("{}", task.world_size));
  require(task.local_world_size >= 1 && task.local_world_size <= task.world_size,
          "local_world_size", fmt::format("1 to {} devices", task.world_size),
          fmt::format("{}", task.local_world_size));
  require(task.memories.size() <= kMaxMemoryKinds, "memories",
          fmt::format("at most {} kinds", kMaxMemoryKinds),
          fmt::format("{}", task.memories.size()));
  const auto devices = static_cast<std::size_t>(task.world_size);
  for (std::size_t k = 0; k < task.memories.size(); ++k) {
    const std::string place = fmt::format("memories[{}].bytes", k);
    require(task.memories[k].bytes.size() == devices, place,
            fmt::format("one for each of {} devices", devices),
            fmt::format("{}", task.memories[k].bytes.size()));
  }
  require(task.load_ms.empty() || task.load_ms.size() == devices, "load_ms",
          fmt::format("one for each of {} devices, or none", devices),
          fmt::format("{}", task.load_ms.size()));
  for (const double load : task.load_ms) require_time(load, "load_ms", "times");
}

void require_valid_shards(const OptionTask& task, const ShardingChoice& option,
                          const std::string& place) {
  const auto shards = static_cast<int>(option.shards.size());
  const auto got = fmt::format("{}", shards);
  require(shards >= 1, place, "at least one shard", got);
  switch (option.placement) {
    case ShardPlacement::all_devices:
      require(shards == task.world_size, place,
              fmt::format("a shard for each of {} devices", task.world_size), got);
      break;
    case ShardPlacement::whole_hosts:
      require(shards % task.local_world_size == 0, place,
              fmt::format("a multiple of {} shards", task.local_world_size), got);
      break;
    case ShardPlacement::distinct_devices:
      require(shards <= task.world_size, place, fmt::format("at most {} shards", task.world_size),
              got);
      break;
    case ShardPlacement::any_device:
    case ShardPlacement::devices_of_one_host:
      break;
  }
  for (const OptionShard& shard : option.shards) {
    require_time(shard.cost_ms, place, "costs");
    for (const std::int64_t bytes : shard.bytes) {
      require(bytes >= 0, place, "bytes of 0 or more", fmt::format("{}", bytes));
    }
  }
}

/// Whether shards lie where they may.
bool is_permitted(const OptionTask& task, const ShardingChoice& option,
                  const std::vector<int>& devices) {
  const int local = task.local_world_size;
  const std::set<int> different(devices.begin(), devices.end());
  switch (option.placement) {
    case ShardPlacement::any_device:
      return true;
    case ShardPlacement::distinct_devices:
      return different.size() == devices.size();
    case ShardPlacement::devices_of_one_host:
      return *different.begin() / local == *different.rbegin() / local;
    case ShardPlacement::all_devices:
      for (std::size_t i = 0; i < devices.size(); ++i) {
        if (devices[i] != static_cast<int>(i)) return false;
      }
      return true;
    case ShardPlacement::whole_hosts:
      break;
  }
  std::set<int> hosts;
  for (std::size_t i = 0; i < devices.size(); ++i) {
    const int first = devices[i / local * local];
    if (first % local != 0 || devices[i] != first + static_cast<int>(i % local)) return false;
    hosts.insert(first);
  }
  return hosts.size() == std::min<std::size_t>(devices.size() / local, task.world_size / local);
}

}  // namespace

std::string_view to_string(ShardPlacement placement) {
  switch (placement) {
    case ShardPlacement::any_device:
      return "any_device";
    case ShardPlacement::distinct_devices:
      return "distinct_devices";
    case ShardPlacement::devices_of_one_host:
      return "devices_of_one_host";
    case ShardPlacement::whole_hosts:
      return "whole_hosts";
    case ShardPlacement::all_devices:
      return "all_devices";
  }
  return "";
}

void require_valid(const OptionTask& task) {
  require_valid_devices(task);
  for (std::size_t t = 0; t < task.tables.size(); ++t) {
    const OptionTable& table = task.tables[t];
    require(!table.options.empty(), fmt::format("tables[{}].options", t), "at least one option",
            "none");
    for (std::size_t o = 0; o < table.options.size(); ++o) {
      require_valid_shards(task, table.options[o],
                           fmt::format("tables[{}].options[{}].shards", t, o));
    }
  }
}

std::vector<double> device_costs_ms(const OptionTask& task,
                                    const std::vector<ChosenOption>& chosen) {
  std::vector<double> costs(static_cast<std::size_t>(task.world_size), 0.0);
  std::copy(task.load_ms.begin(), task.load_ms.end(), costs.begin());
  for (std::size_t t = 0; t < chosen.size(); ++t) {
    const ShardingChoice& option = task.tables[t].options[chosen[t].option];
    for (std::size_t i = 0; i < option.shards.size(); ++i) {
      costs[chosen[t].devices[i]] += option.shards[i].cost_ms;
    }
  }
  return costs;
}

std::string first_violation(const OptionTask& task, const std::vector<ChosenOption>& chosen) {
  if (chosen.size() != task.tables.size()) return "not one option for each table";
  std::vector<std::array<WideBytes, kMaxMemoryKinds>> used(
      static_cast<std::size_t>(task.world_size));
  for (std::size_t t = 0; t < chosen.size(); ++t) {
    const OptionTable& table = task.tables[t];
    const auto [number, devices] = chosen[t];
    if (number < 0 || number >= static_cast<int>(table.options.size())) {
      return fmt::format("table {}: no option {}", t, number);
    }
    const ShardingChoice& option = table.options[number];
    const bool all_placed =
        devices.size() == option.shards.size() && std::ranges::all_of(devices, [&](int device) {
          return device >= 0 && device < task.world_size;
        });
    if (!all_placed || !is_permitted(task, option, devices)) {
      return fmt::format("table {}: shards not as {}", t, to_string(option.placement));
    }
    for (std::size_t i = 0; i < devices.size(); ++i) {
      for (std::size_t k = 0; k < task.memories.size(); ++k) {
        used[devices[i]][k] += option.shards[i].bytes[k];
      }
    }
  }
  for (std::size_t k = 0; k < task.memories.size(); ++k) {
    for (int device = 0; device < task.world_size; ++device) {
      if (used[device][k] > task.memories[k].bytes[device]) {
        return fmt::format("device {}: more {} than it has", device, task.memories[k].name);
      }
    }
  }
  return "";
}

}  // namespace neuroshard
