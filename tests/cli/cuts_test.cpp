// Plans of rectangles and copies from end to end: planned, checked, priced, made again, measured.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <string>

#include "neuroshard/io/json/json_reader.h"
#include "neuroshard/io/plan_io.h"
#include "tests/cli/run_mpi.h"

namespace neuroshard {
namespace {

using namespace testing_cli;
using testing::HasSubstr;
using testing::Not;

/// A table with most of the lookups, and a tiny one.
const std::string kLopsided = R"({"format": "neuroshard/task/1", "batch_size": 4096,
"optimizer": "rowwise_adagrad", "tables": [
  {"name": "hot", "num_embeddings": 100000, "embedding_dim": 32, "pooling_factor": 40},
  {"name": "tiny", "num_embeddings": 4, "embedding_dim": 32, "pooling_factor": 1}],
"topology": {"world_size": 4, "local_world_size": 1, "memory_bytes": 1073741824}})";

TEST(Cuts, PlansOfRowsAndCopiesAreCheckedPricedMadeAgainAndMeasured) {
  const CliFolder folder;
  const std::string task = folder.write("task.json", kLopsided);
  const std::string path = folder.file("plan.json");
  (void)expect_success(
      Arguments{"plan", task, "--cuts", "columns,rows,replicas", "--steps", "1000", "-o", path} +
      kAnalytic);
  const PlanDocument document = read_plan(path);
  EXPECT_TRUE(std::any_of(document.plan.shards.begin(), document.plan.shards.end(),
                          [](const Shard& shard) { return !shard.has_all_rows(); }));
  EXPECT_EQ(*document.search.find("options")->find("cuts"),
            Json(Json::Array{"columns", "rows", "replicas"}));
  EXPECT_NE(document.search.find("lower_bound_ms"), nullptr);
  EXPECT_THAT(expect_success({"check", path}), HasSubstr(": valid: "));

  const std::string priced = expect_success({"price", path});
  EXPECT_THAT(priced, HasSubstr("100000 rows x 32 columns = "));
  EXPECT_THAT(priced, HasSubstr("lower bound: "));
  const std::string again = folder.file("again.json");
  (void)expect_success({"plan", "--like", path, "-o", again});
  EXPECT_EQ(read_plan(again).plan.shards, document.plan.shards);
  EXPECT_EQ(read_plan(again).predicted->cost_ms, document.predicted->cost_ms);
  EXPECT_THAT(expect_success({"evaluate", path, "--arena", "16MiB"}), HasSubstr("measured"));
}

constexpr const char* kUnlearned =
    "\npcie4: has learned no partial sums: adding up those of slices of rows is priced by the "
    "memory's rate alone\n";

/// Shipped clusters have learned all-reduces, and no partial sums.
TEST(Cuts, EveryCommandSaysWhatTheCommunicationModelHasNotLearned) {
  const CliFolder folder;
  const std::string task = folder.write("task.json", kLopsided);
  const std::string path = folder.file("plan.json");
  const Arguments models{"--model", "cpu-xeon-2core", "--model", "pcie4"};
  const Arguments quick{"--steps", "100", "--threads", "1"};
  const Arguments commands[] = {
      Arguments{"plan", task, "-o", path} + quick + models,
      {"price", path},
      {"explain", path},
      {"explain", path, "--table", "hot"},
      {"evaluate", path, "--arena", "16MiB"},
      Arguments{"compare", task, "--algorithms", "neuroshard,beam-search"} + quick + models};
  for (const Arguments& command : commands) {
    SCOPED_TRACE(command.front());
    const std::string text = expect_success(command);
    const std::size_t first = text.find(kUnlearned);
    EXPECT_NE(first, std::string::npos) << text;
    EXPECT_EQ(text.find(kUnlearned, first + 1), std::string::npos);
  }
  const Arguments of_columns{"compare", task, "--cuts", "columns", "--algorithms", "neuroshard"};
  EXPECT_THAT(expect_success(of_columns + quick + models), Not(HasSubstr("has learned no")));
}

/// The lopsided task with fields added to its first table.
std::string with_hot_rows(const std::string& fields) {
  std::string text = kLopsided;
  const std::string last = "\"pooling_factor\": 40";
  return text.replace(text.find(last), last.size(), last + ", " + fields);
}

TEST(Cuts, SlicesFollowTheOrderOfTheRows) {
  const CliFolder folder;
  for (const char* fields :
       {R"("index_distribution": {"zipf_exponent": 1.2}, "row_order": "by_frequency")",
        R"("row_access": [[0.1, 0.75], [0.5, 0.8], [1, 1]])"}) {
    const std::string task = folder.write("task.json", with_hot_rows(fields));
    const std::string path = folder.file("plan.json");
    (void)expect_success(Arguments{"plan", task, "--cuts", "rows", "--steps", "100", "-o", path} +
                         kAnalytic);
    const PlanDocument document = read_plan(path);
    std::int64_t first_rows = 0;
    for (const Shard& shard : document.plan.shards) {
      if (shard.table == 0 && shard.row_offset == 0) first_rows = shard.num_rows;
    }
    EXPECT_GT(first_rows, 0) << fields;
    EXPECT_LT(first_rows, 25'000) << fields;  // fewer than equal slices have
    EXPECT_THAT(expect_success({"check", path}), HasSubstr(": valid: "));
    const std::string again = folder.file("again.json");
    (void)expect_success({"plan", "--like", path, "-o", again});
    EXPECT_EQ(read_plan(again).plan.shards, document.plan.shards);
    EXPECT_EQ(read_plan(again).predicted->cost_ms, document.predicted->cost_ms);
    EXPECT_THAT(expect_success({"evaluate", path, "--arena", "16MiB"}), HasSubstr("measured"));
  }
}

TEST(Cuts, ReplicatedTablesAreShownAndMeasured) {
  const CliFolder folder;
  const std::string plan = folder.write(
      "plan.json", R"({"format": "neuroshard/plan/1", "task": )" + kLopsided +
                       R"(, "shards": [{"table": "hot", "column_offset": 0, "num_columns": 32,
"device": 2}], "replicated_tables": ["tiny"]})");
  EXPECT_THAT(expect_success({"check", plan}),
              HasSubstr("valid: 1 shard of 1 table on 4 devices, 1 table on each"));
  const std::string priced = expect_success(Arguments{"price", plan} + kAnalytic);
  EXPECT_THAT(priced, HasSubstr("all-reduce ms"));
  EXPECT_THAT(priced, HasSubstr("on every device: tiny"));
  const Json measured = parse_json(
      expect_success(Arguments{"evaluate", plan, "--arena", "16MiB", "--json"} + kAnalytic),
      "stdout");
  const JsonReader whole(measured, "stdout");
  const JsonReader devices = whole.field("devices");
  ASSERT_EQ(devices.array_size(), 4u);
  for (std::size_t d = 0; d < 4; ++d) {
    const JsonReader device = devices.element(d);
    const JsonReader compute = device.field("measured_compute_ms");
    const JsonReader all_reduce = device.field("measured_all_reduce_ms");
    EXPECT_GT(compute.number(), 0.0);
    EXPECT_GT(all_reduce.number(), 0.0);
  }
}

TEST(Cuts, AComparisonOfCutsSaysWhichAnAlgorithmHas) {
  const CliFolder folder;
  const std::string task = folder.write("task.json", kLopsided);
  const std::string journal = folder.file("journal.jsonl");
  const Arguments compare =
      Arguments{"compare",
                task,
                "--algorithms",
                "neuroshard:columns,neuroshard:columns+rows,neuroshard,torchrec-like,greedy-size",
                "--cuts",
                "columns,rows,replicas",
                "--steps",
                "100",
                "--relative-to",
                "neuroshard:columns",
                "--journal",
                journal} +
      kAnalytic;
  const std::string text = expect_success(compare);
  EXPECT_THAT(text, HasSubstr("\nneuroshard:columns+rows "));
  EXPECT_THAT(text, HasSubstr("\ncuts: columns of neuroshard:columns; columns+rows of "
                              "neuroshard:columns+rows; columns+rows+replicas of neuroshard, "
                              "torchrec-like; none of greedy-size\n"));
  EXPECT_THAT(text, HasSubstr("ratio: predicted cost to that of neuroshard:columns, "));
  const Json document = parse_json(expect_success(compare + Arguments{"--json"}), "stdout");
  const JsonReader root(document, "stdout");
  const JsonReader summary = root.field("summary");
  ASSERT_EQ(summary.array_size(), 5u);
  std::vector<double> costs;
  for (std::size_t i = 0; i < summary.array_size(); ++i) {
    const JsonReader line = summary.element(i);
    costs.push_back(line.field("mean_predicted_ms").number());
  }
  EXPECT_LE(costs[1], costs[0]);
  EXPECT_LE(costs[2], costs[0]);
  EXPECT_LT(costs[3], costs[4]);  // TorchRec cuts the rows of the hot table too
  const JsonReader entries = root.field("entries");
  EXPECT_EQ(*entries.element(1).object().find("cuts"), Json(Json::Array{"columns", "rows"}));
  // With the paper's cuts alone, nothing is said of them.
  EXPECT_THAT(expect_success(Arguments{"compare", task, "--algorithms", "torchrec-like,random",
                                       "--cuts", "columns"} +
                             kAnalytic),
              Not(HasSubstr("cuts:")));
}

TEST(Cuts, EveryTaskOfAComparisonIsPricedByItsOwnInterconnect) {
  const CliFolder folder;
  std::string named = kLopsided;
  named.insert(named.rfind('}', named.size() - 2), R"(, "interconnect": "ethernet-10g")");
  const Arguments algorithm{"--algorithms", "greedy-size", "--model", "analytic-cpu"};
  const auto compared = [&](const Arguments& tasks) {
    return parse_json(
        expect_success(Arguments{"compare"} + tasks + algorithm + Arguments{"--json"}), "stdout");
  };
  const std::string one = folder.write("one.json", kLopsided);
  const std::string other = folder.write("other.json", named);
  const auto cost = [](const Json& document, std::size_t entry) {
    const JsonReader root(document, "stdout");
    const JsonReader entries = root.field("entries");
    const JsonReader of_task = entries.element(entry);
    return of_task.field("predicted_ms").number();
  };
  const Json both = compared({one, other});
  EXPECT_EQ(cost(both, 0), cost(compared({one}), 0));
  EXPECT_EQ(cost(both, 1), cost(compared({other}), 0));
  EXPECT_NE(cost(both, 0), cost(both, 1));
  EXPECT_EQ(*both.find("communication_models"), Json(Json::Array{"ethernet-25g", "ethernet-10g"}));
  const std::string again = folder.write("again.json", kLopsided);
  EXPECT_EQ(compared({one, again}).find("communication_models"), nullptr);
  EXPECT_THAT(expect_success(Arguments{"compare", one, other} + algorithm),
              HasSubstr("communication model: ethernet-25g, pre-trained (simulated); "
                        "ethernet-10g, pre-trained (simulated)\n"));
}

/// kLopsided on two devices: slices of rows that are cut differently, and a copy.
std::string plan_of_slices_and_a_copy() {
  std::string task = kLopsided;
  const std::string field = "\"world_size\": ";
  task.replace(task.find(field) + field.size(), 1, "2");
  return R"({"format": "neuroshard/plan/1", "task": )" + task + R"(, "shards": [
{"table": "hot", "row_offset": 0, "num_rows": 60000, "column_offset": 0, "num_columns": 32, "device": 0},
{"table": "hot", "row_offset": 60000, "num_rows": 40000, "column_offset": 0, "num_columns": 8, "device": 0},
{"table": "hot", "row_offset": 60000, "num_rows": 40000, "column_offset": 8, "num_columns": 24, "device": 1}],
"replicated_tables": ["tiny"]})";
}

/// kLopsided on two devices of very much memory, the tiny table, of as many rows, copied to both.
std::string plan_of_a_copy(std::int64_t rows) {
  std::string task = kLopsided;
  const auto set = [&](const std::string& field, const std::string& from, const std::string& to) {
    task.replace(task.find(field + from) + field.size(), from.size(), to);
  };
  set("\"world_size\": ", "4", "2");
  set("\"tiny\", \"num_embeddings\": ", "4", std::to_string(rows));
  set("\"memory_bytes\": ", "1073741824", std::to_string(std::int64_t{1} << 60));
  return R"({"format": "neuroshard/plan/1", "task": )" + task + R"(, "shards": [
{"table": "hot", "column_offset": 0, "num_columns": 32, "device": 0}],
"replicated_tables": ["tiny"]})";
}

TEST(Cuts, ProcessesSayWhatMemoryCopiesTake) {
  SKIP_IN_UNKNOWN_CODE();
  const CliFolder folder;
  // 128 TiB of fp32.
  const std::string plan = folder.write("plan.json", plan_of_a_copy(std::int64_t{1} << 40));
  const CommandResult result = run_program(
      under_mpirun(2, Arguments{"evaluate", plan, "--arena", "16MiB", "--quiet"} + kAnalytic));
  EXPECT_EQ(result.exit_code, 3) << result.err;
  EXPECT_THAT(result.err,
              HasSubstr("replicated_tables: expected 384.00 TiB of memory free in each process for "
                        "gradients, weights and all-reduce of the copies, in fp32, got "));
}

TEST(Cuts, PlansOfRowsAndCopiesRunUnderMpirun) {
  SKIP_IN_UNKNOWN_CODE();
  const CliFolder folder;
  const std::string plan = folder.write("plan.json", plan_of_slices_and_a_copy());
  const Arguments evaluate = Arguments{"evaluate", plan, "--arena", "16MiB"} + kAnalytic;
  const CommandResult result = run_program(under_mpirun(2, evaluate + Arguments{"--json"}));
  ASSERT_EQ(result.exit_code, 0) << result.err;
  const Json measured = parse_json(result.out, "stdout");
  const JsonReader whole(measured, "stdout");
  const JsonReader devices = whole.field("devices");
  for (std::size_t d = 0; d < 2; ++d) {
    const JsonReader device = devices.element(d);
    const auto number = [&](const char* name) {
      const JsonReader field = device.field(name);
      return field.number();
    };
    EXPECT_GT(number("measured_all_reduce_ms"), 0.0);
    EXPECT_GT(number("measured_indices_ms"), 0.0);
    EXPECT_NEAR(number("measured_total_ms"),
                number("measured_backward_comm_ms") + number("measured_update_ms") +
                    number("measured_all_reduce_ms") + number("measured_lookup_ms") +
                    number("measured_forward_comm_ms"),
                1e-6);
  }
  const CommandResult table = run_program(under_mpirun(2, evaluate));
  EXPECT_THAT(table.out, HasSubstr("all-reduce ms"));
  EXPECT_THAT(table.out, HasSubstr("sending a batch's indices takes up to "));
}

TEST(Cuts, TheValuesOfPlansAreChecked) {
  SKIP_IN_UNKNOWN_CODE();
  const CliFolder folder;
  const std::string plan = folder.write("plan.json", plan_of_slices_and_a_copy());
  const Arguments check = Arguments{"evaluate", plan, "--check"} + kAnalytic;
  const CommandResult result = run_program(under_mpirun(2, check + Arguments{"--json"}));
  ASSERT_EQ(result.exit_code, 0) << result.err;
  const Json values = parse_json(result.out, "stdout");
  EXPECT_EQ(*values.find("agrees"), Json(true));
  EXPECT_EQ(*values.find("outputs"), Json(4096 * 64));
  EXPECT_THAT(run_program(under_mpirun(2, check)).out, testing::StartsWith("equal: "));
  expect_refusal(folder, check, "--check needs processes, started by mpirun");
  const CommandResult small = run_program(under_mpirun(2, check + Arguments{"--arena", "1MiB"}));
  EXPECT_EQ(small.exit_code, 2);
  EXPECT_THAT(small.err, HasSubstr("tables: expected at most 1.00 MiB, as each process has them "
                                   "whole to compare with"));
}

TEST(Cuts, ProcessesOnGpusTakeColumnsAlone) {
  SKIP_IN_UNKNOWN_CODE();
  const CliFolder folder;
  const std::string plan = folder.write("plan.json", plan_of_slices_and_a_copy());
  const CommandResult result =
      run_program(under_mpirun(2, Arguments{"evaluate", plan, "--backend", "cuda"} + kAnalytic));
  EXPECT_EQ(result.exit_code, 2);
  EXPECT_THAT(result.err,
              HasSubstr("plan: expected a plan that cuts columns alone, as processes on GPUs do "
                        "not add partial sums or sum up gradients of copies, got slices of rows: "
                        "3, replicated tables: 1"));
  const std::string copies = folder.write("copies.json", plan_of_a_copy(4));
  const CommandResult of_copies =
      run_program(under_mpirun(2, Arguments{"evaluate", copies, "--backend", "cuda"} + kAnalytic));
  EXPECT_EQ(of_copies.exit_code, 2);
  EXPECT_THAT(of_copies.err, HasSubstr("or sum up gradients of copies, got slices of rows: 0, "
                                       "replicated tables: 1"));
}

TEST(Cuts, ComparisonsMeasureAndSimulateSlicesAndCopies) {
  SKIP_IN_UNKNOWN_CODE();
  const CliFolder folder;
  const std::string task = folder.write("task.json", kLopsided);
  const Arguments compare = Arguments{"compare",
                                      task,
                                      "--algorithms",
                                      "neuroshard",
                                      "--cuts",
                                      "columns,rows,replicas",
                                      "--steps",
                                      "1000",
                                      "--measure",
                                      "--arena",
                                      "16MiB",
                                      "--journal",
                                      folder.file("journal.jsonl"),
                                      "--json"} +
                            kAnalytic;
  const auto entry_of = [&](const Arguments& more) {
    const Json document = parse_json(expect_success(compare + more), "stdout");
    return (*document.find("entries")->array())[0];
  };
  const Json measured = entry_of({});
  const auto number = [](const Json& entry, const char* key) {
    return std::get<double>(entry.find(key)->value());
  };
  EXPECT_GT(number(measured, "partial_sums_ms"), 0.0);
  // Again, from the journal, on a simulated cluster.
  const Json simulated = entry_of({"--platform", "ethernet-10g"});
  EXPECT_EQ(*simulated.find("device_compute_ms"), *measured.find("device_compute_ms"));
  EXPECT_EQ(number(simulated, "partial_sums_ms"), number(measured, "partial_sums_ms"));
  EXPECT_GT(number(simulated, "measured_ms"), number(measured, "measured_compute_ms"));
}

TEST(Cuts, SlicesAndCopiesAreSimulated) {
  SKIP_IN_UNKNOWN_CODE();
  const CliFolder folder;
  const std::string plan = folder.write("plan.json", plan_of_slices_and_a_copy());
  const Json simulated = parse_json(
      expect_success(Arguments{"evaluate", plan, "--platform", "ethernet-25g", "--json"} +
                     kAnalytic),
      "stdout");
  const JsonReader whole(simulated, "stdout");
  const JsonReader devices = whole.field("devices");
  const JsonReader device = devices.element(0);
  const auto number = [&](const char* name) {
    const JsonReader field = device.field(name);
    return field.number();
  };
  EXPECT_GT(number("simulated_all_reduce_ms"), 0.0);
  EXPECT_NEAR(number("simulated_total_ms"),
              number("simulated_backward_comm_ms") + number("simulated_all_reduce_ms") +
                  number("predicted_compute_ms") + number("simulated_forward_comm_ms"),
              1e-9);
}

TEST(Cuts, WhatIsWrongWithAPlanIsSaidInALine) {
  const CliFolder folder;
  const auto refused = [&](const std::string& task, const std::string& shards_of_hot,
                           const std::string& more, const std::string& text) {
    const std::string plan =
        folder.write("plan.json", R"({"format": "neuroshard/plan/1", "task": )" + task +
                                      R"(, "shards": [)" + shards_of_hot + more);
    const CommandResult checked = run_cli({"check", plan});
    EXPECT_EQ(checked.exit_code, 1) << text;
    EXPECT_THAT(checked.out + checked.err, HasSubstr(text));
  };
  const auto slice = [](int first, int rows) {
    return fmt::format(R"({{"table": "hot", "row_offset": {}, "num_rows": {}, "column_offset": 0,
"num_columns": 32, "device": 2}})",
                       first, rows);
  };
  const std::string tiny =
      R"(, {"table": "tiny", "column_offset": 0, "num_columns": 32, "device": 0}]})";
  refused(kLopsided, slice(0, 99'999), tiny,
          "table \"hot\": rows 99999 to 99999, columns 0 to 31 are on no device");
  refused(kLopsided, slice(0, 60'000) + ", " + slice(59'000, 41'000), tiny,
          "table \"hot\": rows 59000 to 59999, ");
  const std::string halves = slice(0, 50'000) + ", " + slice(50'000, 50'000);
  refused(with_hot_rows(R"("allow": ["columns"])"), halves, tiny,
          "shards[0]: expected \"hot\" with all its rows, as \"allow\" does not name \"rows\", got "
          "50000 of 100000");
  refused(with_hot_rows(R"("min_shard_rows": 60000)"), halves, tiny,
          "shards[0]: expected slices of \"hot\" of at least 60000 rows, got 50000");
  std::string small = kLopsided;
  small.replace(small.find("1073741824"), 10, "1000000");
  refused(small, R"({"table": "tiny", "column_offset": 0, "num_columns": 32, "device": 0}])",
          R"(, "replicated_tables": ["hot"]})",
          "replicated_tables[0]: expected at most 1000000 bytes (976.56 KiB), the memory of the "
          "smallest device, got a copy of \"hot\" of 13200000");
}

TEST(Cuts, WhatIsWrongIsSaidInALine) {
  const CliFolder folder;
  const std::string task = folder.write("task.json", kLopsided);
  EXPECT_THAT(run_cli({"plan", task, "--cuts", "rows,pages"}).err,
              HasSubstr("--cuts: expected none, or some of columns, rows and replicas, got "
                        "\"pages\""));
  for (const char* twice : {"columns,columns", "rows,columns,rows"}) {
    expect_refusal(folder, {"plan", task, "--cuts", twice}, "--cuts: expected each cut once, got ");
  }
  const std::string falling =
      folder.write("falling.json", with_hot_rows(R"("row_access": [[0.5, 0.9], [1, 0.8]])"));
  const CommandResult refused = run_cli({"plan", falling});
  EXPECT_EQ(refused.exit_code, 2);
  EXPECT_THAT(refused.err, HasSubstr("falling.json: tables[0].row_access[1]: expected a share of "
                                     "the accesses from 0.9 to 1, got 0.8"));
  const CommandResult late =
      run_cli(Arguments{"plan", task, "--time-limit", "0.001ms"} + kAnalytic);
  EXPECT_EQ(late.exit_code, 1);
  EXPECT_THAT(late.err, HasSubstr("no plan found within 0.001 ms"));
}

}  // namespace
}  // namespace neuroshard
