// Metrics of a model as text.
#include "neuroshard/report/training_report.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <cstdint>

#include "neuroshard/core/text/printable.h"
#include "neuroshard/core/units.h"

namespace neuroshard {

namespace {

/// Forward and backward, a line each.
void add_rows(std::vector<MetricsRow>& rows, const std::string& name,
              const CommunicationMetrics& metrics) {
  rows.push_back({name + ", forward", metrics.forward});
  rows.push_back({name + ", backward", metrics.backward});
}

}  // namespace

std::string tau_text(const std::optional<double>& tau, int decimals) {
  return tau ? fmt::format("{:.{}f}", *tau, decimals) : "not defined";
}

std::string metrics_table(const std::string& counted, std::span<const MetricsRow> rows) {
  std::string text = fmt::format("{:<32}{:>8}{:>12}{:>10}{:>10}{:>13}\n", "", counted, "MSE [ms^2]",
                                 "MAE [ms]", "MAPE", "tau");
  for (const auto& [name, metrics] : rows) {
    if (metrics.count == 0) continue;
    text += fmt::format("{:<32}{:>8}{:>12.4f}{:>10.4f}{:>9.2f}%{:>13}\n", name, metrics.count,
                        metrics.mse, metrics.mae, 100.0 * metrics.mape,
                        tau_text(metrics.kendall_tau, 4));
  }
  return text;
}

std::string scatter_text(const std::optional<DeviceScatter>& scatter) {
  if (!scatter) return "";
  return fmt::format(
      "devices that are planned alike differ by {:.1f}%, by {} of devices of one plan\n",
      100.0 * scatter->scatter, format_count(static_cast<std::int64_t>(scatter->pairs), "pair"));
}

std::string training_text(const ComputeTrainingResult& result, const std::string& model) {
  std::vector<MetricsRow> rows{{"training", result.training},
                               {"validation", result.validation},
                               {"unseen combinations", result.unseen_combinations},
                               {"unseen tables", result.unseen_tables}};
  if (result.large_samples) {
    const auto& [from_ms, validation, unseen_combinations, unseen_tables] = *result.large_samples;
    const auto add = [&, from = from_ms](const char* set, const PredictionMetrics& metrics) {
      rows.push_back({fmt::format("{}, from {:g} ms", set, from), metrics});
    };
    add("validation", validation);
    add("unseen combinations", unseen_combinations);
    add("unseen tables", unseen_tables);
  }
  const auto networks = static_cast<std::int64_t>(result.best_epochs.size());
  std::string speeds;
  for (std::size_t i = 1; i < result.speeds.size(); ++i) {
    speeds += fmt::format("costs of {} are {:.3f} times those of {}, and were divided by it\n",
                          printable(result.speeds[i].folder), result.speeds[i].speed,
                          printable(result.speeds.front().folder));
  }
  return metrics_table("samples", rows) + speeds + scatter_text(result.scatter) +
         fmt::format("{}: {}, best epoch{} {}, {}\n", printable(model),
                     format_count(networks, "network"), networks == 1 ? "" : "s",
                     fmt::join(result.best_epochs, ", "), format_seconds(result.seconds));
}

std::string training_text(const CommunicationTrainingResult& result, const std::string& model,
                          std::span<const RivalMetrics> rivals) {
  std::vector<MetricsRow> rows;
  add_rows(rows, "training", result.training);
  add_rows(rows, "validation", result.validation);
  add_rows(rows, "unseen placements", result.unseen_placements);
  add_rows(rows, "  by the links alone", result.links_unseen_placements);
  for (const RivalMetrics& rival : rivals) {
    add_rows(rows, "  " + rival.name, rival.unseen_placements);
  }
  add_rows(rows, "held-out files", result.held_out);
  add_rows(rows, "  by the links alone", result.links_held_out);
  for (const RivalMetrics& rival : rivals) add_rows(rows, "  " + rival.name, rival.held_out);
  return metrics_table("devices", rows) + collectives_text(result.collectives) +
         fmt::format("{}: best epoch {} of {}, {}\n", printable(model), result.best_epoch,
                     result.epochs.size(), format_seconds(result.seconds));
}

std::string collectives_text(const CollectiveFit& fit) {
  if (fit.metrics.empty()) return "";
  std::vector<MetricsRow> rows;
  for (const CollectiveMetrics& metrics : fit.metrics) {
    const bool is_all_reduce = metrics.kind == CollectiveKind::all_reduce;
    const std::string kind = is_all_reduce ? "all-reduce" : "partial sums";
    rows.push_back({kind + ", training", metrics.training});
    rows.push_back({kind + ", unseen lines", metrics.unseen});
    rows.push_back(
        {is_all_reduce ? "  by the links alone" : "  by the memory's rate", metrics.links_unseen});
    rows.push_back({kind + ", held-out files", metrics.held_out});
  }
  return metrics_table("lines", rows);
}

std::string epoch_text(const EpochStats& epoch) {
  const double left = epoch.seconds / epoch.epoch * (epoch.most_epochs - epoch.epoch);
  return fmt::format("epoch {} of {}: validation MAPE {:.2f}%, {} left", epoch.epoch,
                     epoch.most_epochs, 100.0 * epoch.validation_mape, format_seconds(left));
}

}  // namespace neuroshard
