// Filling devices with whole tables first, then with rows.
#include "neuroshard/search/memory/row_fit.h"

#include <algorithm>
#include <cstdint>
#include <numeric>
#include <span>
#include <tuple>
#include <utility>

#include "neuroshard/core/table_pins.h"
#include "neuroshard/search/memory/memory_fit.h"

namespace neuroshard {

namespace {

bool can_cut_rows(const Table& table) {
  return table.allow.rows &&
         table.num_embeddings / 2 >= std::max<std::int64_t>(table.min_shard_rows, 1);
}

/// The run of the algorithm.
class RowFilling {
 public:
  RowFilling(const Task& task, const StopClock& clock)
      : task_(task), clock_(clock), pins_(task), rooms_(task.topology.memory_bytes) {}

  /// Empty if not all could be placed.
  std::vector<Shard> run() {
    std::vector<int> in_rows;
    std::vector<int> others;
    for (std::size_t t = 0; t < task_.tables.size(); ++t) {
      (can_cut_rows(task_.tables[t]) ? in_rows : others).push_back(static_cast<int>(t));
    }
    if (in_rows.empty() || !place_in_columns(others)) return {};
    std::stable_sort(in_rows.begin(), in_rows.end(), [&](int a, int b) {
      return std::tuple(choice(a), bytes(b)) < std::tuple(choice(b), bytes(a));
    });
    PatientClock clock(clock_);
    for (const int table : in_rows) {
      clock.check();
      if (!place_whole(table) && !place_in_slices(table)) return {};
    }
    ShardingPlan plan{std::move(shards_), {}};
    sort_shards(plan);
    return std::move(plan.shards);
  }

 private:
  /// Devices that a table may lie on: those with the fewest have least choice.
  [[nodiscard]] std::size_t choice(int table) const {
    const std::span<const int> devices = pins_.devices_of(table);
    return devices.empty() ? rooms_.size() : devices.size();
  }

  [[nodiscard]] std::int64_t bytes(int table) const {
    return shard_bytes(task_.tables[table], task_.tables[table].embedding_dim, task_.optimizer);
  }

  /// Tables whose rows stay together come first: nothing else finds room between them so easily as
  /// rows.
  bool place_in_columns(const std::vector<int>& tables) {
    if (tables.empty()) return true;
    Task part = task_;
    part.tables.clear();
    for (const int table : tables) part.tables.push_back(task_.tables[table]);
    MemoryFit fit = fit_memory(part, false, clock_);
    for (Shard& shard : fit.plan.shards) {
      shard.table = tables[shard.table];
      rooms_[shard.device] -=
          shard_bytes(task_.tables[shard.table], shard.num_columns, task_.optimizer);
      shards_.push_back(shard);
    }
    return fit.feasible;
  }

  /// On the fullest device that has room.
  bool place_whole(int table) {
    int best = -1;
    for (std::size_t d = 0; d < rooms_.size(); ++d) {
      if (rooms_[d] < bytes(table) || !pins_.permits(table, static_cast<int>(d))) continue;
      if (best < 0 || rooms_[d] < rooms_[best]) best = static_cast<int>(d);
    }
    if (best < 0) return false;
    rooms_[best] -= bytes(table);
    shards_.push_back({table, 0, task_.tables[table].embedding_dim, best});
    return true;
  }

  /// Fills the devices with most room, each with one slice.
  bool place_in_slices(int number) {
    const Table& table = task_.tables[number];
    const std::int64_t least = std::max<std::int64_t>(table.min_shard_rows, 1);
    std::vector<int> devices(rooms_.size());
    std::iota(devices.begin(), devices.end(), 0);
    std::erase_if(devices, [&](int device) { return !pins_.permits(number, device); });
    std::stable_sort(devices.begin(), devices.end(),
                     [&](int a, int b) { return rooms_[a] > rooms_[b]; });
    std::int64_t first = 0;
    for (const int device : devices) {
      const std::int64_t left = table.num_embeddings - first;
      std::int64_t rows =
          std::min(rows_within(rooms_[device], table, table.embedding_dim, task_.optimizer), left);
      // What remains must be a slice too.
      if (rows < left) rows = std::min(rows, left - least);
      if (rows < least) return false;
      rooms_[device] -= shard_bytes(table, table.embedding_dim, task_.optimizer, rows);
      shards_.push_back({number, 0, table.embedding_dim, device, first, rows});
      first += rows;
      if (first == table.num_embeddings) return true;
    }
    return false;
  }

  const Task& task_;
  StopClock clock_;
  TablePins pins_;
  std::vector<std::int64_t> rooms_;
  std::vector<Shard> shards_;
};

}  // namespace

std::vector<Shard> fit_with_rows(const Task& task, const StopClock& clock) {
  return RowFilling(task, clock).run();
}

}  // namespace neuroshard
