// A choice of options that changes: each device's load and memory, exact, and what lies where.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "neuroshard/search/options/option_space.h"

namespace neuroshard {

/// Where a table's shards are: the devices of single shards, the hosts of groups, none where shards
/// are on all devices or the table is not placed.
using Places = std::vector<int>;

/// A single shard, or a group of shards on a host.
struct PlacedPart {
  int table = 0;
  int part = 0;  ///< index into its places
};

class OptionAssignment {
 public:
  /// No table is placed. Keeps a pointer to the space.
  explicit OptionAssignment(const OptionSpace& space);

  [[nodiscard]] const OptionSpace& space() const { return *space_; }
  /// Index into `space().tables()[table]`; -1: the table is not placed.
  [[nodiscard]] int choice(int table) const { return tables_[table].option; }
  [[nodiscard]] const ScaledOption& option(int table) const {
    return space_->tables()[table][tables_[table].option];
  }
  [[nodiscard]] const Places& places(int table) const { return tables_[table].places; }

  [[nodiscard]] const std::vector<std::int64_t>& load() const { return load_; }
  [[nodiscard]] std::int64_t used(std::size_t kind, int device) const {
    return used_[kind][device];
  }
  /// Parts of tables on a device, on a host; tables on all devices.
  [[nodiscard]] std::span<const PlacedPart> on_device(int device) const {
    return on_device_[device];
  }
  [[nodiscard]] std::span<const PlacedPart> on_host(int host) const { return on_host_[host]; }
  [[nodiscard]] std::span<const PlacedPart> everywhere() const { return everywhere_; }

  /// Devices whose load or memory has changed since the list was cleared, each once.
  [[nodiscard]] std::span<const int> touched() const { return touched_; }
  void clear_touched();

  /// Places a table that is not placed by its option of this number. As many places as the option
  /// has parts.
  void place(int table, int number, Places places);
  /// Takes a table off its devices; returns its places.
  Places remove(int table);
  /// Moves one part of a table to another device, or host.
  void move(int table, int part, int place);

  [[nodiscard]] std::int64_t slowest() const;
  [[nodiscard]] bool fits() const;
  /// The answer in the task's own terms.
  [[nodiscard]] std::vector<ChosenOption> chosen() const;

 private:
  struct Placed {
    int option = -1;
    Places places{};
    std::vector<int> positions{};  ///< of each part in the list of its place
  };

  void add(const ScaledShard& shard, int device, int sign);
  void add_part(const ScaledOption& option, int part, int place, int sign);
  [[nodiscard]] std::vector<PlacedPart>& list_of(const ScaledOption& option, int place);
  void enlist(int table, int part);
  void delist(int table, int part);

  const OptionSpace* space_;
  std::vector<Placed> tables_;
  std::vector<std::int64_t> load_;
  std::vector<std::vector<std::int64_t>> used_;
  std::vector<std::vector<PlacedPart>> on_device_;
  std::vector<std::vector<PlacedPart>> on_host_;
  std::vector<PlacedPart> everywhere_;
  std::vector<int> touched_;
  std::vector<char> is_touched_;
};

/// How many places an option needs: of single shards or groups.
[[nodiscard]] int num_places(const OptionSpace& space, const ScaledOption& option);

}  // namespace neuroshard
