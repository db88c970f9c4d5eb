// The data of the page, in short arrays where there are many, and the page.
#include "neuroshard/report/page/training_page.h"

#include <utility>

#include "neuroshard/core/version.h"
#include "neuroshard/report/page/report_assets.h"
#include "neuroshard/report/page/report_page.h"
#include "neuroshard/train/training_io.h"

namespace neuroshard {

namespace {

Json metrics_json(const std::vector<PartMetrics>& parts) {
  Json::Array array;
  for (const PartMetrics& part : parts) {
    array.push_back(to_json(part.metrics).set("name", part.name));
  }
  return array;
}

Json epochs_json(const std::vector<EpochStats>& epochs) {
  Json::Array array;
  for (const EpochStats& epoch : epochs) {
    array.push_back(Json::Array{epoch.epoch, epoch.training_loss, epoch.validation_mape});
  }
  return array;
}

Json samples_json(const std::vector<PredictedSample>& samples) {
  Json::Array array;
  for (const PredictedSample& sample : samples) {
    array.push_back(Json::Array{sample.predicted_ms, sample.measured_ms, sample.part,
                                sample.batch_size, sample.width});
  }
  return array;
}

Json groups_json(const std::vector<GroupErrors>& groups) {
  Json::Array array;
  for (const GroupErrors& group : groups) {
    array.push_back(Json::Object{{"name", group.name},
                                 {"samples", group.samples},
                                 {"mape", group.mape},
                                 {"bias", group.bias}});
  }
  return array;
}

Json to_json(const TrainingReportData& data) {
  return Json::Object{
      {"version", std::string(version())},
      {"model", data.model},
      {"kind", data.kind},
      {"metrics", metrics_json(data.metrics)},
      {"epochs", epochs_json(data.epochs)},
      {"best_epochs", Json::Array(data.best_epochs.begin(), data.best_epochs.end())},
      {"parts", Json::Array(data.parts.begin(), data.parts.end())},
      {"samples", samples_json(data.samples)},
      {"num_samples", data.num_samples},
      {"group_title", data.group_title},
      {"groups", groups_json(data.groups)}};
}

}  // namespace

std::string training_page(const TrainingReportData& data) {
  return page_of(to_json(data), report_assets().training_script);
}

}  // namespace neuroshard
