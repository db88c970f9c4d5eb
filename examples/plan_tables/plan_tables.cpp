// Plans the tables of a small recommendation model over four A100s of one host and prints who gets
// what. Costs are the analytic models' estimates, from data sheets; the name or file of a trained
// model takes their place.
#include <cstdint>
#include <cstdio>
#include <string>
#include <utility>

#include "neuroshard/baselines/planner_catalog.h"
#include "neuroshard/core/error.h"
#include "neuroshard/core/sharding_plan.h"
#include "neuroshard/core/task.h"
#include "neuroshard/core/units.h"
#include "neuroshard/cost/model_catalog.h"
#include "neuroshard/cost/simulator.h"

namespace {

constexpr int kDevices = 4;

/// A table whose rows are looked up as skewed as Zipf's law of the exponent.
neuroshard::Table make_table(std::string name, std::int64_t num_embeddings,
                             std::int64_t embedding_dim, double pooling_factor,
                             double zipf_exponent) {
  return {.name = std::move(name),
          .num_embeddings = num_embeddings,
          .embedding_dim = embedding_dim,
          .pooling_factor = pooling_factor,
          .index_distribution = neuroshard::IndexDistribution{.zipf_exponent = zipf_exponent}};
}

neuroshard::Task make_task() {
  neuroshard::Task task;
  task.batch_size = 16'384;
  task.optimizer = neuroshard::Optimizer::rowwise_adagrad;
  task.tables = {
      make_table("user", 40'000'000, 128, 1.0, 0.6),
      make_table("user_history", 10'000'000, 128, 50.0, 1.0),
      make_table("item", 10'000'000, 128, 1.0, 1.0),
      make_table("item_tags", 200'000, 64, 12.0, 1.1),
      make_table("advertiser", 1'000'000, 64, 1.0, 1.2),
      make_table("query_words", 500'000, 32, 8.0, 1.0),
      make_table("city", 30'000, 32, 1.0, 0.9),
      make_table("hour", 24, 16, 1.0, 0.0),
  };
  task.topology.world_size = kDevices;
  task.topology.local_world_size = kDevices;
  task.topology.memory_bytes.assign(kDevices, neuroshard::parse_bytes("12GiB", "memory"));
  return task;
}

void print_device(const neuroshard::Task& task, const neuroshard::PlanningResult& result,
                  int device) {
  const neuroshard::DeviceCost& cost = result.predicted.devices[device];
  std::printf("device %d: %.3f ms (compute %.3f, all-to-all %.3f), %s\n", device, cost.total_ms(),
              cost.compute_ms, cost.forward_comm_ms + cost.backward_comm_ms,
              neuroshard::format_bytes(static_cast<double>(cost.memory_bytes)).c_str());
  for (const neuroshard::Shard& shard : result.plan.shards) {
    if (shard.device != device) continue;
    std::printf("  %s, columns %lld to %lld\n", task.tables[shard.table].name.c_str(),
                static_cast<long long>(shard.column_offset),
                static_cast<long long>(shard.column_offset + shard.num_columns - 1));
  }
}

}  // namespace

int main() {
  try {
    const neuroshard::Task task = make_task();
    const neuroshard::CostModels models = neuroshard::load_cost_models(
        {"analytic-a100-40gb", "analytic-a100-nvswitch"}, task.topology);
    const neuroshard::Simulator simulator(task, models.compute, models.communication);
    const neuroshard::PlanningResult result =
        neuroshard::find_planner("neuroshard")->plan(simulator, {.seed = 1});

    std::printf("predicted %.3f ms per iteration, found in %s\n", result.predicted.cost_ms,
                neuroshard::format_seconds(result.stats.wall_ms / 1e3).c_str());
    for (int device = 0; device < kDevices; ++device) {
      print_device(simulator.task(), result, device);
    }
  } catch (const neuroshard::Error& error) {  // e.g. InfeasibleError: the tables do not fit
    std::fprintf(stderr, "plan_tables: %s\n", error.what());
    return error.exit_code();
  }
  return 0;
}
