// A sharding plan as text.
#include "neuroshard/report/plan_report.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <numeric>

#include "neuroshard/core/slowest_device.h"
#include "neuroshard/core/text/name_list.h"
#include "neuroshard/core/text/printable.h"
#include "neuroshard/core/units.h"
#include "neuroshard/report/slowest_marks.h"
#include "neuroshard/report/text_table.h"

namespace neuroshard {

namespace {

/// Networks that differ by more than this disagree: the models' own errors on measured costs are
/// about 4 %.
constexpr double kAgreement = 0.05;

std::string memory_cell(std::int64_t used, std::int64_t capacity) {
  return fmt::format("{} ({:.0f}%)", format_bytes(static_cast<double>(used)),
                     100.0 * static_cast<double>(used) / static_cast<double>(capacity));
}

/// Devices to show, in order of their number: all, or the slowest ones.
std::vector<std::size_t> shown_devices(const PlanCost& cost, std::size_t max_devices) {
  std::vector<std::size_t> devices(cost.devices.size());
  std::iota(devices.begin(), devices.end(), 0);
  if (devices.size() > max_devices) {
    std::stable_sort(devices.begin(), devices.end(), [&](std::size_t a, std::size_t b) {
      return cost.devices[a].total_ms() > cost.devices[b].total_ms();
    });
    devices.resize(max_devices);
    std::sort(devices.begin(), devices.end());
  }
  return devices;
}

/// "64 columns = 32 + 32", or with slices of rows "100 rows x 64 columns = 25 x 64 + 75 x 64".
std::string pieces_text(const Table& table, const std::vector<const Shard*>& pieces) {
  const bool has_slices = std::any_of(pieces.begin(), pieces.end(),
                                      [](const Shard* piece) { return !piece->has_all_rows(); });
  std::vector<std::string> sizes;
  for (const Shard* piece : pieces) {
    sizes.push_back(has_slices ? fmt::format("{} x {}", piece->rows_of(table), piece->num_columns)
                               : fmt::format("{}", piece->num_columns));
  }
  return fmt::format("{}{} columns = {}",
                     has_slices ? fmt::format("{} rows x ", table.num_embeddings) : "",
                     table.embedding_dim, fmt::join(sizes, " + "));
}

/// A line about the tables that are on every device; empty without any.
std::string copies_text(const Task& task, const ShardingPlan& plan, std::size_t max_tables) {
  if (plan.replicated_tables.empty()) return "";
  std::vector<std::string> names;
  for (const int table : plan.replicated_tables)
    names.push_back(printable(task.tables[table].name));
  return fmt::format("on every device: {}\n", name_list(names, max_tables));
}

}  // namespace

std::string plan_table(const Task& task, const ShardingPlan& plan, const PlanCost& cost,
                       std::size_t max_devices) {
  std::vector<int> pieces(cost.devices.size(), 0);
  for (const Shard& shard : plan.shards) ++pieces[shard.device];
  const std::vector<std::int64_t> bytes = device_memory(task, plan);
  const bool has_copies = !plan.replicated_tables.empty();
  TextTable table;
  for (const char* title : {"device", "pieces", "columns", "memory", "compute ms"}) {
    table.add_column(title);
  }
  if (has_copies) table.add_column("all-reduce ms");
  for (const char* title : {"forward ms", "backward ms", "total ms"}) table.add_column(title);
  table.add_column("", TextTable::Align::left);
  const std::vector<std::size_t> shown = shown_devices(cost, max_devices);
  const std::vector<std::string> marks = slowest_marks(cost.devices);
  for (const std::size_t d : shown) {
    const DeviceCost& device = cost.devices[d];
    std::vector<std::string> cells{fmt::format("{}", d), fmt::format("{}", pieces[d]),
                                   fmt::format("{}", device.num_columns),
                                   memory_cell(bytes[d], task.topology.memory_bytes[d]),
                                   fmt::format("{:.3f}", device.compute_ms)};
    if (has_copies) cells.push_back(fmt::format("{:.3f}", device.all_reduce_ms));
    for (const double ms : {device.forward_comm_ms, device.backward_comm_ms, device.total_ms()}) {
      cells.push_back(fmt::format("{:.3f}", ms));
    }
    cells.push_back(marks[d]);
    table.add_row(std::move(cells));
  }
  std::string text = table.to_string();
  if (shown.size() < cost.devices.size()) {
    const auto hidden = static_cast<std::int64_t>(cost.devices.size() - shown.size());
    const char* what = equally_slow(cost.devices) ? "other device" : "faster device";
    text += fmt::format("({} not shown)\n", format_count(hidden, what));
  }
  return text + equally_slow_text(cost.devices);
}

std::string cuts_text(const Task& task, const ShardingPlan& plan, std::size_t max_tables) {
  std::vector<std::vector<const Shard*>> pieces(task.tables.size());
  for (const Shard& shard : plan.shards) pieces[shard.table].push_back(&shard);
  std::string text;
  std::size_t cut = 0;
  for (std::size_t t = 0; t < pieces.size(); ++t) {
    if (pieces[t].size() < 2 || ++cut > max_tables) continue;
    text += fmt::format("  {}: {}\n", printable(task.tables[t].name),
                        pieces_text(task.tables[t], pieces[t]));
  }
  const std::string copies = copies_text(task, plan, max_tables);
  if (cut == 0) return "no table is cut\n" + copies;
  if (cut > max_tables) text += fmt::format("  ... and {} more\n", cut - max_tables);
  return fmt::format("{} of {} {} cut:\n", cut,
                     format_count(static_cast<std::int64_t>(task.tables.size()), "table"),
                     cut == 1 ? "is" : "are") +
         text + copies;
}

std::string disagreement_text(int num_members, const std::vector<MemberRange>& ranges) {
  if (num_members < 2 || ranges.empty()) return "";
  const auto widest = std::max_element(
      ranges.begin(), ranges.end(),
      [](const MemberRange& a, const MemberRange& b) { return a.spread() < b.spread(); });
  return fmt::format(
      "the {} networks of the computation model {} {:.1f}% (device {}: {:.3f} to {:.3f} ms)\n",
      num_members, widest->spread() <= kAgreement ? "agree within" : "disagree by up to",
      100.0 * widest->spread(), widest - ranges.begin(), widest->least_ms, widest->most_ms);
}

std::string plans_of_cuts(const Cuts& cuts) {
  if (cuts == Cuts{}) return "";
  std::vector<std::string> parts{"whole tables"};
  if (cuts.columns) parts.emplace_back("pieces of columns");
  if (cuts.rows) parts.emplace_back("slices of rows");
  if (cuts.replicas) parts.emplace_back("copies");
  std::string text = " of " + parts.front();
  for (std::size_t i = 1; i < parts.size(); ++i) {
    text += (i + 1 == parts.size() ? " and " : ", ") + parts[i];
  }
  return text;
}

std::string left_out_of_bound(const BoundScope& scope) {
  const auto& [ordered, others] = scope.unpriced;
  if (ordered == 0 && others == 0) return "";
  const std::string of_all = " of " + format_count(scope.num_tables, "table");
  std::string text = "the computation of ";
  if (ordered > 0) text += fmt::format("{}{}, whose row order is known", ordered, of_all);
  if (ordered > 0 && others > 0) text += ", and of ";
  if (others > 0) {
    text += fmt::format("{}{}, too wide or too many to try all cuts", others,
                        ordered > 0 ? " more" : of_all);
  }
  return text;
}

std::string not_of_bound(const BoundScope& scope) {
  return scope.has_other_slices
             ? "plans with slices of rows of other sizes, as this one has, may cost less"
             : "";
}

std::string expected_cost_text(const std::optional<double>& expected_ms, double scatter) {
  if (!expected_ms) return "";
  return fmt::format(
      "expected when it runs: {:.3f} ms, as devices that are planned alike differ by {:.1f}% and "
      "wait for the slowest\n",
      *expected_ms, 100.0 * scatter);
}

std::string lower_bound_text(double bound_ms, double cost_ms, const BoundScope& scope) {
  if (bound_ms <= 0.0) return "";
  const std::string plans = plans_of_cuts(scope.cuts);
  const std::string left_out = left_out_of_bound(scope);
  const std::string others = not_of_bound(scope);
  return fmt::format(
      "lower bound{}: {:.3f} ms, {:.1f}% below this plan; it {}takes all devices for one that is "
      "divided evenly, so there need not be a plan that cheap{}\n",
      plans.empty() ? "" : " of plans" + plans, bound_ms, 100.0 * (1.0 - bound_ms / cost_ms),
      left_out.empty() ? "" : "leaves out " + left_out + ", and ",
      others.empty() ? "" : "; " + others);
}

std::string outcomes_table(const std::vector<AlgorithmOutcome>& outcomes) {
  TextTable table;
  table.add_column("algorithm", TextTable::Align::left);
  for (const char* title : {"cost ms", "relative", "time"}) table.add_column(title);
  table.add_column("", TextTable::Align::left);
  const double first = outcomes.empty() || !outcomes[0].found ? 0.0 : outcomes[0].cost_ms;
  for (const AlgorithmOutcome& outcome : outcomes) {
    if (outcome.found) {
      table.add_row({outcome.algorithm, fmt::format("{:.3f}", outcome.cost_ms),
                     first > 0.0 ? fmt::format("{:.2f}x", outcome.cost_ms / first) : "",
                     format_seconds(outcome.wall_ms * 1e-3)});
    } else {
      table.add_row(
          {outcome.algorithm, "none", "", format_seconds(outcome.wall_ms * 1e-3), outcome.reason});
    }
  }
  return table.to_string();
}

}  // namespace neuroshard
