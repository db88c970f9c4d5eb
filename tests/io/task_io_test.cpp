// Tasks: the golden file, the round trip, and every way to write one wrong.
#include "neuroshard/io/task_io.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "arbitrary_task.h"
#include "io_test_util.h"

namespace neuroshard {
namespace {

const std::string kValidTask =
    R"({"format": "neuroshard/task/1", "batch_size": 64, "optimizer": "sgd",
"tables": [{"name": "a", "num_embeddings": 10, "embedding_dim": 8, "pooling_factor": 2.5,
  "data_type": "fp16", "index_distribution": {"zipf_exponent": 1.5}},
 {"name": "b", "num_embeddings": 100, "embedding_dim": 16, "pooling_factor": 3,
  "index_distribution": {"access_classes": [[40, 0.75], [60, 0.25]]}},
 {"name": "c", "num_embeddings": 1000, "embedding_dim": 32, "pooling_factor": 4,
  "reuse_histogram": [0.5, 0.5, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0]}],
"topology": {"world_size": 4, "local_world_size": 2, "memory_bytes": [1, 2, 3, 4]}})";

Task golden_task() {
  Task task;
  task.batch_size = 65536;
  task.optimizer = Optimizer::rowwise_adagrad;
  task.tables.resize(4);
  task.tables[0] = {"user", 40'000'000, 128, 3.0, DataType::fp32, {}, IndexDistribution{1.1, {}}};
  task.tables[1] = {"item",
                    1'000'000,
                    64,
                    1.0 / 3.0,
                    DataType::fp16,
                    {},
                    IndexDistribution{0.0, {{1'000, 0.9}, {999'000, 0.1}}}};
  task.tables[2] = {"query \"é\"", 5'000, 10, 1e-7, DataType::fp32, ReuseHistogram{}, {}};
  (*task.tables[2].reuse_histogram)[0] = 0.7;
  (*task.tables[2].reuse_histogram)[16] = 0.3;
  task.tables[3] = {"uniform", 1, 4, 20.0, DataType::fp32, {}, {}};
  task.topology = {4, 2, {85'899'345'920, 85'899'345'920, 1, 2}, "nvlink"};
  return task;
}

TEST(TaskIo, GoldenFile) {
  const std::string written = task_text(golden_task());
  const std::string bytes = golden("task.json", written);
  EXPECT_EQ(written, bytes);
  expect_same(parse_task(bytes, "task.json"), golden_task());
}

TEST(TaskIo, GoldenFileOfPinnedTables) {
  Task task = golden_task();
  task.tables[1].devices = {3, 0};
  task.tables[2].same_device_as = "item";
  task.tables[3].allow = {.columns = true, .rows = false, .replicas = false};
  task.tables[3].same_device_as = "query \"é\"";
  const std::string written = task_text(task);
  const std::string bytes = golden("pinned_task.json", written);
  EXPECT_EQ(written, bytes);
  expect_same(parse_task(bytes, "pinned_task.json"), task);
}

TEST(TaskIo, Defaults) {
  const Task task = parse_task(
      R"({"format": "neuroshard/task/1", "batch_size": 1, "optimizer": "sgd",
          "tables": [{"name": "t", "num_embeddings": 1, "embedding_dim": 1, "pooling_factor": 1}],
          "topology": {"world_size": 3, "memory_bytes": 7}})",
      "task.json");
  EXPECT_EQ(task.tables[0].data_type, DataType::fp32);
  EXPECT_EQ(task.topology.local_world_size, 3);
  EXPECT_EQ(task.topology.memory_bytes, (std::vector<std::int64_t>{7, 7, 7}));
  EXPECT_THAT(task_text(task), testing::HasSubstr("\"memory_bytes\": 7\n"));
}

TEST(TaskIo, WhereTheHotRowsAre) {
  const auto with = [](const std::string& field) {
    return replaced(kValidTask, "\"embedding_dim\": 16", "\"embedding_dim\": 16, " + field);
  };
  const std::string plain = task_text(parse_task(kValidTask, "f"));
  EXPECT_THAT(plain, testing::Not(testing::HasSubstr("\"row_")));
  EXPECT_EQ(task_text(parse_task(with("\"row_order\": \"hashed\""), "f")), plain);
  const Task ordered = parse_task(with("\"row_order\": \"by_frequency\""), "f");
  EXPECT_EQ(ordered.tables[1].row_order, RowOrder::by_frequency);
  EXPECT_THAT(task_text(ordered), testing::HasSubstr("\"row_order\": \"by_frequency\""));
  // Shares of the accesses may stay the same.
  const Task measured = parse_task(with("\"row_access\": [[0.25, 0.5], [0.5, 0.5], [1, 1]]"), "f");
  ASSERT_EQ(measured.tables[1].row_access.size(), 3u);
  EXPECT_EQ(measured.tables[1].row_access[1].access_share, 0.5);
  expect_same(parse_task(task_text(measured), "f"), measured);
}

TEST(TaskIo, ReadsAndWritesFiles) {
  const TemporaryFolder folder;
  write_task(golden_task(), folder.file("task.json"));
  expect_same(read_task(folder.file("task.json")), golden_task());
  EXPECT_EQ(input_error([&] { (void)read_task(folder.file("none")); }),
            folder.file("none") + ": expected a readable file, got No such file or directory");
  Task invalid = golden_task();
  invalid.batch_size = 0;
  EXPECT_EQ(input_error([&] { write_task(invalid, folder.file("invalid.json")); }),
            "batch_size: expected an integer between 1 and 1073741824, got 0");
  EXPECT_EQ(folder.num_files(), 1u);
}

RC_GTEST_PROP(TaskIo, ReadsBackBitForBit, ()) {
  const Task task = arbitrary_task();
  const std::string text = task_text(task);
  const Task back = parse_task(text, "task.json");
  expect_same(back, task);
  RC_ASSERT(task_text(back) == text);
  RC_ASSERT(!testing::Test::HasFailure());
}

const Malformed kMalformedTasks[] = {
    {"neuroshard/task/1", "neuroshard/task/2",
     "f: format: expected \"neuroshard/task/1\", got \"neuroshard/task/2\""},
    {"\"neuroshard/task/1\"", "1", "f: format: expected a string, got 1"},
    {"\"format\"", "\"Format\"", "f: format: expected this required field, got nothing"},
    {"\"batch_size\": 64,", "", "f: batch_size: expected this required field, got nothing"},
    {"\"batch_size\": 64", "\"batch_size\": 64.0",
     "f: batch_size: expected an integer (no fraction, no exponent, at most 64 bits), got 64.0"},
    {"\"batch_size\": 64", "\"batch_size\": 6.5e4",
     "f: batch_size: expected an integer (no fraction, no exponent, at most 64 bits), got 65000.0"},
    {"\"batch_size\": 64", "\"batch_size\": 9223372036854775808",
     "f: batch_size: expected an integer of at most 9223372036854775807, got 9223372036854775808"},
    {"\"batch_size\": 64", "\"batch_size\": 99999999999999999999999",
     "f: batch_size: expected an integer (no fraction, no exponent, at most 64 bits), got 1e+23"},
    {"\"batch_size\": 64", "\"batch_size\": 0",
     "f: batch_size: expected an integer between 1 and 1073741824, got 0"},
    {"\"batch_size\": 64", "\"batch_size\": \"64\"",
     "f: batch_size: expected an integer, got \"64\""},
    {"\"batch_size\": 64", "\"batch_size\": 64, \"batch_size\": 65",
     "f: batch_size: expected this field once, got it more than once"},
    {"\"batch_size\": 64", "\"batch_size\": 64, \"batchsize\": 65",
     "f: expected no fields but format, batch_size, optimizer, tables, topology, allow, got "
     "\"batchsize\""},
    {"\"sgd\"", "\"adam\"", "f: optimizer: expected \"sgd\" or \"rowwise_adagrad\", got \"adam\""},
    {"\"tables\"", "\"tablets\"",
     "f: expected no fields but format, batch_size, optimizer, tables, topology, allow, got "
     "\"tablets\""},
    {"\"name\": \"a\"", "\"name\": \"b\"",
     "f: tables[1].name: expected a name not used before, got \"b\", also the name of tables[0]"},
    {"\"name\": \"a\"", "\"name\": \"\"",
     "f: tables[0].name: expected a name that is not empty, got \"\""},
    {"\"embedding_dim\": 16", "\"embedding_dim\": 16, \"allow\": [\"rows\", \"pages\"]",
     "f: tables[1].allow[1]: expected \"columns\", \"rows\" or \"replicas\", got \"pages\""},
    {"\"embedding_dim\": 16", "\"embedding_dim\": 16, \"allow\": [\"rows\", \"rows\"]",
     "f: tables[1].allow[1]: expected each cut once, got \"rows\" again"},
    {"\"embedding_dim\": 16", "\"embedding_dim\": 16, \"min_shard_rows\": -1",
     "f: tables[1].min_shard_rows: expected an integer between 0 and 4398046511104, got -1"},
    {"\"embedding_dim\": 16", "\"embedding_dim\": 16, \"row_order\": \"sorted\"",
     "f: tables[1].row_order: expected \"hashed\" or \"by_frequency\", got \"sorted\""},
    {"\"embedding_dim\": 16",
     "\"embedding_dim\": 16, \"row_order\": \"hashed\", \"row_access\": [[1, 1]]",
     "f: tables[1]: expected row_order or row_access, got both"},
    {"\"embedding_dim\": 16", "\"embedding_dim\": 16, \"row_access\": []",
     "f: tables[1].row_access: expected at least one [share_of_rows, share_of_accesses], got an "
     "empty array"},
    {"\"embedding_dim\": 16", "\"embedding_dim\": 16, \"row_access\": [[0.5, 0.9, 1], [1, 1]]",
     "f: tables[1].row_access[0]: expected a pair [share_of_rows, share_of_accesses], got an array "
     "of 3"},
    {"\"embedding_dim\": 16", "\"embedding_dim\": 16, \"row_access\": [[0, 0.5], [1, 1]]",
     "f: tables[1].row_access[0]: expected a share of the rows above 0 by at least 2^-43, at most "
     "1, got 0"},
    {"\"embedding_dim\": 16", "\"embedding_dim\": 16, \"row_access\": [[5e-324, 0.5], [1, 1]]",
     "f: tables[1].row_access[0]: expected a share of the rows above 0 by at least 2^-43, at most "
     "1, got 5e-324"},
    {"\"embedding_dim\": 16",
     "\"embedding_dim\": 16, \"row_access\": [[0.5, 0.5], [0.5, 0.6], [1, 1]]",
     "f: tables[1].row_access[1]: expected a share of the rows above 0.5 by at least 2^-43, at "
     "most 1, got 0.5"},
    {"\"embedding_dim\": 16", "\"embedding_dim\": 16, \"row_access\": [[0.5, 0.5], [1.5, 1]]",
     "f: tables[1].row_access[1]: expected a share of the rows above 0.5 by at least 2^-43, at "
     "most 1, got 1.5"},
    {"\"embedding_dim\": 16",
     "\"embedding_dim\": 16, \"row_access\": [[0.5, 0.75], [0.75, 0.5], [1, 1]]",
     "f: tables[1].row_access[1]: expected a share of the accesses from 0.75 to 1, got 0.5"},
    {"\"embedding_dim\": 16", "\"embedding_dim\": 16, \"row_access\": [[0.5, -0.25], [1, 1]]",
     "f: tables[1].row_access[0]: expected a share of the accesses from 0 to 1, got -0.25"},
    {"\"embedding_dim\": 16", "\"embedding_dim\": 16, \"row_access\": [[0.5, 0.75], [1, 0.875]]",
     "f: tables[1].row_access: expected [1, 1] as the last point, got [1, 0.875]"},
    {"\"embedding_dim\": 16", "\"embedding_dim\": 16, \"row_access\": [[0.5, 1]]",
     "f: tables[1].row_access: expected [1, 1] as the last point, got [0.5, 1]"},
    {"\"embedding_dim\": 16", "\"embedding_dim\": 16, \"row_access\": [[0.5, \"all\"], [1, 1]]",
     "f: tables[1].row_access[0][1]: expected a number, got \"all\""},
    {"\"name\": \"a\"", "\"name\": null", "f: tables[0].name: expected a string, got null"},
    {"\"embedding_dim\": 16, ", "",
     "f: tables[1].embedding_dim: expected this required field, got nothing"},
    {"\"embedding_dim\": 16", "\"embedding_dim\": 16, \"dim\": 16",
     "f: tables[1]: expected no fields but name, num_embeddings, embedding_dim, pooling_factor, "
     "data_type, reuse_histogram, index_distribution, row_order, row_access, min_shard_columns, "
     "min_shard_rows, allow, extra_bytes_per_shard, extra_bytes_per_column, num_features, devices, "
     "same_device_as, got \"dim\""},
    {"\"embedding_dim\": 16", "\"embedding_dim\": 16, \"devices\": []",
     "f: tables[1].devices: expected at least one device, got an empty array"},
    {"\"embedding_dim\": 16", "\"embedding_dim\": 16, \"devices\": 3",
     "f: tables[1].devices: expected an array, got 3"},
    {"\"embedding_dim\": 16", "\"embedding_dim\": 16, \"devices\": [0, -1]",
     "f: tables[1].devices[1]: expected an integer between 0 and 65535, got -1"},
    {"\"embedding_dim\": 16", "\"embedding_dim\": 16, \"devices\": [0, 4]",
     "f: tables[1].devices[1]: expected a device from 0 to 3, got 4"},
    {"\"embedding_dim\": 16", "\"embedding_dim\": 16, \"devices\": [0, 3, 0]",
     "f: tables[1].devices: expected each device once, got 0 twice"},
    {"\"embedding_dim\": 16", "\"embedding_dim\": 16, \"same_device_as\": \"\"",
     "f: tables[1].same_device_as: expected the name of another table of the task, got \"\""},
    {"\"embedding_dim\": 16", "\"embedding_dim\": 16, \"same_device_as\": \"z\"",
     "f: tables[1].same_device_as: expected the name of another table of the task, got \"z\""},
    {"\"embedding_dim\": 16", "\"embedding_dim\": 16, \"num_features\": 0",
     "f: tables[1].num_features: expected an integer between 1 and 1024, got 0"},
    {"\"embedding_dim\": 16", "\"embedding_dim\": 65537",
     "f: tables[1].embedding_dim: expected an integer between 1 and 65536, got 65537"},
    {"\"num_embeddings\": 100,", "\"num_embeddings\": -1,",
     "f: tables[1].num_embeddings: expected an integer between 1 and 4398046511104, got -1"},
    {"\"pooling_factor\": 2.5", "\"pooling_factor\": 0",
     "f: tables[0].pooling_factor: expected a number above 0, at most 1000000, got 0"},
    {"\"pooling_factor\": 2.5", "\"pooling_factor\": [2.5]",
     "f: tables[0].pooling_factor: expected a number, got an array of 1"},
    {"\"pooling_factor\": 2.5", "\"pooling_factor\": 1e999",
     "f: line 2, column 90: expected a number that a double can hold, got \"1e999\""},
    {"\"pooling_factor\": 2.5", "\"pooling_factor\": NaN",
     "f: line 2, column 86: expected JSON, got invalid literal in "
     "\"\\\"pooling_factor\\\": N\""},
    {"\"fp16\"", "\"fp8\"", "f: tables[0].data_type: expected \"fp32\" or \"fp16\", got \"fp8\""},
    {"\"fp16\", ",
     "\"fp16\", \"reuse_histogram\": [1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, "
     "0], ",
     "f: tables[0]: expected reuse_histogram or index_distribution, got both"},
    {"\"zipf_exponent\": 1.5", "\"zipf_exponent\": 10.5",
     "f: tables[0].index_distribution.zipf_exponent: expected a number between 0 and 10, got "
     "10.5"},
    {"\"zipf_exponent\": 1.5", "",
     "f: tables[0].index_distribution: expected one of zipf_exponent and access_classes, got "
     "neither"},
    {"\"zipf_exponent\": 1.5", "\"zipf_exponent\": 1.5, \"access_classes\": [[1, 1]]",
     "f: tables[0].index_distribution: expected one of zipf_exponent and access_classes, got both"},
    {"\"zipf_exponent\": 1.5", "\"zipf\": 1.5",
     "f: tables[0].index_distribution: expected no fields but zipf_exponent, access_classes, got "
     "\"zipf\""},
    {"[[40, 0.75], [60, 0.25]]", "[]",
     "f: tables[1].index_distribution.access_classes: expected at least one [num_embeddings, "
     "access_share], got an empty array"},
    {"[40, 0.75]", "[40]",
     "f: tables[1].index_distribution.access_classes[0]: expected a pair [num_embeddings, "
     "access_share], got an array of 1"},
    {"[40, 0.75]", "[40.5, 0.75]",
     "f: tables[1].index_distribution.access_classes[0][0]: expected an integer (no fraction, no "
     "exponent, at most 64 bits), got 40.5"},
    {"[40, 0.75]", "[41, 0.75]",
     "f: tables[1].index_distribution.access_classes: expected at most num_embeddings = 100 rows, "
     "got 101 rows"},
    {"[40, 0.75]", "[40, 0.5]",
     "f: tables[1].index_distribution.access_classes: expected shares that add up to 1, got a sum "
     "of 0.75"},
    {"[0.5, 0.5, 0,", "[0.5, 0.5,",
     "f: tables[2].reuse_histogram: expected an array of 17 shares, got an array of 16"},
    {"[0.5, 0.5, 0,", "[0.5, 0.25, 0,",
     "f: tables[2].reuse_histogram: expected 17 shares that add up to 1, got a sum of 0.75"},
    {"[0.5, 0.5, 0,", "[1.5, -0.5, 0,",
     "f: tables[2].reuse_histogram[0]: expected a share between 0 and 1, got 1.5"},
    {"[0.5, 0.5, 0,", "[0.5, null, 0,",
     "f: tables[2].reuse_histogram[1]: expected a number, got null"},
    {"\"world_size\": 4, \"l", "\"world_size\": 1099511627776, \"l",
     "f: topology.world_size: expected an integer between 1 and 65536, got 1099511627776"},
    {"\"world_size\": 4, \"l", "\"world_size\": 0, \"l",
     "f: topology.world_size: expected an integer between 1 and 65536, got 0"},
    {"\"local_world_size\": 2", "\"local_world_size\": 3",
     "f: topology.local_world_size: expected a divisor of world_size = 4, got 3"},
    {"[1, 2, 3, 4]", "[1, 2, 3]",
     "f: topology.memory_bytes: expected one capacity for each of 4 devices, got 3"},
    {"[1, 2, 3, 4]", "[1, 2, 3, 0]",
     "f: topology.memory_bytes[3]: expected an integer between 1 and 2^60, got 0"},
    {"[1, 2, 3, 4]", "[1, 2, 3, 4.5]",
     "f: topology.memory_bytes[3]: expected an integer (no fraction, no exponent, at most 64 "
     "bits), got 4.5"},
    {"[1, 2, 3, 4]", "\"80GiB\"",
     "f: topology.memory_bytes: expected an integer or an array of one integer per device, got "
     "\"80GiB\""},
    {"[1, 2, 3, 4]", "1, \"interconnect\": 5",
     "f: topology.interconnect: expected a string, got 5"},
    {"\"topology\": {", "\"topology\": [], \"x\": {",
     "f: expected no fields but format, batch_size, optimizer, tables, topology, allow, got \"x\""},
};

TEST(TaskIo, RefusesMalformedFiles) {
  EXPECT_NO_THROW((void)parse_task(kValidTask, "f"));
  for (const Malformed& variant : kMalformedTasks) {
    const std::string text = replaced(kValidTask, variant.from, variant.to);
    EXPECT_EQ(input_error([&] { (void)parse_task(text, "f"); }), variant.message);
  }
  EXPECT_EQ(input_error([] { (void)parse_task("[]", "f"); }),
            "f: expected an object, got an empty array");
}

TEST(TaskIo, RefusesEveryTruncation) {
  for (std::size_t size = 0; size < kValidTask.size(); ++size) {
    EXPECT_NE(input_error([&] { (void)parse_task(kValidTask.substr(0, size), "f"); }), "no error");
  }
}

}  // namespace
}  // namespace neuroshard
