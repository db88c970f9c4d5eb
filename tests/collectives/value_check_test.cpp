// Processes that run a plan of rows, columns and copies compute what one device does that has the
// whole tables. The tests start themselves under mpirun.
#include "neuroshard/evaluate/distributed/value_check.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

#include "neuroshard/core/error.h"
#include "neuroshard/core/numbers/random.h"
#include "tests/cli/run_mpi.h"
#include "tests/cost/frontier_tables.h"

namespace neuroshard {
namespace {

using namespace testing_cli;

constexpr std::int64_t kMostBytes = 1 << 24;
/// Of each number of processes; 201 in all.
constexpr int kPlans = 67;

/// Lookups in every way that a table may say they are.
void draw_use_of_rows(Table& table, Random& random) {
  const std::uint64_t use = random.below(4);
  if (use == 0) {
    table.index_distribution = IndexDistribution{.zipf_exponent = random.uniform(0.5, 1.5)};
  } else if (use == 1) {
    table.index_distribution.emplace().access_classes =
        testing_frontier::random_classes(table.num_embeddings, random);
  } else if (use == 2) {
    table.reuse_histogram = testing_frontier::random_histogram(random);
  }
  const std::uint64_t order = random.below(3);
  if (order == 0) table.row_order = RowOrder::by_frequency;
  if (order == 1) table.row_access = testing_frontier::random_row_access(random);
}

Table random_table(int number, Random& random) {
  constexpr std::int64_t kDims[] = {4, 8, 10, 12, 16, 32};
  Table table;
  table.name = fmt::format("t{}", number);
  table.num_embeddings = random.integer(1, random.uniform() < 0.3 ? 4 : 200);
  table.embedding_dim = kDims[random.below(std::size(kDims))];
  table.pooling_factor = random.uniform(0.2, 6.0);
  table.data_type = random.uniform() < 0.2 ? DataType::fp16 : DataType::fp32;
  draw_use_of_rows(table, random);
  return table;
}

Task random_checked_task(int world_size, Random& random) {
  Task task;
  // Now and then there are fewer samples than devices.
  task.batch_size = random.integer(1, random.uniform() < 0.1 ? 3 : 60);
  task.optimizer = random.uniform() < 0.5 ? Optimizer::sgd : Optimizer::rowwise_adagrad;
  const auto tables = static_cast<int>(random.integer(1, 5));
  for (int t = 0; t < tables; ++t) task.tables.push_back(random_table(t, random));
  task.topology.world_size = world_size;
  task.topology.local_world_size = world_size;
  task.topology.memory_bytes.assign(world_size, std::int64_t{1} << 30);
  return task;
}

/// Where a range of `size` is cut: multiples of `step`, with its two ends.
std::vector<std::int64_t> cuts(std::int64_t size, std::int64_t step, int most, Random& random) {
  std::vector<std::int64_t> places{0, size};
  const std::int64_t inner = size % step == 0 ? size / step - 1 : 0;
  for (int i = static_cast<int>(random.below(most + 1)); i > 0 && inner > 0; --i) {
    places.push_back(step * random.integer(1, inner));
  }
  std::sort(places.begin(), places.end());
  places.erase(std::unique(places.begin(), places.end()), places.end());
  return places;
}

/// Each table replicated, or its rows cut into slices whose columns are cut each in its own way.
ShardingPlan random_checked_plan(const Task& task, Random& random) {
  ShardingPlan plan;
  for (int t = 0; t < static_cast<int>(task.tables.size()); ++t) {
    const Table& table = task.tables[t];
    if (random.uniform() < 0.25) {
      plan.replicated_tables.push_back(t);
      continue;
    }
    const std::vector<std::int64_t> rows = cuts(table.num_embeddings, 1, 4, random);
    for (std::size_t r = 0; r + 1 < rows.size(); ++r) {
      const std::vector<std::int64_t> columns = cuts(table.embedding_dim, 4, 2, random);
      for (std::size_t c = 0; c + 1 < columns.size(); ++c) {
        Shard shard{t, columns[c], columns[c + 1] - columns[c],
                    static_cast<int>(random.below(task.topology.world_size))};
        if (rows.size() > 2) {
          shard.row_offset = rows[r];
          shard.num_rows = rows[r + 1] - rows[r];
        }
        plan.shards.push_back(shard);
      }
    }
  }
  // The order of a device's pieces is any.
  random.shuffle(plan.shards);
  return plan;
}

/// A test that starts itself under mpirun, where `as_process` runs in each process.
template <typename F>
void under_mpirun_of_itself(int processes, const F& as_process) {
  SKIP_IN_UNKNOWN_CODE();
  if (started_by_mpirun()) {
    MpiTransport transport;
    ThreadPool pool(1);
    as_process(transport, pool);
    return;
  }
  const testing::TestInfo& test = *testing::UnitTest::GetInstance()->current_test_info();
  const std::string name = fmt::format("{}.{}", test.test_suite_name(), test.name());
  const CommandResult result =
      run_program(under_mpirun(processes, {"--gtest_filter=" + name, "--gtest_brief=1"}));
  EXPECT_EQ(result.exit_code, 0) << result.out << result.err;
}

class ValuesOfPlans : public testing::TestWithParam<int> {};

TEST_P(ValuesOfPlans, AreThoseOfWholeTablesOnOneDevice) {
  under_mpirun_of_itself(GetParam(), [](MpiTransport& transport, ThreadPool& pool) {
    for (int number = 0; number < kPlans; ++number) {
      Random random = Random::for_stream(18, 1000 * transport.size() + number);
      const Task task = random_checked_task(transport.size(), random);
      const ShardingPlan plan = random_checked_plan(task, random);
      ASSERT_THAT(violations(task, plan), testing::IsEmpty()) << number;
      const auto check = check_values(task, plan, number, kMostBytes, transport, pool);
      if (transport.rank() != 0) continue;
      EXPECT_TRUE(check->agrees())
          << "plan " << number << ": outputs by " << check->output_difference << ", weights by "
          << check->weight_difference;
      std::int64_t columns = 0;
      for (const Table& table : task.tables) columns += table.embedding_dim;
      // After an update with row-wise Adagrad, whole tables have other weights than their pieces.
      const int compared = task.optimizer == Optimizer::sgd ? 2 : 1;
      EXPECT_EQ(check->outputs, compared * task.batch_size * columns) << number;
      // All values are multiples of small powers of two: without roots, sums are exact in any
      // order.
      if (task.optimizer == Optimizer::sgd) {
        EXPECT_EQ(check->output_difference, 0.0) << number;
        EXPECT_EQ(check->weight_difference, 0.0) << number;
      }
    }
  });
}

INSTANTIATE_TEST_SUITE_P(Processes, ValuesOfPlans, testing::Values(2, 3, 4),
                         [](const auto& processes) { return fmt::format("{}", processes.param); });

/// A table in two slices and a copy.
Task two_tables() {
  Random random(1);
  Task task = random_checked_task(2, random);
  task.tables.clear();
  for (int t = 0; t < 2; ++t) {
    Table table;
    table.name = fmt::format("t{}", t);
    table.num_embeddings = 20;
    table.embedding_dim = 8;
    table.pooling_factor = 3.0;
    task.tables.push_back(table);
  }
  task.batch_size = 32;
  task.optimizer = Optimizer::sgd;
  return task;
}

TEST(Values, OfAPlanThatLacksRowsOrColumnsDiffer) {
  under_mpirun_of_itself(2, [](MpiTransport& transport, ThreadPool& pool) {
    const Task task = two_tables();
    const ShardingPlan whole{{{0, 0, 8, 0, 0, 10}, {0, 0, 8, 1, 10, 10}}, {1}};
    const auto agrees = [&](const ShardingPlan& plan) {
      const auto check = check_values(task, plan, 1, kMostBytes, transport, pool);
      return !check || check->agrees();
    };
    EXPECT_TRUE(agrees(whole));
    ShardingPlan lacking = whole;
    lacking.shards[1].row_offset = 11;
    lacking.shards[1].num_rows = 9;
    ShardingPlan twice = whole;
    twice.shards[1].row_offset = 9;
    twice.shards[1].num_rows = 11;
    ShardingPlan no_copy = whole;
    no_copy.replicated_tables.clear();
    for (const ShardingPlan& wrong : {lacking, twice, no_copy}) {
      const bool is_first = transport.rank() == 0;
      EXPECT_EQ(agrees(wrong), !is_first);
    }
  });
}

TEST(Values, TablesThatAreTooLargeAreRefused) {
  under_mpirun_of_itself(2, [](MpiTransport& transport, ThreadPool& pool) {
    const Task task = two_tables();
    const ShardingPlan plan{{{0, 0, 8, 0}, {1, 0, 8, 1}}, {}};
    try {
      (void)check_values(task, plan, 1, 1279, transport, pool);
      ADD_FAILURE();
    } catch (const InputError& error) {
      EXPECT_THAT(error.what(), testing::HasSubstr("as each process has them whole"));
    }
    Task three = task;
    three.topology.world_size = 3;
    EXPECT_THROW((void)check_values(three, plan, 1, kMostBytes, transport, pool), InputError);
    Task features = task;
    features.tables[1].num_features = 2;
    EXPECT_THROW((void)check_values(features, plan, 1, kMostBytes, transport, pool), InputError);
  });
}

}  // namespace
}  // namespace neuroshard
