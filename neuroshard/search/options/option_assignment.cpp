// A choice of options that changes.
#include "neuroshard/search/options/option_assignment.h"

#include <algorithm>
#include <cassert>
#include <utility>

namespace neuroshard {

int num_places(const OptionSpace& space, const ScaledOption& option) {
  const auto shards = static_cast<int>(option.shards.size());
  switch (option.placement) {
    case ShardPlacement::all_devices:
      return 0;
    case ShardPlacement::whole_hosts:
      return shards / space.local_world_size();
    default:
      return shards;
  }
}

OptionAssignment::OptionAssignment(const OptionSpace& space)
    : space_(&space),
      tables_(space.tables().size()),
      load_(space.load()),
      used_(space.num_memories(), std::vector<std::int64_t>(space.world_size(), 0)),
      on_device_(space.world_size()),
      on_host_(space.num_hosts()),
      is_touched_(space.world_size(), 0) {}

void OptionAssignment::clear_touched() {
  for (const int device : touched_) is_touched_[device] = 0;
  touched_.clear();
}

void OptionAssignment::add(const ScaledShard& shard, int device, int sign) {
  load_[device] += sign * shard.cost;
  for (std::size_t k = 0; k < used_.size(); ++k) used_[k][device] += sign * shard.bytes[k];
  if (is_touched_[device] == 0) {
    is_touched_[device] = 1;
    touched_.push_back(device);
  }
}

void OptionAssignment::add_part(const ScaledOption& option, int part, int place, int sign) {
  if (option.placement != ShardPlacement::whole_hosts) {
    add(option.shards[part], place, sign);
    return;
  }
  const int local = space_->local_world_size();
  for (int i = 0; i < local; ++i) {
    add(option.shards[part * local + i], place * local + i, sign);
  }
}

std::vector<PlacedPart>& OptionAssignment::list_of(const ScaledOption& option, int place) {
  switch (option.placement) {
    case ShardPlacement::all_devices:
      return everywhere_;
    case ShardPlacement::whole_hosts:
      return on_host_[place];
    default:
      return on_device_[place];
  }
}

void OptionAssignment::enlist(int table, int part) {
  Placed& placed = tables_[table];
  const bool is_everywhere = placed.places.empty();
  auto& list = list_of(option(table), is_everywhere ? 0 : placed.places[part]);
  placed.positions[part] = static_cast<int>(list.size());
  list.push_back({table, part});
}

void OptionAssignment::delist(int table, int part) {
  Placed& placed = tables_[table];
  const bool is_everywhere = placed.places.empty();
  auto& list = list_of(option(table), is_everywhere ? 0 : placed.places[part]);
  const int position = placed.positions[part];
  list[position] = list.back();
  tables_[list[position].table].positions[list[position].part] = position;
  list.pop_back();
}

void OptionAssignment::place(int table, int number, Places places) {
  Placed& placed = tables_[table];
  assert(placed.option < 0);
  placed.option = number;
  placed.places = std::move(places);
  const ScaledOption& chosen = option(table);
  assert(static_cast<int>(placed.places.size()) == num_places(*space_, chosen));
  const int parts = std::max(1, static_cast<int>(placed.places.size()));
  placed.positions.assign(parts, 0);
  if (placed.places.empty()) {
    for (int device = 0; device < space_->world_size(); ++device) {
      add(chosen.shards[device], device, 1);
    }
  }
  for (int part = 0; part < parts; ++part) {
    if (!placed.places.empty()) add_part(chosen, part, placed.places[part], 1);
    enlist(table, part);
  }
}

Places OptionAssignment::remove(int table) {
  Placed& placed = tables_[table];
  const ScaledOption& chosen = option(table);
  const int parts = std::max(1, static_cast<int>(placed.places.size()));
  for (int part = 0; part < parts; ++part) {
    delist(table, part);
    if (!placed.places.empty()) add_part(chosen, part, placed.places[part], -1);
  }
  if (placed.places.empty()) {
    for (int device = 0; device < space_->world_size(); ++device) {
      add(chosen.shards[device], device, -1);
    }
  }
  placed.option = -1;
  return std::move(placed.places);
}

void OptionAssignment::move(int table, int part, int place) {
  const ScaledOption& chosen = option(table);
  delist(table, part);
  add_part(chosen, part, tables_[table].places[part], -1);
  tables_[table].places[part] = place;
  add_part(chosen, part, place, 1);
  enlist(table, part);
}

std::int64_t OptionAssignment::slowest() const {
  return *std::max_element(load_.begin(), load_.end());
}

bool OptionAssignment::fits() const {
  for (std::size_t k = 0; k < used_.size(); ++k) {
    for (int device = 0; device < space_->world_size(); ++device) {
      if (used_[k][device] > space_->capacity(k)[device]) return false;
    }
  }
  return true;
}

std::vector<ChosenOption> OptionAssignment::chosen() const {
  std::vector<ChosenOption> result;
  const int local = space_->local_world_size();
  for (std::size_t t = 0; t < tables_.size(); ++t) {
    const ScaledOption& of_table = option(static_cast<int>(t));
    ChosenOption one{of_table.number, {}};
    for (std::size_t i = 0; i < of_table.shards.size(); ++i) {
      const auto shard = static_cast<int>(i);
      switch (of_table.placement) {
        case ShardPlacement::all_devices:
          one.devices.push_back(shard);
          break;
        case ShardPlacement::whole_hosts:
          one.devices.push_back(tables_[t].places[shard / local] * local + shard % local);
          break;
        default:
          one.devices.push_back(tables_[t].places[shard]);
          break;
      }
    }
    result.push_back(std::move(one));
  }
  return result;
}

}  // namespace neuroshard
