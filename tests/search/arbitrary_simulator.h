// Simulators for tests of the search: random tasks under analytic and random neural models.
#pragma once

#include <rapidcheck.h>

#include <memory>
#include <utility>

#include "neuroshard/cost/communication/analytic_communication.h"
#include "neuroshard/cost/compute/analytic_compute.h"
#include "neuroshard/cost/simulator.h"
#include "tests/cost/arbitrary_network.h"
#include "tests/cost/arbitrary_task.h"

namespace neuroshard::testing_tasks {

inline std::shared_ptr<const ComputeCostModel> analytic_compute() {
  return std::make_shared<AnalyticComputeModel>(find_compute_hardware("a100-40gb"));
}

inline Simulator make_simulator(const Task& task,
                                std::shared_ptr<const ComputeCostModel> compute = nullptr) {
  return {task, compute ? std::move(compute) : analytic_compute(),
          std::make_shared<AnalyticCommunicationModel>(find_interconnect("a100-nvswitch"))};
}

inline std::shared_ptr<const ComputeCostModel> arbitrary_compute() {
  using testing_networks::random_model;
  const auto seed = *rc::gen::arbitrary<std::uint64_t>();
  switch (*rc::gen::inRange(0, 3)) {
    case 0:
      return analytic_compute();
    case 1:
      return random_model(ComputeArchitecture::bounded_loads, seed);
    default:
      return random_model(ComputeArchitecture::published, seed);
  }
}

/// From too little memory to plenty.
inline Task task_of_any_tightness() {
  return *arbitrary_task(*rc::gen::element(0.5, 0.67, 0.8, 0.9, 1.0, 1.5, 10.0));
}

/// Likewise, half of them with conditions on their tables.
inline Task conditioned_task() {
  Task task = task_of_any_tightness();
  return *rc::gen::arbitrary<bool>() ? with_conditions(std::move(task)) : task;
}

inline Task one_host_task(std::vector<Table> tables, int num_devices, std::int64_t memory_bytes,
                          Optimizer optimizer = Optimizer::sgd) {
  Task task;
  task.batch_size = 1024;
  task.optimizer = optimizer;
  task.tables = std::move(tables);
  task.topology = make_topology(num_devices, num_devices, memory_bytes);
  return task;
}

}  // namespace neuroshard::testing_tasks
