// Validity of a sharding plan: every element exactly once, allowed cuts, granularity, memory.
#include "neuroshard/core/sharding_plan.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <limits>
#include <map>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

#include "neuroshard/core/numbers/byte_sum.h"
#include "neuroshard/core/table_pins.h"
#include "neuroshard/core/units.h"

namespace neuroshard {

std::int64_t ShardingPlan::num_row_slices() const {
  return std::count_if(shards.begin(), shards.end(),
                       [](const Shard& shard) { return !shard.has_all_rows(); });
}

Piece piece_of(const Task& task, const Shard& shard) {
  Piece piece{shard.table, shard.num_columns};
  const Table& table = task.tables[shard.table];
  if (shard.rows_of(table) == table.num_embeddings) return piece;
  piece.row_share = static_cast<double>(shard.num_rows) / static_cast<double>(table.num_embeddings);
  if (has_row_order(table)) {
    piece.row_offset = shard.row_offset;
    piece.num_rows = shard.num_rows;
  }
  return piece;
}

std::int64_t replica_batch_size(const Task& task) {
  const std::int64_t devices = task.topology.world_size;
  return (task.batch_size + devices - 1) / devices;
}

std::vector<std::int64_t> device_memory(const Task& task, const ShardingPlan& plan) {
  std::vector<std::int64_t> bytes(task.topology.world_size, 0);
  for (const Shard& shard : plan.shards) {
    bytes[shard.device] = add_saturated(
        bytes[shard.device], shard_bytes(task.tables[shard.table], shard.num_columns,
                                         task.optimizer, shard.rows_of(task.tables[shard.table])));
  }
  std::int64_t copies = 0;
  for (const int index : plan.replicated_tables) {
    const Table& table = task.tables[index];
    copies = add_saturated(copies, shard_bytes(table, table.embedding_dim, task.optimizer));
  }
  for (std::int64_t& device : bytes) device = add_saturated(device, copies);
  return bytes;
}

double all_reduce_bytes(const Task& task, std::span<const int> replicated_tables) {
  double bytes = 0.0;
  for (const int index : replicated_tables) {
    const Table& table = task.tables[index];
    bytes +=
        4.0 * static_cast<double>(table.num_embeddings) * static_cast<double>(table.embedding_dim);
  }
  return bytes;
}

double partial_sum_bytes(const Task& task, const ShardingPlan& plan) {
  // Of each table with slices: by how many the number of pieces rises or falls at a column.
  std::map<std::pair<int, std::int64_t>, std::int64_t> changes;
  std::set<int> sliced;
  for (const Shard& shard : plan.shards) {
    if (!shard.has_all_rows()) sliced.insert(shard.table);
  }
  if (sliced.empty()) return 0.0;
  for (const Shard& shard : plan.shards) {
    if (!sliced.contains(shard.table)) continue;
    ++changes[{shard.table, shard.column_offset}];
    --changes[{shard.table, shard.column_offset + shard.num_columns}];
  }
  double columns = 0.0;  // read and written
  std::int64_t parts = 0;
  for (auto at = changes.begin(); at != changes.end(); ++at) {
    parts += at->second;
    if (parts < 2) continue;
    const Table& table = task.tables[at->first.first];
    const std::int64_t width = std::next(at)->first.second - at->first.second;
    columns += static_cast<double>((parts + 1) * pooled_columns(table, width));
  }
  return 4.0 * columns * static_cast<double>(replica_batch_size(task));
}

void sort_shards(ShardingPlan& plan) {
  std::sort(plan.shards.begin(), plan.shards.end(), [](const Shard& a, const Shard& b) {
    return std::tie(a.table, a.row_offset, a.column_offset, a.num_rows, a.num_columns, a.device) <
           std::tie(b.table, b.row_offset, b.column_offset, b.num_rows, b.num_columns, b.device);
  });
  std::sort(plan.replicated_tables.begin(), plan.replicated_tables.end());
}

namespace {

/// What plans of a task must keep to.
struct Rules {
  explicit Rules(const Task& of) : task(of), allowed(allowed_cuts(of)), pins(of) {}

  const Task& task;
  std::vector<Cuts> allowed;  ///< of each table
  TablePins pins;

  /// Why a cut of a table (`"columns"`, `"rows"` or `"replicas"`) is not allowed.
  [[nodiscard]] std::string reason(int table, std::string_view cut) const {
    return reason_against_cut(task, pins, table, cut);
  }
};

/// Why a shard's range of columns is not one that a plan may have; empty: it is.
std::string column_violation(const Rules& rules, const Shard& shard) {
  const Table& table = rules.task.tables[shard.table];
  if (shard.num_columns == table.embedding_dim) return "";
  if (!rules.allowed[shard.table].columns) {
    return fmt::format("expected \"{}\" with all its columns, as {}, got {} of {}", table.name,
                       rules.reason(shard.table, "columns"), shard.num_columns,
                       table.embedding_dim);
  }
  if (table.embedding_dim % kColumnGranularity != 0) {
    return fmt::format(
        "expected \"{}\" whole, as its dimension {} is no multiple of {}, got {} columns",
        table.name, table.embedding_dim, kColumnGranularity, shard.num_columns);
  }
  if (shard.num_columns % kColumnGranularity != 0 ||
      shard.column_offset % kColumnGranularity != 0) {
    return fmt::format("expected cuts of \"{}\" at multiples of {} columns, got {} from {}",
                       table.name, kColumnGranularity, shard.num_columns, shard.column_offset);
  }
  if (shard.num_columns < narrowest_cut(table)) {
    return fmt::format("expected pieces of \"{}\" of at least {} columns, got {}", table.name,
                       narrowest_cut(table), shard.num_columns);
  }
  return "";
}

/// Likewise of its range of rows.
std::string row_violation(const Rules& rules, const Shard& shard) {
  const Table& table = rules.task.tables[shard.table];
  const std::int64_t rows = shard.rows_of(table);
  if (rows == table.num_embeddings) return "";
  if (!rules.allowed[shard.table].rows) {
    return fmt::format("expected \"{}\" with all its rows, as {}, got {} of {}", table.name,
                       rules.reason(shard.table, "rows"), rows, table.num_embeddings);
  }
  if (rows < table.min_shard_rows) {
    return fmt::format("expected slices of \"{}\" of at least {} rows, got {}", table.name,
                       table.min_shard_rows, rows);
  }
  return "";
}

/// Likewise of its device.
std::string device_violation(const Rules& rules, const Shard& shard) {
  const int world_size = rules.task.topology.world_size;
  if (shard.device < 0 || shard.device >= world_size) {
    return fmt::format("expected 0 to {}, got {}", world_size - 1, shard.device);
  }
  if (!rules.pins.permits(shard.table, shard.device)) {
    return fmt::format("expected \"{}\" on {}, got {}", rules.task.tables[shard.table].name,
                       devices_text(rules.pins.devices_of(shard.table)), shard.device);
  }
  return "";
}

/// Violations of one shard on its own; empty if it may take part in the checks across shards.
std::vector<std::string> shard_violations(const Rules& rules, const Shard& shard,
                                          std::size_t index) {
  const Task& task = rules.task;
  const std::string place = fmt::format("shards[{}]", index);
  std::vector<std::string> found;
  if (shard.table < 0 || shard.table >= static_cast<int>(task.tables.size())) {
    return {fmt::format("{}.table: expected one of {} tables, got index {}", place,
                        task.tables.size(), shard.table)};
  }
  const Table& table = task.tables[shard.table];
  if (const std::string text = device_violation(rules, shard); !text.empty()) {
    found.push_back(fmt::format("{}.device: {}", place, text));
  }
  const auto within = [](std::int64_t offset, std::int64_t count, std::int64_t size) {
    return offset >= 0 && count >= 1 && count <= size && offset <= size - count;
  };
  if (!within(shard.column_offset, shard.num_columns, table.embedding_dim)) {
    found.push_back(fmt::format("{}: expected columns of \"{}\" within 0 to {}, got {} from {}",
                                place, table.name, table.embedding_dim, shard.num_columns,
                                shard.column_offset));
    return found;
  }
  if (!within(shard.row_offset, shard.rows_of(table), table.num_embeddings)) {
    found.push_back(fmt::format("{}: expected rows of \"{}\" within 0 to {}, got {} from {}", place,
                                table.name, table.num_embeddings, shard.rows_of(table),
                                shard.row_offset));
    return found;
  }
  for (const std::string& text : {column_violation(rules, shard), row_violation(rules, shard)}) {
    if (!text.empty()) found.push_back(fmt::format("{}: {}", place, text));
  }
  return found;
}

/// Gaps and overlaps of a table's columns in a range of its rows, of which the shards are those
/// that have these rows, by column.
std::vector<std::string> column_coverage(const Table& table, std::span<const Shard* const> shards) {
  std::vector<std::string> found;
  std::int64_t covered = 0;
  for (const Shard* shard : shards) {
    if (shard->column_offset > covered) {
      found.push_back(
          fmt::format("columns {} to {} are on no device", covered, shard->column_offset - 1));
    } else if (shard->column_offset < covered) {
      const std::int64_t end = std::min(covered, shard->column_offset + shard->num_columns);
      found.push_back(
          fmt::format("columns {} to {} are placed more than once", shard->column_offset, end - 1));
    }
    covered = std::max(covered, shard->column_offset + shard->num_columns);
  }
  if (covered < table.embedding_dim) {
    found.push_back(
        fmt::format("columns {} to {} are on no device", covered, table.embedding_dim - 1));
  }
  // Overlaps at the same column follow each other.
  found.erase(std::unique(found.begin(), found.end()), found.end());
  return found;
}

/// Ranges of rows of a table that are named: of so many slices, that is soon more than anyone
/// reads.
constexpr std::size_t kMostRanges = 20;

/// Gaps and overlaps of the columns in a range of rows.
struct RowRange {
  std::int64_t first = 0;
  std::int64_t end = 0;
  std::vector<std::string> found{};
};

/// The ranges of a table's rows with gaps or overlaps, each once: neighbours with the same are one.
/// After the first kMostRanges, or where more pieces than columns have the same rows, the last says
/// that there are others. Between two neighbouring ends of slices, which rows are looked at makes
/// no difference.
std::vector<RowRange> uncovered_ranges(const Table& table, std::span<const Shard> shards) {
  std::vector<std::int64_t> ends{0, table.num_embeddings};
  for (const Shard& shard : shards) {
    ends.push_back(shard.row_offset);
    ends.push_back(shard.row_offset + shard.rows_of(table));
  }
  std::sort(ends.begin(), ends.end());
  ends.erase(std::unique(ends.begin(), ends.end()), ends.end());
  // The shards are sorted by their first row.
  std::size_t next = 0;
  std::vector<const Shard*> current;
  std::vector<RowRange> ranges;
  for (std::size_t i = 0; i + 1 < ends.size(); ++i) {
    std::erase_if(current, [&](const Shard* shard) {
      return shard->row_offset + shard->rows_of(table) <= ends[i];
    });
    const std::size_t kept = current.size();
    for (; next < shards.size() && shards[next].row_offset == ends[i]; ++next) {
      current.push_back(&shards[next]);
    }
    // More pieces than columns overlap. To find where in each range of rows would take time in
    // proportion to the square of their number.
    if (std::cmp_greater(current.size(), table.embedding_dim)) {
      ranges.push_back({ends[i],
                        table.num_embeddings,
                        {"columns are placed more than once, and there may be more like that"}});
      break;
    }
    std::inplace_merge(
        current.begin(), current.begin() + static_cast<std::ptrdiff_t>(kept), current.end(),
        [](const Shard* a, const Shard* b) { return a->column_offset < b->column_offset; });
    RowRange range{ends[i], ends[i + 1], column_coverage(table, current)};
    if (range.found.empty()) continue;
    if (!ranges.empty() && ranges.back().end == range.first && ranges.back().found == range.found) {
      ranges.back().end = range.end;
      continue;
    }
    if (ranges.size() == kMostRanges) {
      ranges.push_back({range.first, table.num_embeddings, {"there is more like that"}});
      break;
    }
    ranges.push_back(std::move(range));
  }
  return ranges;
}

/// The shards are in canonical order.
void coverage_violations(const Task& task, const ShardingPlan& plan,
                         std::vector<std::string>& found) {
  std::size_t next = 0;
  for (std::size_t index = 0; index < task.tables.size(); ++index) {
    const std::size_t first = next;
    while (next < plan.shards.size() && plan.shards[next].table == static_cast<int>(index)) ++next;
    if (std::binary_search(plan.replicated_tables.begin(), plan.replicated_tables.end(),
                           static_cast<int>(index))) {
      continue;
    }
    const Table& table = task.tables[index];
    for (const RowRange& range :
         uncovered_ranges(table, std::span(plan.shards).subspan(first, next - first))) {
      const bool all_rows = range.first == 0 && range.end == table.num_embeddings;
      const std::string rows =
          all_rows ? "" : fmt::format("rows {} to {}, ", range.first, range.end - 1);
      for (const std::string& text : range.found) {
        found.push_back(fmt::format("table \"{}\": {}{}", table.name, rows, text));
      }
    }
  }
}

/// Violations of the tables that are on every device.
void replica_violations(const Rules& rules, const ShardingPlan& plan,
                        std::vector<std::string>& found) {
  const Task& task = rules.task;
  const std::vector<std::int64_t>& memory = task.topology.memory_bytes;
  const std::int64_t least_memory = *std::min_element(memory.begin(), memory.end());
  std::vector<bool> is_replicated(task.tables.size());
  for (std::size_t i = 0; i < plan.replicated_tables.size(); ++i) {
    const std::string place = fmt::format("replicated_tables[{}]", i);
    const int index = plan.replicated_tables[i];
    if (index < 0 || index >= static_cast<int>(task.tables.size())) {
      found.push_back(fmt::format("{}: expected one of {} tables, got index {}", place,
                                  task.tables.size(), index));
      continue;
    }
    const Table& table = task.tables[index];
    if (is_replicated[index]) {
      found.push_back(fmt::format("{}: expected \"{}\" once, got it again", place, table.name));
    } else if (!rules.allowed[index].replicas) {
      found.push_back(fmt::format("{}: expected \"{}\" without copies, as {}", place, table.name,
                                  rules.reason(index, "replicas")));
    } else if (const std::int64_t bytes = shard_bytes(table, table.embedding_dim, task.optimizer);
               bytes > least_memory) {
      found.push_back(
          fmt::format("{}: expected at most {} bytes ({}), the memory of the smallest "
                      "device, got a copy of \"{}\" of {} ({})",
                      place, least_memory, format_bytes(static_cast<double>(least_memory)),
                      table.name, bytes, format_bytes(static_cast<double>(bytes))));
    }
    is_replicated[index] = true;
  }
  for (std::size_t i = 0; i < plan.shards.size(); ++i) {
    const int index = plan.shards[i].table;
    if (index >= 0 && index < static_cast<int>(task.tables.size()) && is_replicated[index]) {
      found.push_back(fmt::format("shards[{}]: expected none of \"{}\", which is on every device",
                                  i, task.tables[index].name));
    }
  }
}

/// Tables that are not on the device of those that they stay with; each is whole on one device.
void group_violations(const Rules& rules, const ShardingPlan& plan,
                      std::vector<std::string>& found) {
  if (rules.pins.groups().empty()) return;
  const std::vector<Table>& tables = rules.task.tables;
  std::vector<int> device_of(tables.size(), -1);
  for (const Shard& shard : plan.shards) device_of[shard.table] = shard.device;
  for (std::size_t i = 0; i < plan.shards.size(); ++i) {
    const Shard& shard = plan.shards[i];
    const TableGroup* group = rules.pins.group_of(shard.table);
    if (group == nullptr) continue;
    const int first = group->tables.front();
    if (device_of[first] < 0 || device_of[first] == shard.device) continue;
    found.push_back(
        fmt::format("shards[{}].device: expected \"{}\" on device {} with \"{}\", got {}", i,
                    tables[shard.table].name, device_of[first], tables[first].name, shard.device));
  }
}

}  // namespace

std::vector<std::string> violations(const Task& task, const ShardingPlan& plan) {
  const Rules rules(task);
  std::vector<std::string> found;
  for (std::size_t i = 0; i < plan.shards.size(); ++i) {
    for (std::string& text : shard_violations(rules, plan.shards[i], i)) {
      found.push_back(std::move(text));
    }
  }
  replica_violations(rules, plan, found);
  if (!found.empty()) return found;

  ShardingPlan sorted = plan;
  sort_shards(sorted);
  coverage_violations(task, sorted, found);
  group_violations(rules, plan, found);

  const std::vector<std::int64_t> used = device_memory(task, plan);
  for (int device = 0; device < task.topology.world_size; ++device) {
    const std::int64_t capacity = task.topology.memory_bytes[device];
    if (used[device] > capacity) {
      // The sum ends at the largest number.
      const bool is_more = used[device] == std::numeric_limits<std::int64_t>::max();
      found.push_back(fmt::format("device {}: expected at most {} bytes ({}), got {}{} ({})",
                                  device, capacity, format_bytes(static_cast<double>(capacity)),
                                  is_more ? "at least " : "", used[device],
                                  format_bytes(static_cast<double>(used[device]))));
    }
  }
  return found;
}

}  // namespace neuroshard
