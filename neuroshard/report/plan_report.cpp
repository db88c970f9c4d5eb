// A sharding plan as text.
#include "neuroshard/report/plan_report.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <numeric>

#include "neuroshard/core/units.h"
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

}  // namespace

std::string plan_table(const Task& task, const ShardingPlan& plan, const PlanCost& cost,
                       std::size_t max_devices) {
  std::vector<int> pieces(cost.devices.size(), 0);
  for (const Shard& shard : plan.shards) ++pieces[shard.device];
  const std::vector<std::int64_t> bytes = device_memory(task, plan);
  TextTable table;
  for (const char* title : {"device", "pieces", "columns", "memory", "compute ms", "forward ms",
                            "backward ms", "total ms"}) {
    table.add_column(title);
  }
  table.add_column("", TextTable::Align::left);
  const std::vector<std::size_t> shown = shown_devices(cost, max_devices);
  for (const std::size_t d : shown) {
    const DeviceCost& device = cost.devices[d];
    table.add_row(
        {fmt::format("{}", d), fmt::format("{}", pieces[d]), fmt::format("{}", device.num_columns),
         memory_cell(bytes[d], task.topology.memory_bytes[d]),
         fmt::format("{:.3f}", device.compute_ms), fmt::format("{:.3f}", device.forward_comm_ms),
         fmt::format("{:.3f}", device.backward_comm_ms), fmt::format("{:.3f}", device.total_ms()),
         device.total_ms() >= cost.cost_ms ? "<- slowest" : ""});
  }
  std::string text = table.to_string();
  if (shown.size() < cost.devices.size()) {
    const auto hidden = static_cast<std::int64_t>(cost.devices.size() - shown.size());
    text += fmt::format("({} not shown)\n", format_count(hidden, "faster device"));
  }
  return text;
}

std::string cuts_text(const Task& task, const ShardingPlan& plan, std::size_t max_tables) {
  std::vector<std::vector<std::int64_t>> widths(task.tables.size());
  for (const Shard& shard : plan.shards) widths[shard.table].push_back(shard.num_columns);
  std::string text;
  std::size_t cut = 0;
  for (std::size_t t = 0; t < widths.size(); ++t) {
    if (widths[t].size() < 2 || ++cut > max_tables) continue;
    text += fmt::format("  {}: {} columns = {}\n", task.tables[t].name,
                        task.tables[t].embedding_dim, fmt::join(widths[t], " + "));
  }
  if (cut == 0) return "no table is cut\n";
  if (cut > max_tables) text += fmt::format("  ... and {} more\n", cut - max_tables);
  return fmt::format("{} of {} {} cut:\n", cut,
                     format_count(static_cast<std::int64_t>(task.tables.size()), "table"),
                     cut == 1 ? "is" : "are") +
         text;
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

std::string lower_bound_text(double bound_ms, double cost_ms) {
  if (bound_ms <= 0.0) return "";
  return fmt::format(
      "lower bound: {:.3f} ms, {:.1f}% below this plan; memory is ignored, so there need not be a "
      "plan that cheap\n",
      bound_ms, 100.0 * (1.0 - bound_ms / cost_ms));
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
