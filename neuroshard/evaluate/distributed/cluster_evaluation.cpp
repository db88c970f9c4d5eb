// Iterations of plans on a simulated cluster.
#include "neuroshard/evaluate/distributed/cluster_evaluation.h"

#include <unistd.h>

#include <cstddef>
#include <cstdint>
#include <exception>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <utility>

#include "neuroshard/collect/communication/simgrid_simulation.h"
#include "neuroshard/core/error.h"
#include "neuroshard/core/machine/child_process.h"

namespace neuroshard {

namespace {

/// The exit code of a MachineError.
constexpr int kMachineFailed = 3;

std::vector<DeviceIteration> devices_of(const IterationCase& iteration,
                                        const IterationTimes& times) {
  std::vector<DeviceIteration> devices;
  for (std::size_t d = 0; d < times.backward_ms.size(); ++d) {
    devices.push_back({.backward_comm_ms = times.backward_ms[d],
                       .update_ms = iteration.compute_ms[d],
                       .lookup_ms = 0.0,
                       .forward_comm_ms = times.forward_ms[d],
                       .all_reduce_ms = times.all_reduce_ms[d]});
  }
  return devices;
}

/// The devices of each iteration, on the task's topology and with its batch size.
std::vector<std::vector<DeviceIteration>> simulate(const Task& task, const std::string& platform,
                                                   std::span<const IterationCase> iterations) {
  std::vector<std::vector<DeviceIteration>> simulated(iterations.size());
  std::size_t begun = 0;
  simulate_iterations(
      {.platform = platform,
       .world_size = task.topology.world_size,
       .local_world_size = task.topology.local_world_size,
       .batch_size = task.batch_size,
       .data_type = DataType::fp32},
      [&]() -> std::optional<NumberedIteration> {
        if (begun == iterations.size()) return std::nullopt;
        const std::size_t number = begun++;
        return NumberedIteration{static_cast<std::int64_t>(number), iterations[number]};
      },
      [&](std::int64_t number, const IterationTimes& times) {
        simulated[number] = devices_of(iterations[number], times);
      });
  return simulated;
}

/// The message of what the trial throws goes to the descriptor; its exit code is the result.
int exit_code_of(int descriptor, const std::function<void()>& trial) {
  int exit_code = 0;
  std::string message;
  try {
    trial();
  } catch (const Error& error) {
    exit_code = error.exit_code();
    message = error.what();
  } catch (const std::exception& error) {
    exit_code = kMachineFailed;
    message = error.what();
  }
  (void)!::write(descriptor, message.data(), message.size());
  return exit_code;
}

}  // namespace

PlanIterations simulate_plan(const Task& task, const PlanCost& predicted,
                             const std::string& platform, const PlanAdditions& additions) {
  IterationCase iteration;
  for (const DeviceCost& device : predicted.devices) {
    iteration.columns.push_back(device.num_columns);
    iteration.compute_ms.push_back(device.compute_ms);
  }
  iteration.all_reduce_bytes = additions.all_reduce_bytes;
  iteration.partial_sums_ms = additions.partial_sums_ms;
  PlanIterations result;
  result.devices = simulate(task, platform, {&iteration, 1}).front();
  result.cost_ms = iteration_cost_ms(result.devices);
  result.iterations = 1;
  return result;
}

void require_one_cluster(const std::vector<NamedTask>& tasks) {
  for (const NamedTask& named : tasks) {
    const Task& first = tasks.front().task;
    if (named.task.topology.world_size != first.topology.world_size ||
        named.task.topology.local_world_size != first.topology.local_world_size ||
        named.task.batch_size != first.batch_size) {
      throw InputError(
          named.name,
          "the topology and batch size of " + tasks.front().name + ", as one cluster is simulated",
          "another");
    }
  }
}

void require_platform(const std::vector<NamedTask>& tasks, const std::string& platform) {
  const Task& task = tasks.front().task;
  const auto num_devices = static_cast<std::size_t>(task.topology.world_size);
  IterationCase idle;
  idle.columns.assign(num_devices, 0);
  idle.compute_ms.assign(num_devices, 0.0);
  const std::optional<EndedChild> ended = run_in_child([&](int descriptor) {
    return exit_code_of(descriptor, [&] { (void)simulate(task, platform, {&idle, 1}); });
  });
  // Without a process it shows when there is something to simulate.
  if (!ended || ended->exit_code == 0) return;
  if (ended->written.empty()) {
    throw InputError(platform, "a platform that SimGrid can simulate", "one that ends it");
  }
  if (ended->exit_code == kMachineFailed) throw MachineError(ended->written);
  throw InputError(ended->written);
}

void simulate_communication(const std::vector<NamedTask>& tasks, const std::string& platform,
                            std::vector<ComparisonEntry>& entries) {
  require_one_cluster(tasks);
  std::vector<IterationCase> iterations;
  std::vector<std::optional<double>*> costs;
  for (ComparisonEntry& entry : entries) {
    if (!entry.measured_ms) continue;
    IterationCase iteration;
    iteration.columns = entry.device_columns;
    iteration.compute_ms = entry.device_compute_ms;
    iteration.all_reduce_bytes = entry.additions.all_reduce_bytes;
    iteration.partial_sums_ms = entry.additions.partial_sums_ms;
    iterations.push_back(iteration);
    costs.push_back(&entry.measured_ms);
    if (!entry.drift) continue;
    if (!entry.device_less_drift_ms.empty()) {
      iteration.compute_ms = entry.device_less_drift_ms;
    } else {
      for (double& ms : iteration.compute_ms) ms /= *entry.drift;
    }
    iterations.push_back(std::move(iteration));
    costs.push_back(&entry.less_drift_ms);
  }
  const auto simulated = simulate(tasks.front().task, platform, iterations);
  for (std::size_t i = 0; i < costs.size(); ++i) *costs[i] = iteration_cost_ms(simulated[i]);
}

}  // namespace neuroshard
