// Searches for the memory or the devices that tables need, and says it in words.
#include "neuroshard/search/memory/memory_needs.h"

#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "neuroshard/core/table_pins.h"
#include "neuroshard/core/units.h"
#include "neuroshard/search/groups/bundled_task.h"
#include "neuroshard/search/memory/filling.h"
#include "neuroshard/search/memory/full_devices.h"
#include "neuroshard/search/memory/memory_fit.h"
#include "neuroshard/search/memory/row_fit.h"

namespace neuroshard {

namespace {

constexpr std::int64_t kMaxDeviceBytes = std::int64_t{1} << 60;

WideBytes uncut_bytes(const Task& task) {
  WideBytes sum = 0;
  for (const Table& table : task.tables) {
    sum += shard_bytes(table, table.embedding_dim, task.optimizer);
  }
  return sum;
}

/// Whether a plan is found on this number of devices of this memory. Changes the topology of
/// `task`, which is scratch; its tables are used.
bool fits(Task& task, int num_devices, std::int64_t memory_bytes, bool rows,
          const StopClock& clock) {
  clock.check();
  task.topology.world_size = num_devices;
  task.topology.local_world_size = 1;
  task.topology.memory_bytes.assign(num_devices, memory_bytes);
  if (least_memory(task, rows, clock).is_too_much()) return false;
  if (rows && !fit_with_rows(task, clock).empty()) return true;
  if (least_memory(task, false, clock).is_too_much()) return false;
  const auto succeeds = [&](FillingStrategy strategy) {
    return !fill_devices(task, strategy, clock).shards.empty();
  };
  if (std::any_of(kFillingStrategies.begin(), kFillingStrategies.end(), succeeds)) return true;
  FitAnswer answer = fill_stubbornly(task, clock).answer;
  if (answer == FitAnswer::unknown) answer = fit_full_devices(task, clock).answer;
  return answer == FitAnswer::fits;
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
  const WideBytes at_least =
      std::max<WideBytes>((uncut_bytes(scratch) - 1) / num_devices + 1, needs.largest_piece);
  if (at_least > kMaxDeviceBytes) return;
  const auto least = static_cast<std::int64_t>(at_least);
  needs.memory_step = least >= 1 << 30 ? 1 << 20 : least >= 1 << 20 ? 1 << 10 : 1;
  needs.sufficient_memory = smallest_accepted(
      rounded_up(least, needs.memory_step), kMaxDeviceBytes, needs.memory_step,
      [&](std::int64_t bytes) { return fits(scratch, num_devices, bytes, rows, clock); });
}

void search_devices(Task& scratch, bool rows, const StopClock& clock, MemoryNeeds& needs) {
  if (needs.largest_piece > needs.largest_device) return;
  const WideBytes at_least = (needs.needed - 1) / needs.largest_device + 1;
  if (at_least > kMaxWorldSize) return;
  auto least = static_cast<std::int64_t>(at_least);
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
/// else the first that may not lie anywhere; nothing if there is none, or the time is over.
std::string pinned_text(const Task& original, const BundledTask& bundled, const StopClock& clock) {
  const TablePins pins(bundled.task());
  if (!pins.restricts_devices()) return "";
  int table = 0;
  try {
    const Filled filled = fill_devices(bundled.task(), kFillingStrategies.front(), clock);
    table = std::max(filled.table_without_room, 0);
  } catch (const TimeIsOver&) {
    return "";
  }
  if (pins.devices_of(table).empty()) {
    for (table = 0; pins.devices_of(table).empty();) ++table;
  }
  return fmt::format(" with {} on {}", tables_text(original, bundled, {table}),
                     devices_text(pins.devices_of(table)));
}

/// How far a table can be cut at the most, and why its rows no further where rows are cut:
/// "cannot be cut below 4 columns of 500 rows, as its slices have at least 400; that needs".
std::string least_piece_text(const Table& table, Optimizer optimizer, const MemoryNeeds& needs,
                             bool rows) {
  const bool has_all_rows = needs.largest_piece_rows == table.num_embeddings;
  const std::string columns = format_count(needs.largest_piece_columns, "column");
  // Slices may be too large by their number of rows, or by what each takes besides.
  const bool is_by_rows =
      shard_bytes(table, needs.largest_piece_columns, optimizer, 1) <= needs.largest_device;
  if (rows && table.allow.rows && table.min_shard_rows > 1 && is_by_rows) {
    return fmt::format("cannot be cut below {} of {}, as its slices have at least {}; that needs",
                       columns, format_count(needs.largest_piece_rows, "row"),
                       table.min_shard_rows);
  }
  const bool is_whole = has_all_rows && needs.largest_piece_columns == table.embedding_dim;
  const std::string piece =
      fmt::format("cannot be cut {} {}{}", is_whole ? "and has" : "below", columns,
                  has_all_rows ? "" : " of " + format_count(needs.largest_piece_rows, "row"));
  // Without `rows`, what a table allows may be what the search was asked for.
  if (rows && !table.allow.rows) {
    return piece + ", as \"allow\" does not name \"rows\"; that needs";
  }
  return piece + ", which need";
}

std::string reason(const Task& original, const BundledTask& bundled, const MemoryNeeds& needs,
                   bool rows, const StopClock& clock) {
  const Task& task = bundled.task();
  if (needs.shortage) return shortage_text(original, bundled, *needs.shortage);
  if (needs.largest_piece > needs.largest_device) {
    if (bundled.members()[needs.largest_piece_table].size() > 1) {
      return fmt::format("{} stay together and need {}, and the largest device has {}",
                         tables_text(original, bundled, {needs.largest_piece_table}),
                         format_bytes(static_cast<double>(needs.largest_piece)),
                         format_bytes(static_cast<double>(needs.largest_device)));
    }
    const Table& table = task.tables[needs.largest_piece_table];
    return fmt::format("table \"{}\" {} {}, and the largest device has {}", table.name,
                       least_piece_text(table, task.optimizer, needs, rows),
                       format_bytes(static_cast<double>(needs.largest_piece)),
                       format_bytes(static_cast<double>(needs.largest_device)));
  }
  std::string text =
      fmt::format("the tables need {}", format_bytes(static_cast<double>(needs.needed)));
  if (needs.optimizer_state > 0) {
    text += fmt::format(
        " ({} of it optimizer state{})", format_bytes(static_cast<double>(needs.optimizer_state)),
        needs.necessary_cuts > 0 ? fmt::format(" with the {} necessary cuts", needs.necessary_cuts)
                                 : "");
  }
  text += fmt::format(", {} {} {}", count_of_devices(task.topology.world_size),
                      task.topology.world_size == 1 ? "has" : "have",
                      format_bytes(static_cast<double>(needs.available)));
  if (needs.needed <= needs.available) {
    return text + ", and no way to divide it among them was found" +
           pinned_text(original, bundled, clock);
  }
  return text + fmt::format(", {} too little",
                            format_bytes(static_cast<double>(needs.needed - needs.available)));
}

std::string remedy(const Task& task, const MemoryNeeds& needs) {
  std::string text =
      needs.sufficient_memory
          ? fmt::format("{} of {} ({}) would do", count_of_devices(task.topology.world_size),
                        format_bytes(static_cast<double>(*needs.sufficient_memory)),
                        exact(*needs.sufficient_memory))
          : fmt::format("no memory would do for {}", count_of_devices(task.topology.world_size));
  if (needs.sufficient_devices) {
    text += fmt::format(", or {} of {}", count_of_devices(*needs.sufficient_devices),
                        format_bytes(static_cast<double>(needs.largest_device)));
  } else {
    text += fmt::format(", and no number of devices of {}",
                        format_bytes(static_cast<double>(needs.largest_device)));
  }
  return text;
}

/// Of a task whose tables stay with none; false too if the clock came first.
bool rows_would_do(const Task& task, const StopClock& clock) {
  try {
    return !fit_with_rows(task, clock).empty();
  } catch (const TimeIsOver&) {
    return false;
  }
}

/// Whether slices that may be as short as one row would do where the tables' must have more.
/// Likewise.
bool shorter_slices_would_do(Task task, const StopClock& clock) {
  bool is_limited = false;
  for (Table& table : task.tables) {
    is_limited = is_limited || (table.allow.rows && table.min_shard_rows > 1);
    table.min_shard_rows = 0;
  }
  return is_limited && rows_would_do(task, clock);
}

/// Likewise.
MemoryNeeds needs_of_tables(const Task& task, bool rows, const StopClock& clock) {
  MemoryNeeds needs{least_memory(task, rows, clock), std::nullopt, 1, std::nullopt, false};
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
  std::string text =
      fmt::format("no plan fits into memory: {}", reason(task, bundled, needs, rows, clock));
  if (needs.stopped_by_clock) return InfeasibleError(text);
  text += fmt::format("; {}", remedy(bundled.task(), needs));
  if (!rows && rows_would_do(bundled.task(), clock)) {
    text += "; with rows cut too, the tables fit";
  }
  if (rows && shorter_slices_would_do(bundled.task(), clock)) {
    text += "; with shorter slices the tables fit";
  }
  return InfeasibleError(text);
}

InfeasibleError with_cuts_that_would_do(const InfeasibleError& error, const Task& task,
                                        const Cuts& cuts, const StopClock& clock) {
  const auto fits_with = [&](const Cuts& allowed) {
    Task restricted = task;
    for (Table& table : restricted.tables) table.allow = table.allow & allowed;
    return fit_memory(restricted, allowed.rows, clock).feasible;
  };
  try {
    for (const auto& [columns, rows, words] :
         {std::tuple(true, false, "columns"), std::tuple(false, true, "rows"),
          std::tuple(true, true, "columns and rows")}) {
      const Cuts more{cuts.columns || columns, cuts.rows || rows, false};
      if ((columns && cuts.columns) || (rows && cuts.rows) || !fits_with(more)) continue;
      return InfeasibleError(
          fmt::format("{}; with {} cut too, the tables fit", error.what(), words));
    }
  } catch (const TimeIsOver&) {  // nothing more is known
  }
  return error;
}

}  // namespace neuroshard
