// The three formats of evaluations share the names of their fields, but for the prefix of what was
// measured or simulated.
#include "neuroshard/evaluate/evaluation_file.h"

#include <limits>
#include <optional>
#include <utility>

#include "neuroshard/io/file.h"
#include "neuroshard/io/json/json_reader.h"
#include "neuroshard/io/sample_io.h"

namespace neuroshard {

namespace {

struct Format {
  std::string_view name;
  EvaluationKind kind;
  std::string_view prefix;  ///< of what was measured or simulated
};

constexpr Format kFormats[] = {
    {"neuroshard/evaluation/1", EvaluationKind::computation, "measured_"},
    {"neuroshard/simulated-iteration/1", EvaluationKind::simulated, "simulated_"},
    {"neuroshard/measured-iterations/1", EvaluationKind::iterations, "measured_"}};

double time_of(const JsonReader& device, const std::string& name) {
  return time_from_json(device.field(name), /*zero_allowed=*/true);
}

double time_or_zero(const JsonReader& device, const std::string& name) {
  const auto field = device.optional_field(name);
  return field ? time_from_json(*field, /*zero_allowed=*/true) : 0.0;
}

/// Memory and columns, which only evaluations of computation have.
void read_sizes(const JsonReader& device, DeviceCost& cost) {
  constexpr std::int64_t kMax = std::numeric_limits<std::int64_t>::max();
  if (const auto bytes = device.optional_field("memory_bytes")) {
    cost.memory_bytes = bytes->integer(0, kMax);
  }
  if (const auto columns = device.optional_field("num_columns")) {
    cost.num_columns = columns->integer(0, kMax);
  }
}

/// `prefix` is that of the communication's fields.
DeviceCost device_cost(const JsonReader& device, const std::string& prefix, double compute_ms) {
  DeviceCost cost;
  cost.compute_ms = compute_ms;
  cost.all_reduce_ms = time_or_zero(device, prefix + "all_reduce_ms");
  cost.forward_comm_ms = time_of(device, prefix + "forward_comm_ms");
  cost.backward_comm_ms = time_of(device, prefix + "backward_comm_ms");
  read_sizes(device, cost);
  return cost;
}

double actual_compute_ms(const JsonReader& device, EvaluationKind kind) {
  switch (kind) {
    case EvaluationKind::computation:
      return time_of(device, "measured_compute_ms");
    case EvaluationKind::simulated:
      return time_of(device, "predicted_compute_ms");
    case EvaluationKind::iterations:
      break;
  }
  return time_of(device, "measured_update_ms") + time_of(device, "measured_lookup_ms");
}

const Format& format_of(const JsonReader& reader) {
  const JsonReader format = reader.field("format");
  for (const Format& known : kFormats) {
    if (format.text() == known.name) return known;
  }
  format.fail(
      "\"neuroshard/evaluation/1\", \"neuroshard/simulated-iteration/1\" or "
      "\"neuroshard/measured-iterations/1\"");
}

EvaluationRecord evaluation_from_json(const JsonReader& reader) {
  const Format& format = format_of(reader);
  const std::string prefix(format.prefix);
  EvaluationRecord record;
  record.kind = format.kind;
  if (const auto sha256 = reader.optional_field("plan_sha256")) record.plan_sha256 = sha256->text();
  if (const auto model = reader.optional_field("model")) record.model = model->object();
  if (const auto warnings = reader.optional_field("warnings")) {
    for (std::size_t i = 0; i < warnings->array_size(); ++i) {
      record.warnings.emplace_back(warnings->element(i).text());
    }
  }
  record.predicted.cost_ms = time_of(reader, "predicted_ms");
  record.actual.cost_ms = time_of(reader, prefix + "ms");
  const JsonReader devices = reader.field("devices");
  if (devices.array_size() == 0) devices.fail("an array of at least one device");
  for (std::size_t d = 0; d < devices.array_size(); ++d) {
    const JsonReader device = devices.element(d);
    record.predicted.devices.push_back(
        device_cost(device, "predicted_", time_of(device, "predicted_compute_ms")));
    record.actual.devices.push_back(
        device_cost(device, prefix, actual_compute_ms(device, format.kind)));
    if (format.kind == EvaluationKind::computation) {
      record.interval.push_back(interval_from_json(device.field("interval")));
    }
  }
  return record;
}

}  // namespace

Json of_plan(Json evaluation, const PlanDocument& plan, const Json& model,
             const std::vector<std::string>& warnings) {
  evaluation.set("plan_sha256", plan_sha256(plan));
  evaluation.set("model", model);
  if (!warnings.empty()) evaluation.set("warnings", Json::Array(warnings.begin(), warnings.end()));
  return evaluation;
}

EvaluationRecord parse_evaluation(std::string_view text, const std::string& file) {
  const Json document = parse_json(text, file);
  return evaluation_from_json(JsonReader(document, file));
}

EvaluationRecord read_evaluation(const std::string& path) {
  return parse_evaluation(read_file(path), path);
}

bool is_evaluation_of(const EvaluationRecord& evaluation, const PlanDocument& plan) {
  const std::vector<DeviceCost>& devices = evaluation.predicted.devices;
  if (devices.size() != static_cast<std::size_t>(plan.task.topology.world_size)) return false;
  if (!evaluation.plan_sha256.empty()) return evaluation.plan_sha256 == plan_sha256(plan);
  if (evaluation.kind != EvaluationKind::computation) return true;
  const std::vector<std::int64_t> memory = device_memory(plan.task, plan.plan);
  for (std::size_t d = 0; d < devices.size(); ++d) {
    if (devices[d].memory_bytes != memory[d]) return false;
    if (plan.predicted && plan.predicted->devices[d].num_columns != devices[d].num_columns) {
      return false;
    }
  }
  return true;
}

}  // namespace neuroshard
