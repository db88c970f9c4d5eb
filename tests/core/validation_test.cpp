// Validity of tables and tasks: every limit, with the whole message that a user would see.
#include <gtest/gtest.h>

#include <cstdint>
#include <functional>
#include <limits>

#include "neuroshard/core/error.h"
#include "neuroshard/core/task.h"
#include "tests/core/reuse_bin.h"
#include "tests/cost/arbitrary_task.h"
#include "tests/io/io_test_util.h"

namespace neuroshard {
namespace {

using testing_tasks::make_table;
using testing_tasks::make_topology;

constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
constexpr double kInfinity = std::numeric_limits<double>::infinity();

Task valid_task() {
  Task task;
  task.batch_size = 65536;
  task.tables = {make_table("a", 100, 16, 2.0), make_table("b", 200, 8, 0.5)};
  task.topology = make_topology(4, 2, 1 << 20);
  return task;
}

ReuseHistogram all_once() {
  ReuseHistogram histogram{};
  histogram[0] = 1.0;
  return histogram;
}

struct Invalid {
  std::function<void(Task&)> change;
  const char* message;
};

void expect_refusals(const std::vector<Invalid>& cases) {
  for (const Invalid& invalid : cases) {
    Task task = valid_task();
    invalid.change(task);
    EXPECT_EQ(input_error([&] { validate(task); }), invalid.message);
  }
}

TEST(ValidateTask, AcceptsTheLimits) {
  EXPECT_NO_THROW(validate(valid_task()));
  Task task = valid_task();
  task.batch_size = kMaxBatchSize;
  task.tables = {make_table("widest", kMaxEmbeddings, kMaxEmbeddingDim, kMaxPoolingFactor),
                 make_table("least", 1, 1, std::numeric_limits<double>::denorm_min())};
  task.topology = make_topology(1, 1, std::int64_t{1} << 60);
  EXPECT_NO_THROW(validate(task));
  task.topology = make_topology(kMaxWorldSize, 1, 1);
  task.batch_size = 1;
  EXPECT_NO_THROW(validate(task));
}

TEST(ValidateTask, NamesTheFieldOfTheTask) {
  expect_refusals(
      {{[](Task& t) { t.batch_size = 0; },
        "batch_size: expected an integer between 1 and 1073741824, got 0"},
       {[](Task& t) { t.batch_size = kMaxBatchSize + 1; },
        "batch_size: expected an integer between 1 and 1073741824, got 1073741825"},
       {[](Task& t) { t.tables.clear(); }, "tables: expected at least one table, got none"},
       {[](Task& t) { t.tables[1].name = "a"; },
        "tables[1].name: expected a name not used before, got \"a\", also the name of tables[0]"},
       {[](Task& t) { t.tables[1].name = ""; },
        "tables[1].name: expected a name that is not empty, got \"\""}});
}

TEST(ValidateTask, NamesTheFieldOfTheTopology) {
  expect_refusals({{[](Task& t) { t.topology.world_size = 0; },
                    "topology.world_size: expected an integer between 1 and 65536, got 0"},
                   {[](Task& t) { t.topology.world_size = 65537; },
                    "topology.world_size: expected an integer between 1 and 65536, got 65537"},
                   {[](Task& t) { t.topology.local_world_size = 3; },
                    "topology.local_world_size: expected a divisor of world_size = 4, got 3"},
                   {[](Task& t) { t.topology.local_world_size = 0; },
                    "topology.local_world_size: expected a divisor of world_size = 4, got 0"},
                   {[](Task& t) { t.topology.memory_bytes.pop_back(); },
                    "topology.memory_bytes: expected one capacity for each of 4 devices, got 3"},
                   {[](Task& t) { t.topology.memory_bytes[2] = 0; },
                    "topology.memory_bytes[2]: expected an integer between 1 and 2^60, got 0"},
                   {[](Task& t) { t.topology.memory_bytes[0] = (std::int64_t{1} << 60) + 1; },
                    "topology.memory_bytes[0]: expected an integer between 1 and 2^60, got "
                    "1152921504606846977"}});
}

TEST(ValidateTable, NamesTheField) {
  expect_refusals(
      {{[](Task& t) { t.tables[0].num_embeddings = 0; },
        "tables[0].num_embeddings: expected an integer between 1 and 4398046511104, got 0"},
       {[](Task& t) { t.tables[1].num_embeddings = kMaxEmbeddings + 1; },
        "tables[1].num_embeddings: expected an integer between 1 and 4398046511104, got "
        "4398046511105"},
       {[](Task& t) { t.tables[0].embedding_dim = -4; },
        "tables[0].embedding_dim: expected an integer between 1 and 65536, got -4"},
       {[](Task& t) { t.tables[0].embedding_dim = 65537; },
        "tables[0].embedding_dim: expected an integer between 1 and 65536, got 65537"},
       {[](Task& t) { t.tables[0].pooling_factor = 0.0; },
        "tables[0].pooling_factor: expected a number above 0, at most 1000000, got 0"},
       {[](Task& t) { t.tables[0].pooling_factor = 1e7; },
        "tables[0].pooling_factor: expected a number above 0, at most 1000000, got 10000000"},
       {[](Task& t) { t.tables[0].pooling_factor = kNan; },
        "tables[0].pooling_factor: expected a number above 0, at most 1000000, got nan"},
       {[](Task& t) { t.tables[0].pooling_factor = kInfinity; },
        "tables[0].pooling_factor: expected a number above 0, at most 1000000, got inf"}});
}

TEST(ValidateTable, HistogramSharesAddUpToOne) {
  expect_refusals(
      {{[](Task& t) {
          t.tables[0].reuse_histogram = all_once();
          t.tables[0].index_distribution = IndexDistribution{};
        },
        "tables[0]: expected reuse_histogram or index_distribution, got both"},
       {[](Task& t) { t.tables[0].reuse_histogram = ReuseHistogram{}; },
        "tables[0].reuse_histogram: expected 17 shares that add up to 1, got a sum of 0"},
       {[](Task& t) {
          t.tables[0].reuse_histogram = all_once();
          (*t.tables[0].reuse_histogram)[3] = 0.25;
        },
        "tables[0].reuse_histogram: expected 17 shares that add up to 1, got a sum of 1.25"},
       {[](Task& t) {
          t.tables[0].reuse_histogram = all_once();
          (*t.tables[0].reuse_histogram)[3] = -0.25;
        },
        "tables[0].reuse_histogram[3]: expected a share between 0 and 1, got -0.25"},
       {[](Task& t) {
          t.tables[0].reuse_histogram = all_once();
          (*t.tables[0].reuse_histogram)[16] = kNan;
        },
        "tables[0].reuse_histogram[16]: expected a share between 0 and 1, got nan"}});
}

TEST(ValidateTable, IndexDistributionsAreOnes) {
  const auto with = [](const IndexDistribution& distribution) {
    return [distribution](Task& t) { t.tables[0].index_distribution = distribution; };
  };
  const std::string classes = "tables[0].index_distribution.access_classes";
  expect_refusals(
      {{with({.zipf_exponent = -0.1, .access_classes = {}}),
        "tables[0].index_distribution.zipf_exponent: expected a number between 0 and 10, got -0.1"},
       {with({.zipf_exponent = kNan, .access_classes = {}}),
        "tables[0].index_distribution.zipf_exponent: expected a number between 0 and 10, got nan"},
       {with({.zipf_exponent = 0.0, .access_classes = {{0, 1.0}}}),
        "tables[0].index_distribution.access_classes[0]: expected a number of rows of at least 1, "
        "got 0"},
       {with({.zipf_exponent = 0.0, .access_classes = {{50, 0.5}, {50, -0.5}}}),
        "tables[0].index_distribution.access_classes[1]: expected a share between 0 and 1, got "
        "-0.5"},
       {with({.zipf_exponent = 0.0, .access_classes = {{50, 0.5}, {51, 0.5}}}),
        "tables[0].index_distribution.access_classes: expected at most num_embeddings = 100 rows, "
        "got 101 rows"},
       // More rows together than 64 bits count.
       {[](Task& t) {
          t.tables[0].index_distribution = IndexDistribution{};
          t.tables[0].index_distribution->access_classes.assign(3'000'000, {kMaxEmbeddings, 0.0});
        },
        "tables[0].index_distribution.access_classes: expected at most num_embeddings = 100 rows, "
        "got 9223372036854775807 rows"},
       {with({.zipf_exponent = 0.0, .access_classes = {{50, 0.5}, {50, 0.25}}}),
        "tables[0].index_distribution.access_classes: expected shares that add up to 1, got a sum "
        "of 0.75"}});
}

/// However their shares are rounded, as those that neuroshard.statistics writes.
TEST(ValidateTable, RowAccessMayTellSingleRowsOfTheLargestTables) {
  for (const std::int64_t rows :
       {kMaxEmbeddings, kMaxEmbeddings - 1, kMaxEmbeddings / 3, std::int64_t{5}}) {
    Table table = make_table("a", rows, 16, 2.0);
    for (const std::int64_t row : {std::int64_t{1}, rows / 2, rows / 2 + 1, rows - 1, rows}) {
      const double share = static_cast<double>(row) / static_cast<double>(rows);
      table.row_access.push_back({share, share});
    }
    EXPECT_NO_THROW(validate(table, "table")) << rows;
  }
}

TEST(ReuseBin, FollowsItsDefinition) {
  EXPECT_EQ(reuse_bin(1), 0);
  EXPECT_EQ(reuse_bin(2), 1);
  for (int bin = 2; bin < kReuseBins - 1; ++bin) {
    EXPECT_EQ(reuse_bin((std::int64_t{1} << (bin - 1)) + 1), bin);
    EXPECT_EQ(reuse_bin(std::int64_t{1} << bin), bin);
  }
  EXPECT_EQ(reuse_bin(32'768), 15);
  EXPECT_EQ(reuse_bin(32'769), 16);
  EXPECT_EQ(reuse_bin(std::numeric_limits<std::int64_t>::max()), 16);
}

TEST(Enumerators, HaveNamesThatReadBack) {
  for (const DataType type : {DataType::fp32, DataType::fp16}) {
    EXPECT_EQ(data_type_from_string(to_string(type)), type);
  }
  for (const Optimizer optimizer : {Optimizer::sgd, Optimizer::rowwise_adagrad}) {
    EXPECT_EQ(optimizer_from_string(to_string(optimizer)), optimizer);
  }
  EXPECT_EQ(data_type_from_string("bf16"), std::nullopt);
  EXPECT_EQ(optimizer_from_string("SGD"), std::nullopt);
}

TEST(Errors, HaveTheirExitCodes) {
  EXPECT_EQ(InputError("x").exit_code(), 2);
  EXPECT_EQ(InfeasibleError("x").exit_code(), 1);
  EXPECT_EQ(MachineError("x").exit_code(), 3);
  EXPECT_STREQ(InputError("a", "b", "c").what(), "a: expected b, got c");
  EXPECT_STREQ(InputError("a", "b", "c").in_file("f").what(), "f: a: expected b, got c");
}

// Names of tables, hosts and interconnects stand in messages as files give them.
TEST(Errors, AreOneLineThatATerminalShows) {
  const std::string name = "\"user\x1b[31m\nplan.json: valid\xc2\x9b\xff\"";
  const std::string shown = R"("user\x1b[31m\x0aplan.json: valid\u009b\xff")";
  const InputError error("tables[1].name", "another", name);
  EXPECT_EQ(error.what(), "tables[1].name: expected another, got " + shown);
  EXPECT_EQ(error.in_file("task.json").what(),
            "task.json: tables[1].name: expected another, got " + shown);
  EXPECT_EQ(InfeasibleError("no room for " + name).what(), "no room for " + shown);
  EXPECT_EQ(MachineError(name).what(), shown);
  EXPECT_EQ(OutOfMemory(name).what(), shown);
}

TEST(ValidateTask, ANameUsedTwiceIsShownNotObeyed) {
  Task task = valid_task();
  task.tables[0].name = task.tables[1].name = "a\nb\x07";
  EXPECT_EQ(
      input_error([&] { validate(task); }),
      R"(tables[1].name: expected a name not used before, got "a\x0ab\x07", also the name of )"
      "tables[0]");
}

}  // namespace
}  // namespace neuroshard
