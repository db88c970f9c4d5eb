// Greedy balancing of one quantity of whole tables.
#include "neuroshard/baselines/greedy.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <utility>

#include "neuroshard/baselines/placement.h"
#include "neuroshard/core/stop_clock.h"

namespace neuroshard {

namespace {

double lookups(const Table& table) {
  return static_cast<double>(table.embedding_dim) * table.pooling_factor;
}

}  // namespace

GreedyBaseline::GreedyBaseline(std::string name, Quantity quantity)
    : name_(std::move(name)), quantity_(std::move(quantity)) {}

PlanningResult GreedyBaseline::plan(const Simulator& simulator,
                                    const PlannerOptions& options) const {
  const auto start = std::chrono::steady_clock::now();
  const StopClock clock = stop_clock_of(options);
  const Task& task = simulator.task();
  std::vector<double> quantities;
  for (const Table& table : task.tables) quantities.push_back(quantity_(table, task.optimizer));
  std::vector<int> order(task.tables.size());
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(),
                   [&](int a, int b) { return quantities[a] > quantities[b]; });

  LeastLoadedDevices devices(task);
  ShardingPlan plan;
  for (const int table : order) {
    // For each table, as every device may be looked at, if many are full.
    if (clock.is_over()) throw no_plan_in_time(options);
    const int device = devices.place(table, table_bytes(task, table), quantities[table]);
    if (device < 0) {
      throw no_room(name_, task, table, task.tables[table].embedding_dim, devices.most_room(table));
    }
    plan.shards.push_back(whole_table(task, table, device));
  }
  return priced(simulator, std::move(plan), start);
}

GreedyBaseline greedy_size() {
  return {"greedy-size", [](const Table& table, Optimizer optimizer) {
            return static_cast<double>(shard_bytes(table, table.embedding_dim, optimizer));
          }};
}

GreedyBaseline greedy_dim() {
  return {"greedy-dim",
          [](const Table& table, Optimizer) { return static_cast<double>(table.embedding_dim); }};
}

GreedyBaseline greedy_lookup() {
  return {"greedy-lookup", [](const Table& table, Optimizer) { return lookups(table); }};
}

GreedyBaseline greedy_lookup_size() {
  return {"greedy-lookup-size", [](const Table& table, Optimizer) {
            return lookups(table) * std::log10(static_cast<double>(table.num_embeddings));
          }};
}

}  // namespace neuroshard
