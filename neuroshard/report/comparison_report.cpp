// A comparison as text.
#include "neuroshard/report/comparison_report.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <optional>
#include <utility>

#include "neuroshard/core/text/printable.h"
#include "neuroshard/core/units.h"
#include "neuroshard/report/text_table.h"

namespace neuroshard {

namespace {

/// Optional columns that have values.
struct Columns {
  bool measured = false;
  bool controlled = false;  ///< with samples measured earlier
  bool expected = false;    ///< as devices differ
  bool related = false;     ///< to the reference
};

Columns columns_of(const std::vector<ComparisonSummary>& summaries) {
  Columns columns;
  for (const ComparisonSummary& summary : summaries) {
    columns.measured |= summary.measured_wins.has_value();
    columns.controlled |= summary.mean_gap_less_drift.has_value();
    columns.expected |= summary.mean_expected_gap.has_value();
    columns.related |= summary.mean_ratio.has_value() && summaries.size() > 1;
  }
  return columns;
}

std::string number(const std::optional<double>& value) {
  return value ? fmt::format("{:.3f}", *value) : "";
}

/// A mean over the tasks that every algorithm solved, if there are any.
std::string mean(const ComparisonSummary& summary, const std::optional<double>& value) {
  return summary.common == 0 ? "-" : number(value);
}

std::string share_text(const std::optional<double>& value) {
  return value ? fmt::format("{:.1f}%", 100.0 * *value) : "";
}

std::vector<std::string> titles_of(const Columns& columns) {
  std::vector<std::string> titles{"solved", "predicted ms", "wins", "time ms"};
  if (columns.measured) {
    titles.insert(titles.end(),
                  {"part-measured ms", "measured compute ms", "part-measured wins", "gap"});
  }
  if (columns.controlled) titles.emplace_back("less drift");
  if (columns.expected) titles.emplace_back("expected gap");
  if (columns.expected && columns.controlled) titles.emplace_back("expected, less drift");
  if (columns.related) titles.insert(titles.end(), {"ratio", "worst"});
  return titles;
}

std::vector<std::string> summary_row(const ComparisonSummary& summary, const Columns& columns) {
  std::vector<std::string> cells{
      summary.algorithm, fmt::format("{}/{}", summary.solved, summary.tasks),
      mean(summary, summary.mean_predicted_ms), fmt::format("{}", summary.wins),
      fmt::format("{:.2f}", summary.mean_wall_ms)};
  if (columns.measured) {
    cells.push_back(mean(summary, summary.mean_measured_ms));
    cells.push_back(mean(summary, summary.mean_measured_compute_ms));
    cells.push_back(fmt::format("{}", summary.measured_wins.value_or(0)));
    cells.push_back(share_text(summary.mean_gap));
  }
  if (columns.controlled) cells.push_back(share_text(summary.mean_gap_less_drift));
  if (columns.expected) cells.push_back(share_text(summary.mean_expected_gap));
  if (columns.expected && columns.controlled) {
    cells.push_back(share_text(summary.mean_expected_gap_less_drift));
  }
  if (columns.related) {
    cells.push_back(number(summary.mean_ratio));
    cells.push_back(number(summary.worst_ratio));
  }
  return cells;
}

/// Least and largest of the entries' drifts.
std::pair<double, double> range_of_drift(const std::vector<ComparisonEntry>& entries) {
  double low = std::numeric_limits<double>::infinity();
  double high = 0.0;
  for (const ComparisonEntry& entry : entries) {
    low = std::min(low, entry.drift.value_or(low));
    high = std::max(high, entry.drift.value_or(high));
  }
  return {low, high};
}

/// The meaning of the columns.
std::string notes(const Columns& columns, const std::vector<ComparisonEntry>& entries,
                  const ComparisonSetting& setting) {
  std::string text;
  if (columns.measured) {
    text += fmt::format(
        "part-measured: computation run here, all-to-alls {}; gap: mean of "
        "|predicted/part-measured - 1|\n",
        setting.platform.empty() ? "predicted" : "simulated on " + printable(setting.platform));
  }
  if (columns.controlled) {
    const auto [low, high] = range_of_drift(entries);
    text += fmt::format(
        "less drift: the gap at the speed of the controls' or the model's costs, from which the "
        "machine's differed by {:+.1f}% to {:+.1f}%\n",
        100.0 * (low - 1.0), 100.0 * (high - 1.0));
  }
  if (columns.expected) {
    text +=
        "expected gap: of what plans are expected to cost, as devices that are planned alike "
        "differ\n";
  }
  if (columns.related) {
    text += fmt::format(
        "ratio: {} cost to that of {}, mean and worst over the tasks that both "
        "solved\n",
        columns.measured ? "part-measured" : "predicted", setting.reference);
  }
  return text;
}

}  // namespace

std::string cuts_text(const std::vector<ComparisonSummary>& summaries) {
  bool has_more = false;
  std::vector<std::pair<Cuts, std::string>> groups;
  for (const ComparisonSummary& summary : summaries) {
    if (!summary.cuts) continue;
    has_more |= summary.cuts->rows || summary.cuts->replicas;
    const auto group = std::find_if(groups.begin(), groups.end(), [&](const auto& known) {
      return known.first == *summary.cuts;
    });
    if (group == groups.end()) {
      groups.emplace_back(*summary.cuts, summary.algorithm);
    } else {
      group->second += ", " + summary.algorithm;
    }
  }
  if (!has_more) return "";
  std::string text;
  for (const auto& [cuts, algorithms] : groups) {
    text += fmt::format("{} {} of {}", text.empty() ? "cuts:" : ";", to_string(cuts), algorithms);
  }
  return text + "\n";
}

std::string comparison_text(const std::vector<ComparisonEntry>& entries,
                            const std::vector<ComparisonSummary>& summaries,
                            const ComparisonSetting& setting) {
  const Columns columns = columns_of(summaries);
  TextTable table;
  table.add_column("algorithm", TextTable::Align::left);
  for (const std::string& title : titles_of(columns)) table.add_column(title);
  for (const ComparisonSummary& summary : summaries) table.add_row(summary_row(summary, columns));
  std::string text = table.to_string();
  if (!summaries.empty()) {
    text += fmt::format("mean costs over the {} that every algorithm solved\n",
                        format_count(summaries.front().common, "task"));
  }
  text += cuts_text(summaries);
  if (!setting.computation.empty()) {
    text += fmt::format("computation model: {}\n", printable(setting.computation));
  }
  if (!setting.communication.empty()) {
    text += fmt::format("communication model: {}\n", printable(setting.communication));
  }
  return text + notes(columns, entries, setting);
}

}  // namespace neuroshard
