// Tables by size, whole or in pieces, to the devices with least room that have enough.
#include "neuroshard/search/memory/filling.h"

#include <algorithm>
#include <limits>
#include <queue>
#include <tuple>
#include <utility>

#include "neuroshard/core/numbers/random.h"
#include "neuroshard/core/table_pins.h"
#include "neuroshard/search/memory/least_memory.h"
#include "neuroshard/search/memory/rooms.h"

namespace neuroshard {

namespace {

std::int64_t narrowest_bytes(const Task& task, const Table& table) {
  return shard_bytes(table, narrowest_columns(table), task.optimizer);
}

/// Columns to cut off a piece where `room` fit: all of them, but evenly, so that the rest can be
/// cut again, if the table's pieces may not be as narrow as any cut leaves them.
std::int64_t filling_width(const Table& table, std::int64_t columns, std::int64_t room) {
  const std::int64_t least = narrowest_cut(table);
  if (least == kColumnGranularity) return room;
  const std::int64_t pieces = (columns - 1) / room + 1;
  const std::int64_t quanta = columns / kColumnGranularity;
  return std::clamp((quanta + pieces - 1) / pieces * kColumnGranularity, least, columns - least);
}

/// Where all of them fail and memory is tight, disturbed orders may do; they help small tasks most.
constexpr int kMaxDisturbances = 32;
constexpr std::size_t kDisturbedPieces = 20'000;

int num_disturbances(const Task& task) {
  const std::size_t pieces = task.tables.size() + task.topology.memory_bytes.size();
  return static_cast<int>(std::min<std::size_t>(kMaxDisturbances, kDisturbedPieces / pieces));
}

FillingStrategy disturbed(int number) {
  return {number % 2 == 0 ? FillingOrder::narrowest : FillingOrder::bytes, FillingCuts::fill,
          static_cast<std::uint64_t>(number) + 1, number / 2 % 2 == 0};
}

/// The run of one strategy. Which columns a piece has is free, so a piece is only a width, and
/// pieces of a table that meet on a device are one.
class Filling {
 public:
  Filling(const Task& task, FillingStrategy strategy, const StopClock& clock)
      : task_(task),
        strategy_(strategy),
        clock_(clock),
        pins_(task),
        rooms_(task.topology.memory_bytes) {}

  Filled run() {
    for (std::size_t t = 0; t < task_.tables.size(); ++t) {
      clock_.check();
      push(static_cast<int>(t), task_.tables[t].embedding_dim);
    }
    while (!waiting_.empty()) {
      clock_.check();
      const Piece piece = waiting_.top();
      waiting_.pop();
      if (place(piece) || cut(piece)) continue;
      return {{}, piece.table};
    }
    return {joined_shards(), -1};
  }

 private:
  struct Piece {
    std::size_t choice;  ///< devices that it may lie on; fewer go first
    double key;          ///< then larger
    int table;
    std::int64_t columns;
    friend bool operator<(const Piece& a, const Piece& b) {
      return std::tie(b.choice, a.key, b.table, a.columns) <
             std::tie(a.choice, b.key, a.table, b.columns);
    }
  };

  [[nodiscard]] std::int64_t bytes(const Piece& piece) const {
    return shard_bytes(task_.tables[piece.table], piece.columns, task_.optimizer);
  }

  void push(int table, std::int64_t columns) {
    Piece piece{choice(table), 0, table, columns};
    piece.key = static_cast<double>(strategy_.order == FillingOrder::bytes
                                        ? bytes(piece)
                                        : narrowest_bytes(task_, task_.tables[table]));
    if (strategy_.disturbance != 0) piece.key *= disturbance(table);
    waiting_.push(piece);
  }

  [[nodiscard]] std::size_t choice(int table) const {
    const std::size_t devices = strategy_.pinned_first ? pins_.devices_of(table).size() : 0;
    return devices > 0 ? devices : std::numeric_limits<std::size_t>::max();
  }

  /// Of a table, in [1/4, 4].
  [[nodiscard]] double disturbance(int table) const {
    const std::uint64_t bits = mix64(mix64(strategy_.disturbance) ^ static_cast<unsigned>(table));
    return 0.25 + 3.75 * (static_cast<double>(bits >> 11) * 0x1.0p-53);
  }

  bool place(const Piece& piece) {
    const int device = rooms_.take_best_fit(bytes(piece), pins_.devices_of(piece.table));
    if (device < 0) return false;
    placed_.push_back({.table = piece.table, .num_columns = piece.columns, .device = device});
    return true;
  }

  /// Deals with a piece for which no device has room.
  bool cut(const Piece& piece) {
    const Table& table = task_.tables[piece.table];
    if (strategy_.cutting == FillingCuts::none) return false;
    if (!can_cut(table, piece.columns)) return false;
    std::int64_t first = piece.columns / 2 / kColumnGranularity * kColumnGranularity;
    if (strategy_.cutting == FillingCuts::fill) {
      const std::int64_t room = rooms_.largest(pins_.devices_of(piece.table));
      first = widest_piece(table, piece.columns, room, task_.optimizer);
      if (first == 0) return false;
      first = filling_width(table, piece.columns, first);
      place({piece.choice, 0, piece.table, first});
    } else {
      push(piece.table, first);
    }
    push(piece.table, piece.columns - first);
    return true;
  }

  std::vector<Shard> joined_shards() {
    std::sort(placed_.begin(), placed_.end(), [](const Shard& a, const Shard& b) {
      return std::tie(a.table, a.device) < std::tie(b.table, b.device);
    });
    std::vector<Shard> shards;
    for (Shard next : placed_) {
      if (!shards.empty() && shards.back().table == next.table) {
        Shard& last = shards.back();
        if (last.device == next.device) {
          last.num_columns += next.num_columns;
          continue;
        }
        next.column_offset = last.column_offset + last.num_columns;
      }
      shards.push_back(next);
    }
    return shards;
  }

  const Task& task_;
  FillingStrategy strategy_;
  PatientClock clock_;
  TablePins pins_;
  Rooms rooms_;
  std::priority_queue<Piece> waiting_;
  std::vector<Shard> placed_;
};

/// The shards of the first disturbed order that places all; empty if none does.
std::vector<Shard> fill_disturbed(const Task& task, const StopClock& clock) {
  for (int number = 0; number < num_disturbances(task); ++number) {
    std::vector<Shard> shards = Filling(task, disturbed(number), clock).run().shards;
    if (!shards.empty()) return shards;
  }
  return {};
}

/// Decisions after which the exact search stops without an answer: some milliseconds.
constexpr std::int64_t kExactNodes = 100'000;

}  // namespace

Filled fill_devices(const Task& task, FillingStrategy strategy, const StopClock& clock) {
  return Filling(task, strategy, clock).run();
}

ExactFit fill_stubbornly(const Task& task, const StopClock& clock) {
  std::vector<Shard> shards = fill_disturbed(task, clock);
  if (!shards.empty()) return {FitAnswer::fits, std::move(shards)};
  return fit_exactly(task, kExactNodes, clock);
}

}  // namespace neuroshard
