// Metrics of a model and the progress of its training.
#include "cli/training_report.h"

#include <fmt/format.h>

#include "neuroshard/core/units.h"

namespace neuroshard::cli {

Json metrics_json(const PredictionMetrics& metrics) {
  return Json::Object{{"samples", static_cast<std::int64_t>(metrics.count)},
                      {"mse", metrics.mse},
                      {"mae", metrics.mae},
                      {"mape", metrics.mape},
                      {"kendall_tau", metrics.kendall_tau}};
}

void print_metrics_heading(const char* counted) {
  fmt::print("{:<32}{:>8}{:>12}{:>10}{:>10}{:>10}\n", "", counted, "MSE [ms^2]", "MAE [ms]", "MAPE",
             "tau");
}

void print_metrics(const char* name, const PredictionMetrics& metrics) {
  if (metrics.count == 0) {
    fmt::print("{:<32}{:>8}\n", name, 0);
    return;
  }
  fmt::print("{:<32}{:>8}{:>12.4f}{:>10.4f}{:>9.2f}%{:>10.4f}\n", name, metrics.count, metrics.mse,
             metrics.mae, 100.0 * metrics.mape, metrics.kendall_tau);
}

Json metrics_json(const CommunicationMetrics& metrics) {
  return Json::Object{{"forward", metrics_json(metrics.forward)},
                      {"backward", metrics_json(metrics.backward)}};
}

void print_metrics(const std::string& name, const CommunicationMetrics& metrics) {
  print_metrics((name + ", forward").c_str(), metrics.forward);
  print_metrics((name + ", backward").c_str(), metrics.backward);
}

std::function<void(const EpochStats&)> progress_on(ProgressLine& line, int epochs) {
  return [&line, epochs](const EpochStats& epoch) {
    const double left = epoch.seconds / epoch.epoch * (epochs - epoch.epoch);
    line.show(fmt::format("epoch {} of {}: validation MAPE {:.2f}%, {} left", epoch.epoch, epochs,
                          100.0 * epoch.validation_mape, format_seconds(left)));
  };
}

}  // namespace neuroshard::cli
