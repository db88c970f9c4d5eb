// Sums of what every table needs.
#include "neuroshard/search/memory/least_memory.h"

#include <algorithm>
#include <vector>

#include "neuroshard/core/table_pins.h"

namespace neuroshard {

namespace {

/// The fewest rows that a table's largest slice can have.
std::int64_t fewest_rows(const Table& table, bool rows) {
  if (!rows || !table.allow.rows) return table.num_embeddings;
  const std::int64_t least = std::max<std::int64_t>(table.min_shard_rows, 1);
  const std::int64_t slices = std::max<std::int64_t>(table.num_embeddings / least, 1);
  return (table.num_embeddings + slices - 1) / slices;
}

/// Least number of pieces of a table on devices of at most `bytes`; 1 if it fits on none.
std::int64_t least_pieces(const Task& task, const Table& table, std::int64_t bytes) {
  const std::int64_t widest = widest_piece(table, table.embedding_dim, bytes, task.optimizer);
  return widest == 0 ? 1 : (table.embedding_dim - 1) / widest + 1;
}

}  // namespace

std::int64_t narrowest_columns(const Table& table) {
  if (!can_cut(table, table.embedding_dim)) return table.embedding_dim;
  const std::int64_t quanta = table.embedding_dim / kColumnGranularity;
  const std::int64_t pieces = table.embedding_dim / narrowest_cut(table);
  return (quanta + pieces - 1) / pieces * kColumnGranularity;
}

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

LeastMemory least_memory(const Task& task, bool rows, const StopClock& clock) {
  LeastMemory needs;
  for (const std::int64_t bytes : task.topology.memory_bytes) {
    needs.available += bytes;
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
    needs.optimizer_state += pieces * (per_piece - table.extra_bytes_per_shard);
    const std::int64_t columns =
        shard_bytes(table, table.embedding_dim, task.optimizer) - per_piece;
    needs.needed += columns + pieces * per_piece;
    const std::int64_t bytes =
        shard_bytes(table, narrowest_columns(table), task.optimizer, least_rows);
    if (pins.restricts_devices()) {
      least.push_back(columns + pieces * per_piece);
      narrowest_of.push_back(bytes);
    }
    if (bytes > needs.largest_piece) {
      needs.largest_piece_rows = least_rows;
      needs.largest_piece = bytes;
      needs.largest_piece_columns = narrowest_columns(table);
      needs.largest_piece_table = static_cast<int>(t);
    }
  }
  if (pins.restricts_devices()) {
    needs.shortage = pinned_shortage(task, pins, least, narrowest_of, clock);
  }
  return needs;
}

}  // namespace neuroshard
