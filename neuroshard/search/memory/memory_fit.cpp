// Fits tables into memory with few cuts, and searches for the memory or devices that they need.
#include "neuroshard/search/memory/memory_fit.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <limits>
#include <queue>
#include <span>
#include <tuple>
#include <utility>
#include <vector>

#include "neuroshard/core/byte_sum.h"
#include "neuroshard/core/random.h"
#include "neuroshard/core/table_pins.h"
#include "neuroshard/core/units.h"
#include "neuroshard/search/bundled_task.h"
#include "neuroshard/search/memory/exact_memory_fit.h"
#include "neuroshard/search/memory/pinned_memory.h"
#include "neuroshard/search/memory/rooms.h"
#include "neuroshard/search/memory/row_fit.h"

namespace neuroshard {

namespace {

constexpr std::int64_t kMaxDeviceBytes = std::int64_t{1} << 60;

/// The fewest rows that a table's largest slice can have.
std::int64_t fewest_rows(const Table& table, bool rows) {
  if (!rows || !table.allow.rows) return table.num_embeddings;
  const std::int64_t least = std::max<std::int64_t>(table.min_shard_rows, 1);
  const std::int64_t slices = std::max<std::int64_t>(table.num_embeddings / least, 1);
  return (table.num_embeddings + slices - 1) / slices;
}

/// How narrow a table's widest piece can be: 4 columns, unless pieces have to be wider. Of 20
/// columns in pieces of 8 or more, it has 12.
std::int64_t narrowest(const Table& table) {
  if (!can_cut(table, table.embedding_dim)) return table.embedding_dim;
  const std::int64_t quanta = table.embedding_dim / kColumnGranularity;
  const std::int64_t pieces = table.embedding_dim / narrowest_cut(table);
  return (quanta + pieces - 1) / pieces * kColumnGranularity;
}

std::int64_t narrowest_bytes(const Task& task, const Table& table) {
  return shard_bytes(table, narrowest(table), task.optimizer);
}

/// The most columns, at most `limit`, of a piece of at most `bytes`; 0 if no piece is that small.
std::int64_t widest_piece(const Table& table, std::int64_t limit, std::int64_t bytes,
                          Optimizer optimizer) {
  if (shard_bytes(table, limit, optimizer) <= bytes) return limit;
  if (!can_cut(table, table.embedding_dim)) return 0;
  const std::int64_t of_no_column = shard_bytes(table, 0, optimizer);
  if (bytes < of_no_column) return 0;
  const std::int64_t per_column = shard_bytes(table, 1, optimizer) - of_no_column;
  const std::int64_t columns =
      (bytes - of_no_column) / per_column / kColumnGranularity * kColumnGranularity;
  return columns < narrowest_cut(table) ? 0 : columns;
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

enum class Order {
  bytes,     ///< the largest piece first
  narrowest  ///< the piece of the table with the largest narrowest piece first: small grains last
};
enum class Cutting { none, halve, fill };

/// One way to fill the devices.
struct Strategy {
  Order order;
  Cutting cutting;
  std::uint64_t disturbance = 0;  ///< if not 0: sizes count 1/4 to 4 times at random
  bool pinned_first = true;  ///< tables with the fewest devices to lie on come before all others
};

/// The one that leaves least memory unused comes first: it alone answers most questions of
/// whether a task fits. A device is left with less room than the narrowest piece of the table at
/// hand, and that falls from table to table.
constexpr std::array<Strategy, 5> kStrategies{{{Order::narrowest, Cutting::fill},
                                               {Order::bytes, Cutting::none},
                                               {Order::bytes, Cutting::halve},
                                               {Order::bytes, Cutting::fill},
                                               {Order::narrowest, Cutting::halve}}};

/// Where all of them fail and memory is tight, disturbed orders may do; they help small tasks most.
constexpr int kMaxDisturbances = 32;
constexpr std::size_t kDisturbedPieces = 20'000;

int num_disturbances(const Task& task) {
  const std::size_t pieces = task.tables.size() + task.topology.memory_bytes.size();
  return static_cast<int>(std::min<std::size_t>(kMaxDisturbances, kDisturbedPieces / pieces));
}

Strategy disturbed(int number) {
  return {number % 2 == 0 ? Order::narrowest : Order::bytes, Cutting::fill,
          static_cast<std::uint64_t>(number) + 1, number / 2 % 2 == 0};
}

/// The run of one strategy. Which columns a piece has is free, so a piece is only a width, and
/// pieces of a table that meet on a device are one.
class Filling {
 public:
  Filling(const Task& task, Strategy strategy, const StopClock& clock)
      : task_(task),
        strategy_(strategy),
        clock_(clock),
        pins_(task),
        rooms_(task.topology.memory_bytes) {}

  /// The shards, in canonical order; empty if not all could be placed.
  std::vector<Shard> run() {
    for (std::size_t t = 0; t < task_.tables.size(); ++t) {
      clock_.check();
      push(static_cast<int>(t), task_.tables[t].embedding_dim);
    }
    while (!waiting_.empty()) {
      clock_.check();
      const Piece piece = waiting_.top();
      waiting_.pop();
      if (place(piece) || cut(piece)) continue;
      table_without_room_ = piece.table;
      return {};
    }
    return joined_shards();
  }

  /// Of a run that could not place all.
  [[nodiscard]] int table_without_room() const { return table_without_room_; }

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
    piece.key = static_cast<double>(strategy_.order == Order::bytes
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
    if (strategy_.cutting == Cutting::none) return false;
    if (!can_cut(table, piece.columns)) return false;
    std::int64_t first = piece.columns / 2 / kColumnGranularity * kColumnGranularity;
    if (strategy_.cutting == Cutting::fill) {
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
  Strategy strategy_;
  PatientClock clock_;
  TablePins pins_;
  Rooms rooms_;
  std::priority_queue<Piece> waiting_;
  std::vector<Shard> placed_;
  int table_without_room_ = -1;
};

/// The shards of the first disturbed order that places all; empty if none does.
std::vector<Shard> fill_disturbed(const Task& task, const StopClock& clock) {
  for (int number = 0; number < num_disturbances(task); ++number) {
    std::vector<Shard> shards = Filling(task, disturbed(number), clock).run();
    if (!shards.empty()) return shards;
  }
  return {};
}

/// Decisions after which the exact search stops without an answer: some milliseconds.
constexpr std::int64_t kExactNodes = 100'000;

/// The plan that disturbed orders find or, where they find none and the task is small, the exact
/// search.
std::vector<Shard> fill_stubbornly(const Task& task, const StopClock& clock) {
  std::vector<Shard> shards = fill_disturbed(task, clock);
  return shards.empty() ? fit_exactly(task, kExactNodes, clock).shards : shards;
}

/// Least number of pieces of a table on devices of at most `bytes`; 1 if it fits on none.
std::int64_t least_pieces(const Task& task, const Table& table, std::int64_t bytes) {
  const std::int64_t widest = widest_piece(table, table.embedding_dim, bytes, task.optimizer);
  return widest == 0 ? 1 : (table.embedding_dim - 1) / widest + 1;
}

std::int64_t uncut_bytes(const Task& task) {
  std::int64_t sum = 0;
  for (const Table& table : task.tables) {
    sum = add_saturated(sum, shard_bytes(table, table.embedding_dim, task.optimizer));
  }
  return sum;
}

/// The part of the needs that is known without a search.
MemoryNeeds sizes(const Task& task, bool rows) {
  MemoryNeeds needs;
  for (const std::int64_t bytes : task.topology.memory_bytes) {
    needs.available = add_saturated(needs.available, bytes);
    needs.largest_device = std::max(needs.largest_device, bytes);
  }
  const TablePins pins(task);
  std::vector<std::int64_t> least;  // of each table, if some are pinned
  std::vector<std::int64_t> narrowest_of;
  for (std::size_t t = 0; t < task.tables.size(); ++t) {
    const Table& table = task.tables[t];
    const std::int64_t least_rows = fewest_rows(table, rows);
    const bool in_rows = least_rows < table.num_embeddings;
    const bool is_pinned = !pins.devices_of(static_cast<int>(t)).empty();
    const std::int64_t room =
        is_pinned ? largest_permitted(task, pins, static_cast<int>(t)) : needs.largest_device;
    const std::int64_t pieces = in_rows ? 1 : least_pieces(task, table, room);
    const std::int64_t per_piece = shard_bytes(table, 0, task.optimizer);
    needs.necessary_cuts += pieces - 1;
    needs.optimizer_state =
        add_saturated(needs.optimizer_state, pieces * (per_piece - table.extra_bytes_per_shard));
    const std::int64_t columns =
        shard_bytes(table, table.embedding_dim, task.optimizer) - per_piece;
    needs.needed = add_saturated(needs.needed, columns + pieces * per_piece);
    const std::int64_t bytes = shard_bytes(table, narrowest(table), task.optimizer, least_rows);
    if (pins.restricts_devices()) {
      least.push_back(columns + pieces * per_piece);
      narrowest_of.push_back(bytes);
    }
    if (bytes > needs.largest_piece) {
      needs.largest_piece_rows = least_rows;
      needs.largest_piece = bytes;
      needs.largest_piece_columns = narrowest(table);
      needs.largest_piece_table = static_cast<int>(t);
    }
  }
  if (pins.restricts_devices()) needs.shortage = pinned_shortage(task, pins, least, narrowest_of);
  return needs;
}

bool certainly_infeasible(const MemoryNeeds& needs) {
  return needs.needed > needs.available || needs.largest_piece > needs.largest_device ||
         needs.shortage.has_value();
}

/// Whether a plan is found on this number of devices of this memory. Changes the topology of
/// `task`, which is scratch; its tables are used.
bool fits(Task& task, int num_devices, std::int64_t memory_bytes, bool rows,
          const StopClock& clock) {
  clock.check();
  task.topology.world_size = num_devices;
  task.topology.local_world_size = 1;
  task.topology.memory_bytes.assign(num_devices, memory_bytes);
  if (certainly_infeasible(sizes(task, rows))) return false;
  if (rows && !fit_with_rows(task, clock).empty()) return true;
  if (certainly_infeasible(sizes(task, false))) return false;
  const auto places_all = [&](Strategy strategy) {
    return !Filling(task, strategy, clock).run().empty();
  };
  return std::any_of(kStrategies.begin(), kStrategies.end(), places_all) ||
         !fill_stubbornly(task, clock).empty();
}

/// The smallest value in [lowest, highest], both multiples of `step`, that is accepted, given that
/// no value below `lowest` is: strides that double, then bisection, so that the value before the
/// result was tried and refused. nullopt if none was accepted.
template <typename Accept>
std::optional<std::int64_t> smallest_accepted(std::int64_t lowest, std::int64_t highest,
                                              std::int64_t step, const Accept& accept) {
  std::int64_t refused = lowest - step;
  std::int64_t accepted = lowest;
  for (std::int64_t stride = step; accepted > highest || !accept(accepted); stride *= 2) {
    if (accepted >= highest) return std::nullopt;
    refused = accepted;
    accepted = std::min(accepted + stride, highest);
  }
  while (accepted - refused > step) {
    const std::int64_t middle = refused + (accepted - refused) / step / 2 * step;
    (accept(middle) ? accepted : refused) = middle;
  }
  return accepted;
}

std::int64_t rounded_up(std::int64_t value, std::int64_t step) {
  return (value + step - 1) / step * step;
}

void search_memory(Task& scratch, int num_devices, bool rows, const StopClock& clock,
                   MemoryNeeds& needs) {
  const std::int64_t least =
      std::max((uncut_bytes(scratch) - 1) / num_devices + 1, needs.largest_piece);
  needs.memory_step = least >= 1 << 30 ? 1 << 20 : least >= 1 << 20 ? 1 << 10 : 1;
  if (least > kMaxDeviceBytes) return;
  needs.sufficient_memory = smallest_accepted(
      rounded_up(least, needs.memory_step), kMaxDeviceBytes, needs.memory_step,
      [&](std::int64_t bytes) { return fits(scratch, num_devices, bytes, rows, clock); });
}

void search_devices(Task& scratch, bool rows, const StopClock& clock, MemoryNeeds& needs) {
  if (needs.largest_piece > needs.largest_device) return;
  std::int64_t least = (needs.needed - 1) / needs.largest_device + 1;
  for (const Table& table : scratch.tables) {  // no plan is on fewer devices than pins name
    for (const int device : table.devices) least = std::max<std::int64_t>(least, device + 1);
  }
  if (least > kMaxWorldSize) return;
  const auto accept = [&](std::int64_t devices) {
    return fits(scratch, static_cast<int>(devices), needs.largest_device, rows, clock);
  };
  const std::optional<std::int64_t> devices = smallest_accepted(least, kMaxWorldSize, 1, accept);
  if (devices) needs.sufficient_devices = static_cast<int>(*devices);
}

std::string readable(std::int64_t bytes) { return format_bytes(static_cast<double>(bytes)); }

/// A size that is read back exactly, e.g. "164147MiB".
std::string exact(std::int64_t bytes) {
  if (bytes % (1 << 20) == 0) return fmt::format("{}MiB", bytes >> 20);
  if (bytes % (1 << 10) == 0) return fmt::format("{}KiB", bytes >> 10);
  return fmt::format("{}B", bytes);
}

std::string count_of_devices(std::int64_t count) {
  return fmt::format("{} device{}", count, count == 1 ? "" : "s");
}

/// Of a task that no order could divide: a table for which there is no room where it may lie, or
/// else the first that may not lie anywhere; nothing if there is none.
std::string pinned_text(const Task& original, const BundledTask& bundled) {
  const TablePins pins(bundled.task());
  if (!pins.restricts_devices()) return "";
  Filling filling(bundled.task(), kStrategies.front(), {});
  (void)filling.run();
  int table = std::max(filling.table_without_room(), 0);
  if (pins.devices_of(table).empty()) {
    for (table = 0; pins.devices_of(table).empty();) ++table;
  }
  return fmt::format(" with {} on {}", tables_text(original, bundled, {table}),
                     devices_text(pins.devices_of(table)));
}

std::string reason(const Task& original, const BundledTask& bundled, const MemoryNeeds& needs) {
  const Task& task = bundled.task();
  if (needs.shortage) return shortage_text(original, bundled, *needs.shortage);
  if (needs.largest_piece > needs.largest_device) {
    if (bundled.members()[needs.largest_piece_table].size() > 1) {
      return fmt::format("{} stay together and need {}, and the largest device has {}",
                         tables_text(original, bundled, {needs.largest_piece_table}),
                         readable(needs.largest_piece), readable(needs.largest_device));
    }
    const Table& table = task.tables[needs.largest_piece_table];
    const std::string of_rows = needs.largest_piece_rows == table.num_embeddings
                                    ? ""
                                    : fmt::format(" of {} rows", needs.largest_piece_rows);
    return fmt::format(
        "table \"{}\" cannot be cut {} {} columns{}, which need {}, and the largest device has {}",
        table.name, needs.largest_piece_columns == table.embedding_dim ? "and has" : "below",
        needs.largest_piece_columns, of_rows, readable(needs.largest_piece),
        readable(needs.largest_device));
  }
  std::string text = fmt::format("the tables need {}", readable(needs.needed));
  if (needs.optimizer_state > 0) {
    text += fmt::format(" ({} of it optimizer state{})", readable(needs.optimizer_state),
                        needs.necessary_cuts > 0
                            ? fmt::format(" with the {} necessary cuts", needs.necessary_cuts)
                            : "");
  }
  text += fmt::format(", {} {} {}", count_of_devices(task.topology.world_size),
                      task.topology.world_size == 1 ? "has" : "have", readable(needs.available));
  if (needs.needed <= needs.available) {
    return text + ", and no way to divide it among them was found" + pinned_text(original, bundled);
  }
  return text + fmt::format(", {} too little", readable(needs.needed - needs.available));
}

std::string remedy(const Task& task, const MemoryNeeds& needs) {
  std::string text =
      needs.sufficient_memory
          ? fmt::format("{} of {} ({}) would do", count_of_devices(task.topology.world_size),
                        readable(*needs.sufficient_memory), exact(*needs.sufficient_memory))
          : fmt::format("no memory would do for {}", count_of_devices(task.topology.world_size));
  if (needs.sufficient_devices) {
    text += fmt::format(", or {} of {}", count_of_devices(*needs.sufficient_devices),
                        readable(needs.largest_device));
  } else {
    text += fmt::format(", and no number of devices of {}", readable(needs.largest_device));
  }
  return text;
}

/// Of a task whose tables stay with none.
MemoryFit fit_tables(const Task& task, const StopClock& clock) {
  const MemoryNeeds needs = sizes(task, false);
  if (certainly_infeasible(needs)) return {};
  MemoryFit best;
  const auto keep_if_better = [&](std::vector<Shard> shards) {
    if (shards.empty()) return;
    const int cuts = static_cast<int>(shards.size() - task.tables.size());
    if (best.feasible && cuts >= best.num_cuts) return;
    best = {.feasible = true, .plan = {std::move(shards)}, .num_cuts = cuts};
    sort_shards(best.plan);
  };
  for (const Strategy strategy : kStrategies) {
    keep_if_better(Filling(task, strategy, clock).run());
    if (best.feasible && best.num_cuts == needs.necessary_cuts) break;
  }
  if (!best.feasible) keep_if_better(fill_stubbornly(task, clock));
  return best;
}

/// Likewise, with rows cut where nothing else fits.
MemoryFit fit_tables(const Task& task, bool rows, const StopClock& clock) {
  MemoryFit fit = fit_tables(task, clock);
  if (fit.feasible || !rows) return fit;
  fit.plan.shards = fit_with_rows(task, clock);
  fit.feasible = !fit.plan.shards.empty();
  if (fit.feasible) fit.num_cuts = static_cast<int>(fit.plan.shards.size() - task.tables.size());
  return fit;
}

/// Likewise; false too if the clock came first.
bool rows_would_do(const Task& task, const StopClock& clock) {
  try {
    return !fit_with_rows(task, clock).empty();
  } catch (const TimeIsOver&) {
    return false;
  }
}

/// Likewise.
MemoryNeeds needs_of_tables(const Task& task, bool rows, const StopClock& clock) {
  MemoryNeeds needs = sizes(task, rows);
  Task scratch = task;
  try {
    search_memory(scratch, task.topology.world_size, rows, clock, needs);
    search_devices(scratch, rows, clock, needs);
  } catch (const TimeIsOver&) {
    needs.stopped_by_clock = true;
  }
  return needs;
}

}  // namespace

MemoryFit fit_memory(const Task& task, bool rows, const StopClock& clock) {
  if (!has_groups(task)) return fit_tables(task, rows, clock);
  const BundledTask bundled(task);
  MemoryFit fit = fit_tables(bundled.task(), rows, clock);
  fit.plan = bundled.original(fit.plan);
  return fit;
}

MemoryNeeds memory_needs(const Task& task, bool rows, const StopClock& clock) {
  const BundledTask bundled(task);
  MemoryNeeds needs = needs_of_tables(bundled.task(), rows, clock);
  needs.largest_piece_table = bundled.members()[needs.largest_piece_table].front();
  if (needs.shortage) {
    std::vector<int> tables;
    for (const int table : needs.shortage->tables) {
      const std::vector<int>& members = bundled.members()[table];
      tables.insert(tables.end(), members.begin(), members.end());
    }
    needs.shortage->tables = std::move(tables);
  }
  return needs;
}

InfeasibleError explain_infeasible(const Task& task, bool rows, const StopClock& clock) {
  const BundledTask bundled(task);
  const MemoryNeeds needs = needs_of_tables(bundled.task(), rows, clock);
  std::string text = fmt::format("no plan fits into memory: {}", reason(task, bundled, needs));
  if (needs.stopped_by_clock) return InfeasibleError(text);
  text += fmt::format("; {}", remedy(bundled.task(), needs));
  if (!rows && rows_would_do(bundled.task(), clock)) {
    text += "; with rows cut too, the tables fit";
  }
  return InfeasibleError(text);
}

}  // namespace neuroshard
