// Comparisons as JSON.
#include "neuroshard/evaluate/comparison_io.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <utility>

#include "neuroshard/core/table.h"
#include "neuroshard/io/sample_io.h"
#include "neuroshard/io/task_io.h"

namespace neuroshard {

namespace {

template <typename T>
void set_if(Json& object, const char* key, const std::optional<T>& value) {
  if (value) object.set(key, *value);
}

double non_negative(const JsonReader& reader) {
  const double value = reader.number();
  if (!(value >= 0.0)) reader.fail("a number of at least 0");
  return value;
}

std::optional<double> optional_ms(const JsonReader& reader, std::string_view key,
                                  bool zero_allowed = false) {
  const std::optional<JsonReader> field = reader.optional_field(key);
  return field ? std::optional(time_from_json(*field, zero_allowed)) : std::nullopt;
}

std::optional<double> optional_number(const JsonReader& reader, std::string_view key) {
  const std::optional<JsonReader> field = reader.optional_field(key);
  return field ? std::optional(non_negative(*field)) : std::nullopt;
}

/// On one device: their bytes of the largest batch are at most 2^60.
constexpr std::int64_t kMostColumns = (std::int64_t{1} << 60) / (4 * kMaxBatchSize);

/// Columns and computation of each device: both or neither; with them, computation without drift.
void read_devices(const JsonReader& reader, ComparisonEntry& entry) {
  const std::optional<JsonReader> columns = reader.optional_field("device_columns");
  const std::optional<JsonReader> compute = reader.optional_field("device_compute_ms");
  if (!columns && !compute) return;
  const std::size_t count = reader.field("device_columns").array_size();
  if (reader.field("device_compute_ms").array_size() != count) {
    compute->fail(fmt::format("{} numbers, one per device", count));
  }
  for (std::size_t d = 0; d < count; ++d) {
    entry.device_columns.push_back(columns->element(d).integer(0, kMostColumns));
    entry.device_compute_ms.push_back(time_from_json(compute->element(d), /*zero_allowed=*/true));
  }
  const std::optional<JsonReader> less_drift = reader.optional_field("device_less_drift_ms");
  if (!less_drift) return;
  if (less_drift->array_size() != count) {
    less_drift->fail(fmt::format("{} numbers, one per device", count));
  }
  for (std::size_t d = 0; d < count; ++d) {
    entry.device_less_drift_ms.push_back(
        time_from_json(less_drift->element(d), /*zero_allowed=*/true));
  }
}

/// Their names, each once.
Json::Array communication_models(std::span<const CostModels> models) {
  Json::Array names;
  for (const CostModels& of_task : models) {
    const Json name(of_task.communication->name());
    if (std::find(names.begin(), names.end(), name) == names.end()) names.push_back(name);
  }
  return names;
}

}  // namespace

Json to_json(const ComparisonEntry& entry) {
  Json json = Json::Object{{"task", entry.task}, {"algorithm", entry.algorithm}};
  if (entry.cuts) json.set("cuts", to_json(*entry.cuts));
  json.set("found", entry.found).set("wall_ms", entry.wall_ms);
  if (!entry.found) return json.set("reason", entry.reason);
  json.set("predicted_ms", entry.predicted_ms);
  set_if(json, "expected_ms", entry.expected_ms);
  set_if(json, "measured_ms", entry.measured_ms);
  set_if(json, "measured_compute_ms", entry.measured_compute_ms);
  set_if(json, "compute_mape", entry.compute_mape);
  set_if(json, "drift", entry.drift);
  set_if(json, "less_drift_ms", entry.less_drift_ms);
  if (!entry.device_columns.empty()) {
    json.set("device_columns",
             Json::Array(entry.device_columns.begin(), entry.device_columns.end()));
    json.set("device_compute_ms",
             Json::Array(entry.device_compute_ms.begin(), entry.device_compute_ms.end()));
  }
  if (!entry.device_less_drift_ms.empty()) {
    json.set("device_less_drift_ms",
             Json::Array(entry.device_less_drift_ms.begin(), entry.device_less_drift_ms.end()));
  }
  const PlanAdditions& additions = entry.additions;
  if (additions.all_reduce_bytes > 0) json.set("all_reduce_bytes", additions.all_reduce_bytes);
  if (additions.partial_sums_ms > 0.0) json.set("partial_sums_ms", additions.partial_sums_ms);
  if (!entry.warnings.empty()) {
    json.set("warnings", Json::Array(entry.warnings.begin(), entry.warnings.end()));
  }
  return json;
}

Json to_json(const ComparisonSummary& summary) {
  // Null and not left out: versions before wrote a number in any case.
  const std::optional<double>& predicted_ms = summary.mean_predicted_ms;
  Json json = Json::Object{{"algorithm", summary.algorithm}};
  if (summary.cuts) json.set("cuts", to_json(*summary.cuts));
  json.set("tasks", summary.tasks)
      .set("solved", summary.solved)
      .set("common", summary.common)
      .set("wins", summary.wins)
      .set("mean_predicted_ms", predicted_ms ? Json(*predicted_ms) : Json())
      .set("mean_wall_ms", summary.mean_wall_ms);
  set_if(json, "mean_measured_ms", summary.mean_measured_ms);
  set_if(json, "mean_measured_compute_ms", summary.mean_measured_compute_ms);
  set_if(json, "measured_wins", summary.measured_wins);
  set_if(json, "mean_gap", summary.mean_gap);
  set_if(json, "mean_gap_less_drift", summary.mean_gap_less_drift);
  set_if(json, "mean_expected_gap", summary.mean_expected_gap);
  set_if(json, "mean_expected_gap_less_drift", summary.mean_expected_gap_less_drift);
  set_if(json, "mean_ratio", summary.mean_ratio);
  set_if(json, "worst_ratio", summary.worst_ratio);
  return json;
}

ComparisonEntry comparison_entry_from_json(const JsonReader& reader) {
  reader.allow_fields({"task", "algorithm", "cuts", "found", "wall_ms", "reason", "predicted_ms",
                       "expected_ms", "measured_ms", "measured_compute_ms", "compute_mape", "drift",
                       "less_drift_ms", "device_columns", "device_compute_ms",
                       "device_less_drift_ms", "all_reduce_bytes", "partial_sums_ms", "warnings"});
  ComparisonEntry entry;
  entry.task = reader.field("task").text();
  entry.algorithm = reader.field("algorithm").text();
  if (const auto cuts = reader.optional_field("cuts")) entry.cuts = cuts_from_json(*cuts);
  entry.found = reader.field("found").boolean();
  entry.wall_ms = time_from_json(reader.field("wall_ms"), /*zero_allowed=*/true);
  if (!entry.found) {
    entry.reason = reader.field("reason").text();
    return entry;
  }
  entry.predicted_ms = time_from_json(reader.field("predicted_ms"));
  entry.expected_ms = optional_ms(reader, "expected_ms");
  entry.measured_ms = optional_ms(reader, "measured_ms");
  entry.measured_compute_ms = optional_ms(reader, "measured_compute_ms", /*zero_allowed=*/true);
  entry.compute_mape = optional_number(reader, "compute_mape");
  entry.drift = optional_number(reader, "drift");
  if (entry.drift && *entry.drift <= 0.0) reader.field("drift").fail("a number above 0");
  entry.less_drift_ms = optional_ms(reader, "less_drift_ms");
  read_devices(reader, entry);
  if (const auto bytes = reader.optional_field("all_reduce_bytes")) {
    entry.additions.all_reduce_bytes = bytes->integer(0);
  }
  entry.additions.partial_sums_ms =
      optional_ms(reader, "partial_sums_ms", /*zero_allowed=*/true).value_or(0.0);
  if (const auto warnings = reader.optional_field("warnings")) {
    for (std::size_t i = 0; i < warnings->array_size(); ++i) {
      entry.warnings.push_back(warnings->element(i).text());
    }
  }
  return entry;
}

Json comparison_document(std::span<const CostModels> models,
                         const std::vector<ComparisonEntry>& entries,
                         const std::vector<ComparisonSummary>& summaries,
                         const ComparisonSetting& setting) {
  Json::Array summary_array;
  for (const ComparisonSummary& summary : summaries) summary_array.push_back(to_json(summary));
  Json::Array entry_array;
  for (const ComparisonEntry& entry : entries) entry_array.push_back(to_json(entry));
  const CostModels& first = models.front();
  Json document = Json::Object{{"format", kComparisonFormat},
                               {"compute_model", first.compute->name()},
                               {"communication_model", first.communication->name()},
                               {"communication_is_simulated", first.communication->is_simulated()}};
  if (const Json::Array names = communication_models(models); names.size() > 1) {
    document.set("communication_models", names);
  }
  document.set("reference", setting.reference);
  if (!setting.platform.empty()) document.set("platform", setting.platform);
  document.set("warnings", Json::Array(setting.warnings.begin(), setting.warnings.end()));
  document.set("summary", std::move(summary_array));
  document.set("entries", std::move(entry_array));
  return document;
}

}  // namespace neuroshard
