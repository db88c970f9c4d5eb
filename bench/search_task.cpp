// Tasks of any size.
#include "bench/search_task.h"

#include <cstdint>
#include <string>

#include "neuroshard/cost/model_catalog.h"
#include "neuroshard/workload/workload.h"

namespace neuroshard::bench {

namespace {

Task make_task(int num_tables, int num_devices) {
  static const Workload workload = find_workload("dlrm-2021", 0);
  constexpr std::int64_t kDims[] = {4, 8, 16, 32, 64, 128};
  Task task;
  task.batch_size = 4096;
  task.optimizer = Optimizer::rowwise_adagrad;
  std::int64_t bytes = 0;
  for (int t = 0; t < num_tables; ++t) {
    Table table = workload.tables[t % workload.tables.size()];
    table.name.append("-").append(std::to_string(t));
    table.embedding_dim = kDims[t % 6];
    bytes += shard_bytes(table, table.embedding_dim, task.optimizer);
    task.tables.push_back(table);
  }
  task.topology.world_size = num_devices;
  task.topology.local_world_size = 1;
  task.topology.memory_bytes.assign(num_devices, bytes / num_devices * 3 / 2 + (1 << 20));
  return task;
}

}  // namespace

std::unique_ptr<Simulator> make_simulator(int num_tables, int num_devices) {
  const Task task = make_task(num_tables, num_devices);
  const CostModels models = load_cost_models({"cpu-xeon-2core", "ethernet-25g"}, task.topology);
  return std::make_unique<Simulator>(task, models.compute, models.communication);
}

}  // namespace neuroshard::bench
