// One call makes a plan; its document is enough to make it again and to price it by any models.
#include "neuroshard/plan/plan_task.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <filesystem>
#include <limits>
#include <string>
#include <vector>

#include "neuroshard/baselines/planner_catalog.h"
#include "neuroshard/core/version.h"
#include "neuroshard/cost/compute/compute_model_io.h"
#include "neuroshard/io/json/json_reader.h"
#include "neuroshard/plan/bound_scope.h"
#include "neuroshard/plan/plan_request_io.h"
#include "neuroshard/plan/replan_task.h"
#include "neuroshard/report/planning_report.h"
#include "neuroshard/search/bound/lower_bound.h"
#include "tests/cost/arbitrary_network.h"
#include "tests/io/io_test_util.h"

namespace neuroshard {
namespace {

using testing::Each;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

const std::vector<std::string> kEstimates{"analytic-a100-40gb", "analytic-a100-nvswitch"};

Task make_task() {
  Task task;
  task.batch_size = 4096;
  for (int i = 0; i < 6; ++i) {
    Table table;
    table.name = "t" + std::to_string(i);
    table.num_embeddings = 20'000 * (i + 1);
    table.embedding_dim = 32 * (1 + i % 3);
    table.pooling_factor = 1.0 + 7.0 * i;
    task.tables.push_back(table);
  }
  task.topology.world_size = task.topology.local_world_size = 4;
  task.topology.memory_bytes.assign(4, std::int64_t{1} << 30);
  return task;
}

PlanRequest make_request(std::vector<std::string> models = kEstimates) {
  PlanRequest request;
  request.models = std::move(models);
  request.options.steps = 2'000;
  request.options.num_threads = 2;
  return request;
}

/// Writes a model of other weights for every `seed`; returns its path.
std::string write_model(const TemporaryFolder& folder, const std::string& name, int seed) {
  std::string path = folder.file(name + ".safetensors");
  write_compute_model(
      NeuralComputeModel(testing_networks::random_network(ComputeArchitecture::bounded_loads, seed),
                         testing_networks::wide_info("whatever")),
      path);
  return path;
}

PlanDocument reread(const PlanDocument& document) {
  return parse_plan(plan_text(document), "plan.json");
}

TEST(PlanTask, IsThePlannersPlanWithItsPrice) {
  const PlanRequest request = make_request();
  const PlannedTask planned = plan_task(make_task(), request);
  const CostModels models = load_cost_models(request.models, make_task().topology);
  const Simulator simulator(make_task(), models.compute, models.communication);
  const PlanningResult direct = find_planner("neuroshard")->plan(simulator, request.options);
  EXPECT_EQ(planned.document.plan.shards, direct.plan.shards);
  EXPECT_EQ(planned.document.predicted->cost_ms, direct.predicted.cost_ms);
  EXPECT_EQ(planned.lower_bound_ms,
            lower_bound_ms(simulator, request.options.cuts, direct.predicted.cost_ms));
  EXPECT_THAT(planned.baselines, IsEmpty());
  EXPECT_THAT(planned.warnings, IsEmpty());
}

TEST(PlanTask, RecordsWhatMadeIt) {
  PlanRequest request = make_request();
  request.options.seed = 18'446'744'073'709'551'615U;
  request.options.pessimism = 0.25;
  request.baselines = true;
  const Json search = plan_task(make_task(), request).document.search;
  const auto field = [&](const char* name) { return *search.find("options")->find(name); };
  EXPECT_EQ(*search.find("algorithm")->text(), "neuroshard");
  EXPECT_EQ(*search.find("version")->text(), version());
  EXPECT_EQ(field("seed"), Json(request.options.seed));
  EXPECT_EQ(field("steps"), Json(2'000));
  EXPECT_EQ(field("pessimism"), Json(0.25));
  EXPECT_EQ(search.find("baselines")->array()->size(), 6U);
}

TEST(PlanTask, RecordsThatCommunicationWasLearnedFromASimulation) {
  const auto is_simulated = [](const std::string& communication) {
    const PlanDocument document = reread(
        plan_task(make_task(), make_request({"analytic-a100-40gb", communication})).document);
    return model_reference(document.model, "communication")->is_simulated;
  };
  EXPECT_TRUE(is_simulated("pcie4"));
  EXPECT_FALSE(is_simulated("analytic-pcie4"));
}

TEST(PlanTask, ALimitThatIsNoneIsRecordedToo) {
  PlanRequest request = make_request();
  request.options.time_limit_seconds = 1e-7 / 3.0;
  const PlanDocument document = reread(plan_task(make_task(), request).document);
  EXPECT_EQ(plan_request_of(document, "plan.json").options.time_limit_seconds,
            request.options.time_limit_seconds);
}

TEST(PlanTask, SaysWhichDefaultWasTaken) {
  const PlanRequest request = make_request({"analytic-a100-nvswitch"});
  EXPECT_THAT(plan_task(make_task(), request).notes, IsEmpty());
  Task task = make_task();
  task.topology.memory_bytes.assign(4, std::int64_t{80} << 30);
  const std::vector<std::string> notes = plan_task(task, request).notes;
  EXPECT_THAT(notes,
              ElementsAre(HasSubstr("no computation model was named for devices of 80.00 GiB")));
  EXPECT_THAT(notes, ElementsAre(HasSubstr("for GPUs name a model that was measured on one, "
                                           "fbgemm-h100, h100, h200, or an estimate from data "
                                           "sheets: analytic-v100, ")));
  EXPECT_THAT(notes, ElementsAre(HasSubstr("analytic-h100-sxm")));
}

TEST(PlanTask, RefusesAnUnknownAlgorithm) {
  PlanRequest request = make_request();
  request.algorithm = "oracle";
  EXPECT_THAT(input_error([&] { (void)plan_task(make_task(), request); }),
              HasSubstr("algorithm: expected one of neuroshard, beam-search"));
}

TEST(PlanTask, RefusesOptionsOutOfRange) {
  const CostModels models = load_cost_models(kEstimates, make_task().topology);
  for (const char* algorithm : {"neuroshard", "beam-search", "random"}) {
    const auto refusals = [&](const PlannerOptions& options) {
      PlanRequest request = make_request();
      request.algorithm = algorithm;
      request.options = options;
      const auto planner = find_planner(algorithm);
      return std::vector<std::string>{
          input_error([&] { (void)plan_task(make_task(), request); }),
          input_error([&] { (void)plan_task(make_task(), models, *planner, request); })};
    };
    PlannerOptions options = make_request().options;
    for (const bool stop_by_clock : {false, true}) {
      options.stop_by_clock = stop_by_clock;
      for (const double seconds : {-1.0, 0.0, std::numeric_limits<double>::quiet_NaN()}) {
        options.time_limit_seconds = seconds;
        EXPECT_THAT(refusals(options), Each(HasSubstr("time_limit_seconds: expected above 0, got")))
            << algorithm;
      }
    }
    options = make_request().options;
    options.pessimism = 2.0;
    EXPECT_THAT(refusals(options), Each("pessimism: expected a number from 0 to 1, got 2"));
    options = make_request().options;
    options.num_threads = 1025;
    EXPECT_THAT(refusals(options), Each("num_threads: expected at most 1024, got 1025"));
  }
}

TEST(PlanLike, MakesThePlanAgain) {
  for (const char* algorithm : {"neuroshard", "beam-search", "random", "torchrec-like"}) {
    PlanRequest request = make_request();
    request.algorithm = algorithm;
    request.options.seed = 7;
    const PlannedTask first = plan_task(make_task(), request);
    const PlannedTask again = plan_like(reread(first.document), {}, "plan.json");
    EXPECT_EQ(again.document.plan.shards, first.document.plan.shards) << algorithm;
    EXPECT_EQ(again.document.predicted->cost_ms, first.document.predicted->cost_ms);
    EXPECT_EQ(*again.document.search.find("options"), *first.document.search.find("options"));
    EXPECT_THAT(again.warnings, IsEmpty());
  }
}

TEST(PlanLike, TellsAnObserverHowFarItIs) {
  const PlanDocument document = reread(plan_task(make_task(), make_request()).document);
  std::vector<PlanningStage> told;
  const PlanningObserver observer = [&](const PlanningProgress& progress) {
    if (told.empty() || told.back() != progress.stage) told.push_back(progress.stage);
  };
  const PlannedTask again = plan_like(document, {}, "plan.json", &observer);
  EXPECT_EQ(again.document.plan.shards, document.plan.shards);
  ASSERT_FALSE(told.empty());
  EXPECT_EQ(told.front(), PlanningStage::first_plan);
  EXPECT_EQ(told.back(), PlanningStage::lower_bound);
}

TEST(PlanLike, DoesTheWorkOfATimeLimitWhateverTheClockSays) {
  PlanRequest request = make_request();
  request.options.steps = 0;
  request.options.time_limit_seconds = 0.1;
  request.options.stop_by_clock = false;
  const PlanDocument document = reread(plan_task(make_task(), request).document);
  const PlannedTask again = plan_like(document, {}, "plan.json");
  EXPECT_EQ(again.document.plan.shards, document.plan.shards);
  EXPECT_EQ(*again.document.search.find("statistics"), *document.search.find("statistics"));
  EXPECT_FALSE(again.stats.stopped_by_clock);
}

TEST(PlanTask, SaysThatTheClockStoppedIt) {
  PlanRequest request = make_request();
  request.options.steps = 1'000'000'000;
  request.options.time_limit_seconds = 0.3;
  request.options.stop_by_clock = true;
  const PlannedTask stopped = plan_task(make_task(), request);
  EXPECT_TRUE(stopped.stats.stopped_by_clock);
  const PlanDocument document = reread(stopped.document);
  const Json* statistics = document.search.find("statistics");
  ASSERT_NE(statistics, nullptr);
  EXPECT_EQ(*statistics->find("stopped_by_clock"), Json(true));
  constexpr const char* kStopped = ", when the time limit stopped it: more time may find a better";
  EXPECT_THAT(planning_report(stopped), testing::HasSubstr(kStopped));
  EXPECT_THAT(planning_report(plan_task(make_task(), make_request())),
              testing::Not(testing::HasSubstr(kStopped)));
}

TEST(PlanTask, RecordsThatTheClockCouldStopIt) {
  PlanRequest request = make_request();
  const auto recorded = [&](const PlanDocument& document) {
    return document.search.find("options")->find("stop_by_clock");
  };
  EXPECT_EQ(recorded(plan_task(make_task(), request).document), nullptr);
  request.options.time_limit_seconds = 3600.0;
  request.options.stop_by_clock = true;
  const PlanDocument document = reread(plan_task(make_task(), request).document);
  ASSERT_NE(recorded(document), nullptr);
  EXPECT_EQ(*recorded(document), Json(true));
  EXPECT_TRUE(plan_request_of(document, "plan.json").options.stop_by_clock);
  EXPECT_FALSE(options_of_older(document).stop_by_clock);  // of another planning
  // No clock stops the same plan when it is made again.
  const PlanDocument again = plan_like(document, {}, "plan.json").document;
  EXPECT_EQ(again.plan.shards, document.plan.shards);
  EXPECT_EQ(recorded(again), nullptr);
}

TEST(PlanTask, SaysThatThereWasNoTimeForAPlan) {
  PlanRequest request = make_request();
  request.options.stop_by_clock = true;
  request.options.time_limit_seconds = 1e-6;
  try {
    (void)plan_task(make_task(), request);
    FAIL();
  } catch (const InfeasibleError& error) {
    EXPECT_STREQ(error.what(), "no plan found within 0.001 ms");
    EXPECT_EQ(error.exit_code(), 1);
  }
}

TEST(PlanTask, SaysThatManyTablesLeaveNoTimeForASearch) {
  PlanRequest request = make_request();
  request.options.stop_by_clock = true;
  request.options.time_limit_seconds = 1.0;
  Task task = make_task();
  task.tables.resize(100'000, task.tables.front());
  for (std::size_t i = 0; i < task.tables.size(); ++i) task.tables[i].name = std::to_string(i);
  try {
    (void)plan_task(task, request);
    FAIL();
  } catch (const InfeasibleError& error) {
    EXPECT_STREQ(
        error.what(),
        "no plan found within 1 s: what comes after a search takes about 3.00 s for 100000 "
        "tables");
  }
}

TEST(PlanLike, FindsAModelFileWhereItWasOrWhereItIsNow) {
  const TemporaryFolder folder;
  const std::string path = write_model(folder, "mine", 1);
  const PlannedTask first = plan_task(make_task(), make_request({path, "analytic-pcie4"}));
  const PlanDocument document = reread(first.document);
  EXPECT_EQ(first.models.compute->name(), "mine");  // the file's, whatever its metadata say
  EXPECT_EQ(model_reference(document.model, "compute")->file, path);
  EXPECT_EQ(plan_like(document, {}, "plan.json").document.plan.shards, document.plan.shards);

  const std::string moved = folder.file("moved.safetensors");
  std::filesystem::rename(path, moved);
  EXPECT_THAT(input_error([&] { (void)plan_like(document, {}, "plan.json"); }),
              HasSubstr("plan.json: model.compute: expected the file of the model, " + path));
  EXPECT_EQ(plan_like(document, {moved}, "plan.json").document.plan.shards, document.plan.shards);
}

TEST(PlanLike, RefusesAModelOfOtherContent) {
  const TemporaryFolder folder;
  const std::string path = write_model(folder, "mine", 1);
  const PlanDocument document =
      plan_task(make_task(), make_request({path, "analytic-pcie4"})).document;
  (void)write_model(folder, "mine", 2);
  EXPECT_THAT(input_error([&] { (void)plan_like(document, {}, "plan.json"); }),
              HasSubstr("mine: not the computation model that the plan was made with"));
}

TEST(PlanLike, RefusesAPlanThatDoesNotSayHowItWasMade) {
  PlanDocument document = plan_task(make_task(), make_request()).document;
  document.search = Json::Object{{"algorithm", "neuroshard"}};
  EXPECT_THAT(input_error([&] { (void)plan_like(document, {}, "plan.json"); }),
              HasSubstr("plan.json: search.options: expected"));
}

TEST(PlanLike, WarnsOfAnotherPlan) {
  PlanDocument document = plan_task(make_task(), make_request()).document;
  document.plan.shards.front().device = (document.plan.shards.front().device + 1) % 4;
  EXPECT_THAT(plan_like(document, {}, "plan.json").warnings,
              ElementsAre(HasSubstr("plan.json: this is another plan than the one in the file")));
}

TEST(PricePlan, IsByThePlansOwnModels) {
  const TemporaryFolder folder;
  const std::string path = write_model(folder, "mine", 1);
  const PlanDocument document =
      plan_task(make_task(), make_request({path, "analytic-pcie4"})).document;
  const PricedPlan priced = price_plan(reread(document), {}, "plan.json");
  EXPECT_EQ(plan_text(priced.document), plan_text(document));  // nothing has changed
  EXPECT_THAT(priced.warnings, IsEmpty());
}

TEST(PricePlan, LeavesNothingStale) {
  PlanRequest request = make_request({"analytic-cpu", "analytic-ethernet-10g"});
  const PlanDocument document = plan_task(make_task(), request).document;
  const PricedPlan priced = price_plan(document, {.models = kEstimates}, "plan.json");
  EXPECT_LT(priced.document.predicted->cost_ms, document.predicted->cost_ms);
  EXPECT_LE(priced.lower_bound_ms, priced.document.predicted->cost_ms);
  EXPECT_EQ(*priced.document.search.find("lower_bound_ms"), Json(priced.lower_bound_ms));
  EXPECT_EQ(model_reference(priced.document.model, "compute")->name, "analytic-a100-40gb");
  // It can still be made again, by the models that it was made with.
  const PlannedTask again = plan_like(reread(priced.document), {}, "plan.json");
  EXPECT_EQ(again.document.plan.shards, document.plan.shards);
  EXPECT_EQ(model_reference(again.document.model, "compute")->name, "analytic-cpu");
}

TEST(PricePlan, ByTheModelsOfItsSearchAgainIsAsItWas) {
  const PlanDocument document = plan_task(make_task(), make_request()).document;
  const std::vector<std::string> others{"analytic-cpu", "analytic-ethernet-10g"};
  const PlanDocument by_others = price_plan(document, {.models = others}, "plan.json").document;
  EXPECT_NE(by_others.search.find("model"), nullptr);
  const PlanDocument again =
      price_plan(reread(by_others), {.models = kEstimates}, "plan.json").document;
  EXPECT_EQ(again.search.find("model"), nullptr);
  EXPECT_EQ(plan_text(again), plan_text(document));
}

TEST(PricePlan, SaysWhatIsExpectedOfDevicesThatDiffer) {
  const TemporaryFolder folder;
  const std::string path = folder.file("scattering.safetensors");
  ComputeModelInfo info = testing_networks::wide_info("scattering");
  info.metrics[kScatterMetric] = 0.05;
  write_compute_model(
      NeuralComputeModel(testing_networks::random_network(ComputeArchitecture::bounded_loads, 1),
                         std::move(info)),
      path);
  const PlannedTask planned = plan_task(make_task(), make_request({path, "analytic-pcie4"}));
  ASSERT_TRUE(planned.expected_ms);
  EXPECT_GT(*planned.expected_ms, planned.document.predicted->cost_ms);
  EXPECT_EQ(*planned.document.search.find("expected_ms"), Json(*planned.expected_ms));
  EXPECT_THAT(planning_report(planned),
              HasSubstr(fmt::format("expected when it runs: {:.3f} ms, as devices that are planned "
                                    "alike differ by 5.0%",
                                    *planned.expected_ms)));
  const PricedPlan again = price_plan(reread(planned.document), {}, "plan.json");
  EXPECT_EQ(plan_text(again.document), plan_text(planned.document));
  // By models that do not know, nothing is left of it.
  const PricedPlan others =
      price_plan(reread(planned.document), {.models = kEstimates}, "plan.json");
  EXPECT_FALSE(others.expected_ms);
  EXPECT_EQ(others.document.search.find("expected_ms"), nullptr);
  EXPECT_THAT(pricing_report(others), testing::Not(HasSubstr("expected when it runs")));
}

TEST(PricePlan, TakesOneModelFromTheCommandAndTheOtherFromThePlan) {
  const PlanDocument document = plan_task(make_task(), make_request()).document;
  const PricedPlan priced = price_plan(document, {.models = {"analytic-cpu"}}, "plan.json");
  EXPECT_EQ(priced.models.compute->name(), "analytic-cpu");
  EXPECT_EQ(priced.models.communication->name(), "analytic-a100-nvswitch");
}

TEST(PricePlan, OpensNoPipeThatAPlanNames) {
  const TemporaryFolder folder;
  const std::string pipe = folder.file("model.safetensors");
  ASSERT_EQ(mkfifo(pipe.c_str(), 0600), 0);
  PlanDocument document = plan_task(make_task(), make_request()).document;
  for (const Json::Object& named :
       {Json::Object{{"name", "mine"}, {"file", pipe}}, Json::Object{{"name", pipe}},
        Json::Object{{"name", "mine"}, {"file", "/dev/zero"}}}) {
    document.model = Json::Object{{"compute", named}};
    EXPECT_THAT(input_error([&] { (void)price_plan(document, {}, "plan.json"); }),
                HasSubstr("plan.json: model.compute: expected the file of the model, "));
  }
}

TEST(PricePlan, OtherProgramsMayWriteWhatTheyLikeIntoTheSearch) {
  PlanDocument document = plan_task(make_task(), make_request()).document;
  const auto is_cut = [&](const Shard& shard) {
    return shard.num_columns < document.task.tables[shard.table].embedding_dim;
  };
  const std::vector<Shard>& shards = document.plan.shards;
  const Cuts own{.columns = std::any_of(shards.begin(), shards.end(), is_cut),
                 .rows = document.plan.has_row_slices(),
                 .replicas = !document.plan.replicated_tables.empty()};
  for (const Json& options : {Json("fast"), Json(Json::Object{{"cuts", "all"}}),
                              Json(Json::Object{{"cuts", Json::Array{"diagonals"}}})}) {
    document.search = Json::Object{{"options", options}};
    EXPECT_EQ(bound_cuts(document), own);
    EXPECT_GT(price_plan(document, {}, "plan.json").document.predicted->cost_ms, 0.0);
  }
  document.search =
      Json::Object{{"options", Json::Object{{"cuts", Json::Array{"columns", "rows", "replicas"}}}}};
  EXPECT_EQ(bound_cuts(document), Cuts{});
}

/// The cuts that a search did not have lower no bound, neither when planning nor when pricing.
TEST(PricePlan, TheBoundIsOfTheCutsThatTheSearchHad) {
  PlanRequest request = make_request();
  double bound_ms = 0.0;
  for (const Cuts& cuts :
       {Cuts{false, false, false}, Cuts{false, true, false}, Cuts{true, true, false}}) {
    request.options.cuts = cuts;
    const PlannedTask planned = plan_task(make_task(), request);
    EXPECT_EQ(bound_cuts(planned.document), cuts);
    const PricedPlan priced = price_plan(planned.document, {}, "plan.json");
    EXPECT_EQ(priced.lower_bound_ms, planned.lower_bound_ms);
    EXPECT_LE(planned.lower_bound_ms, planned.document.predicted->cost_ms);
    if (bound_ms > 0.0) {
      EXPECT_LT(planned.lower_bound_ms, bound_ms);
    }
    bound_ms = planned.lower_bound_ms;
  }
  // Of a plan that nobody says where it is from: its own.
  request.options.cuts = {false, false, false};
  PlanDocument document = plan_task(make_task(), request).document;
  document.search = Json::Object{};
  EXPECT_EQ(bound_cuts(document), request.options.cuts);
}

TEST(PricePlan, TheBoundKnowsTheTablesThatStayTogether) {
  Task task = make_task();
  PlanRequest request = make_request();
  request.options.cuts = {false, false, false};
  for (Table& table : task.tables) {
    if (table.name != task.tables[0].name) table.same_device_as = task.tables[0].name;
  }
  const PlannedTask planned = plan_task(task, request);
  EXPECT_GE(planned.lower_bound_ms, 0.9 * planned.document.predicted->cost_ms);
  const PricedPlan priced = price_plan(planned.document, {}, "plan.json");
  EXPECT_EQ(priced.lower_bound_ms, planned.lower_bound_ms);
}

TEST(PricePlan, TheBoundSaysWhatItLeavesOut) {
  Task task = make_task();
  task.tables[0].row_access = {{0.1, 0.5}, {1.0, 1.0}};
  const PlanDocument document = plan_task(task, make_request()).document;
  const BoundScope scope = bound_scope(document);
  EXPECT_EQ(scope.num_tables, static_cast<std::int64_t>(task.tables.size()));
  EXPECT_EQ(scope.unpriced, (UnpricedTables{.ordered = 1, .others = 0}));
  EXPECT_FALSE(scope.has_other_slices);
}

TEST(PricePlan, RefusesAnInvalidPlan) {
  PlanDocument document = plan_task(make_task(), make_request()).document;
  document.plan.shards.pop_back();
  EXPECT_THROW((void)price_plan(document, {}, "plan.json"), InfeasibleError);
}

TEST(PlanRequest, IsReadFromJson) {
  const Json json = parse_json(
      R"({"models": ["a", "b"], "algorithm": "random", "lower_bound": false})", "request");
  const PlanRequest request = plan_request_from_json(JsonReader(json, "request"));
  EXPECT_THAT(request.models, ElementsAre("a", "b"));
  EXPECT_EQ(request.algorithm, "random");
  EXPECT_FALSE(request.lower_bound);
  const Json unknown = parse_json(R"({"model": "a"})", "request");
  EXPECT_THAT(input_error([&] { (void)plan_request_from_json(JsonReader(unknown, "request")); }),
              HasSubstr("request: "));
}

}  // namespace
}  // namespace neuroshard
