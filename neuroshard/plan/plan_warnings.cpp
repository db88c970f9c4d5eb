// What of a plan's pieces a model was not trained on; the spread of an ensemble on the slowest
// device, and the piece behind it.
#include "neuroshard/plan/plan_warnings.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <limits>
#include <string_view>
#include <utility>

#include "neuroshard/core/slowest_device.h"
#include "neuroshard/cost/compute/trained_range.h"
#include "neuroshard/plan/plan_models.h"
#include "neuroshard/workload/reuse/index_distribution.h"

namespace neuroshard {

namespace {

/// The networks' predictions for a device that has nothing but this contribution.
MemberRange range_alone(const ComputeCostModel& model, std::span<const double> contribution) {
  std::vector<double> costs(static_cast<std::size_t>(model.num_members()));
  model.member_costs(contribution, {}, costs);
  const auto [least, most] = std::minmax_element(costs.begin(), costs.end());
  return {*least, *most};
}

double width(const MemberRange& range) { return range.most_ms - range.least_ms; }

/// "64 columns of table "x"", or "64 columns of 1000 rows of table "x"".
std::string text_of(const Shard& shard, const Table& table) {
  const std::string rows =
      shard.has_all_rows() ? "" : fmt::format("{} rows of ", shard.rows_of(table));
  return fmt::format("{} columns of {}table \"{}\"", shard.num_columns, rows, table.name);
}

/// ", most about 64 columns of table "x" (1.000 to 3.000 ms alone)": of the device's pieces and the
/// copies that every device has, what the networks are furthest apart about.
std::string cause(const Simulator& simulator, const ShardingPlan& plan, std::size_t device) {
  const Task& task = simulator.task();
  std::vector<double> contribution(simulator.compute().state_size());
  const Shard* widest_shard = nullptr;
  const Table* widest_copy = nullptr;
  MemberRange widest;
  const auto is_widest = [&] {
    const MemberRange range = range_alone(simulator.compute(), contribution);
    const bool is_first = widest_shard == nullptr && widest_copy == nullptr;
    if (!is_first && width(range) <= width(widest)) return false;
    widest = range;
    return true;
  };
  for (const Shard& shard : plan.shards) {
    if (static_cast<std::size_t>(shard.device) != device) continue;
    simulator.encode(piece_of(task, shard), contribution);
    if (is_widest()) widest_shard = &shard;
  }
  for (const int table : plan.replicated_tables) {
    simulator.encode_replica(table, contribution);
    if (is_widest()) widest_copy = &task.tables[table];
  }
  if (widest_shard == nullptr && widest_copy == nullptr) return "";
  return fmt::format(", most about {} ({:.3f} to {:.3f} ms alone)",
                     widest_copy != nullptr
                         ? fmt::format("the copy of table \"{}\"", widest_copy->name)
                         : text_of(*widest_shard, task.tables[widest_shard->table]),
                     widest.least_ms, widest.most_ms);
}

/// A reason without the names of its tables.
std::string_view kind_of(std::string_view reason) { return reason.substr(0, reason.find(" (\"")); }

/// A reason without what it is about either.
std::string_view limit_of(std::string_view reason) {
  return reason.substr(0, reason.find(", got "));
}

/// How the rows of each shard are used that does not have all of them.
std::vector<TableStatistics> rows_of_slices(const Simulator& simulator, const ShardingPlan& plan) {
  std::vector<TableStatistics> rows(plan.shards.size());
  for (std::size_t i = 0; i < plan.shards.size(); ++i) {
    if (plan.shards[i].has_all_rows()) continue;
    rows[i] = simulator.statistics_of(piece_of(simulator.task(), plan.shards[i]));
  }
  return rows;
}

/// Mean lookups of a distinct row in a batch, or 0 where there are hardly any lookups.
double hits_per_row(const TableStatistics& rows, std::int64_t batch_size) {
  const double lookups = rows.pooling_factor * static_cast<double>(batch_size);
  return lookups > 1.0 && rows.distinct_rows > 0.0 ? lookups / rows.distinct_rows : 0.0;
}

/// The plan's pieces as the range of a model is asked about them, by table; `rows` as of
/// rows_of_slices. Slices of a table that is too hot as a whole are no hotter than what is said of
/// the table.
std::vector<PlannedPiece> planned_pieces(const Simulator& simulator, const TrainedRange& range,
                                         const ShardingPlan& plan,
                                         std::span<const TableStatistics> rows) {
  const Task& task = simulator.task();
  std::vector<PlannedPiece> pieces;
  pieces.reserve(plan.shards.size());
  for (std::size_t i = 0; i < plan.shards.size(); ++i) {
    const Shard& shard = plan.shards[i];
    PlannedPiece& piece = pieces.emplace_back();
    piece.table = &task.tables[shard.table];
    piece.device = shard.device;
    piece.num_columns = shard.num_columns;
    if (shard.has_all_rows()) continue;
    const TableStatistics& whole = simulator.statistics()[static_cast<std::size_t>(shard.table)];
    if (has_more_hits(range, hits_per_row(whole, task.batch_size))) continue;
    piece.hits_per_row = hits_per_row(rows[i], task.batch_size);
  }
  std::stable_sort(pieces.begin(), pieces.end(),
                   [](const PlannedPiece& a, const PlannedPiece& b) { return a.table < b.table; });
  return pieces;
}

/// Of the slices that a plan cuts a table's rows into.
struct SliceExtremes {
  const TableStatistics* shortest = nullptr;  ///< with the fewest rows; nullptr: it is not cut
  const TableStatistics* sparsest = nullptr;  ///< with the fewest lookups
};

/// By table; of `rows`.
std::vector<SliceExtremes> slice_extremes(const Task& task, const ShardingPlan& plan,
                                          std::span<const TableStatistics> rows) {
  std::vector<SliceExtremes> extremes(task.tables.size());
  for (std::size_t i = 0; i < plan.shards.size(); ++i) {
    if (plan.shards[i].has_all_rows()) continue;
    const TableStatistics& slice = rows[i];
    auto& [shortest, sparsest] = extremes[plan.shards[i].table];
    if (shortest == nullptr || slice.num_embeddings < shortest->num_embeddings) shortest = &slice;
    if (sparsest == nullptr || slice.pooling_factor < sparsest->pooling_factor) sparsest = &slice;
  }
  return extremes;
}

/// Of each table that the plan cuts by rows, as tables of their own: the fewest rows and the fewest
/// lookups of a slice, which may be two slices, as hot ones are short; and the one with the fewest
/// lookups. Columns are left out: planned_pieces has them.
Task smallest_slices(const Task& task, const TrainedRange& range, const ShardingPlan& plan,
                     std::span<const TableStatistics> rows) {
  Task as_task;
  as_task.batch_size = task.batch_size;
  as_task.optimizer = task.optimizer;
  as_task.topology = task.topology;
  const std::vector<SliceExtremes> extremes = slice_extremes(task, plan, rows);
  for (std::size_t t = 0; t < extremes.size(); ++t) {
    const auto [shortest, sparsest] = extremes[t];
    if (shortest == nullptr) continue;
    Table slice;
    slice.name = task.tables[t].name;
    slice.num_embeddings = shortest->num_embeddings;
    slice.embedding_dim = range.min_columns;
    slice.pooling_factor = sparsest->pooling_factor;
    slice.data_type = sparsest->data_type;
    as_task.tables.push_back(slice);
    if (shortest->num_embeddings == sparsest->num_embeddings) continue;
    slice.num_embeddings = sparsest->num_embeddings;
    as_task.tables.push_back(std::move(slice));
  }
  // These are not the pieces of a device: planned_pieces has their number too.
  as_task.topology.world_size = std::max(static_cast<int>(as_task.tables.size()), 1);
  return as_task;
}

/// Of tables about whose rows nothing is said: no lookup hits the row of another one.
std::vector<TableStatistics> without_reuse(std::size_t num_tables) {
  std::vector<TableStatistics> tables(num_tables);
  for (TableStatistics& table : tables) {
    table.distinct_rows = std::numeric_limits<double>::infinity();
  }
  return tables;
}

/// The operator of replicated tables, which every device has.
Task copies_of(const Task& task, const ShardingPlan& plan) {
  Task as_task;
  as_task.batch_size = replica_batch_size(task);
  as_task.optimizer = task.optimizer;
  as_task.topology = task.topology;
  as_task.topology.world_size = 1;
  for (const int table : plan.replicated_tables) {
    as_task.tables.push_back(for_any_batch_size(task.tables[table], task.batch_size));
  }
  return as_task;
}

/// What the computation model was not trained on of the plan's pieces and copies, but for what is
/// said of the task anyhow.
std::vector<std::string> piece_warnings(const Simulator& simulator, const ShardingPlan& plan,
                                        std::span<const std::string> of_task) {
  std::vector<std::string> lines;
  const Task& task = simulator.task();
  const ComputeCostModel& model = simulator.compute();
  const TrainedRange* range = model.trained_range();
  if (range == nullptr) return lines;
  const auto add = [&](const Task& pieces, std::string_view what,
                       std::span<const TableStatistics> statistics = {}) {
    for (const std::string& reason : reasons_outside(*range, pieces, statistics)) {
      const std::string of_whole = fmt::format("{}: {}", model.name(), reason);
      const bool is_known =
          std::any_of(of_task.begin(), of_task.end(),
                      [&](const std::string& line) { return kind_of(line) == kind_of(of_whole); });
      if (!is_known) lines.push_back(fmt::format("{}: {}: {}", model.name(), what, reason));
    }
  };
  const std::vector<TableStatistics> rows = rows_of_slices(simulator, plan);
  for (const std::string& reason :
       reasons_outside(*range, planned_pieces(simulator, *range, plan, rows))) {
    std::string line = fmt::format("{}: {}", model.name(), reason);
    // Of a task whose every plan has too many pieces on a device, that is said.
    const bool is_known =
        reason.starts_with("tables: ") &&
        std::any_of(of_task.begin(), of_task.end(),
                    [&](const std::string& other) { return limit_of(other) == limit_of(line); });
    if (!is_known) lines.push_back(std::move(line));
  }
  if (plan.has_row_slices()) {
    const Task slices = smallest_slices(task, *range, plan, rows);
    // How hot they are is said of the pieces.
    add(slices, "slices of rows", without_reuse(slices.tables.size()));
  }
  if (!plan.replicated_tables.empty()) add(copies_of(task, plan), "replicated tables");
  return lines;
}

void append(std::vector<std::string> more, std::vector<std::string>& lines) {
  lines.insert(lines.end(), std::make_move_iterator(more.begin()),
               std::make_move_iterator(more.end()));
}

}  // namespace

std::vector<std::string> disagreement_warnings(const Simulator& simulator, const ShardingPlan& plan,
                                               const PlanCost& predicted,
                                               std::span<const MemberRange> member_ranges) {
  const int members = simulator.compute().num_members();
  if (members < 2) return {};
  const std::size_t device = slowest_device(predicted.devices);
  const MemberRange range = member_ranges[device];
  if (!(range.spread() > kLargeDisagreement)) return {};
  return {fmt::format(
      "{}: its {} networks disagree by {:.0f}% about device {}, the plan's slowest ({:.3f} to "
      "{:.3f} ms){}",
      simulator.compute().name(), members, 100.0 * range.spread(), device, range.least_ms,
      range.most_ms, cause(simulator, plan, device))};
}

std::vector<std::string> plan_warnings(const Simulator& simulator, const ShardingPlan& plan,
                                       const PlanCost& predicted,
                                       std::span<const MemberRange> member_ranges,
                                       std::span<const std::string> of_task) {
  std::vector<std::string> lines = piece_warnings(simulator, plan, of_task);
  append(disagreement_warnings(simulator, plan, predicted, member_ranges), lines);
  return lines;
}

std::vector<std::string> prediction_warnings(const CostModels& models, const Simulator& simulator,
                                             const ShardingPlan& plan, const PlanCost& predicted,
                                             std::span<const MemberRange> member_ranges) {
  std::vector<std::string> lines = model_warnings(models, simulator.task(), simulator.statistics());
  append(plan_warnings(simulator, plan, predicted, member_ranges, lines), lines);
  return lines;
}

std::vector<std::string> prediction_warnings(const CostModels& models, const Simulator& simulator,
                                             const ShardingPlan& plan) {
  return prediction_warnings(models, simulator, plan, simulator.cost(plan),
                             simulator.member_ranges(plan));
}

}  // namespace neuroshard
