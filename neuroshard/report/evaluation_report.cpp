// Evaluations as text.
#include "neuroshard/report/evaluation_report.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <string_view>
#include <utility>
#include <vector>

#include "neuroshard/core/units.h"
#include "neuroshard/report/slowest_marks.h"
#include "neuroshard/report/text_table.h"

namespace neuroshard {

namespace {

std::string milliseconds(double value) { return fmt::format("{:.3f}", value); }

/// How far `predicted` is from `actual`, with its sign.
std::string error(double predicted, double actual) {
  return fmt::format("{:+.1f}%", actual > 0.0 ? 100.0 * (predicted / actual - 1.0) : 0.0);
}

std::string mark_of(std::size_t device, const CriticalPath& path) {
  std::string mark;
  if (device == path.last_to_enter) mark += "<- the others wait for it";
  if (device == path.last_to_end) mark += mark.empty() ? "<- ends last" : ", ends last";
  return mark;
}

/// Each phase as predicted and as it was; `how` heads the columns of measured or simulated values.
std::string iterations_table(const PlanCost& predicted, const PlanIterations& actual,
                             std::string_view how) {
  const bool reduces =
      std::any_of(actual.devices.begin(), actual.devices.end(),
                  [](const DeviceIteration& device) { return device.all_reduce_ms > 0.0; });
  TextTable table;
  table.add_column("device");
  for (const char* phase : {"backward comm", "all-reduce", "compute", "forward comm", "total"}) {
    if (phase == std::string_view("all-reduce") && !reduces) continue;
    table.add_column(fmt::format("{} ms", phase));
    table.add_column(fmt::format("{} ms", how));
  }
  table.add_column("", TextTable::Align::left);
  const CriticalPath path = critical_path(actual.devices);
  for (std::size_t d = 0; d < actual.devices.size(); ++d) {
    const DeviceCost& expected = predicted.devices[d];
    const DeviceIteration& device = actual.devices[d];
    std::vector<std::string> cells{fmt::format("{}", d)};
    const auto add = [&](double predicted_ms, double actual_ms) {
      cells.push_back(milliseconds(predicted_ms));
      cells.push_back(milliseconds(actual_ms));
    };
    add(expected.backward_comm_ms, device.backward_comm_ms);
    if (reduces) add(expected.all_reduce_ms, device.all_reduce_ms);
    add(expected.compute_ms, device.compute_ms());
    add(expected.forward_comm_ms, device.forward_comm_ms);
    add(expected.total_ms(), device.total_ms());
    cells.push_back(mark_of(d, path));
    table.add_row(std::move(cells));
  }
  return table.to_string() +
         fmt::format(
             "\ncritical path: device {} enters the forward all-to-all last, {:.3f} ms after the "
             "start; device {} ends last\n",
             path.last_to_enter, path.entered_ms, path.last_to_end);
}

std::string correlation_text(const PlanEvaluation& evaluation) {
  if (evaluation.compute_tau) {
    return fmt::format("rank correlation (tau) {:.3f}", *evaluation.compute_tau);
  }
  return "rank correlation (tau) not defined: all devices are equal";
}

/// A line on what the plan was expected to cost, if that is known.
std::string expected_text(const PlanEvaluation& evaluation) {
  if (!evaluation.expected_ms) return "";
  const double expected_ms = *evaluation.expected_ms;
  std::string text = fmt::format("expected {:.3f} ms, as devices that are planned alike differ ({}",
                                 expected_ms, error(expected_ms, evaluation.measured.cost_ms));
  if (evaluation.less_drift) {
    text += fmt::format("; {} less drift", error(expected_ms, evaluation.less_drift->cost_ms));
  }
  return text + ")\n";
}

/// A line on the plan at the speed of the model's samples, if that is known.
std::string less_drift_text(const PlanEvaluation& evaluation) {
  if (!evaluation.less_drift) return "";
  return fmt::format(
      "less drift: {:.3f} ms at the speed that the model's costs are of (prediction {}), from "
      "which "
      "the machine's differed by {:+.1f}%\n",
      evaluation.less_drift->cost_ms,
      error(evaluation.predicted.cost_ms, evaluation.less_drift->cost_ms),
      100.0 * (*evaluation.drift - 1.0));
}

}  // namespace

std::string evaluation_text(const PlanEvaluation& evaluation) {
  TextTable table;
  for (const char* title : {"device", "predicted ms", "measured ms", "+-", "error",
                            "predicted total ms", "part-measured total ms"}) {
    table.add_column(title);
  }
  table.add_column("", TextTable::Align::left);
  const std::vector<std::string> marks = slowest_marks(evaluation.measured.devices);
  for (std::size_t d = 0; d < evaluation.measured.devices.size(); ++d) {
    const DeviceCost& predicted = evaluation.predicted.devices[d];
    const DeviceCost& measured = evaluation.measured.devices[d];
    table.add_row(
        {fmt::format("{}", d), milliseconds(predicted.compute_ms),
         milliseconds(measured.compute_ms), fmt::format("{:.1f}%", 100.0 * evaluation.interval[d]),
         error(predicted.compute_ms, measured.compute_ms), milliseconds(predicted.total_ms()),
         milliseconds(measured.total_ms()), marks[d]});
  }
  return table.to_string() + equally_slow_text(evaluation.measured.devices) +
         fmt::format(
             "\npredicted and measured: computation; part-measured: measured computation with "
             "communication as predicted; +-: half the width of the 95% interval of the "
             "measurement\n"
             "computation: mean error {:.1f}%, {}\n"
             "plan cost: predicted {:.3f} ms, with measured computation {:.3f} ms (prediction "
             "{})\n",
             100.0 * evaluation.compute_mape, correlation_text(evaluation),
             evaluation.predicted.cost_ms, evaluation.measured.cost_ms,
             error(evaluation.predicted.cost_ms, evaluation.measured.cost_ms)) +
         less_drift_text(evaluation) + expected_text(evaluation);
}

std::string simulated_iteration_text(const PlanCost& predicted, const PlanIterations& simulated) {
  return iterations_table(predicted, simulated, "simulated") +
         fmt::format(
             "plan cost: predicted {:.3f} ms, with simulated communication {:.3f} ms (prediction "
             "{})\n",
             predicted.cost_ms, simulated.cost_ms, error(predicted.cost_ms, simulated.cost_ms));
}

std::string measured_iterations_text(const PlanCost& predicted, const PlanIterations& measured) {
  double indices_ms = 0.0;
  for (const DeviceIteration& device : measured.devices) {
    indices_ms = std::max(indices_ms, device.indices_ms);
  }
  const std::string indices =
      indices_ms <= 0.0
          ? ""
          : fmt::format(
                "sending a batch's indices takes up to {:.3f} ms, no part of the cost, as training "
                "does it during other work\n",
                indices_ms);
  return iterations_table(predicted, measured, "measured") + indices +
         fmt::format(
             "plan cost: predicted {:.3f} ms, measured {:.3f} ms +- {:.1f}% (95% interval of {}; "
             "prediction {})\n",
             predicted.cost_ms, measured.cost_ms, 100.0 * measured.interval,
             format_count(measured.iterations, "iteration"),
             error(predicted.cost_ms, measured.cost_ms));
}

std::string value_check_text(const ValueCheck& check) {
  return fmt::format(
      "{}: in {}, {} pooled values differ by at most {:.3g}, {} updated weights by at most {:.3g}, "
      "from those of whole tables on one device; the order of additions may change {:.3g}\n",
      check.agrees() ? "equal" : "NOT EQUAL", format_count(check.iterations, "iteration"),
      check.outputs, check.output_difference, check.weights, check.weight_difference,
      check.tolerance);
}

}  // namespace neuroshard
