// Plans on a simulated cluster, against the predictions of that cluster's shipped model.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <functional>
#include <optional>
#include <vector>

#include "neuroshard/collect/communication/simgrid_simulation.h"
#include "neuroshard/core/machine/child_process.h"
#include "neuroshard/core/numbers/random.h"
#include "neuroshard/cost/compute/analytic_compute.h"
#include "neuroshard/cost/model_catalog.h"
#include "neuroshard/cost/simulator.h"

namespace neuroshard {
namespace {

constexpr std::int64_t kBatchSize = 16'384;

/// One simulated iteration of each case: the cost of the slowest device [ms]. In a process of its
/// own, as SimGrid exists once per process.
std::vector<double> simulated_costs(const Topology& topology,
                                    const std::vector<IterationCase>& cases) {
  const auto simulate = [&] {
    std::size_t begun = 0;
    std::vector<double> costs;
    simulate_iterations(
        {.platform = topology.interconnect,
         .world_size = topology.world_size,
         .local_world_size = topology.local_world_size,
         .batch_size = kBatchSize,
         .data_type = DataType::fp32},
        [&]() -> std::optional<NumberedIteration> {
          if (begun == cases.size()) return std::nullopt;
          const auto number = static_cast<std::int64_t>(begun);
          return NumberedIteration{number, cases[begun++]};
        },
        [&](std::int64_t number, const IterationTimes& times) {
          double cost = 0.0;
          for (std::size_t d = 0; d < times.forward_ms.size(); ++d) {
            const double all_reduce_ms = times.all_reduce_ms.empty() ? 0.0 : times.all_reduce_ms[d];
            cost = std::max(cost, times.backward_ms[d] + all_reduce_ms +
                                      cases[number].compute_ms[d] + times.forward_ms[d]);
          }
          costs.push_back(cost);
        });
    return costs;
  };
  const std::size_t num_bytes = cases.size() * sizeof(double);
  const std::optional<EndedChild> ended = run_in_child([&](int descriptor) {
    try {
      const std::vector<double> costs = simulate();
      if (costs.size() != cases.size()) return 1;
      return write(descriptor, costs.data(), num_bytes) == static_cast<ssize_t>(num_bytes) ? 0 : 1;
    } catch (...) {
      return 2;  // the parent says so
    }
  });
  std::vector<double> costs(cases.size());
  if (!ended || ended->exit_code != 0 || ended->written.size() != num_bytes) {
    ADD_FAILURE() << "no simulation of " << topology.world_size << " devices";
    return costs;
  }
  std::memcpy(costs.data(), ended->written.data(), num_bytes);
  return costs;
}

/// Tables of 4 to 128 columns, some 10 per device.
Task random_task(const Topology& topology, Random& random) {
  Task task;
  task.batch_size = kBatchSize;
  task.topology = topology;
  for (int t = 0; t < 10 * topology.world_size; ++t) {
    Table table;
    table.name = fmt::format("t{}", t);
    table.num_embeddings = random.integer(1000, 1'000'000);
    table.embedding_dim = std::int64_t{4} << random.integer(0, 5);
    table.pooling_factor = random.uniform(1.0, 20.0);
    task.tables.push_back(table);
  }
  return task;
}

/// Every table whole, with the given probability on the device of fewest columns, else on any.
ShardingPlan random_plan(const Task& task, double care, Random& random) {
  ShardingPlan plan;
  std::vector<std::int64_t> columns(task.topology.world_size, 0);
  for (std::size_t t = 0; t < task.tables.size(); ++t) {
    const auto fewest = std::min_element(columns.begin(), columns.end()) - columns.begin();
    Shard shard;
    shard.table = static_cast<int>(t);
    shard.num_columns = task.tables[t].embedding_dim;
    shard.device =
        static_cast<int>(random.uniform(0.0, 1.0) < care ? static_cast<std::uint64_t>(fewest)
                                                         : random.below(columns.size()));
    columns[shard.device] += shard.num_columns;
    plan.shards.push_back(shard);
  }
  return plan;
}

/// Copies of a third of the smaller tables; of the others, half or a third in slices of rows, each
/// anywhere.
ShardingPlan random_plan_of_rectangles(const Task& task, Random& random) {
  const int world_size = task.topology.world_size;
  const auto device = [&] { return static_cast<int>(random.below(world_size)); };
  ShardingPlan plan;
  for (std::size_t t = 0; t < task.tables.size(); ++t) {
    const int number = static_cast<int>(t);
    const Table& table = task.tables[t];
    const std::uint64_t kind = random.below(3);
    if (kind == 0 && table.num_embeddings < 200'000) {
      plan.replicated_tables.push_back(number);
    } else if (kind <= 1) {
      plan.shards.push_back({number, 0, table.embedding_dim, device()});
    } else {
      const std::int64_t slices = random.integer(2, std::min(world_size, 4));
      for (std::int64_t i = 0; i < slices; ++i) {
        const std::int64_t first = table.num_embeddings * i / slices;
        plan.shards.push_back({number, 0, table.embedding_dim, device(), first,
                               table.num_embeddings * (i + 1) / slices - first});
      }
    }
  }
  return plan;
}

/// Simulating many devices is slow.
int num_plans(int world_size) { return world_size < 32 ? 50 : world_size < 64 ? 10 : 4; }

class SimulatedPlans : public testing::TestWithParam<int> {
 protected:
  void SetUp() override {
#ifdef __SANITIZE_THREAD__
    GTEST_SKIP() << "SimGrid is not built so that ThreadSanitizer sees through it";
#endif
  }

  /// Random plans of random tasks, each priced, and one iteration of it simulated.
  static void compare(const std::function<ShardingPlan(const Task&, int, Random&)>& draw) {
    Topology topology;
    topology.world_size = GetParam();
    topology.local_world_size = 1;
    topology.memory_bytes.assign(topology.world_size, std::int64_t{1} << 40);
    topology.interconnect = "ethernet-25g";
    const CostModels models = load_cost_models({"analytic-a100-40gb", "ethernet-25g"}, topology);
    ASSERT_FALSE(models.communication->is_estimate());
    Random random(static_cast<std::uint64_t>(topology.world_size));
    std::vector<IterationCase> cases;
    std::vector<double> predicted;
    for (int i = 0; i < num_plans(topology.world_size); ++i) {
      const Task task = random_task(topology, random);
      const Simulator simulator(task, models.compute, models.communication);
      const ShardingPlan plan = draw(task, i, random);
      const PlanCost cost = simulator.cost(plan);
      IterationCase iteration;
      for (const DeviceCost& device : cost.devices) {
        iteration.columns.push_back(device.num_columns);
        iteration.compute_ms.push_back(device.compute_ms);
      }
      iteration.all_reduce_bytes =
          static_cast<std::int64_t>(all_reduce_bytes(task, plan.replicated_tables));
      iteration.partial_sums_ms = simulator.partial_sums_ms(plan);
      cases.push_back(iteration);
      predicted.push_back(cost.cost_ms);
    }
    const std::vector<double> simulated = simulated_costs(topology, cases);
    ASSERT_EQ(simulated.size(), predicted.size());
    std::vector<double> errors;
    for (std::size_t i = 0; i < simulated.size(); ++i) {
      errors.push_back(std::abs(predicted[i] / simulated[i] - 1.0));
    }
    std::sort(errors.begin(), errors.end());
    RecordProperty("median_error", fmt::format("{:.5f}", errors[errors.size() / 2]));
    RecordProperty("largest_error", fmt::format("{:.5f}", errors.back()));
    // Some twice what docs/experiments/communication_model.md says of these plans. All-to-alls and
    // all-reduces alone may differ: computation and partial sums are given to the simulation as
    // they are predicted.
    EXPECT_LT(errors[errors.size() / 2], 0.001);
    EXPECT_LT(errors.back(), 0.005);
  }
};

TEST_P(SimulatedPlans, CostWhatTheModelSays) {
  compare([](const Task& task, int number, Random& random) {
    return random_plan(task, 0.25 * (number % 5), random);
  });
}

TEST_P(SimulatedPlans, OfSlicesAndCopiesCostWhatTheModelSays) {
  compare([](const Task& task, int, Random& random) {
    return random_plan_of_rectangles(task, random);
  });
}

INSTANTIATE_TEST_SUITE_P(Devices, SimulatedPlans, testing::Values(2, 3, 4, 6, 8, 16, 24, 32, 64),
                         [](const auto& devices) { return fmt::format("{}", devices.param); });

}  // namespace
}  // namespace neuroshard
