// Uniform options, hosts and devices in TorchRec's order.
#include "neuroshard/baselines/torchrec/greedy_partition.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>

#include "neuroshard/baselines/placement.h"

namespace neuroshard::torchrec {

GreedyPartitioner::GreedyPartitioner(const Task& task, const StopClock& clock)
    : task_(task),
      pins_(task),
      clock_(clock),
      patient_(clock),
      devices_(task.topology.world_size),
      ranks_(task.tables.size()) {}

std::optional<double> GreedyPartitioner::place(const Proposal& proposal) {
  reset();
  if (!place_uniform(proposal)) return std::nullopt;
  std::vector<const ShardingOption*> rest;
  for (const ShardingOption* option : proposal) {
    if (!option->is_uniform()) rest.push_back(option);
  }
  std::stable_sort(rest.begin(), rest.end(), [](const ShardingOption* a, const ShardingOption* b) {
    return a->total_bytes > b->total_bytes;
  });
  for (const ShardingOption* option : rest) {
    work_ += option->num_shards;
    bool found = false;
    if (const TableGroup* group = pins_.group_of(option->table)) {
      found = place_with_group(*option, *group);
    } else if (option->type == ShardingType::grid_shard) {
      found = place_on_hosts(*option);
    } else if (option->type == ShardingType::table_row_wise ||
               option->type == ShardingType::table_column_wise) {
      found = place_on_host(*option);
    } else {
      found = place_on_devices(*option);
    }
    if (!found) return std::nullopt;
  }
  double slowest = 0.0;
  for (const Device& device : devices_) slowest = std::max(slowest, device.rating_ms);
  return uniform_rating_ms_ + slowest;
}

void GreedyPartitioner::reset() {
  for (std::size_t d = 0; d < devices_.size(); ++d) {
    devices_[d] = {{}, task_.topology.memory_bytes[d], 0.0};
  }
  uniform_rating_ms_ = 0.0;
  if (!pins_.groups().empty()) group_device_.assign(task_.tables.size(), -1);
  work_ += static_cast<std::int64_t>(devices_.size());
}

GreedyPartitioner::Key GreedyPartitioner::key(int device) const {
  return {devices_[device].perf.total(), device % task_.topology.local_world_size, device};
}

void GreedyPartitioner::add(int device, const ShardingOption& option, int shard) {
  devices_[device].room -= option.bytes(task_, shard);
  add_cost(device, option.perf);
}

void GreedyPartitioner::add_cost(int device, const Perf& perf) {
  patient_.check();
  auto node = by_cost_.extract(key(device));
  devices_[device].perf += perf;
  devices_[device].rating_ms += perf.total();
  node.value() = key(device);
  by_cost_.insert(std::move(node));
}

int GreedyPartitioner::cheapest_device(int table, WideBytes bytes) const {
  clock_.check();
  const auto found = std::find_if(by_cost_.begin(), by_cost_.end(), [&](const Key& candidate) {
    const int device = std::get<2>(candidate);
    return devices_[device].room >= bytes && pins_.permits(table, device);
  });
  return found == by_cost_.end() ? -1 : std::get<2>(*found);
}

bool GreedyPartitioner::place_uniform(const Proposal& proposal) {
  // Every device's part costs the same, and takes the same memory but for the last slices' ends.
  Perf perf;
  const auto world_size = static_cast<int>(devices_.size());
  std::vector<WideBytes> difference(devices_.size() + 1, 0);
  for (const ShardingOption* option : proposal) {
    if (!option->is_uniform()) continue;
    perf += option->perf;
    uniform_rating_ms_ += option->perf.total();
    const bool is_copy = option->type == ShardingType::data_parallel;
    const Table& table = task_.tables[option->table];
    const int full =
        is_copy ? world_size : static_cast<int>(table.num_embeddings / option->rows_per_slice);
    difference[0] += option->largest_bytes;
    difference[full] -= option->largest_bytes;
    if (full == world_size) continue;
    const std::int64_t rest = option->bytes(task_, full);
    difference[full] += rest;
    difference[full + 1] -= rest;
  }
  by_cost_.clear();
  WideBytes used = 0;
  for (int d = 0; d < world_size; ++d) {
    used += difference[d];
    if (used > devices_[d].room) return refuse_uniform(proposal, d);
    devices_[d].room -= static_cast<std::int64_t>(used);
    devices_[d].perf = perf;
    by_cost_.insert(by_cost_.end(), key(d));
  }
  return true;
}

bool GreedyPartitioner::refuse_uniform(const Proposal& proposal, int device) {
  std::int64_t room = devices_[device].room;
  for (const ShardingOption* option : proposal) {
    if (!option->is_uniform()) continue;
    const std::int64_t bytes = option->bytes(task_, device);
    if (bytes > room) {
      return refuse(fmt::format("device {} has no", device), option->table,
                    option->range(task_.tables[option->table], device), bytes, room);
    }
    room -= bytes;
  }
  return false;
}

bool GreedyPartitioner::place_on_devices(const ShardingOption& option) {
  std::vector<int>& ranks = ranks_[option.table];
  ranks.clear();
  for (int shard = 0; shard < option.num_shards; ++shard) {
    const std::int64_t bytes = option.bytes(task_, shard);
    const int device = cheapest_device(option.table, bytes);
    if (device < 0) {
      return refuse("no device has", option.table, option.range(task_.tables[option.table], shard),
                    bytes, most_room(option.table));
    }
    ranks.push_back(device);
    add(device, option, shard);
  }
  return true;
}

bool GreedyPartitioner::place_with_group(const ShardingOption& option, const TableGroup& group) {
  int& device = group_device_[group.tables.front()];
  if (device < 0) {
    const std::int64_t bytes = group_bytes(task_, pins_, option.table);
    device = cheapest_device(option.table, bytes);
    if (device < 0) {
      return refuse("no device has", option.table, option.range(task_.tables[option.table], 0),
                    bytes, most_room(option.table));
    }
    devices_[device].room -= bytes;
  }
  add_cost(device, option.perf);
  ranks_[option.table].assign(1, device);
  return true;
}

std::int64_t GreedyPartitioner::most_room(int table) const {
  std::int64_t most = 0;
  for (int device = 0; device < static_cast<int>(devices_.size()); ++device) {
    if (pins_.permits(table, device)) most = std::max(most, devices_[device].room);
  }
  return most;
}

int GreedyPartitioner::take(const ShardingOption& option, std::span<const int> devices) {
  int fitting = 0;
  for (; fitting < option.num_shards; ++fitting) {
    std::int64_t& room = devices_[devices[fitting]].room;
    const std::int64_t bytes = option.bytes(task_, fitting);
    if (bytes > room) break;
    room -= bytes;
  }
  for (int shard = 0; shard < fitting; ++shard) {
    devices_[devices[shard]].room += option.bytes(task_, shard);
  }
  if (fitting < option.num_shards) return fitting;
  for (int shard = 0; shard < option.num_shards; ++shard) add(devices[shard], option, shard);
  ranks_[option.table].assign(devices.begin(), devices.end());
  return option.num_shards;
}

std::vector<int> GreedyPartitioner::devices_in_host(const ShardingOption& option, int host,
                                                    NoRoom& shortage) const {
  const int local_world_size = task_.topology.local_world_size;
  std::vector<int> ranks;
  if (option.type == ShardingType::table_row_wise) {
    for (int i = 0; i < local_world_size; ++i) ranks.push_back(host * local_world_size + i);
    return ranks;
  }
  const auto first = devices_.begin() + static_cast<std::ptrdiff_t>(host) * local_world_size;
  std::vector<Device> devices(first, first + local_world_size);
  for (int shard = 0; shard < option.num_shards; ++shard) {
    clock_.check();
    const std::int64_t bytes = option.bytes(task_, shard);
    auto best = devices.end();
    for (auto device = devices.begin(); device != devices.end(); ++device) {
      if (device->room < bytes) continue;
      if (best == devices.end() || device->perf.total() < best->perf.total()) best = device;
    }
    if (best == devices.end()) {
      const auto most =
          std::max_element(devices.begin(), devices.end(),
                           [](const Device& a, const Device& b) { return a.room < b.room; });
      shortage = {"no device has", option.table, option.range(task_.tables[option.table], shard),
                  static_cast<double>(bytes), static_cast<double>(most->room)};
      return {};
    }
    best->room -= bytes;
    best->perf += option.perf;
    ranks.push_back(host * local_world_size + static_cast<int>(best - devices.begin()));
  }
  return ranks;
}

bool GreedyPartitioner::place_on_host(const ShardingOption& option) {
  const Table& table = task_.tables[option.table];
  WideBytes most_room = 0;
  NoRoom shortage;  // of the first host whose devices have room together
  for (const int host : hosts_by_cost()) {
    const WideBytes room = room_of_host(host);
    most_room = std::max(most_room, room);
    if (option.total_bytes > room) continue;
    NoRoom here;
    const std::vector<int> devices = devices_in_host(option, host, here);
    if (!devices.empty()) {
      const int unplaced = take(option, devices);
      if (unplaced == option.num_shards) return true;
      const int device = devices[unplaced];
      here = {fmt::format("device {} has no", device), option.table, option.range(table, unplaced),
              static_cast<double>(option.bytes(task_, unplaced)),
              static_cast<double>(devices_[device].room)};
    }
    if (shortage.table < 0) shortage = std::move(here);
  }
  if (shortage.table >= 0) {
    no_room_ = std::move(shortage);
    return false;
  }
  return refuse("no host's devices have", option.table,
                {0, table.num_embeddings, 0, table.embedding_dim}, option.total_bytes, most_room);
}

bool GreedyPartitioner::place_on_hosts(const ShardingOption& option) {
  const int local_world_size = task_.topology.local_world_size;
  const int blocks = option.num_shards / local_world_size;
  const std::vector<int> hosts = hosts_by_cost();
  const auto num_hosts = static_cast<int>(hosts.size());
  const int last_begin = std::max(num_hosts - blocks, 0);
  std::vector<int> devices(option.num_shards);
  for (int begin = 0; begin <= last_begin; ++begin) {
    clock_.check();
    for (int shard = 0; shard < option.num_shards; ++shard) {
      const int host = hosts[(begin + shard / local_world_size) % num_hosts];
      devices[shard] = host * local_world_size + shard % local_world_size;
    }
    if (take(option, devices) == option.num_shards) return true;
  }
  WideBytes most_room = 0;
  for (const int host : hosts) most_room = std::max(most_room, room_of_host(host));
  return refuse("no host's devices have", option.table,
                {0, task_.tables[option.table].num_embeddings, 0, option.columns_per_block},
                option.total_bytes / blocks, most_room);
}

std::vector<int> GreedyPartitioner::hosts_by_cost() {
  clock_.check();
  const int local_world_size = task_.topology.local_world_size;
  std::vector<std::pair<double, int>> hosts;
  for (std::size_t d = 0; d < devices_.size(); ++d) {
    if (d % local_world_size == 0) hosts.emplace_back(0.0, static_cast<int>(hosts.size()));
    hosts.back().first += devices_[d].perf.total();
  }
  std::sort(hosts.begin(), hosts.end());
  work_ += static_cast<std::int64_t>(devices_.size());
  std::vector<int> order;
  for (const auto& [cost, host] : hosts) order.push_back(host);
  return order;
}

WideBytes GreedyPartitioner::room_of_host(int host) const {
  const int local_world_size = task_.topology.local_world_size;
  WideBytes room = 0;
  for (int i = 0; i < local_world_size; ++i) room += devices_[host * local_world_size + i].room;
  return room;
}

bool GreedyPartitioner::refuse(std::string where, int table, const ShardRange& piece,
                               WideBytes bytes, WideBytes most_room) {
  no_room_ = {std::move(where), table, piece, static_cast<double>(bytes),
              static_cast<double>(most_room)};
  return false;
}

ShardingPlan GreedyPartitioner::plan(const Proposal& proposal) const {
  ShardingPlan plan;
  for (const ShardingOption* option : proposal) {
    if (option->type == ShardingType::data_parallel) {
      plan.replicated_tables.push_back(option->table);
      continue;
    }
    const Table& table = task_.tables[option->table];
    for (int shard = 0; shard < option->num_shards; ++shard) {
      const ShardRange range = option->range(table, shard);
      if (range.num_rows == 0) continue;
      Shard& placed = plan.shards.emplace_back();
      placed.table = option->table;
      placed.column_offset = range.column_offset;
      placed.num_columns = range.num_columns;
      placed.device = option->is_uniform() ? shard : ranks_[option->table][shard];
      if (range.num_rows == table.num_embeddings) continue;
      placed.row_offset = range.row_offset;
      placed.num_rows = range.num_rows;
    }
  }
  return plan;
}

}  // namespace neuroshard::torchrec
