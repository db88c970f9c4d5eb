// Plans: the golden file, the round trip, and every way to write one wrong.
#include "neuroshard/io/plan_io.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "arbitrary_task.h"
#include "io_test_util.h"

namespace neuroshard {
namespace {

PlanDocument golden_plan() {
  PlanDocument document;
  Task& task = document.task;
  task.batch_size = 1024;
  task.tables = {{"user", 1000, 16, 3.0, DataType::fp32, {}, IndexDistribution{1.1, {}}},
                 {"item", 10, 4, 1.0, DataType::fp16, {}, {}}};
  task.topology = {2, 2, {1'000'000, 1'000'000}, ""};
  document.plan.shards = {{0, 0, 12, 0}, {0, 12, 4, 1}, {1, 0, 4, 1}};
  document.predicted = PlanCost{0.3, {{0.1, 0.15, 0.05, 48'000, 12}, {1e-3, 0.0, 0.25, 16'080, 8}}};
  document.model.set("compute", to_json(ModelReference{"cpu-epyc", std::string(64, 'a')}));
  document.model.set("communication", to_json(ModelReference{"analytic", ""}));
  document.search.set("algorithm", "neuroshard").set("seed", ~std::uint64_t{0});
  document.search.set("options", Json().set("beam_width", 3).set("time_limit_seconds", 1.0));
  document.search.set("lower_bound_ms", 0.25).set("proved_optimal", false);
  return document;
}

void expect_same_plans(const PlanDocument& a, const PlanDocument& b) {
  expect_same(a.task, b.task);
  EXPECT_EQ(a.plan.shards, b.plan.shards);
  EXPECT_EQ(a.plan.replicated_tables, b.plan.replicated_tables);
  ASSERT_EQ(a.predicted.has_value(), b.predicted.has_value());
  if (a.predicted) expect_same(*a.predicted, *b.predicted);
  EXPECT_EQ(a.model, b.model);
  EXPECT_EQ(a.search, b.search);
}

TEST(PlanIo, GoldenFile) {
  const std::string written = plan_text(golden_plan());
  const std::string bytes = golden("plan.json", written);
  EXPECT_EQ(written, bytes);
  expect_same_plans(parse_plan(bytes, "plan.json"), golden_plan());
}

TEST(PlanIo, ReadsAndWritesFiles) {
  const TemporaryFolder folder;
  write_plan(golden_plan(), folder.file("plan.json"));
  expect_same_plans(read_plan(folder.file("plan.json")), golden_plan());
}

TEST(PlanIo, WhetherAPlanIsValidIsNotTheReadersQuestion) {
  PlanDocument document = golden_plan();
  document.predicted.reset();
  document.plan.shards = {{0, 0, 12, 7}, {0, -4, 400, -1}, {0, 0, 12, 7}};
  const PlanDocument back = parse_plan(plan_text(document), "plan.json");
  expect_same_plans(back, document);
  EXPECT_FALSE(violations(back.task, back.plan).empty());
}

TEST(PlanIo, RefusesToWriteShardsOfUnknownTables) {
  PlanDocument document = golden_plan();
  document.plan.shards[1].table = 2;
  EXPECT_EQ(input_error([&] { (void)plan_text(document); }),
            "shards[1].table: expected an index below 2, got 2");
  document = golden_plan();
  document.plan.replicated_tables = {0, -1};
  EXPECT_EQ(input_error([&] { (void)plan_text(document); }),
            "replicated_tables[1]: expected an index below 2, got -1");
}

RC_GTEST_PROP(PlanIo, ReadsBackBitForBit, ()) {
  PlanDocument document;
  document.task = arbitrary_task();
  const int num_tables = static_cast<int>(document.task.tables.size());
  for (int i = *rc::gen::inRange(0, 8); i > 0; --i) {
    document.plan.shards.push_back(
        {*rc::gen::inRange(0, num_tables), *rc::gen::arbitrary<std::int64_t>(),
         *rc::gen::arbitrary<std::int64_t>(), *rc::gen::inRange(-5, 100'000)});
    if (*rc::gen::arbitrary<bool>()) {
      document.plan.shards.back().row_offset = *rc::gen::arbitrary<std::int64_t>();
      document.plan.shards.back().num_rows = *rc::gen::inRange<std::int64_t>(1, kMaxEmbeddings + 1);
    }
  }
  for (int i = *rc::gen::inRange(0, 3); i > 0; --i) {
    document.plan.replicated_tables.push_back(*rc::gen::inRange(0, num_tables));
  }
  if (*rc::gen::arbitrary<bool>()) {
    document.predicted.emplace();
    document.predicted->cost_ms = arbitrary_share();
    for (int device = 0; device < document.task.topology.world_size; ++device) {
      document.predicted->devices.push_back({arbitrary_share(), 1e29 * arbitrary_share(), 0.0,
                                             *rc::gen::inRange<std::int64_t>(0, 1L << 60), device,
                                             *rc::gen::element(0.0, arbitrary_share())});
    }
  }
  for (int i = *rc::gen::inRange(0, 3); i > 0; --i) {
    document.warnings.push_back(fmt::format("network {} disagrees \"here\"", i));
  }
  if (*rc::gen::arbitrary<bool>()) {
    document.moves.emplace();
    document.moves->max_move = arbitrary_share();
    document.moves->placed_bytes = *rc::gen::inRange<std::int64_t>(0, 1L << 60);
    document.moves->ms = 1e29 * arbitrary_share();
    for (int i = *rc::gen::inRange(0, 3); i > 0; --i) {
      document.moves->pairs.push_back({{i, 0, *rc::gen::inRange<std::int64_t>(1, 1L << 60)}, {}});
      if (*rc::gen::arbitrary<bool>()) document.moves->pairs.back().ms = arbitrary_share();
    }
  }
  const std::string text = plan_text(document);
  const PlanDocument back = parse_plan(text, "plan.json");
  expect_same_plans(back, document);
  RC_ASSERT(back.warnings == document.warnings);
  RC_ASSERT(back.moves == document.moves);
  RC_ASSERT(plan_text(back) == text);
  RC_ASSERT(!testing::Test::HasFailure());
}

const std::string kValidPlan =
    R"({"format": "neuroshard/plan/1",
"task": {"format": "neuroshard/task/1", "batch_size": 64, "optimizer": "sgd",
  "tables": [{"name": "a", "num_embeddings": 10, "embedding_dim": 8, "pooling_factor": 2.5}],
  "topology": {"world_size": 2, "memory_bytes": 1000}},
"shards": [{"table": "a", "column_offset": 0, "num_columns": 4, "device": 0},
           {"table": "a", "column_offset": 4, "num_columns": 5, "device": 1}],
"predicted": {"cost_ms": 3.5, "devices": [
  {"compute_ms": 1, "forward_comm_ms": 2, "backward_comm_ms": 0.5, "memory_bytes": 160, "num_columns": 4},
  {"compute_ms": 1, "forward_comm_ms": 1, "backward_comm_ms": 0, "memory_bytes": 161, "num_columns": 5}]},
"model": {"anything": [1, {"a": null}]}, "search": {"note": "by hand"}})";

const Malformed kMalformedPlans[] = {
    {"neuroshard/plan/1", "neuroshard/plan/7",
     "f: format: expected \"neuroshard/plan/1\", got \"neuroshard/plan/7\""},
    {"neuroshard/task/1", "neuroshard/task/7",
     "f: task.format: expected \"neuroshard/task/1\", got \"neuroshard/task/7\""},
    {"\"batch_size\": 64", "\"batch_size\": -64",
     "f: task.batch_size: expected an integer between 1 and 1073741824, got -64"},
    {"\"embedding_dim\": 8", "\"embedding_dim\": \"8\"",
     "f: task.tables[0].embedding_dim: expected an integer, got \"8\""},
    {"\"model\": {", "\"models\": {},\n\"model\": {",
     "f: expected no fields but format, task, shards, replicated_tables, predicted, model, search, "
     "warnings, moves, got \"models\""},
    {"\"table\": \"a\", \"column_offset\": 4", "\"table\": \"b\", \"column_offset\": 4",
     "f: shards[1].table: expected the name of a table of the task, got \"b\""},
    {"\"table\": \"a\", \"column_offset\": 4", "\"table\": 0, \"column_offset\": 4",
     "f: shards[1].table: expected a string, got 0"},
    {"\"column_offset\": 4", "\"column_offset\": 4.5",
     "f: shards[1].column_offset: expected an integer (no fraction, no exponent, at most 64 bits), "
     "got 4.5"},
    {"\"column_offset\": 4, ", "",
     "f: shards[1].column_offset: expected this required field, got nothing"},
    {"\"device\": 1", "\"device\": 1, \"row_offset\": 0",
     "f: shards[1]: expected row_offset and num_rows, or neither, got row_offset"},
    {"\"device\": 1", "\"device\": 1, \"num_rows\": 2",
     "f: shards[1]: expected row_offset and num_rows, or neither, got num_rows"},
    {"\"device\": 1", "\"device\": 1, \"row_offset\": 0, \"num_rows\": 0",
     "f: shards[1].num_rows: expected an integer between 1 and 4398046511104, got 0"},
    {"\"device\": 1", "\"device\": 1, \"rows\": 0",
     "f: shards[1]: expected no fields but table, row_offset, num_rows, column_offset, "
     "num_columns, device, got \"rows\""},
    {"\"model\": {", "\"replicated_tables\": [\"a\", \"c\"],\n\"model\": {",
     "f: replicated_tables[1]: expected the name of a table of the task, got \"c\""},
    {"\"compute_ms\": 1, \"forward_comm_ms\": 1",
     "\"all_reduce_ms\": -1, \"compute_ms\": 1, "
     "\"forward_comm_ms\": 1",
     "f: predicted.devices[1].all_reduce_ms: expected milliseconds of at least 0, got -1"},
    {"\"device\": 1", "\"device\": 4294967296",
     "f: shards[1].device: expected an integer between -2147483647 and 2147483647, got "
     "4294967296"},
    {"\"shards\": [", "\"shards\": {}, \"search\": [",
     "f: search: expected this field once, got it more than once"},
    {"\"cost_ms\": 3.5", "\"cost_ms\": -3.5",
     "f: predicted.cost_ms: expected milliseconds of at least 0, got -3.5"},
    {"\"forward_comm_ms\": 1", "\"forward_comm_ms\": null",
     "f: predicted.devices[1].forward_comm_ms: expected a number, got null"},
    {"\"memory_bytes\": 161", "\"memory_bytes\": -1",
     "f: predicted.devices[1].memory_bytes: expected an integer between 0 and "
     "9223372036854775807, got -1"},
    {"\"world_size\": 2", "\"world_size\": 3",
     "f: predicted.devices: expected an array of one object for each of 3 devices, got an array "
     "of 2"},
    {"{\"anything\": [1, {\"a\": null}]}", "[]",
     "f: model: expected an object, got an empty array"},
    {"{\"note\": \"by hand\"}", "\"by hand\"", "f: search: expected an object, got \"by hand\""},
    {"{\"note\": \"by hand\"}", "{}, \"warnings\": [\"a\", 2]",
     "f: warnings[1]: expected a string, got 2"},
    {"{\"note\": \"by hand\"}",
     "{}, \"moves\": {\"max_move\": 2, \"placed_bytes\": 9, \"moved_bytes\": 1, \"pairs\": []}",
     "f: moves.max_move: expected a share from 0 to 1, got 2"},
    {"{\"note\": \"by hand\"}",
     "{}, \"moves\": {\"max_move\": 0.1, \"placed_bytes\": 9, \"moved_bytes\": -1, \"pairs\": []}",
     "f: moves.moved_bytes: expected an integer between 0 and 9223372036854775807, got -1"},
    {"{\"note\": \"by hand\"}",
     "{}, \"moves\": {\"max_move\": 0.1, \"placed_bytes\": 9, \"moved_bytes\": 1, \"pairs\": "
     "[{\"from\": 70000, \"to\": 0, \"bytes\": 1}]}",
     "f: moves.pairs[0].from: expected an integer between 0 and 65535, got 70000"},
};

TEST(PlanIo, RefusesMalformedFiles) {
  EXPECT_NO_THROW((void)parse_plan(kValidPlan, "f"));
  for (const Malformed& variant : kMalformedPlans) {
    const std::string text = replaced(kValidPlan, variant.from, variant.to);
    EXPECT_EQ(input_error([&] { (void)parse_plan(text, "f"); }), variant.message);
  }
}

TEST(PlanIo, RectanglesAndReplicatedTables) {
  const std::string text = replaced(
      replaced(kValidPlan, "\"table\": \"a\", \"column_offset\": 4",
               "\"table\": \"a\", \"row_offset\": 3, \"num_rows\": 7, \"column_offset\": 4"),
      "\"model\": {", "\"replicated_tables\": [\"a\"],\n\"model\": {");
  const PlanDocument document = parse_plan(text, "f");
  EXPECT_EQ(document.plan.shards[0], (Shard{0, 0, 4, 0}));
  EXPECT_EQ(document.plan.shards[1], (Shard{0, 4, 5, 1, 3, 7}));
  EXPECT_EQ(document.plan.replicated_tables, std::vector<int>{0});
  EXPECT_EQ(document.predicted->devices[0].all_reduce_ms, 0.0);
}

TEST(PlanIo, AllRowsAreNoSlice) {
  const std::string text =
      replaced(kValidPlan, "\"table\": \"a\", \"column_offset\": 4",
               "\"table\": \"a\", \"row_offset\": 0, \"num_rows\": 10, \"column_offset\": 4");
  EXPECT_EQ(parse_plan(text, "f").plan.shards, parse_plan(kValidPlan, "f").plan.shards);
}

TEST(PlanIo, PredictionModelAndSearchAreOptional) {
  const std::string text = kValidPlan.substr(0, kValidPlan.find(",\n\"predicted\"")) + "}";
  const PlanDocument document = parse_plan(text, "f");
  EXPECT_FALSE(document.predicted.has_value());
  EXPECT_EQ(document.model, Json(Json::Object{}));
  EXPECT_EQ(document.plan.shards.size(), 2u);
}

}  // namespace
}  // namespace neuroshard
