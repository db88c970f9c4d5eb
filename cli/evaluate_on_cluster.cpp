// What a plan's simulated iteration looks like beside the predicted one.
#include "cli/evaluate_on_cluster.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <optional>
#include <utility>
#include <vector>

#include "cli/iteration_report.h"
#include "neuroshard/collect/communication/simgrid_simulation.h"
#include "neuroshard/io/json/json.h"

namespace neuroshard::cli {

namespace {

SimulationOptions simulation_of(const Task& task, const std::string& platform) {
  return {.platform = platform,
          .world_size = task.topology.world_size,
          .local_world_size = task.topology.local_world_size,
          .batch_size = task.batch_size,
          .data_type = DataType::fp32};
}

std::vector<DeviceIteration> devices_of(const IterationCase& iteration,
                                        const IterationTimes& times) {
  std::vector<DeviceIteration> devices;
  for (std::size_t d = 0; d < times.backward_ms.size(); ++d) {
    devices.push_back({.backward_comm_ms = times.backward_ms[d],
                       .update_ms = iteration.compute_ms[d],
                       .lookup_ms = 0.0,
                       .forward_comm_ms = times.forward_ms[d]});
  }
  return devices;
}

double cost_of(const std::vector<DeviceIteration>& devices) {
  double cost_ms = 0.0;
  for (const DeviceIteration& device : devices) cost_ms = std::max(cost_ms, device.total_ms());
  return cost_ms;
}

std::vector<DeviceIteration> simulate(const Task& task, const PlanCost& predicted,
                                      const std::string& platform) {
  IterationCase iteration;
  for (const DeviceCost& device : predicted.devices) {
    iteration.columns.push_back(device.num_columns);
    iteration.compute_ms.push_back(device.compute_ms);
  }
  bool begun = false;
  std::vector<DeviceIteration> devices;
  simulate_iterations(
      simulation_of(task, platform),
      [&]() -> std::optional<NumberedIteration> {
        if (std::exchange(begun, true)) return std::nullopt;
        return NumberedIteration{0, iteration};
      },
      [&](std::int64_t, const IterationTimes& times) { devices = devices_of(iteration, times); });
  return devices;
}

Json devices_json(const PlanCost& predicted, const std::vector<DeviceIteration>& simulated) {
  Json::Array devices;
  for (std::size_t d = 0; d < simulated.size(); ++d) {
    const DeviceCost& expected = predicted.devices[d];
    devices.push_back(Json::Object{{"predicted_backward_comm_ms", expected.backward_comm_ms},
                                   {"simulated_backward_comm_ms", simulated[d].backward_comm_ms},
                                   {"predicted_compute_ms", expected.compute_ms},
                                   {"predicted_forward_comm_ms", expected.forward_comm_ms},
                                   {"simulated_forward_comm_ms", simulated[d].forward_comm_ms},
                                   {"predicted_total_ms", expected.total_ms()},
                                   {"simulated_total_ms", simulated[d].total_ms()}});
  }
  return devices;
}

}  // namespace

void simulate_costs(const Task& task, const std::string& platform,
                    const std::function<std::optional<IterationCase>()>& next,
                    const std::function<void(double)>& on_cost) {
  std::int64_t number = 0;
  std::map<std::int64_t, IterationCase> under_way;
  simulate_iterations(
      simulation_of(task, platform),
      [&]() -> std::optional<NumberedIteration> {
        std::optional<IterationCase> iteration = next();
        if (!iteration) return std::nullopt;
        under_way[number] = *iteration;
        return NumberedIteration{number++, std::move(*iteration)};
      },
      [&](std::int64_t id, const IterationTimes& times) {
        on_cost(cost_of(devices_of(under_way.at(id), times)));
        under_way.erase(id);
      });
}

void evaluate_on_cluster(const Simulator& simulator, const ShardingPlan& plan,
                         const std::string& platform, bool json) {
  const PlanCost predicted = simulator.cost(plan);
  const std::vector<DeviceIteration> simulated = simulate(simulator.task(), predicted, platform);
  const double cost_ms = cost_of(simulated);
  if (json) {
    const CriticalPath path = critical_path(simulated);
    const Json result =
        Json::Object{{"predicted_ms", predicted.cost_ms},
                     {"simulated_ms", cost_ms},
                     {"last_to_enter", static_cast<std::int64_t>(path.last_to_enter)},
                     {"last_to_end", static_cast<std::int64_t>(path.last_to_end)},
                     {"devices", devices_json(predicted, simulated)}};
    fmt::print("{}\n", to_line(result));
    return;
  }
  print_iterations(predicted, simulated, "simulated");
  fmt::print(
      "plan cost: predicted {:.3f} ms, with simulated communication {:.3f} ms (prediction "
      "{:+.1f}%)\n",
      predicted.cost_ms, cost_ms, 100.0 * (predicted.cost_ms / cost_ms - 1.0));
}

}  // namespace neuroshard::cli
