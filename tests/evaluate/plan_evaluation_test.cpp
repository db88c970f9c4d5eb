// Evaluation of a plan: measured against predicted devices, and the metrics over them.
#include "neuroshard/evaluate/plan_evaluation.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "neuroshard/collect/compute/hardware_info.h"
#include "neuroshard/collect/compute/usual_speed.h"
#include "neuroshard/core/error.h"
#include "neuroshard/io/json/json.h"
#include "neuroshard/report/evaluation_report.h"
#include "tests/collect/tiny_collection.h"
#include "tests/cost/arbitrary_network.h"
#include "tests/evaluate/exact_backend.h"
#include "tests/io/io_test_util.h"
#include "tests/search/arbitrary_simulator.h"

namespace neuroshard {
namespace {

using testing_tasks::make_simulator;
using testing_tasks::make_table;
using testing_tasks::one_host_task;

TEST(EvaluatePlan, MeasuresTheDevicesThatHavePieces) {
  const Task task = one_host_task({make_table("a", 1000, 8, 3.0), make_table("b", 100, 4)}, 3,
                                  std::int64_t{1} << 20);
  const Simulator simulator = make_simulator(task);
  const ShardingPlan plan{{{0, 0, 4, 0}, {0, 4, 4, 2}, {1, 0, 4, 2}}};
  const auto backend = testing_collection::tiny_backend();
  std::vector<int> progress;
  const SimulatedPlan simulated{&simulator, &plan};
  const PlanEvaluation evaluation = evaluate_plans({&simulated, 1}, *backend, 1, [&](int done) {
                                      progress.push_back(done);
                                    }).front();
  EXPECT_THAT(progress, testing::ElementsAre(1, 2));
  EXPECT_EQ(num_measured_sets({&simulated, 1}), 2);
  EXPECT_EQ(evaluation.predicted.cost_ms, simulator.cost(plan).cost_ms);

  const std::vector<DeviceCost>& measured = evaluation.measured.devices;
  ASSERT_EQ(measured.size(), 3u);
  EXPECT_GT(measured[0].compute_ms, 0.0);
  EXPECT_EQ(measured[1].compute_ms, 0.0);  // no pieces
  EXPECT_EQ(evaluation.interval[1], 0.0);
  EXPECT_GT(measured[2].compute_ms, 0.0);
  // The communication is the simulator's for the measured computation.
  const std::vector<double> compute_ms{measured[0].compute_ms, 0.0, measured[2].compute_ms};
  EXPECT_EQ(evaluation.measured.cost_ms, simulator.cost(plan, compute_ms).cost_ms);

  double mape = 0.0;
  for (const std::size_t d : {0, 2}) {
    mape += std::abs(evaluation.predicted.devices[d].compute_ms / compute_ms[d] - 1.0) / 2.0;
  }
  EXPECT_NEAR(evaluation.compute_mape, mape, 1e-12 * (1.0 + mape));
  EXPECT_EQ(std::abs(evaluation.compute_tau.value()), 1.0);  // of two devices
}

TEST(EvaluatePlan, EqualSetsOfPiecesAreMeasuredOnce) {
  const Task task = one_host_task({make_table("a", 1000, 8, 3.0), make_table("b", 100, 4)}, 2,
                                  std::int64_t{1} << 20);
  const Simulator simulator = make_simulator(task);
  const Simulator other = make_simulator(task);  // its tables are not those of the first
  const ShardingPlan plan{{{0, 0, 4, 0}, {0, 4, 4, 1}, {1, 0, 4, 1}}};
  const ShardingPlan mirrored{{{0, 0, 4, 1}, {0, 4, 4, 0}, {1, 0, 4, 0}}};
  const std::vector<SimulatedPlan> plans{
      {&simulator, &plan}, {&simulator, &mirrored}, {&other, &plan}};
  const auto backend = testing_collection::tiny_backend();
  int sets = 0;
  const auto evaluations = evaluate_plans(plans, *backend, 1, [&](int done) { sets = done; });
  EXPECT_EQ(sets, 4);
  EXPECT_EQ(num_measured_sets(plans), 4);
  ASSERT_EQ(evaluations.size(), 3u);
  for (const int d : {0, 1}) {
    EXPECT_EQ(evaluations[0].measured.devices[d].compute_ms,
              evaluations[1].measured.devices[1 - d].compute_ms);
    EXPECT_GT(evaluations[2].measured.devices[d].compute_ms, 0.0);
  }
}

TEST(EvaluatePlan, ControlsTellTheMachinesDrift) {
  const Task task = one_host_task({make_table("a", 1000, 8, 3.0), make_table("b", 100, 4)}, 2,
                                  std::int64_t{1} << 20);
  const Simulator simulator = make_simulator(task);
  const ShardingPlan plan{{{0, 0, 8, 0}, {1, 0, 4, 1}}};
  const SimulatedPlan simulated{&simulator, &plan};
  const Table other = make_table("other", 500, 64);
  // Now 2 ms per column; then 1.6, 1.25 and 4: 1.25, 1.6 and 0.5 times as much.
  const std::span<const Table> tables(&other, 1);
  const std::vector<SpeedControl> controls{
      {tables, {{0, 16}}, 25.6}, {tables, {{0, 32}}, 40.0}, {tables, {{0, 64}}, 256.0}};
  const auto backend = one_device(std::make_unique<testing_backends::ExactDevice>());
  auto& device = static_cast<testing_backends::ExactDevice&>(*backend->devices.front());
  int sets = 0;
  const auto evaluation =
      evaluate_plans(
          {&simulated, 1}, *backend, 1, [&](int done) { sets = done; }, controls)
          .front();
  EXPECT_EQ(sets, 5);
  EXPECT_THAT(device.measured, testing::ElementsAre(8, 16, 32, 4, 64));  // among the plan's
  EXPECT_DOUBLE_EQ(evaluation.drift.value(), 1.25);
  EXPECT_EQ(evaluation.measured.devices[0].compute_ms, 16.0);
  EXPECT_DOUBLE_EQ(evaluation.less_drift->devices[0].compute_ms, 16.0 / 1.25);
  const std::vector<double> at_earlier_speed{16.0 / 1.25, 8.0 / 1.25};
  EXPECT_EQ(evaluation.less_drift->cost_ms, simulator.cost(plan, at_earlier_speed).cost_ms);

  device.failing = 16.0;  // a control that cannot be measured is none
  EXPECT_DOUBLE_EQ(evaluate_plans({&simulated, 1}, *backend, 1, {}, controls).front().drift.value(),
                   0.5 * (1.6 + 0.5));
  const auto without = evaluate_plans({&simulated, 1}, *backend, 1).front();
  EXPECT_FALSE(without.drift || without.less_drift);
  device.failing = 4.0;
  EXPECT_THROW((void)evaluate_plans({&simulated, 1}, *backend, 1, {}, controls), MachineError);
}

/// Has one set ready at a time, next to the reference sets, and is half as fast from the second on.
class SlowingDevice final : public MeasuringDevice {
 public:
  std::unique_ptr<PreparedSet> prepare(const PieceSet& set) override {
    (set.id < 0 ? num_references : num_sets) += 1;
    if (num_sets > 1) slowness = 2.0;
    double columns = 0.0;
    for (const Piece& piece : set.pieces) columns += static_cast<double>(piece.num_columns);
    return std::make_unique<Prepared>(*this, columns);
  }
  [[nodiscard]] int max_in_flight() const override { return 17; }
  [[nodiscard]] std::int64_t bytes_between_passes() const override { return 0; }
  std::int64_t disturb_caches(std::int64_t bytes) override { return bytes; }
  [[nodiscard]] RepetitionOptions repetitions() const override {
    return {.warm_ups = 0, .min_repetitions = 1, .max_repetitions = 1};
  }

  int num_references = 0;
  int num_sets = 0;
  double slowness = 1.0;

 private:
  /// A millisecond per column in each direction.
  class Prepared final : public PreparedSet {
   public:
    Prepared(const SlowingDevice& device, double ms) : device_(device), ms_(ms) {}
    std::future<double> forward() override { return known_time(ms_ * device_.slowness); }
    std::future<double> backward() override { return known_time(ms_ * device_.slowness); }
    [[nodiscard]] std::int64_t bytes_touched() const override { return 0; }

   private:
    const SlowingDevice& device_;
    double ms_;
  };
};

TEST(EvaluatePlan, ReferenceSetsTellTheMachinesDriftOfEachSet) {
  const Task task = one_host_task({make_table("a", 1000, 8, 3.0), make_table("b", 100, 4)}, 2,
                                  std::int64_t{1} << 20);
  const Simulator simulator = make_simulator(task);
  const ShardingPlan plan{{{0, 0, 8, 0}, {1, 0, 4, 1}}};
  const SimulatedPlan simulated{&simulator, &plan};
  SpeedReference reference{make_reference_sets(Json::Object{})};
  std::vector<double> times_ms;
  for (const PieceSet& set : reference.sets.sets) {
    double columns = 0.0;
    for (const Piece& piece : set.pieces) columns += static_cast<double>(piece.num_columns);
    times_ms.push_back(2.0 * columns);
  }
  reference.usual_ms = mean_of_references(times_ms) / 1.25;
  const auto backend = one_device(std::make_unique<SlowingDevice>());
  auto& device = static_cast<SlowingDevice&>(*backend->devices.front());
  const auto evaluation = evaluate_plans({&simulated, 1}, *backend, 1, {}, {}, &reference).front();
  EXPECT_EQ(device.num_references, 16);
  EXPECT_EQ(device.num_sets, 2);
  EXPECT_EQ(evaluation.measured.devices[0].compute_ms, 16.0);
  EXPECT_EQ(evaluation.measured.devices[1].compute_ms, 16.0);
  EXPECT_NEAR(evaluation.less_drift->devices[0].compute_ms, 16.0 / 1.25, 1e-9);
  EXPECT_NEAR(evaluation.less_drift->devices[1].compute_ms, 8.0 / 1.25, 1e-9);
  EXPECT_NEAR(evaluation.drift.value(), 0.5 * (1.25 + 2.5), 1e-12);
  EXPECT_THAT(evaluation_text(evaluation), testing::HasSubstr("\nless drift: "));
}

TEST(EvaluatePlan, ReferenceSetsAreThoseOfTheModelWithItsThreads) {
  const auto refusal = [](std::map<std::string, double> known, int threads) {
    ComputeModelInfo info = testing_networks::wide_info("mine");
    info.reference_ms = std::move(known);
    info.operator_info = R"({"name": "neuroshard-cpu", "num_threads": 2})";
    const NeuralComputeModel model(
        testing_networks::random_network(ComputeArchitecture::bounded_loads, 1), info);
    BackendDescription here;
    here.operator_info = Json::Object{{"name", "neuroshard-cpu"}, {"num_threads", threads}};
    return input_error([&] { (void)speed_reference(model, here); });
  };
  EXPECT_EQ(refusal({{"reference-1", 1.5}}, 2), "no error");
  EXPECT_EQ(refusal({{"reference-1", 1.5}}, 1),
            "reference sets: expected as many threads as the samples of mine were measured with "
            "(2), got 1");
  EXPECT_EQ(refusal({}, 2),
            "reference sets: expected a model whose samples were measured next to them "
            "(reference-1), got mine, which knows none");
  EXPECT_EQ(refusal({{"reference-0", 1.5}}, 2),
            "reference sets: expected a model whose samples were measured next to them "
            "(reference-1), got mine, which knows reference-0");
}

/// Remembers the tables of what it measures.
class RememberingDevice final : public testing_backends::ExactDevice {
 public:
  std::unique_ptr<PreparedSet> prepare(const PieceSet& set) override {
    for (const Piece& piece : set.pieces) {
      EXPECT_EQ(piece.row_share, 1.0);  // devices know whole tables alone
      rows.push_back(set.table_of(piece).num_embeddings);
    }
    return ExactDevice::prepare(set);
  }
  std::vector<std::int64_t> rows;
};

TEST(EvaluatePlan, ASliceAmongTheControlsIsMeasuredAsOne) {
  const Task task = one_host_task({make_table("a", 1000, 8, 3.0)}, 1, std::int64_t{1} << 20);
  const Simulator simulator = make_simulator(task);
  const ShardingPlan plan{{{0, 0, 8, 0}}};
  const SimulatedPlan simulated{&simulator, &plan};
  const Table other = make_table("other", 500, 64);
  const std::vector<SpeedControl> controls{
      {std::span<const Table>(&other, 1), {{0, 16, 0.25}}, 25.6}};
  const auto backend = one_device(std::make_unique<RememberingDevice>());
  (void)evaluate_plans({&simulated, 1}, *backend, 1, {}, controls);
  EXPECT_THAT(static_cast<RememberingDevice&>(*backend->devices.front()).rows,
              testing::UnorderedElementsAre(1000, 125));
}

/// Remembers what it is asked to measure.
class ListingDevice final : public testing_backends::ExactDevice {
 public:
  explicit ListingDevice(bool keeps_rows) : keeps_rows_(keeps_rows) {}

  [[nodiscard]] bool can_keep_rows() const override { return keeps_rows_; }
  std::unique_ptr<PreparedSet> prepare(const PieceSet& set) override {
    EXPECT_EQ(set.rows.size(), keeps_rows_ ? set.pieces.size() : 0u);
    for (const RowRange& rows : set.rows) ranges.emplace_back(rows.first, rows.count);
    for (const Piece& piece : set.pieces) {
      num_rows.push_back(set.table_of(piece).num_embeddings);
      EXPECT_EQ(piece.row_share, 1.0);
    }
    return ExactDevice::prepare(set);
  }
  std::vector<std::pair<std::int64_t, std::int64_t>> ranges;
  std::vector<std::int64_t> num_rows;

 private:
  bool keeps_rows_;
};

/// Of hashed ids too: one slice has the hot row, and the others have none.
TEST(EvaluatePlan, ASliceHasItsOwnRowsWhereTheDeviceCanKeepThem) {
  const Task task = one_host_task({make_table("a", 1000, 8, 3.0)}, 3, std::int64_t{1} << 20);
  const Simulator simulator = make_simulator(task);
  const ShardingPlan plan{{{0, 0, 8, 0, 0, 400}, {0, 0, 8, 1, 400, 400}, {0, 0, 8, 2, 800, 200}}};
  const SimulatedPlan simulated{&simulator, &plan};
  for (const bool keeps_rows : {true, false}) {
    const auto backend = one_device(std::make_unique<ListingDevice>(keeps_rows));
    (void)evaluate_plans({&simulated, 1}, *backend, 1);
    const auto& device = static_cast<ListingDevice&>(*backend->devices.front());
    if (keeps_rows) {
      EXPECT_THAT(device.ranges,
                  testing::UnorderedElementsAre(testing::Pair(0, 400), testing::Pair(400, 400),
                                                testing::Pair(800, 200)));
      EXPECT_THAT(device.num_rows, testing::Each(1000));  // lookups of all are drawn
    } else {
      EXPECT_THAT(device.num_rows, testing::UnorderedElementsAre(400, 400, 200));
    }
  }
}

/// A plan costs what its slowest device does, also if all hold the same.
TEST(EvaluatePlan, EqualDevicesOfAPlanAreMeasuredEach) {
  const Task task = one_host_task({make_table("a", 1000, 8, 3.0)}, 2, std::int64_t{1} << 20);
  const Simulator simulator = make_simulator(task);
  const ShardingPlan plan{{{0, 0, 4, 0}, {0, 4, 4, 1}}};
  ShardingPlan copies;
  copies.replicated_tables = {0};
  const std::vector<SimulatedPlan> plans{
      {&simulator, &plan}, {&simulator, &plan}, {&simulator, &copies}};
  const auto backend = one_device(std::make_unique<testing_backends::ExactDevice>());
  int sets = 0;
  (void)evaluate_plans(plans, *backend, 1, [&](int done) { sets = done; });
  EXPECT_EQ(sets, 4);  // two of the plan, which is given twice, and two of the copies
}

NeuralComputeModel model_measured_on(const std::string& hardware,
                                     const std::string& operator_info = "{}") {
  ComputeModelInfo info = testing_networks::wide_info();
  info.hardware = hardware;
  info.operator_info = operator_info;
  return {testing_networks::random_network(ComputeArchitecture::bounded_loads, 1), info};
}

TEST(MeasurementDifference, NamesWhatDiffers) {
  const HardwareInfo here = cpu_info();
  Json hardware = Json::Object{{"name", here.name}, {"num_cores", here.num_cores}};
  EXPECT_EQ(measurement_difference(model_measured_on(to_line(hardware))), "");
  hardware.set("num_cores", here.num_cores + 1);
  EXPECT_EQ(measurement_difference(model_measured_on(to_line(hardware))),
            fmt::format("num_cores {}, here it is {}", here.num_cores + 1, here.num_cores));
  hardware.set("name", "abacus");
  EXPECT_EQ(measurement_difference(model_measured_on(to_line(hardware))),
            fmt::format("processor \"abacus\", here it is {}", to_line(here.name)));
  EXPECT_EQ(measurement_difference(model_measured_on("{}")), "");
  EXPECT_EQ(measurement_difference(
                model_measured_on("{}", R"({"name": "neuroshard-cpu", "version": 0})")),
            fmt::format("operator version 0, here it is {}", kOperatorVersion));
  EXPECT_EQ(measurement_difference(*testing_tasks::analytic_compute()), "");
}

TEST(OperatorDifference, DoesNotLookAtTheMachine) {
  const BackendDescription here = cpu_backend({}, 1).description;
  EXPECT_EQ(operator_difference(model_measured_on(R"({"name": "abacus"})"), here), "");
  EXPECT_EQ(operator_difference(model_measured_on("{}", R"({"name": "fbgemm-split-tbe"})"), here),
            "operator \"fbgemm-split-tbe\", here it is \"neuroshard-cpu\"");
  EXPECT_EQ(operator_difference(*testing_tasks::analytic_compute(), here), "");
}

TEST(EvaluatePlan, TheArenaHoldsWhatTheTablesAre) {
  Task task = one_host_task({make_table("a", 10, 4), make_table("b", 10, 4)}, 1, 1 << 20);
  EXPECT_EQ(arena_data_type(task), DataType::fp32);
  task.tables[0].data_type = DataType::fp16;
  EXPECT_EQ(arena_data_type(task), DataType::fp32);  // any bits are numbers as fp32
  task.tables[1].data_type = DataType::fp16;
  EXPECT_EQ(arena_data_type(task), DataType::fp16);
}

}  // namespace
}  // namespace neuroshard
