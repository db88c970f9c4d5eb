// Plans the tables of a small recommendation model over four A100s of one host, prints each
// device's tables, and writes the plan. Computation is an estimate from data sheets, the
// all-to-alls are a learned model's; a model of your own hardware takes their place by its file's
// name.
#include <neuroshard/neuroshard.h>

#include <cstdio>

namespace {

constexpr int kDevices = 4;

neuroshard::Task make_task() {
  // Skewed as by Zipf's law: the row of rank r is looked up r^-exponent times as often as the
  // first.
  const auto zipf = [](double exponent) {
    return neuroshard::IndexDistribution{.zipf_exponent = exponent};
  };
  neuroshard::Task task;
  task.batch_size = 16'384;  // of all devices together
  task.optimizer = neuroshard::Optimizer::rowwise_adagrad;
  task.tables = {
      {.name = "user",
       .num_embeddings = 40'000'000,
       .embedding_dim = 128,
       .pooling_factor = 1.0,
       .index_distribution = zipf(0.6)},
      {.name = "user_history",
       .num_embeddings = 10'000'000,
       .embedding_dim = 128,
       .pooling_factor = 50.0,
       .index_distribution = zipf(1.0)},
      {.name = "item",
       .num_embeddings = 10'000'000,
       .embedding_dim = 128,
       .pooling_factor = 1.0,
       .index_distribution = zipf(1.0)},
      {.name = "item_tags",
       .num_embeddings = 200'000,
       .embedding_dim = 64,
       .pooling_factor = 12.0,
       .index_distribution = zipf(1.1)},
      {.name = "advertiser",
       .num_embeddings = 1'000'000,
       .embedding_dim = 64,
       .pooling_factor = 1.0,
       .index_distribution = zipf(1.2)},
      {.name = "query_words",
       .num_embeddings = 500'000,
       .embedding_dim = 32,
       .pooling_factor = 8.0,
       .index_distribution = zipf(1.0)},
      {.name = "city",
       .num_embeddings = 30'000,
       .embedding_dim = 32,
       .pooling_factor = 1.0,
       .index_distribution = zipf(0.9)},
      {.name = "hour", .num_embeddings = 24, .embedding_dim = 16, .pooling_factor = 1.0},
  };
  task.topology.world_size = kDevices;
  task.topology.local_world_size = kDevices;
  task.topology.memory_bytes.assign(kDevices, neuroshard::parse_bytes("12GiB", "memory"));
  return task;
}

}  // namespace

int main() {
  try {
    const neuroshard::PlannedTask planned =
        neuroshard::plan_task(make_task(), {.models = {"analytic-a100-40gb", "a100-nvswitch"}});
    neuroshard::write_plan(planned.document, "plan.json");

    std::fputs(neuroshard::planning_report(planned).c_str(), stdout);
    for (const std::string& warning : planned.warnings) {
      std::fprintf(stderr, "plan_tables: warning: %s\n", warning.c_str());
    }
  } catch (const neuroshard::Error& error) {  // e.g. InfeasibleError: the tables do not fit
    std::fprintf(stderr, "plan_tables: %s\n", error.what());
    return error.exit_code();
  }
  return 0;
}
