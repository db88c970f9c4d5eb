// Training as JSON.
#include "neuroshard/train/training_io.h"

#include <cmath>
#include <cstdint>
#include <utility>

namespace neuroshard {

namespace {

constexpr const char* kTrainingFormat = "neuroshard/training/1";

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

Json training_json(const ComputeTrainingResult& result, const std::string& model) {
  return Json::Object{
      {"format", kTrainingFormat},
      {"kind", "compute"},
      {"model", model},
      {"best_epochs", Json::Array(result.best_epochs.begin(), result.best_epochs.end())},
      {"seconds", result.seconds},
      {"training", to_json(result.training)},
      {"validation", to_json(result.validation)},
      {"unseen_combinations", to_json(result.unseen_combinations)},
      {"unseen_tables", to_json(result.unseen_tables)}};
}

Json training_json(const CommunicationTrainingResult& result, const std::string& model) {
  return Json::Object{{"format", kTrainingFormat},
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
}

Json model_tests_json(const std::string& model, std::span<const FileTest> tests) {
  Json::Array files;
  for (const auto& [path, test] : tests) {
    files.push_back(Json::Object{{"file", path},
                                 {"bias", test.bias},
                                 {"left_out", static_cast<std::int64_t>(test.left_out)},
                                 {"metrics", to_json(test.metrics)}});
  }
  return Json::Object{
      {"format", "neuroshard/model-test/1"}, {"model", model}, {"files", std::move(files)}};
}

std::string tested_samples_lines(std::span<const FileTest> tests) {
  std::string lines;
  for (const auto& [path, test] : tests) {
    for (const TestedSample& sample : test.samples) {
      const Json line = Json::Object{{"file", path},
                                     {"index", sample.id},
                                     {"predicted_ms", sample.predicted_ms},
                                     {"measured_ms", sample.measured_ms}};
      lines += to_line(line) + "\n";
    }
  }
  return lines;
}

}  // namespace neuroshard
