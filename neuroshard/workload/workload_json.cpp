// Workloads as JSON.
#include "neuroshard/workload/workload_json.h"

#include <utility>

#include "neuroshard/io/task_io.h"
#include "neuroshard/workload/generate/aggregate_statistics.h"

namespace neuroshard {

namespace {

/// As in a task on one device.
Json tables_json(const Workload& workload) {
  Task task;
  task.batch_size = workload.batch_size;
  task.optimizer = workload.optimizer;
  task.tables = workload.tables;
  task.topology.memory_bytes = {std::int64_t{1} << 60};
  return *to_json(task).find("tables");
}

}  // namespace

Json to_json(const WorkloadInfo& info) {
  return Json::Object{{"name", info.name},
                      {"source", info.source},
                      {"num_tables", info.num_tables},
                      {"batch_size", info.batch_size},
                      {"optimizer", to_string(info.optimizer)},
                      {"is_seeded", info.is_seeded}};
}

Json workloads_json() {
  Json::Array workloads;
  for (const WorkloadInfo& info : list_workloads()) workloads.push_back(to_json(info));
  return Json::Object{{"format", "neuroshard/workloads/1"}, {"workloads", std::move(workloads)}};
}

Json workload_json(const Workload& workload, std::int64_t batch_size) {
  const AggregateStatistics statistics = aggregate_statistics(workload.tables, batch_size);
  return Json::Object{{"format", "neuroshard/workload/1"},
                      {"name", workload.name},
                      {"source", workload.source},
                      {"accesses", workload.accesses},
                      {"batch_size", batch_size},
                      {"optimizer", to_string(workload.optimizer)},
                      {"weight_bytes", statistics.weight_bytes},
                      {"num_embeddings", statistics.num_embeddings},
                      {"mean_pooling_factor", statistics.mean_pooling_factor},
                      {"num_indices", statistics.num_indices},
                      {"distinct_rows", statistics.distinct_rows},
                      {"share_of_rows", reuse_histogram_to_json(statistics.share_of_rows)},
                      {"share_of_indices", reuse_histogram_to_json(statistics.share_of_indices)},
                      {"tables", tables_json(workload)}};
}

}  // namespace neuroshard
