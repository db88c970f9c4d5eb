// Refinement from end to end on tiny measurements: rounds, files, and runs that go on.
#include "neuroshard/refine/model_refinement.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>

#include "neuroshard/cost/communication/analytic_communication.h"
#include "neuroshard/io/compute_costs_io.h"
#include "tests/collect/tiny_collection.h"
#include "tests/evaluate/exact_backend.h"
#include "tests/io/io_test_util.h"

namespace neuroshard {
namespace {

class ModelRefinementTest : public testing::Test {
 protected:
  ModelRefinementTest() {
    const ComputeSamplingOptions sampling = testing_collection::tiny_sampling(40);
    collect_compute_costs(sampling, testing_collection::tiny_benchmark(), 60,
                          folder_.file("base.jsonl"), {});
    options_.costs = {folder_.file("base.jsonl")};
    options_.workload.name = "tiny";
    options_.workload.tables = sampling.tables;
    options_.tasks.min_tables = 4;
    options_.tasks.max_tables = 8;
    options_.tasks.max_dim = 16;
    options_.tasks.memory_bytes = 1 << 20;
    options_.tasks.min_fill = 0.5;
    options_.tasks.max_fill = 0.7;
    options_.tasks.batch_size = sampling.batch_size;
    options_.tasks.optimizer = sampling.optimizer;
    options_.devices = {2, 3};
    options_.tasks_per_round = 4;
    options_.num_rounds = 2;
    options_.tolerance = 0.0;  // times of microseconds never agree
    options_.controls = 3;
    options_.folder = folder_.file("refinement");
    options_.planner.steps = 50;
    options_.planner.num_threads = 1;
    options_.benchmark = testing_collection::tiny_benchmark();
    options_.training.members = 1;
    options_.training.loop.epochs = 2;
    options_.training.num_threads = 1;
  }

  /// Small tables and slow links: their gradients are fewer bytes than a batch's outputs.
  void make_copies_pay() {
    ComputeSamplingOptions sampling = testing_collection::tiny_sampling(40);
    sampling.batch_size = kBatchSizeOfCopies;
    options_.costs = {folder_.file("large.jsonl")};
    collect_compute_costs(sampling, testing_collection::tiny_benchmark(), 60, options_.costs[0],
                          {});
    options_.tasks.batch_size = kBatchSizeOfCopies;
    options_.tasks.interconnect = "ethernet-10g";
    options_.tasks.local_devices = 1;
    options_.tasks.min_fill = options_.tasks.max_fill = 0.0;
    options_.tasks.memory_bytes = 1 << 24;  // ample
    options_.planner.cuts = Cuts{};
    options_.num_rounds = 1;
  }

  /// The files of copies that were measured.
  [[nodiscard]] std::vector<std::string> files_of_copies() const {
    std::vector<std::string> files = refinement_files(options_);
    std::erase_if(files, [](const std::string& path) {
      return path.find("copies-") == std::string::npos || !std::filesystem::exists(path);
    });
    return files;
  }

  static constexpr std::int64_t kBatchSizeOfCopies = 4096;

  RefinementResult refine(const char* interconnect = "pcie4") {
    const auto links =
        std::make_shared<AnalyticCommunicationModel>(find_interconnect(interconnect));
    RefinementCallbacks callbacks;
    callbacks.on_round = [&](const RefinementRound& round) { seen_.push_back(round.round); };
    return refine_model(options_, links, callbacks);
  }

  TemporaryFolder folder_;
  RefinementOptions options_;
  std::vector<int> seen_;
};

TEST_F(ModelRefinementTest, MeasuresPlansAndTrainsOnThem) {
  const RefinementResult result = refine();
  EXPECT_THAT(seen_, testing::ElementsAre(0, 1));
  ASSERT_EQ(result.rounds.size(), 2u);
  EXPECT_FALSE(result.agreed);
  for (const RefinementRound& round : result.rounds) {
    EXPECT_EQ(round.plans, 4);
    EXPECT_GT(round.sets, 4);
    EXPECT_LE(round.sets, 10);
    EXPECT_GT(round.mean_gap, 0.0);
    EXPECT_GT(round.drift, 0.0);
    const ComputeCosts costs =
        read_compute_costs(fmt::format("{}/round-{}.jsonl", options_.folder, round.round));
    EXPECT_EQ(costs.samples.size(), static_cast<std::size_t>(round.sets + 3));
    for (const MeasuredTable& table : costs.header.tables) {
      EXPECT_FALSE(is_held_out(table.name, 0.1));
    }
  }
  // The controls were measured: a median may by chance be exactly what it was, but hardly both.
  EXPECT_TRUE(result.rounds[0].drift != 1.0 || result.rounds[1].drift != 1.0);
  // The last model has seen the sets of both rounds; those of tables kept from training are in a
  // test of their own.
  EXPECT_GT(result.last.training.count, 40u);
}

TEST_F(ModelRefinementTest, CostsOfOtherHardwareAreRefusedBeforeAnythingIsTrainedOrMeasured) {
  std::string costs = read_file(options_.costs[0]);
  const std::size_t name = costs.find("\"name\": \"", costs.find("\"hardware\"")) + 9;
  costs.insert(name, "another ");
  write_file(options_.costs[0], costs);
  EXPECT_THAT(input_error([&] { (void)refine(); }),
              testing::StartsWith("this machine: hardware: name: expected \"another "));
  EXPECT_FALSE(std::filesystem::exists(options_.folder));
}

TEST_F(ModelRefinementTest, SlicesAreMeasuredAndTrainedOn) {
  options_.planner.cuts = Cuts{};
  options_.num_rounds = 1;
  const RefinementResult first = refine();
  EXPECT_EQ(first.rounds[0].plans, 4);
  std::size_t sets = 0;
  std::size_t slices = 0;
  for (const std::string& path : refinement_files(options_)) {
    if (!path.ends_with(".jsonl") || !std::filesystem::exists(path)) continue;
    const ComputeCosts costs = read_compute_costs(path);
    for (const ComputeCostSample& sample : costs.samples) {
      slices += static_cast<std::size_t>(
          std::count_if(sample.pieces.begin(), sample.pieces.end(),
                        [](const Piece& piece) { return piece.row_share < 1.0; }));
    }
    sets += costs.samples.size();
    // A copy has its device's share of the batch.
    const bool of_copies = path.find("copies-") != std::string::npos;
    const std::int64_t batch_size = options_.tasks.batch_size;
    if (of_copies) {
      EXPECT_TRUE(costs.header.batch_size == (batch_size + 1) / 2 ||
                  costs.header.batch_size == (batch_size + 2) / 3);
    } else {
      EXPECT_EQ(costs.header.batch_size, batch_size);
    }
  }
  EXPECT_EQ(sets, static_cast<std::size_t>(first.rounds[0].sets + 3));
  EXPECT_GT(slices, 0u);
  const RefinementResult second = refine();  // nothing is left to be measured
  EXPECT_EQ(second.rounds[0].mean_gap, first.rounds[0].mean_gap);
}

TEST_F(ModelRefinementTest, CopiesAreMeasuredAtTheirShareOfTheBatch) {
  make_copies_pay();
  (void)refine("ethernet-10g");
  std::size_t sets = 0;
  for (const std::string& path : files_of_copies()) {
    const ComputeCosts costs = read_compute_costs(path);
    EXPECT_TRUE(costs.header.batch_size == kBatchSizeOfCopies / 2 ||
                costs.header.batch_size == (kBatchSizeOfCopies + 2) / 3);
    for (const ComputeCostSample& sample : costs.samples) {
      ++sets;
      for (const Piece& piece : sample.pieces) EXPECT_EQ(piece.row_share, 1.0);
    }
  }
  EXPECT_GT(sets, 0u);
}

TEST_F(ModelRefinementTest, CopiesAreNotMeasuredOnAnotherMachineThanTheRoundsPieces) {
  make_copies_pay();
  (void)refine("ethernet-10g");
  const std::vector<std::string> files = files_of_copies();
  ASSERT_FALSE(files.empty());
  std::filesystem::remove(files.front());
  ComputeBackendFactory elsewhere = cpu_backend(options_.benchmark, 1);
  elsewhere.description.hardware.set("name", "another");
  options_.backend = elsewhere;
  EXPECT_THAT(input_error([&] { (void)refine("ethernet-10g"); }),
              testing::AllOf(testing::StartsWith("this machine: hardware: name: expected "),
                             testing::HasSubstr("got \"another\"")));
  EXPECT_FALSE(std::filesystem::exists(files.front()));
  options_.backend.reset();
  (void)refine("ethernet-10g");
  EXPECT_TRUE(std::filesystem::exists(files.front()));
}

/// Files that are not known would neither be trained on nor be found by a run that goes on.
TEST_F(ModelRefinementTest, FilesOfCopiesHaveTheWorkloadsBatchSizeWhereTheTasksDo) {
  options_.planner.cuts = Cuts{};
  const std::vector<std::string> files = refinement_files(options_);
  EXPECT_THAT(files, testing::Contains(testing::EndsWith(
                         fmt::format("round-0.copies-{}.jsonl", options_.tasks.batch_size / 2))));
  options_.workload.batch_size = options_.tasks.batch_size;
  options_.tasks.batch_size = 0;
  EXPECT_EQ(refinement_files(options_), files);
  options_.num_rounds = 1;
  (void)refine();
  EXPECT_EQ(read_compute_costs(options_.folder + "/round-0.jsonl").header.batch_size,
            options_.workload.batch_size);
}

TEST_F(ModelRefinementTest, ARunThatWasStoppedGoesOn) {
  options_.num_rounds = 1;
  const RefinementResult first = refine();
  const std::string file = options_.folder + "/round-0.jsonl";
  const std::string whole = read_file(file);
  write_file(file, whole.substr(0, whole.rfind("\n{") + 1));  // without the last sample
  options_.num_rounds = 2;
  const RefinementResult second = refine();
  EXPECT_THAT(read_file(file), testing::StartsWith(whole.substr(0, whole.rfind("\n{") + 1)));
  EXPECT_EQ(read_compute_costs(file).samples.size(),
            static_cast<std::size_t>(first.rounds[0].sets + 3));
  EXPECT_EQ(second.rounds.front().sets, first.rounds.front().sets);
  const RefinementResult third = refine();  // nothing is left to be measured
  EXPECT_EQ(third.rounds.back().mean_gap, second.rounds.back().mean_gap);
  EXPECT_EQ(third.rounds.back().drift, second.rounds.back().drift);
  EXPECT_EQ(third.last.unseen_combinations.mape, second.last.unseen_combinations.mape);
}

/// The text with what stands between two others replaced.
std::string with_replaced(std::string text, const std::string& before, const std::string& after,
                          const std::string& replacement) {
  const std::size_t begin = text.find(before) + before.size();
  return text.replace(begin, text.find(after, begin) - begin, replacement);
}

TEST_F(ModelRefinementTest, AFinishedFolderServesOnOtherMachines) {
  options_.num_rounds = 1;
  const RefinementResult first = refine();
  const std::string file = options_.folder + "/round-0.jsonl";
  const std::string elsewhere = with_replaced(read_file(file), R"("memory_bytes": )", "}", "1");
  write_file(file, elsewhere);
  const RefinementResult second = refine();
  EXPECT_EQ(second.rounds.front().mean_gap, first.rounds.front().mean_gap);
  EXPECT_EQ(read_file(file), elsewhere);

  // One with a sample missing would have to be measured there.
  write_file(file, elsewhere.substr(0, elsewhere.rfind("\n{") + 1));
  EXPECT_THAT(input_error([&] { (void)refine(); }),
              testing::HasSubstr("round-0.jsonl: line 1: hardware"));
}

TEST_F(ModelRefinementTest, RefusesTheSetsOfOtherPlans) {
  options_.num_rounds = 1;
  (void)refine();
  const std::string file = options_.folder + "/round-0.jsonl";
  write_file(file, with_replaced(read_file(file), R"("shards": [[)", "]", "0, 100"));
  EXPECT_THAT(input_error([&] { (void)refine(); }),
              testing::HasSubstr("expected the pieces of this run's plans, got others"));
}

TEST_F(ModelRefinementTest, EndsWhenPlansCostWhatIsPredicted) {
  options_.tolerance = 1e9;
  const RefinementResult result = refine();
  EXPECT_TRUE(result.agreed);
  EXPECT_EQ(result.rounds.size(), 1u);
}

TEST_F(ModelRefinementTest, PlansHaveNoTableThatTheCostsKeepFromTraining) {
  ComputeSamplingOptions sampling = testing_collection::tiny_sampling(40);
  sampling.held_out_share = 0.5;
  collect_compute_costs(sampling, testing_collection::tiny_benchmark(), 80,
                        folder_.file("half.jsonl"), {});
  options_.costs = {folder_.file("half.jsonl")};
  options_.num_rounds = 1;
  (void)refine();
  const ComputeCosts costs = read_compute_costs(options_.folder + "/round-0.jsonl");
  ASSERT_FALSE(costs.header.tables.empty());
  for (const MeasuredTable& table : costs.header.tables) EXPECT_FALSE(is_held_out(table.name, 0.5));
}

TEST_F(ModelRefinementTest, PlansThatNobodyMeasuredDoNotAgree) {
  const ComputeBackendFactory exact{
      {Json::Object{{"kind", "cuda"}, {"name", "exact"}}, Json::Object{{"name", "exact"}}},
      [] { return one_device(std::make_unique<testing_backends::ExactDevice>()); }};
  collect_compute_costs(testing_collection::tiny_sampling(40), exact, 60,
                        folder_.file("exact.jsonl"), {});
  options_.costs = {folder_.file("exact.jsonl")};
  // Sets of plans have more pieces than those of the costs, of which some are measured again.
  options_.backend = ComputeBackendFactory{exact.description, [] {
                                             auto device =
                                                 std::make_unique<testing_backends::ExactDevice>();
                                             device->most_pieces = 3;
                                             return one_device(std::move(device));
                                           }};
  options_.devices = {2};
  options_.tasks.min_tables = 8;
  options_.tolerance = 1e9;
  EXPECT_THROW((void)refine(), MachineError);
  EXPECT_TRUE(std::filesystem::exists(options_.folder + "/round-0.jsonl")) << "controls were";
}

TEST_F(ModelRefinementTest, MeasuresOnTheBackendThatItIsGiven) {
  const ComputeBackendFactory exact{
      {Json::Object{{"kind", "cuda"}, {"name", "exact"}}, Json::Object{{"name", "exact"}}},
      [] { return one_device(std::make_unique<testing_backends::ExactDevice>()); }};
  collect_compute_costs(testing_collection::tiny_sampling(40), exact, 60,
                        folder_.file("exact.jsonl"), {});
  options_.costs = {folder_.file("exact.jsonl")};
  options_.backend = exact;
  options_.num_rounds = 1;
  const RefinementResult result = refine();
  EXPECT_EQ(result.rounds.front().drift, 1.0) << "the controls cost what they did";
  const ComputeCosts costs = read_compute_costs(options_.folder + "/round-0.jsonl");
  EXPECT_EQ(to_line(costs.header.hardware), R"({"kind": "cuda", "name": "exact"})");
  ASSERT_FALSE(costs.samples.empty());
  for (const ComputeCostSample& sample : costs.samples) {
    std::int64_t columns = 0;
    for (const Piece& piece : sample.pieces) columns += piece.num_columns;
    EXPECT_EQ(sample.forward_ms, static_cast<double>(columns));
  }
}

TEST_F(ModelRefinementTest, RefusesAModelOfOtherCosts) {
  options_.num_rounds = 1;
  (void)refine();
  const std::string own = options_.folder + "/round-0.model.safetensors";
  const std::string shipped =
      std::string(NEUROSHARD_SOURCE_DIR) + "/models/cpu-epyc-2core.safetensors";
  std::filesystem::copy_file(shipped, own, std::filesystem::copy_options::overwrite_existing);
  EXPECT_THAT(
      input_error([&] { (void)refine(); }),
      testing::HasSubstr("round-0.model.safetensors: expected a model trained on the given "
                         "costs and those of the rounds before, got one trained on others"));
}

TEST_F(ModelRefinementTest, RefusesAnotherRefinementsFolder) {
  options_.num_rounds = 1;
  (void)refine();
  options_.tasks.seed = 1;
  EXPECT_THAT(input_error([&] { (void)refine(); }), testing::HasSubstr("round-0.jsonl: line 1: "));
  options_.planner.steps = 0;
  EXPECT_EQ(input_error([&] { (void)refine(); }), "steps: expected at least 1, got 0");
}

}  // namespace
}  // namespace neuroshard
