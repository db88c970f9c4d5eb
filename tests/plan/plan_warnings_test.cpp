// Where the networks of an ensemble disagree about a plan: a warning that names the cause, which
// the plan records.
#include "neuroshard/plan/plan_warnings.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <memory>

#include "neuroshard/cost/communication/analytic_communication.h"
#include "neuroshard/cost/compute/compute_model_io.h"
#include "neuroshard/plan/plan_task.h"
#include "tests/cost/arbitrary_network.h"
#include "tests/cost/narrow_model.h"
#include "tests/io/io_test_util.h"
#include "tests/plan/two_networks.h"

namespace neuroshard {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing_plan::TwoNetworks;

Table table_of(const char* name, std::int64_t rows, std::int64_t columns) {
  Table table;
  table.name = name;
  table.num_embeddings = rows;
  table.embedding_dim = columns;
  table.pooling_factor = 1.0;
  return table;
}

/// Two devices; on device 1, the slowest, are two tables.
Simulator simulator_of(std::int64_t known, double factor) {
  Task task;
  task.batch_size = 64;
  task.tables = {table_of("a", 10, 64), table_of("b", 10, 64), table_of("huge", 1'000'000, 32)};
  task.topology.world_size = task.topology.local_world_size = 2;
  task.topology.memory_bytes.assign(2, std::int64_t{1} << 40);
  return {task, std::make_shared<TwoNetworks>(known, factor),
          std::make_shared<AnalyticCommunicationModel>(find_interconnect("a100-nvswitch"))};
}

const ShardingPlan kPlan{{{0, 0, 64, 0}, {1, 0, 64, 1}, {2, 0, 32, 1}}};

std::vector<std::string> warnings_of(const Simulator& simulator, const ShardingPlan& plan) {
  return disagreement_warnings(simulator, plan, simulator.cost(plan),
                               simulator.member_ranges(plan));
}

TEST(DisagreementWarnings, NameTheDeviceAndThePieceBehindIt) {
  EXPECT_THAT(warnings_of(simulator_of(1000, 3.0), kPlan),
              ElementsAre("two: its 2 networks disagree by 50% about device 1, the plan's slowest "
                          "(96.000 to 160.000 ms), most about 32 columns of table \"huge\" (32.000 "
                          "to 96.000 ms alone)"));
}

/// The networks agree about the slice, which has few enough rows, though not about its whole table.
TEST(DisagreementWarnings, LookAtTheSliceNotAtItsTable) {
  const Simulator simulator = simulator_of(600'000, 3.0);
  Task task = simulator.task();
  task.tables.push_back(table_of("big", 700'000, 16));
  const Simulator with_big(
      task, std::make_shared<TwoNetworks>(600'000, 3.0),
      std::make_shared<AnalyticCommunicationModel>(find_interconnect("a100-nvswitch")));
  const ShardingPlan plan{{{0, 0, 64, 0},
                           {1, 0, 32, 1},
                           {1, 32, 32, 0},
                           {2, 0, 32, 0, 0, 500'000},
                           {2, 0, 32, 1, 500'000, 500'000},
                           {3, 0, 16, 1}}};
  EXPECT_THAT(warnings_of(with_big, plan), IsEmpty());  // device 0 decides
  const ShardingPlan other{{{0, 0, 64, 0},
                            {1, 0, 64, 1},
                            {2, 0, 32, 0, 0, 500'000},
                            {2, 0, 32, 1, 500'000, 500'000},
                            {3, 0, 16, 1}}};
  EXPECT_THAT(
      warnings_of(with_big, other),
      ElementsAre(HasSubstr("most about 16 columns of table \"big\" (16.000 to 48.000 ms")));
  const Simulator few(
      task, std::make_shared<TwoNetworks>(1000, 3.0),
      std::make_shared<AnalyticCommunicationModel>(find_interconnect("a100-nvswitch")));
  EXPECT_THAT(warnings_of(few, other),
              ElementsAre(HasSubstr("most about 32 columns of 500000 rows of table \"huge\" "
                                    "(32.000 to 96.000 ms alone)")));
}

TEST(DisagreementWarnings, NameACopy) {
  const ShardingPlan plan{{{0, 0, 64, 0}, {1, 0, 64, 1}}, {2}};
  EXPECT_THAT(warnings_of(simulator_of(1000, 3.0), plan),
              ElementsAre("two: its 2 networks disagree by 50% about device 0, the plan's slowest "
                          "(96.000 to 160.000 ms), most about the copy of table \"huge\" (32.000 "
                          "to 96.000 ms alone)"));
}

TEST(DisagreementWarnings, NoneWhereTheNetworksNearlyAgree) {
  // A spread of a sixth on the device.
  EXPECT_THAT(warnings_of(simulator_of(1000, 1.5), kPlan), IsEmpty());
  EXPECT_THAT(warnings_of(simulator_of(1'000'000, 3.0), kPlan), IsEmpty());
}

TEST(DisagreementWarnings, NoneAboutDevicesThatDoNotDecide) {
  // Of what is on the quicker device nothing follows for the cost of the plan.
  const ShardingPlan apart{{{0, 0, 64, 0}, {1, 0, 64, 0}, {2, 0, 32, 1}}};
  EXPECT_THAT(warnings_of(simulator_of(1000, 3.0), apart), IsEmpty());
}

TEST(DisagreementWarnings, AreAboutTheDeviceThatEndsLast) {
  const Simulator simulator = simulator_of(1000, 3.0);
  const std::vector<MemberRange> ranges = simulator.member_ranges(kPlan);
  PlanCost cost = simulator.cost(kPlan);
  EXPECT_THAT(disagreement_warnings(simulator, kPlan, cost, ranges), testing::SizeIs(1));
  // Device 0, which is ready first, has the longer all-to-all then.
  cost.devices[0].forward_comm_ms += 1000.0;
  EXPECT_THAT(disagreement_warnings(simulator, kPlan, cost, ranges), IsEmpty());
}

TEST(DisagreementWarnings, NoneOfASingleNetwork) {
  const Simulator two = simulator_of(1000, 3.0);
  const Simulator one(two,
                      std::make_shared<NeuralComputeModel>(
                          testing_networks::random_network(ComputeArchitecture::bounded_loads, 1),
                          testing_networks::wide_info()));
  EXPECT_THAT(warnings_of(one, kPlan), IsEmpty());
}

TEST(PlanWarnings, SayWhatOfSlicesAndCopiesAModelWasNotTrainedOn) {
  Task task;
  task.batch_size = 64;
  task.tables = {table_of("a", 1000, 64), table_of("b", 1000, 64)};
  task.topology.world_size = task.topology.local_world_size = 2;
  task.topology.memory_bytes.assign(2, std::int64_t{1} << 40);
  ComputeModelInfo info = testing_networks::wide_info("narrow");
  info.range.min_pooling_factor = 0.75;
  info.range.min_embeddings = 600;
  info.range.min_batch_size = 64;
  CostModels models;
  models.compute = std::make_shared<NeuralComputeModel>(
      testing_networks::random_network(ComputeArchitecture::bounded_loads, 1), info);
  models.communication =
      std::make_shared<AnalyticCommunicationModel>(find_interconnect("a100-nvswitch"));
  const Simulator simulator(task, models.compute, models.communication);
  EXPECT_THAT(prediction_warnings(models, simulator, {{{0, 0, 64, 0}, {1, 0, 64, 1}}}), IsEmpty());
  const ShardingPlan sliced{{{0, 0, 64, 0, 0, 700}, {0, 0, 64, 1, 700, 300}, {1, 0, 64, 1}}};
  EXPECT_THAT(
      prediction_warnings(models, simulator, sliced),
      ElementsAre(
          "narrow: slices of rows: num_embeddings: trained on 600 to 1000000, got 300 (\"a\")",
          "narrow: slices of rows: pooling_factor: trained on 0.75 to 50, got 0.3 (\"a\")"));
  EXPECT_THAT(prediction_warnings(models, simulator, {{{1, 0, 64, 0}}, {0}}),
              ElementsAre("narrow: replicated tables: batch_size: trained on 64 to 1073741824, got "
                          "32"));
}

/// A simulator of small tables on two devices by a model of this range.
Simulator simulator_in(const TrainedRange& range, std::vector<Table> tables) {
  Task task;
  task.batch_size = 64;
  task.tables = std::move(tables);
  task.topology.world_size = task.topology.local_world_size = 2;
  task.topology.memory_bytes.assign(2, std::int64_t{1} << 40);
  ComputeModelInfo info = testing_networks::wide_info("narrow");
  info.range = range;
  return {task,
          std::make_shared<NeuralComputeModel>(
              testing_networks::random_network(ComputeArchitecture::bounded_loads, 1), info),
          std::make_shared<AnalyticCommunicationModel>(find_interconnect("a100-nvswitch"))};
}

std::vector<std::string> all_warnings(const Simulator& simulator, const ShardingPlan& plan) {
  const CostModels models{.compute = simulator.shared_compute(),
                          .communication = std::make_shared<AnalyticCommunicationModel>(
                              find_interconnect("a100-nvswitch"))};
  return prediction_warnings(models, simulator, plan);
}

TEST(PlanWarnings, CountThePiecesOfTheMostCrowdedDevice) {
  TrainedRange range = testing_networks::wide_info().range;
  range.max_pieces = 2;
  std::vector<Table> tables;
  for (const char* name : {"a", "b", "c", "d"}) tables.push_back(table_of(name, 1000, 16));
  const Simulator even = simulator_in(range, tables);
  EXPECT_THAT(all_warnings(even, {{{0, 0, 16, 0}, {1, 0, 16, 0}, {2, 0, 16, 1}, {3, 0, 16, 1}}}),
              IsEmpty());
  const ShardingPlan crowded{{{0, 0, 16, 0}, {1, 0, 16, 1}, {2, 0, 16, 1}, {3, 0, 16, 1}}};
  EXPECT_THAT(
      all_warnings(even, crowded),
      ElementsAre("narrow: tables: trained on at most 2 pieces on a device, got 3 on device "
                  "1"));
  // Where no plan has fewer, the task says so already.
  tables.push_back(table_of("e", 1000, 16));
  EXPECT_THAT(
      all_warnings(simulator_in(range, tables),
                   {{{0, 0, 16, 0}, {1, 0, 16, 0}, {2, 0, 16, 1}, {3, 0, 16, 1}, {4, 0, 16, 1}}}),
      ElementsAre("narrow: tables: trained on at most 2 pieces on a device, got 5 tables "
                  "for 2 devices"));
}

TEST(PlanWarnings, NameTablesWhosePiecesAreTooNarrow) {
  TrainedRange range = testing_networks::wide_info().range;
  range.min_columns = 16;
  const Simulator simulator =
      simulator_in(range, {table_of("a", 1000, 32), table_of("b", 1000, 64), table_of("c", 10, 8)});
  const std::string of_task = "narrow: embedding_dim: trained on 16 to 128 columns, got 8 (\"c\")";
  EXPECT_THAT(all_warnings(simulator, {{{0, 0, 32, 0}, {1, 0, 64, 1}, {2, 0, 8, 0}}}),
              ElementsAre(of_task));
  EXPECT_THAT(all_warnings(simulator, {{{0, 0, 16, 0},
                                        {0, 16, 16, 1},
                                        {1, 0, 52, 1},
                                        {1, 52, 4, 0},
                                        {1, 56, 8, 1},
                                        {2, 0, 8, 0}}}),
              ElementsAre(of_task,
                          "narrow: columns of a piece: trained on 16 to 128, got 4 "
                          "(\"b\")"));
}

/// Ordered by frequency: a slice of its first rows is hotter than the table.
Table ordered_table(const char* name) {
  Table table = table_of(name, 10'000, 32);
  table.pooling_factor = 20.0;
  table.row_order = RowOrder::by_frequency;
  table.index_distribution = IndexDistribution{.zipf_exponent = 1.2, .access_classes = {}};
  return table;
}

/// Between what such a table and such a slice have.
TrainedRange range_of_few_hits() {
  TrainedRange range = testing_networks::wide_info().range;
  range.min_pooling_factor = 0.0;
  range.max_hits_per_row = 8.0;
  return range;
}

TEST(PlanWarnings, NameTablesWhoseSlicesAreTooHot) {
  const Simulator simulator = simulator_in(range_of_few_hits(), {ordered_table("a")});
  EXPECT_THAT(all_warnings(simulator, {{{0, 0, 16, 0}, {0, 16, 16, 1}}}), IsEmpty());
  EXPECT_THAT(all_warnings(simulator, {{{0, 0, 32, 0, 0, 20}, {0, 0, 32, 1, 20, 9980}}}),
              ElementsAre(testing::StartsWith(
                  "narrow: lookups per distinct row: trained on at most 8, got ")));
}

/// The hottest rows have most of the lookups: the slice with the fewest is the long one.
TEST(PlanWarnings, NameSlicesThatAreTooShortHoweverHot) {
  TrainedRange range = testing_networks::wide_info().range;
  range.min_pooling_factor = 0.0;
  range.max_hits_per_row = 1e9;
  range.min_embeddings = 1000;
  range.max_embeddings = 10'000'000;
  Table table = ordered_table("a");
  table.num_embeddings = 10'000'000;
  table.index_distribution = IndexDistribution{.zipf_exponent = 1.5, .access_classes = {}};
  EXPECT_THAT(all_warnings(simulator_in(range, {table}),
                           {{{0, 0, 32, 0, 0, 17}, {0, 0, 32, 1, 17, 9'999'983}}}),
              ElementsAre("narrow: slices of rows: num_embeddings: trained on 1000 to 10000000, "
                          "got 17 (\"a\")"));
}

/// A table that is itself too hot, or too wide, does not hide that another one's slice is, and is
/// not named again for its slices.
TEST(PlanWarnings, OfSlicesAreNotLostOrRepeatedNextToThoseOfTables) {
  Table hot = table_of("hot", 20, 32);
  hot.pooling_factor = 20.0;
  TrainedRange range = range_of_few_hits();
  EXPECT_THAT(
      all_warnings(simulator_in(range, {hot, ordered_table("ordered")}),
                   {{{0, 0, 32, 0, 0, 10},
                     {0, 0, 32, 1, 10, 10},
                     {1, 0, 32, 0, 0, 20},
                     {1, 0, 32, 1, 20, 9980}}}),
      ElementsAre("narrow: lookups per distinct row: trained on at most 8, got 64 (\"hot\")",
                  testing::AllOf(testing::StartsWith("narrow: lookups per distinct row: "),
                                 testing::EndsWith(" (\"ordered\")"))));

  range = testing_networks::wide_info().range;  // up to 128 columns
  range.min_pooling_factor = 0.0;
  const Simulator wide = simulator_in(range, {table_of("a", 1000, 512), table_of("b", 1000, 256)});
  ShardingPlan plan;
  for (int part = 0; part < 4; ++part) plan.shards.push_back({0, 128 * part, 128, part % 2});
  for (int part = 0; part < 2; ++part) {
    plan.shards.push_back({1, 128 * part, 128, 0, 0, 500});
    plan.shards.push_back({1, 128 * part, 128, 1, 500, 500});
  }
  EXPECT_THAT(all_warnings(wide, plan),
              ElementsAre("narrow: embedding_dim: trained on pieces of 1 to 128 columns, got 512 "
                          "(\"a\", \"b\")"));
}

TEST(PlanWarnings, AreInThePlansDocumentAndThoseOfItsModels) {
  const TemporaryFolder folder;
  const std::string path = folder.file("narrow.safetensors");
  testing_networks::write_narrow_model(path, 1000);
  PlanRequest request;
  request.options.steps = 100;
  request.models = {path, "analytic-a100-nvswitch"};
  const Task task = simulator_of(0, 1.0).task();
  const PlannedTask planned = plan_task(task, request);
  EXPECT_THAT(planned.warnings,
              ElementsAre("narrow: num_embeddings: trained on 10 to 1000, got 1000000 "
                          "(\"huge\")"));
  EXPECT_EQ(parse_plan(plan_text(planned.document), "plan").warnings, planned.warnings);
  // Priced by models that know it, nothing is left to say, and the document follows.
  const PricedPlan priced = price_plan(
      planned.document, {.models = {"analytic-a100-40gb", "analytic-a100-nvswitch"}}, "plan.json");
  EXPECT_THAT(priced.warnings, IsEmpty());
  EXPECT_THAT(priced.document.warnings, IsEmpty());
  EXPECT_THAT(plan_text(priced.document), testing::Not(HasSubstr("\"warnings\"")));
}

}  // namespace
}  // namespace neuroshard
