// Printing a calibration.
#include "neuroshard/report/calibration_report.h"

#include <fmt/format.h>

#include "neuroshard/core/text/printable.h"
#include "neuroshard/report/text_table.h"
#include "neuroshard/report/training_report.h"
#include "neuroshard/train/training_io.h"

namespace neuroshard {

std::string calibration_text(const CalibrationResult& result, const std::string& model_file) {
  TextTable table;
  table.add_column("", TextTable::Align::left);
  for (const char* title : {"samples", "median", "95%", "worst"}) table.add_column(title);
  const auto add = [&](const char* name, const PredictionMetrics& metrics) {
    table.add_row({name, fmt::format("{}", metrics.count),
                   fmt::format("{:.1f}%", 100.0 * metrics.median),
                   fmt::format("{:.1f}%", 100.0 * metrics.percentile_95),
                   fmt::format("{:.2f}x", metrics.largest_factor)});
  };
  add("as it was", result.before);
  add("calibrated, on what it was trained on", result.after);
  add("calibrated, on those that chose its epoch", result.validation);
  std::string before;
  if (result.samples_before > 0) {
    before = fmt::format("{} of the {} samples were there already, as a run before measured them\n",
                         result.samples_before, result.samples);
  }
  std::string meanwhile;
  if (result.slowness) {
    meanwhile = fmt::format(
        "meanwhile reference sets took {:.2f} to {:.2f} times what they usually did; costs are at "
        "the usual speed\n",
        result.slowness->fastest, result.slowness->slowest);
  }
  return table.to_string() + before + meanwhile + scatter_text(result.scatter) +
         fmt::format("{}: costs here are {:.3f} times those that the model predicted\n",
                     printable(model_file), result.speed);
}

Json calibration_json(const CalibrationResult& result, const std::string& model_file) {
  Json json = Json::Object{{"format", "neuroshard/calibration/1"},
                           {"model", model_file},
                           {"samples", result.samples},
                           {"samples_before", result.samples_before},
                           {"speed", result.speed}};
  if (result.slowness) {
    json.set("slowness", Json::Array{result.slowness->fastest, result.slowness->slowest});
  }
  if (result.scatter) json.set("device_scatter", to_json(*result.scatter));
  json.set("before", to_json(result.before));
  json.set("after", to_json(result.after));
  json.set("validation", to_json(result.validation));
  return json;
}

}  // namespace neuroshard
