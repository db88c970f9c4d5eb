// A task and a plan of it for tests of what follows from plans.
#pragma once

#include <string>
#include <vector>

#include "neuroshard/plan/plan_task.h"
#include "tests/cost/narrow_model.h"

namespace neuroshard::testing_decide {

inline const std::vector<std::string> kEstimates{"analytic-a100-40gb", "analytic-a100-nvswitch"};

/// Twelve tables, one of them much used and one tiny, on four devices.
inline Task make_task() {
  Task task;
  task.batch_size = 4096;
  for (int i = 0; i < 12; ++i) {
    Table table;
    table.name = "t" + std::to_string(i);
    table.num_embeddings = 20'000 * (i + 1);
    table.embedding_dim = 32 * (1 + i % 3);
    table.pooling_factor = 1.0 + 3.0 * (i % 4);
    task.tables.push_back(table);
  }
  task.tables[2].name = "hot:one";
  task.tables[2].pooling_factor = 60.0;
  task.tables[3].num_embeddings = 10;
  task.topology.world_size = task.topology.local_world_size = 4;
  task.topology.memory_bytes.assign(4, std::int64_t{1} << 30);
  return task;
}

inline PlanDocument make_plan(const Task& task = make_task()) {
  PlanRequest request;
  request.models = kEstimates;
  request.options.steps = 2'000;
  request.options.num_threads = 2;
  return plan_task(task, request).document;
}

/// Whole tables of 32 columns, placed by a model that was trained on no narrower piece, which it
/// writes to `path`.
inline PlanDocument make_uncut_plan(const std::string& path) {
  testing_networks::write_wide_pieces_model(path, 32);
  Task task = make_task();
  for (Table& table : task.tables) table.embedding_dim = 32;
  PlanRequest request;
  request.models = {path, "analytic-a100-nvswitch"};
  request.options.steps = 500;
  request.options.cuts = {.columns = false, .rows = false, .replicas = false};
  return plan_task(task, request).document;
}

}  // namespace neuroshard::testing_decide
