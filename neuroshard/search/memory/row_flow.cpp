// Tables one after the other; for rows that find no room, a breadth-first search for devices whose
// rows can move on to others.
#include "neuroshard/search/memory/row_flow.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <utility>

#include "neuroshard/core/piece.h"
#include "neuroshard/core/table_pins.h"

namespace neuroshard {

namespace {

/// Of all tables and devices together: of more the rows of each are not kept.
constexpr std::size_t kMostPairs = 5'000'000;

/// Devices and tables that all searches together look at, some half a second: to be sure that there
/// is no plan may take long. Where tables' rows differ in bytes, they may also make room for
/// ever that is too little for a row of the next.
constexpr std::int64_t kMostSteps = 300'000'000;

class RowFlow {
 public:
  RowFlow(const Task& task, std::span<const int> tables, std::vector<std::int64_t> rooms,
          const StopClock& clock)
      : task_(task),
        pins_(task),
        tables_(tables),
        rooms_(std::move(rooms)),
        clock_(clock),
        rows_(tables.size() * rooms_.size(), 0),
        paths_(rooms_.size()) {}

  /// Empty if some table's rows find no room.
  std::vector<Shard> run() {
    for (std::size_t i = 0; i < tables_.size(); ++i) {
      std::int64_t left = task_.tables[tables_[i]].num_embeddings;
      while (left > 0) {
        const int device = make_way(i);
        if (device < 0) return {};
        const std::int64_t placed = std::min(left, rows_with_room(i, device));
        if (placed == 0) continue;
        move_rows(i, device, placed);
        left -= placed;
      }
    }
    return shards();
  }

 private:
  /// How a search came to a device: rows of `table` (a place in `tables_`) move to it from `from`.
  struct Step {
    int from = -1;
    std::size_t table = 0;
    bool is_reached = false;
  };

  [[nodiscard]] std::int64_t& rows(std::size_t i, int device) {
    return rows_[i * rooms_.size() + static_cast<std::size_t>(device)];
  }
  [[nodiscard]] std::int64_t rows(std::size_t i, int device) const {
    return rows_[i * rooms_.size() + static_cast<std::size_t>(device)];
  }
  [[nodiscard]] std::int64_t bytes(std::size_t i, std::int64_t num_rows) const {
    const Table& table = task_.tables[tables_[i]];
    return num_rows == 0 ? 0 : shard_bytes(table, table.embedding_dim, task_.optimizer, num_rows);
  }
  /// More rows of the table that the device has room for.
  [[nodiscard]] std::int64_t rows_with_room(std::size_t i, int device) const {
    const Table& table = task_.tables[tables_[i]];
    const std::int64_t there = rows(i, device);
    return std::max<std::int64_t>(
        rows_within(rooms_[device] + bytes(i, there), table, table.embedding_dim, task_.optimizer) -
            there,
        0);
  }
  /// Adds rows of the table to the device, or takes some away.
  void move_rows(std::size_t i, int device, std::int64_t more) {
    std::int64_t& there = rows(i, device);
    rooms_[device] += bytes(i, there) - bytes(i, there + more);
    there += more;
  }

  /// A device on which the table may lie: with room for a row of it, or with more room than before,
  /// as rows of others have moved on; -1 if none can, or no steps are left.
  int make_way(std::size_t i) {
    const auto num_devices = static_cast<std::int64_t>(rooms_.size());
    steps_ += num_devices;
    if (steps_ > kMostSteps) return -1;
    std::fill(paths_.begin(), paths_.end(), Step{});
    std::vector<int> queue;
    for (int device = 0; device < static_cast<int>(rooms_.size()); ++device) {
      if (!pins_.permits(tables_[i], device)) continue;
      if (rows_with_room(i, device) > 0) return device;
      paths_[device] = {-1, i, true};
      queue.push_back(device);
    }
    for (std::size_t next = 0; next < queue.size(); ++next) {
      const int from = queue[next];
      steps_ += std::ssize(tables_);
      if (steps_ > kMostSteps) return -1;
      for (std::size_t other = 0; other < tables_.size(); ++other) {
        if (rows(other, from) == 0) continue;
        clock_.check();
        steps_ += num_devices;
        for (int to = 0; to < static_cast<int>(rooms_.size()); ++to) {
          if (paths_[to].is_reached || !pins_.permits(tables_[other], to)) continue;
          paths_[to] = {from, other, true};
          if (rows_with_room(other, to) > 0) return move_towards(to);
          queue.push_back(to);
        }
      }
    }
    return -1;
  }

  /// Moves rows towards the end of a path, which has room: the last ones first. The device that the
  /// path begins at.
  int move_towards(int end) {
    int to = end;
    while (paths_[to].from >= 0) {
      const Step step = paths_[to];
      const std::int64_t moved =
          std::min(rows(step.table, step.from), rows_with_room(step.table, to));
      move_rows(step.table, step.from, -moved);
      move_rows(step.table, to, moved);
      to = step.from;
    }
    return to;
  }

  [[nodiscard]] std::vector<Shard> shards() const {
    std::vector<Shard> result;
    for (std::size_t i = 0; i < tables_.size(); ++i) {
      const Table& table = task_.tables[tables_[i]];
      std::int64_t first = 0;
      for (int device = 0; device < static_cast<int>(rooms_.size()); ++device) {
        const std::int64_t count = rows(i, device);
        if (count == 0) continue;
        const std::int64_t sliced = count < table.num_embeddings ? count : 0;
        result.push_back({tables_[i], 0, table.embedding_dim, device, first, sliced});
        first += count;
      }
    }
    return result;
  }

  const Task& task_;
  TablePins pins_;
  std::span<const int> tables_;
  std::vector<std::int64_t> rooms_;
  PatientClock clock_;
  std::vector<std::int64_t> rows_;  ///< [table of tables_][device]
  std::vector<Step> paths_;         ///< by device, of one search
  std::int64_t steps_ = 0;
};

}  // namespace

std::vector<Shard> fit_by_row_flow(const Task& task, std::span<const int> tables,
                                   std::vector<std::int64_t> rooms, const StopClock& clock) {
  if (tables.size() * rooms.size() > kMostPairs) return {};
  return RowFlow(task, tables, std::move(rooms), clock).run();
}

}  // namespace neuroshard
