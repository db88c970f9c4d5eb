// Calibration on a machine whose costs are known: another speed of the model itself.
#include "neuroshard/refine/calibration.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "neuroshard/collect/compute/set_sampling.h"
#include "neuroshard/core/error.h"
#include "neuroshard/core/piece.h"
#include "neuroshard/cost/compute/compute_model_io.h"
#include "neuroshard/io/compute_costs_io.h"
#include "neuroshard/io/file.h"
#include "neuroshard/report/calibration_report.h"
#include "neuroshard/workload/reuse/index_distribution.h"
#include "tests/collect/scripted_device.h"
#include "tests/cost/arbitrary_network.h"
#include "tests/io/io_test_util.h"

namespace neuroshard {
namespace {

using testing_collection::Action;
using testing_collection::Script;
using testing_collection::ScriptedDevice;

constexpr double kSpeed = 1.3;

/// What the model predicts for a set, times kSpeed.
double cost_here(const ComputeCostModel& model, const PieceSet& set,
                 const OperatorSettings& settings) {
  std::vector<double> state(model.state_size(), 0.0);
  std::vector<double> contribution(model.state_size());
  for (const Piece& piece : set.pieces) {
    const Table& table = set.table_of(piece);
    model.encode({.num_embeddings = table.num_embeddings,
                  .pooling_factor = table.pooling_factor,
                  .data_type = table.data_type,
                  .reuse_histogram = reuse_histogram(table, settings.batch_size),
                  .distinct_rows = reuse_statistics(table, settings.batch_size).distinct_rows,
                  .hottest_row_share = hottest_row_share(table, settings.batch_size)},
                 piece.num_columns, settings, contribution);
    for (std::size_t i = 0; i < state.size(); ++i) state[i] += contribution[i];
  }
  return kSpeed * model.cost(state);
}

/// Half of a set's cost is the forward pass. A restless one is half as fast for a third of all
/// passes.
class FasterMachine final : public MeasuringDevice {
 public:
  explicit FasterMachine(std::shared_ptr<const ComputeCostModel> model, bool is_restless = false)
      : model_(std::move(model)), is_restless_(is_restless), device_(script()) {}

  std::unique_ptr<PreparedSet> prepare(const PieceSet& set) override {
    costs_[set.id] = cost_here(*model_, set, {set.batch_size, set.optimizer});
    return device_.prepare(set);
  }
  /// Eight sets next to sixteen reference sets.
  [[nodiscard]] int max_in_flight() const override { return is_restless_ ? 24 : 1; }
  [[nodiscard]] std::int64_t bytes_between_passes() const override { return 0; }
  std::int64_t disturb_caches(std::int64_t bytes) override { return bytes; }
  [[nodiscard]] RepetitionOptions repetitions() const override { return device_.repetitions(); }

 private:
  Script script() {
    Script script;
    script.time = [this](std::int64_t id, Action, int) {
      const bool is_slow = is_restless_ && passes_++ / 480 % 3 == 2;
      return 0.5 * costs_.at(id) * (is_slow ? 2.0 : 1.0);
    };
    return script;
  }

  std::shared_ptr<const ComputeCostModel> model_;
  bool is_restless_;
  std::int64_t passes_ = 0;
  std::map<std::int64_t, double> costs_;
  ScriptedDevice device_;
};

class CalibrationTest : public testing::Test {
 protected:
  CalibrationTest() {
    auto info = testing_networks::wide_info("elsewhere");
    info.range.min_batch_size = 64;
    info.range.max_batch_size = 65'536;
    info.range.min_columns = 4;
    info.range.data_types = {DataType::fp32, DataType::fp16};
    options_.model = std::make_shared<NeuralComputeModel>(
        testing_networks::random_network(ComputeArchitecture::bounded_loads, 4), info);
    options_.name = "here";
    options_.folder = folder_.file("costs");
    options_.samples = 60;
    options_.expected_sets = 200;
    options_.num_threads = 1;
    options_.backend.description.hardware =
        Json::Object{{"kind", "cpu"}, {"name", "this machine"}, {"num_cores", 2}};
    options_.backend.description.operator_info =
        Json::Object{{"name", "test"}, {"version", 1}, {"num_threads", 2}};
    options_.backend.make = [this] {
      ++backends_made_;
      return one_device(std::make_unique<FasterMachine>(options_.model));
    };
  }

  /// Calibrates and writes the model, which the next calibration may replace.
  CalibrationResult finished() {
    CalibrationResult result = calibrate(options_, {});
    options_.replaced_model = folder_.file("here.safetensors");
    write_compute_model(*result.model, options_.replaced_model);
    return result;
  }

  /// Of all cost files.
  [[nodiscard]] std::vector<std::string> bytes_of_costs() const {
    std::vector<std::string> bytes;
    for (const std::string& file : calibration_files(options_)) bytes.push_back(read_file(file));
    return bytes;
  }

  TemporaryFolder folder_;
  CalibrationOptions options_;
  int backends_made_ = 0;
};

TEST_F(CalibrationTest, FindsTheSpeedOfTheMachine) {
  const CalibrationResult result = calibrate(options_, {});
  EXPECT_EQ(result.samples, 60);
  EXPECT_NEAR(result.speed, kSpeed, 0.03);
  EXPECT_NEAR(result.before.median, 1.0 - 1.0 / kSpeed, 0.03);
  EXPECT_LT(result.after.median, 0.03);
  EXPECT_LT(result.validation.median, 0.05);
  EXPECT_EQ(result.model->name(), "here");
  EXPECT_THAT(result.model->hardware(), testing::HasSubstr("this machine"));
  EXPECT_EQ(backends_made_, 1);  // one arena for all batch sizes
}

TEST_F(CalibrationTest, ReferenceSetsTellTheMachinesSlowMinutesFromCosts) {
  options_.samples = 200;
  options_.backend.make = [this] {
    return one_device(std::make_unique<FasterMachine>(options_.model, true));
  };
  const CalibrationResult without = calibrate(options_, {});
  EXPECT_GT(without.after.percentile_95, 0.3);
  EXPECT_FALSE(without.slowness);
  EXPECT_THAT(without.model->info().reference_ms, testing::IsEmpty());

  options_.has_reference_sets = true;
  // What has none goes on without.
  options_.samples = 201;
  EXPECT_EQ(calibrate(options_, {}).samples_before, 200);

  options_.folder = folder_.file("with");
  const CalibrationResult with = calibrate(options_, {});
  EXPECT_EQ(with.samples, 201);
  // A set whose passes are partly slow is told by no quantile.
  EXPECT_LT(with.after.percentile_95, 0.5 * without.after.percentile_95);
  EXPECT_NEAR(with.speed, kSpeed, 0.05);
  EXPECT_THAT(with.model->info().reference_ms, testing::SizeIs(1));
  ASSERT_TRUE(with.slowness);
  EXPECT_NEAR(with.slowness->fastest, 1.0, 0.1);
  EXPECT_NEAR(with.slowness->slowest, 2.0, 0.1);
  EXPECT_THAT(calibration_text(with, "here"), testing::HasSubstr("meanwhile reference sets took "));
  // And goes on with them where it was stopped.
  const std::string file = calibration_files(options_).front();
  const std::string text = read_file(file);
  write_file(file, text.substr(0, text.rfind("\n{") + 1));  // without its last sample
  EXPECT_EQ(calibrate(options_, {}).samples_before, 200);
}

TEST_F(CalibrationTest, BegunAnewItHasReferenceSetsThoughTheCostsBeforeHadNone) {
  options_.samples = 30;
  options_.backend.make = [this] {
    return one_device(std::make_unique<FasterMachine>(options_.model, true));
  };
  (void)finished();
  options_.has_reference_sets = true;
  EXPECT_TRUE(calibrate(options_, {}).slowness);
}

TEST_F(CalibrationTest, KnowsNoLessThanTheModelBefore) {
  const std::shared_ptr<const NeuralComputeModel> first = options_.model;
  options_.model = calibrate(options_, {}).model;
  options_.folder = folder_.file("again");
  const CalibrationResult again = calibrate(options_, {});
  for (const auto& model : {options_.model, again.model}) {
    const TrainedRange& before = first->info().range;
    const TrainedRange& range = model->info().range;
    EXPECT_LE(range.min_batch_size, before.min_batch_size);
    EXPECT_GE(range.max_batch_size, before.max_batch_size);
    EXPECT_LE(range.min_columns, before.min_columns);
    EXPECT_GE(range.max_columns, before.max_columns);
    EXPECT_LE(range.min_embeddings, before.min_embeddings);
    EXPECT_GE(range.max_embeddings, before.max_embeddings);
    EXPECT_LE(range.min_pooling_factor, before.min_pooling_factor);
    EXPECT_GE(range.max_pooling_factor, before.max_pooling_factor);
    EXPECT_GE(range.max_hits_per_row, before.max_hits_per_row);
    EXPECT_THAT(range.optimizers, testing::IsSupersetOf(before.optimizers));
    EXPECT_THAT(range.data_types, testing::IsSupersetOf(before.data_types));
    EXPECT_GE(range.max_pieces, before.max_pieces);
  }
}

/// What another operator was measured on says nothing of this one.
TEST_F(CalibrationTest, KnowsOnlyItsSamplesRangeOfAnotherOperator) {
  ComputeModelInfo info = options_.model->info();
  info.operator_info = R"({"name": "another", "version": 1})";
  options_.model = std::make_shared<NeuralComputeModel>(
      testing_networks::random_network(ComputeArchitecture::bounded_loads, 4), info);
  EXPECT_LT(calibrate(options_, {}).model->info().range.max_batch_size, 65'536);
}

/// Of a GPU's model, small costs count as little as they did when it was trained.
TEST_F(CalibrationTest, KeepsTheModelsGranularity) {
  ComputeModelInfo info = options_.model->info();
  info.metrics["granularity_ms"] = 1.0;
  options_.model = std::make_shared<NeuralComputeModel>(
      testing_networks::random_network(ComputeArchitecture::bounded_loads, 4), info);
  const CalibrationResult result = calibrate(options_, {});
  const auto& metrics = result.model->info().metrics;
  EXPECT_EQ(metrics.at("granularity_ms"), 1.0);
  // Of measured samples, not of those whose costs are expected.
  EXPECT_GT(metrics.at("validation.large.samples"), 0.0);
  EXPECT_LE(metrics.at("validation.large.samples"), metrics.at("validation.samples"));
}

TEST_F(CalibrationTest, MeasuresAFewPassesAsLargeAsThoseOfWholeModels) {
  options_.samples = 200;  // two of them large
  EXPECT_EQ(calibrate(options_, {}).samples, 200);
  std::map<bool, std::vector<double>> moved;  // by whether the file is one of large passes
  for (const std::string& file : calibration_files(options_)) {
    if (file.find("-plans") != std::string::npos) continue;
    if (file.find("-published") != std::string::npos) continue;
    const ComputeCosts costs = read_compute_costs(file);
    const bool is_large = file.find("-large") != std::string::npos;
    for (const ComputeCostSample& sample : costs.samples) {
      double bytes = 0.0;
      for (const Piece& piece : sample.pieces) {
        const MeasuredTable& measured = costs.header.tables[piece.table];
        Table table;
        table.num_embeddings = measured.num_embeddings;
        table.pooling_factor = measured.pooling_factor;
        table.data_type = measured.data_type;
        bytes += pass_bytes(table, piece, costs.header.batch_size);
      }
      moved[is_large].push_back(bytes);
    }
  }
  EXPECT_THAT(moved[true], testing::SizeIs(2));
  EXPECT_THAT(moved[true], testing::Each(testing::AllOf(testing::Gt(0.5e9), testing::Lt(4.5e9))));
  EXPECT_THAT(moved[false], testing::Each(testing::Lt(1.1e9)));
}

TEST_F(CalibrationTest, ThreeOfTenSamplesAreSetsOfTheModelsPlans) {
  options_.samples = 100;
  EXPECT_EQ(calibrate(options_, {}).samples, 100);
  std::size_t planned = 0;
  bool has_slices = false;
  std::set<DataType> data_types;
  for (const std::string& file : calibration_files(options_)) {
    if (file.find("-plans") == std::string::npos) continue;
    const ComputeCosts costs = read_compute_costs(file);
    ASSERT_TRUE(costs.header.sampling);
    EXPECT_EQ(*costs.header.sampling->find("kind"), Json("plans"));
    planned += costs.samples.size();
    for (const ComputeCostSample& sample : costs.samples) {
      for (const Piece& piece : sample.pieces) {
        has_slices |= piece.row_share < 1.0;
        data_types.insert(costs.header.tables[piece.table].data_type);
      }
    }
  }
  EXPECT_EQ(planned, 30u);
  EXPECT_TRUE(has_slices);
  EXPECT_THAT(data_types, testing::ElementsAre(DataType::fp32, DataType::fp16));
}

TEST_F(CalibrationTest, AsManyAreOfPlansOfThePublishedWorkloads) {
  options_.samples = 100;
  EXPECT_EQ(calibrate(options_, {}).samples, 100);
  std::size_t planned = 0;
  std::set<std::string> workloads;
  std::size_t most_pieces = 0;
  for (const std::string& file : calibration_files(options_)) {
    if (file.find("-published") == std::string::npos) continue;
    const ComputeCosts costs = read_compute_costs(file);
    ASSERT_TRUE(costs.header.sampling);
    EXPECT_EQ(*costs.header.sampling->find("workload"), Json("published"));
    planned += costs.samples.size();
    for (const ComputeCostSample& sample : costs.samples) {
      const std::string& table = costs.header.tables[sample.pieces.front().table].name;
      workloads.insert(table.substr(0, table.find('/')));
      most_pieces = std::max(most_pieces, sample.pieces.size());
    }
  }
  EXPECT_EQ(planned, 30u);
  EXPECT_GE(workloads.size(), 6u);
  EXPECT_GT(most_pieces, 40u);
}

TEST_F(CalibrationTest, ReportsEverySampleOnce) {
  std::int64_t last = 0;
  (void)calibrate(options_, [&](const CollectionProgress& progress) {
    EXPECT_EQ(progress.requested, 60);
    if (progress.done == last) return;  // still at work, on a slow machine
    EXPECT_EQ(progress.done, last + 1);
    last = progress.done;
  });
  EXPECT_EQ(last, 60);
}

TEST_F(CalibrationTest, ARunThatWasStoppedGoesOn) {
  const CalibrationResult whole = finished();  // of other costs than those below
  const std::string file = calibration_files(options_).back();
  const std::string text = read_file(file);
  write_file(file, text.substr(0, text.rfind("\n{") + 1));  // without its last sample
  int all_done = 0;
  const CalibrationResult again = calibrate(options_, [&](const CollectionProgress& progress) {
    EXPECT_GE(progress.done, whole.samples - 1);
    all_done += progress.done == whole.samples;
  });
  EXPECT_EQ(all_done, 1);
  EXPECT_EQ(again.samples, whole.samples);
  EXPECT_EQ(again.samples_before, whole.samples - 1);
  EXPECT_EQ(again.speed, whole.speed);
  EXPECT_THAT(calibration_text(again, "here"),
              testing::HasSubstr("59 of the 60 samples were there already, "));
  EXPECT_THAT(calibration_text(whole, "here"), testing::Not(testing::HasSubstr("already")));
}

/// The machine may be slower today: what was measured yesterday says nothing of it.
TEST_F(CalibrationTest, AfterAFinishedOneItBeginsAnew) {
  options_.samples = 30;
  (void)finished();
  const std::string notes = options_.folder + "/notes";
  write_file(notes, "of somebody");
  std::int64_t first_done = 30;
  const CalibrationResult again = calibrate(options_, [&](const CollectionProgress& progress) {
    first_done = std::min(first_done, progress.done);
  });
  EXPECT_LE(first_done, 1);
  EXPECT_EQ(again.samples, 30);
  EXPECT_EQ(again.samples_before, 0);
  EXPECT_EQ(backends_made_, 2);
  EXPECT_EQ(read_file(notes), "of somebody");
}

TEST_F(CalibrationTest, GoesOnWhereTheModelIsOfOtherCosts) {
  options_.samples = 30;
  (void)finished();
  const std::vector<std::string> before = bytes_of_costs();
  options_.replaced_model = folder_.file("other.safetensors");
  write_compute_model(*options_.model, options_.replaced_model);
  EXPECT_EQ(calibrate(options_, {}).samples_before, 30);
  write_file(options_.replaced_model, "no model");
  EXPECT_EQ(calibrate(options_, {}).samples_before, 30);
  EXPECT_EQ(bytes_of_costs(), before);
  EXPECT_EQ(backends_made_, 1);
}

TEST_F(CalibrationTest, LosesNothingWhereItCannotBeginAnew) {
  options_.samples = 30;
  (void)finished();
  const std::vector<std::string> before = bytes_of_costs();
  {
    const AppendFile writer(calibration_files(options_).back());
    EXPECT_THAT(input_error([&] { (void)calibrate(options_, {}); }),
                testing::HasSubstr("one that another process appends to"));
  }
  EXPECT_EQ(bytes_of_costs(), before);
  options_.backend.make = []() -> std::unique_ptr<ComputeBackend> {
    throw MachineError("no memory");
  };
  EXPECT_THROW((void)calibrate(options_, {}), MachineError);
  EXPECT_EQ(bytes_of_costs(), before);
}

TEST_F(CalibrationTest, LeavesNoFolderBehindWhereNothingCanBeMeasured) {
  options_.backend.make = []() -> std::unique_ptr<ComputeBackend> {
    throw MachineError("no memory");
  };
  options_.folder = folder_.file("one/in/another");
  EXPECT_THROW((void)calibrate(options_, {}), MachineError);
  EXPECT_EQ(folder_.num_files(), 0u);
  // One that was there stays.
  const std::string one = folder_.file("one");
  std::filesystem::create_directory(one);
  EXPECT_THROW((void)calibrate(options_, {}), MachineError);
  ASSERT_TRUE(std::filesystem::is_directory(one));
  EXPECT_TRUE(std::filesystem::is_empty(one));
}

TEST_F(CalibrationTest, RefusesAFolderOfAnotherModelsPlans) {
  options_.samples = 30;
  (void)calibrate(options_, {});
  ComputeModelInfo other = options_.model->info();
  other.model_sha256 = "another's";
  options_.model = std::make_shared<NeuralComputeModel>(
      testing_networks::random_network(ComputeArchitecture::bounded_loads, 5), other);
  EXPECT_THAT(input_error([&] { (void)calibrate(options_, {}); }),
              testing::AllOf(testing::HasSubstr("-plans.jsonl"), testing::HasSubstr("sampling")));
}

TEST_F(CalibrationTest, ATimeBeyondTheClockIsAsGoodAsNone) {
  options_.time_limit_seconds = 1e300;
  EXPECT_EQ(calibrate(options_, {}).samples, 60);
}

TEST_F(CalibrationTest, SaysThatTheTimeWasTooShort) {
  options_.time_limit_seconds = 1e-9;
  EXPECT_EQ(input_error([&] { (void)calibrate(options_, {}); }),
            "calibration: expected at least 30 measured samples: a longer time limit, got 0");
}

}  // namespace
}  // namespace neuroshard
