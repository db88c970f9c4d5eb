// Random tasks: valid, within the options, independent of each other, refused if impossible.
#include "neuroshard/workload/generate/task_generator.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <bit>
#include <numeric>
#include <set>

#include "neuroshard/core/error.h"
#include "neuroshard/core/sharding_plan.h"
#include "neuroshard/workload/workload.h"

namespace neuroshard {
namespace {

std::int64_t total_bytes(const Task& task) {
  std::int64_t sum = 0;
  for (const Table& table : task.tables) {
    sum += shard_bytes(table, table.embedding_dim, task.optimizer);
  }
  return sum;
}

std::string error_of(const Workload& workload, const TaskGeneratorOptions& options) {
  try {
    static_cast<void>(generate_task(workload, options, 0));
  } catch (const InputError& error) {
    return error.what();
  }
  return "no error";
}

TEST(TaskGenerator, TasksAreValidAndWithinTheOptions) {
  const Workload workload = find_workload("dlrm-2021", 1);
  TaskGeneratorOptions options;
  options.seed = 5;
  options.optimizer = Optimizer::rowwise_adagrad;
  std::set<std::size_t> numbers;
  std::set<std::int64_t> dims;
  for (std::uint64_t i = 0; i < 300; ++i) {
    const Task task = generate_task(workload, options, i);
    validate(task);  // names are unique, too
    EXPECT_EQ(task.batch_size, workload.batch_size);
    EXPECT_EQ(task.optimizer, Optimizer::rowwise_adagrad);
    EXPECT_EQ(task.topology.world_size, 4);
    EXPECT_LE(total_bytes(task), std::int64_t{16} << 30);
    numbers.insert(task.tables.size());
    for (const Table& table : task.tables) dims.insert(table.embedding_dim);
  }
  EXPECT_EQ(*numbers.begin(), 10U);
  EXPECT_EQ(*numbers.rbegin(), 60U);
  EXPECT_THAT(dims, testing::ElementsAre(4, 8, 16, 32, 64, 128));
}

TEST(TaskGenerator, MemoryCanBeTight) {
  const Workload workload = find_workload("dlrm-2021", 1);
  TaskGeneratorOptions options;
  options.num_devices = 8;
  options.local_devices = 4;
  options.interconnect = "pcie4";
  options.max_pooling_factor = 5.0;
  options.min_fill = 0.9;
  options.max_fill = 0.98;
  double lowest = 1.0;
  double highest = 0.0;
  for (std::uint64_t i = 0; i < 100; ++i) {
    const Task task = generate_task(workload, options, i);
    validate(task);
    EXPECT_EQ(task.topology.local_world_size, 4);
    EXPECT_EQ(task.topology.interconnect, "pcie4");
    for (const Table& table : task.tables) EXPECT_LE(table.pooling_factor, 5.0);
    const double fill = static_cast<double>(total_bytes(task)) /
                        (8.0 * static_cast<double>(task.topology.memory_bytes.front()));
    lowest = std::min(lowest, fill);
    highest = std::max(highest, fill);
  }
  EXPECT_GT(lowest, 0.899);
  EXPECT_LT(lowest, 0.91);
  EXPECT_GT(highest, 0.97);
  EXPECT_LT(highest, 0.981);
  options.max_fill = 0.8;
  EXPECT_EQ(error_of(workload, options),
            "fill: expected shares with 0 < MIN <= MAX <= 1, got 0.9:0.8");
  options.max_fill = 0.0;
  options.local_devices = 3;
  EXPECT_EQ(error_of(workload, options),
            "local_devices: expected a divisor of the 8 devices, got 3");
}

TEST(TaskGenerator, AFillOfHardlyAnythingLeavesTheMemoryAsItIs) {
  const Workload workload = find_workload("dlrm-2021", 1);
  TaskGeneratorOptions options;
  for (const double fill : {1e-6, 1e-12, 1e-300}) {
    options.min_fill = options.max_fill = fill;
    EXPECT_EQ(generate_task(workload, options, 0).topology.memory_bytes.front(),
              options.memory_bytes);
  }
}

TEST(TaskGenerator, DimensionsAreUniform) {
  const Workload workload = find_workload("dlrm-2022", 1);
  TaskGeneratorOptions options;
  options.max_dim = 32;
  options.memory_bytes = std::int64_t{1} << 40;  // never redrawn
  std::vector<double> counts(4);
  double number = 0.0;
  for (std::uint64_t i = 0; i < 300; ++i) {
    for (const Table& table : generate_task(workload, options, i).tables) {
      counts.at(std::countr_zero(static_cast<std::uint64_t>(table.embedding_dim)) - 2) += 1.0;
      number += 1.0;
    }
  }
  for (const double count : counts) EXPECT_NEAR(count / number, 0.25, 0.02);
  EXPECT_NEAR(number / 300.0, 35.0, 3.0);
}

TEST(TaskGenerator, TablesCanKeepTheirDimensions) {
  const Workload workload = find_workload("criteo-kaggle", 0);
  TaskGeneratorOptions options;
  options.own_dims = true;
  options.min_tables = 5;
  options.max_tables = 5;
  options.memory_bytes = std::int64_t{1} << 40;
  for (std::uint64_t i = 0; i < 20; ++i) {
    for (const Table& table : generate_task(workload, options, i).tables) {
      EXPECT_EQ(table.embedding_dim, workload.tables.front().embedding_dim);
    }
  }
}

TEST(TaskGenerator, DrawsTasksOfEveryPublishedWorkloadOnDevicesThatAreLargeEnough) {
  for (const WorkloadInfo& info : list_workloads()) {
    const Workload workload = find_workload(info.name, 1);
    TaskGeneratorOptions options;
    set_default_tables(options, workload);
    options.memory_bytes = std::int64_t{1} << 42;
    const Task task = generate_task(workload, options, 0);
    EXPECT_EQ(task.batch_size, info.batch_size) << info.name;
    validate(task);
  }
}

TEST(TaskGenerator, TasksDoNotDependOnEachOther) {
  const Workload workload = find_workload("dlrm-2021", 1);
  TaskGeneratorOptions options;
  options.batch_size = 2'048;
  const Task task = generate_task(workload, options, 17);
  static_cast<void>(generate_task(workload, options, 18));
  const Task again = generate_task(workload, options, 17);
  ASSERT_EQ(task.tables.size(), again.tables.size());
  for (std::size_t t = 0; t < task.tables.size(); ++t) {
    EXPECT_EQ(task.tables[t].name, again.tables[t].name);
    EXPECT_EQ(task.tables[t].embedding_dim, again.tables[t].embedding_dim);
  }
  EXPECT_EQ(task.batch_size, 2'048);
  options.seed = 1;
  const Task other = generate_task(workload, options, 17);
  EXPECT_FALSE(other.tables.size() == task.tables.size() &&
               other.tables[0].name == task.tables[0].name);
}

TEST(TaskGenerator, SaysWhyNoTaskCanBeMade) {
  const Workload workload = find_workload("mlperf-dlrm-dcnv2", 0);
  TaskGeneratorOptions options;
  EXPECT_THAT(error_of(workload, options), testing::HasSubstr("at most the 26 tables"));
  options.max_tables = 26;
  options.min_tables = 26;
  options.num_devices = 1;
  options.memory_bytes = std::int64_t{2} << 30;
  EXPECT_THAT(error_of(workload, options), testing::AllOf(testing::HasSubstr("1 x 2.00 GiB"),
                                                          testing::HasSubstr("more memory")));
  options.memory_bytes = std::int64_t{100} << 20;
  options.num_devices = 4'000;
  EXPECT_THAT(error_of(workload, options), testing::HasSubstr("narrowest piece"));
}

TEST(TaskGenerator, ATableThatIsNeverCutHasToFitWhole) {
  Workload workload;
  workload.name = "uncut";
  for (int t = 0; t < 2; ++t) {
    Table& table = workload.tables.emplace_back();
    table.name = "t" + std::to_string(t);
    table.num_embeddings = 1'000'000;
    table.embedding_dim = 10;  // no multiple of 4: 40 MB, of which 4 columns would have 16
    table.pooling_factor = 1.0;
  }
  TaskGeneratorOptions options;
  options.own_dims = true;
  options.min_tables = options.max_tables = 2;
  options.num_devices = 4;
  options.memory_bytes = 30'000'000;
  EXPECT_THAT(error_of(workload, options), testing::HasSubstr("narrowest piece"));
  options.memory_bytes = 60'000'000;
  EXPECT_EQ(generate_task(workload, options, 0).tables.size(), 2u);
}

TEST(TaskGenerator, RefusesOptionsOutOfRange) {
  const Workload workload = find_workload("mlperf-dlrm-dcnv2", 0);
  TaskGeneratorOptions good;
  good.max_tables = 12;
  EXPECT_EQ(error_of(workload, good), "no error");
  const auto with = [&](auto change) {
    TaskGeneratorOptions options = good;
    change(options);
    return error_of(workload, options);
  };
  EXPECT_THAT(with([](auto& o) { o.min_tables = 0; }), testing::HasSubstr("min_tables"));
  EXPECT_THAT(with([](auto& o) { o.min_tables = 20; }), testing::HasSubstr("max_tables"));
  EXPECT_THAT(with([](auto& o) { o.max_dim = 48; }), testing::HasSubstr("max_dim"));
  EXPECT_THAT(with([](auto& o) { o.max_dim = 2; }), testing::HasSubstr("max_dim"));
  EXPECT_THAT(with([](auto& o) { o.num_devices = 0; }), testing::HasSubstr("num_devices"));
  EXPECT_THAT(with([](auto& o) { o.memory_bytes = 0; }), testing::HasSubstr("memory_bytes"));
  EXPECT_THAT(with([](auto& o) { o.batch_size = -1; }), testing::HasSubstr("batch_size"));
}

}  // namespace
}  // namespace neuroshard
