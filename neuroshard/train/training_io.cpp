// Training as JSON.
#include "neuroshard/train/training_io.h"

#include <cmath>
#include <cstdint>
#include <utility>

#include "neuroshard/core/text/printable.h"

namespace neuroshard {

namespace {

constexpr const char* kTrainingFormat = "neuroshard/training/1";

/// "all_reduce" and "partial_sums", of what there are lines of.
void add_collectives(const CollectiveFit& fit, Json& json) {
  for (const CollectiveMetrics& metrics : fit.metrics) {
    json.set(std::string(to_string(metrics.kind)),
             Json::Object{{"training", to_json(metrics.training)},
                          {"unseen", to_json(metrics.unseen)},
                          {"held_out", to_json(metrics.held_out)},
                          {"links_unseen", to_json(metrics.links_unseen)}});
  }
}

}  // namespace

Json to_json(const PredictionMetrics& metrics) {
  return Json::Object{
      {"samples", static_cast<std::int64_t>(metrics.count)},
      {"mse", metrics.mse},
      {"mae", metrics.mae},
      {"mape", metrics.mape},
      {"median", metrics.median},
      {"percentile_95", metrics.percentile_95},
      {"largest_factor",
       std::isfinite(metrics.largest_factor) ? Json(metrics.largest_factor) : Json()},
      {"kendall_tau", metrics.kendall_tau ? Json(*metrics.kendall_tau) : Json()}};
}

Json to_json(const CommunicationMetrics& metrics) {
  return Json::Object{{"forward", to_json(metrics.forward)},
                      {"backward", to_json(metrics.backward)}};
}

Json to_json(const DeviceScatter& scatter) {
  return Json::Object{{"scatter", scatter.scatter},
                      {"pairs", static_cast<std::int64_t>(scatter.pairs)}};
}

Json training_json(const ComputeTrainingResult& result, const std::string& model) {
  Json json = Json::Object{
      {"format", kTrainingFormat},
      {"kind", "compute"},
      {"model", model},
      {"best_epochs", Json::Array(result.best_epochs.begin(), result.best_epochs.end())},
      {"seconds", result.seconds},
      {"training", to_json(result.training)},
      {"validation", to_json(result.validation)},
      {"unseen_combinations", to_json(result.unseen_combinations)},
      {"unseen_tables", to_json(result.unseen_tables)}};
  if (result.scatter) json.set("device_scatter", to_json(*result.scatter));
  if (result.large_samples) {
    const LargeSampleMetrics& large = *result.large_samples;
    json.set("large_samples",
             Json::Object{{"from_ms", large.from_ms},
                          {"validation", to_json(large.validation)},
                          {"unseen_combinations", to_json(large.unseen_combinations)},
                          {"unseen_tables", to_json(large.unseen_tables)}});
  }
  if (!result.speeds.empty()) {
    Json::Array speeds;
    for (const auto& [folder, speed] : result.speeds) {
      speeds.push_back(Json::Object{{"folder", as_utf8(folder)}, {"speed", speed}});
    }
    json.set("speeds", std::move(speeds));
  }
  return json;
}

Json training_json(const CommunicationTrainingResult& result, const std::string& model) {
  Json json = Json::Object{{"format", kTrainingFormat},
                           {"kind", "communication"},
                           {"model", model},
                           {"best_epoch", result.best_epoch},
                           {"epochs", result.epochs.size()},
                           {"seconds", result.seconds},
                           {"training", to_json(result.training)},
                           {"validation", to_json(result.validation)},
                           {"unseen_placements", to_json(result.unseen_placements)},
                           {"held_out", to_json(result.held_out)},
                           {"links_unseen_placements", to_json(result.links_unseen_placements)},
                           {"links_held_out", to_json(result.links_held_out)}};
  add_collectives(result.collectives, json);
  return json;
}

Json training_json(const ExtendedCommunicationModel& extended, const std::string& model) {
  Json json =
      Json::Object{{"format", kTrainingFormat}, {"kind", "communication"}, {"model", model}};
  add_collectives(extended.collectives, json);
  return json;
}

Json model_tests_json(const std::string& model, std::span<const FileTest> tests) {
  Json::Array files;
  for (const auto& [path, test, kind] : tests) {
    Json file = Json::Object{{"file", path}};
    if (!kind.empty()) file.set("kind", kind);
    file.set("bias", test.bias);
    file.set("left_out", static_cast<std::int64_t>(test.left_out));
    file.set("metrics", to_json(test.metrics));
    files.push_back(std::move(file));
  }
  Json json = Json::Object{{"format", "neuroshard/model-test/1"}, {"model", model}};
  if (const auto scatter = device_scatter(tests)) json.set("device_scatter", to_json(*scatter));
  return json.set("files", std::move(files));
}

std::string tested_samples_lines(std::span<const FileTest> tests) {
  std::string lines;
  for (const auto& [path, test, kind] : tests) {
    for (const TestedSample& sample : test.samples) {
      Json line = Json::Object{{"file", path}};
      if (!kind.empty()) line.set("kind", kind);
      line.set("index", sample.id);
      line.set("predicted_ms", sample.predicted_ms);
      line.set("measured_ms", sample.measured_ms);
      lines += to_line(line) + "\n";
    }
  }
  return lines;
}

}  // namespace neuroshard
