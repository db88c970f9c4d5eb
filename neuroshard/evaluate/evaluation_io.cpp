// Evaluations as JSON.
#include "neuroshard/evaluate/evaluation_io.h"

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>

namespace neuroshard {

namespace {

/// A plan without replicated tables has no field for them.
void set_all_reduce(Json& json, const std::string& prefix, double ms) {
  if (ms != 0.0) json.set(prefix + "_all_reduce_ms", ms);
}

/// Sets PREFIX_compute_ms and so on.
void set_costs(Json& json, const std::string& prefix, const DeviceCost& cost) {
  json.set(prefix + "_compute_ms", cost.compute_ms);
  set_all_reduce(json, prefix, cost.all_reduce_ms);
  json.set(prefix + "_forward_comm_ms", cost.forward_comm_ms);
  json.set(prefix + "_backward_comm_ms", cost.backward_comm_ms);
  json.set(prefix + "_total_ms", cost.total_ms());
}

/// The fields that both kinds of iterations have; `how` is "measured" or "simulated".
Json iteration_json(const char* format, const std::string& how, const PlanCost& predicted,
                    const PlanIterations& actual, Json::Array devices) {
  const CriticalPath path = critical_path(actual.devices);
  return Json::Object{{"format", format},
                      {"predicted_ms", predicted.cost_ms},
                      {how + "_ms", actual.cost_ms},
                      {"last_to_enter", path.last_to_enter},
                      {"entered_ms", path.entered_ms},
                      {"last_to_end", path.last_to_end},
                      {"devices", std::move(devices)}};
}

/// Null where a value is no number, which no number says.
Json difference_json(double difference) {
  return std::isfinite(difference) ? Json(difference) : Json();
}

}  // namespace

Json to_json(const PlanEvaluation& evaluation) {
  Json::Array devices;
  for (std::size_t d = 0; d < evaluation.measured.devices.size(); ++d) {
    Json device = Json::Object{{"num_columns", evaluation.predicted.devices[d].num_columns},
                               {"memory_bytes", evaluation.predicted.devices[d].memory_bytes},
                               {"interval", evaluation.interval[d]}};
    set_costs(device, "predicted", evaluation.predicted.devices[d]);
    set_costs(device, "measured", evaluation.measured.devices[d]);
    device.set("part_measured_total_ms", evaluation.measured.devices[d].total_ms());
    if (evaluation.less_drift) {
      device.set("less_drift_compute_ms", evaluation.less_drift->devices[d].compute_ms);
    }
    devices.push_back(std::move(device));
  }
  Json json = Json::Object{
      {"format", "neuroshard/evaluation/1"},
      {"predicted_ms", evaluation.predicted.cost_ms},
      {"measured_ms", evaluation.measured.cost_ms},
      {"part_measured_ms", evaluation.measured.cost_ms},
      {"compute_mape", evaluation.compute_mape},
      {"compute_tau", evaluation.compute_tau ? Json(*evaluation.compute_tau) : Json()}};
  if (evaluation.expected_ms) json.set("expected_ms", *evaluation.expected_ms);
  if (evaluation.less_drift) {
    json.set("drift", *evaluation.drift);
    json.set("less_drift_ms", evaluation.less_drift->cost_ms);
  }
  json.set("devices", std::move(devices));
  return json;
}

Json simulated_iteration_json(const PlanCost& predicted, const PlanIterations& simulated) {
  Json::Array devices;
  for (std::size_t d = 0; d < simulated.devices.size(); ++d) {
    Json device = Json::Object{};
    set_costs(device, "predicted", predicted.devices[d]);
    device.set("simulated_backward_comm_ms", simulated.devices[d].backward_comm_ms);
    set_all_reduce(device, "simulated", simulated.devices[d].all_reduce_ms);
    device.set("simulated_forward_comm_ms", simulated.devices[d].forward_comm_ms);
    device.set("simulated_total_ms", simulated.devices[d].total_ms());
    devices.push_back(std::move(device));
  }
  return iteration_json("neuroshard/simulated-iteration/1", "simulated", predicted, simulated,
                        std::move(devices));
}

Json measured_iterations_json(const PlanCost& predicted, const PlanIterations& measured,
                              bool oversubscribed) {
  Json::Array devices;
  for (std::size_t d = 0; d < measured.devices.size(); ++d) {
    const DeviceIteration& actual = measured.devices[d];
    Json device = Json::Object{};
    set_costs(device, "predicted", predicted.devices[d]);
    device.set("measured_backward_comm_ms", actual.backward_comm_ms);
    device.set("measured_update_ms", actual.update_ms);
    device.set("measured_lookup_ms", actual.lookup_ms);
    set_all_reduce(device, "measured", actual.all_reduce_ms);
    device.set("measured_forward_comm_ms", actual.forward_comm_ms);
    device.set("measured_total_ms", actual.total_ms());
    device.set("measured_indices_ms", actual.indices_ms);
    devices.push_back(std::move(device));
  }
  Json json = iteration_json("neuroshard/measured-iterations/1", "measured", predicted, measured,
                             std::move(devices));
  json.set("interval", measured.interval);
  json.set("iterations", measured.iterations);
  json.set("oversubscribed", oversubscribed);
  return json;
}

Json to_json(const ValueCheck& check) {
  return Json::Object{{"format", "neuroshard/value-check/1"},
                      {"agrees", check.agrees()},
                      {"iterations", check.iterations},
                      {"outputs", check.outputs},
                      {"weights", check.weights},
                      {"output_difference", difference_json(check.output_difference)},
                      {"weight_difference", difference_json(check.weight_difference)},
                      {"tolerance", check.tolerance}};
}

}  // namespace neuroshard
