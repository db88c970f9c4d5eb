// Evaluations written and read back, of each kind, and known again by their plan.
#include "neuroshard/evaluate/evaluation_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "neuroshard/evaluate/evaluation_io.h"
#include "tests/cost/arbitrary_task.h"
#include "tests/io/io_test_util.h"

namespace neuroshard {
namespace {

using testing_tasks::make_table;
using testing_tasks::make_topology;

PlanDocument two_halves() {
  PlanDocument document;
  document.task.batch_size = 64;
  document.task.tables = {make_table("user", 256, 16)};
  document.task.topology = make_topology(2, 2, 32 << 10);
  document.plan = {{{0, 0, 8, 0}, {0, 8, 8, 1}}};
  document.predicted = PlanCost{4.0, {{1.0, 0.5, 0.25, 8192, 8}, {3.0, 0.75, 0.25, 8192, 8, 0.0}}};
  return document;
}

PlanEvaluation evaluation() {
  PlanEvaluation found;
  found.predicted = *two_halves().predicted;
  found.measured = PlanCost{4.5, {{1.5, 0.5, 0.25, 8192, 8}, {3.5, 0.75, 0.25, 8192, 8}}};
  found.measured.devices[0].all_reduce_ms = 0.125;
  found.interval = {0.01, 0.02};
  return found;
}

EvaluationRecord read_back(const Json& json) { return parse_evaluation(to_document(json), "e"); }

const Json kModel = Json::Object{{"compute", Json::Object{{"name", "cpu"}}}};
const std::vector<std::string> kWarnings = {"cpu: trained on other tables", "an \"odd\" machine"};

TEST(EvaluationFile, MeasuredComputationReadsBack) {
  const EvaluationRecord record =
      read_back(of_plan(to_json(evaluation()), two_halves(), kModel, kWarnings));
  EXPECT_EQ(record.kind, EvaluationKind::computation);
  EXPECT_EQ(record.plan_sha256, plan_sha256(two_halves()));
  EXPECT_EQ(record.model, kModel);
  EXPECT_EQ(record.warnings, kWarnings);
  EXPECT_EQ(record.predicted.cost_ms, 4.0);
  EXPECT_EQ(record.actual.cost_ms, 4.5);
  ASSERT_EQ(record.actual.devices.size(), 2u);
  EXPECT_EQ(record.actual.devices[0].compute_ms, 1.5);
  EXPECT_EQ(record.actual.devices[0].all_reduce_ms, 0.125);
  EXPECT_EQ(record.predicted.devices[0].all_reduce_ms, 0.0);
  EXPECT_EQ(record.predicted.devices[1].memory_bytes, 8192);
  EXPECT_THAT(record.interval, testing::ElementsAre(0.01, 0.02));
}

TEST(EvaluationFile, SimulatedAndMeasuredIterationsReadBack) {
  const PlanCost predicted = *two_halves().predicted;
  PlanIterations iterations;
  iterations.devices = {{.backward_comm_ms = 0.5, .update_ms = 1.0, .lookup_ms = 2.0},
                        {.backward_comm_ms = 0.5, .forward_comm_ms = 0.25}};
  iterations.cost_ms = 3.5;
  const EvaluationRecord simulated = read_back(simulated_iteration_json(predicted, iterations));
  EXPECT_EQ(simulated.kind, EvaluationKind::simulated);
  EXPECT_EQ(simulated.actual.cost_ms, 3.5);
  EXPECT_EQ(simulated.actual.devices[0].compute_ms, 1.0);  // as predicted
  EXPECT_EQ(simulated.actual.devices[1].forward_comm_ms, 0.25);
  EXPECT_EQ(simulated.plan_sha256, "");
  const EvaluationRecord measured =
      read_back(measured_iterations_json(predicted, iterations, false));
  EXPECT_EQ(measured.kind, EvaluationKind::iterations);
  EXPECT_EQ(measured.actual.devices[0].compute_ms, 3.0);
  EXPECT_THAT(measured.interval, testing::IsEmpty());
}

TEST(EvaluationFile, BelongsToItsPlanWhateverPricedIt) {
  const EvaluationRecord record =
      read_back(of_plan(to_json(evaluation()), two_halves(), kModel, kWarnings));
  PlanDocument plan = two_halves();
  EXPECT_TRUE(is_evaluation_of(record, plan));
  plan.predicted.reset();
  plan.search = Json::Object{{"seed", 7}};
  EXPECT_TRUE(is_evaluation_of(record, plan));
  plan.plan.shards[0].device = 1;
  EXPECT_FALSE(is_evaluation_of(record, plan));
}

TEST(EvaluationFile, WithoutAHashBelongsToPlansOfItsSizes) {
  const EvaluationRecord record = read_back(to_json(evaluation()));
  PlanDocument plan = two_halves();
  EXPECT_TRUE(is_evaluation_of(record, plan));
  plan.task.tables[0].num_embeddings = 128;  // other memory
  EXPECT_FALSE(is_evaluation_of(record, plan));
  plan = two_halves();
  plan.task.topology = make_topology(3, 3, 32 << 10);
  EXPECT_FALSE(is_evaluation_of(record, plan));
}

TEST(EvaluationFile, WhatIsMalformedIsRefused) {
  const std::string text =
      R"({"format": "neuroshard/evaluation/1", "predicted_ms": 1.5, "measured_ms": 2.5, "devices": [)"
      R"({"interval": 0.0, "predicted_compute_ms": 1.0, "predicted_forward_comm_ms": 0.0, )"
      R"("predicted_backward_comm_ms": 0.0, "measured_compute_ms": 2.0, )"
      R"("measured_forward_comm_ms": 0.0, "measured_backward_comm_ms": 0.5}]})";
  EXPECT_EQ(parse_evaluation(text, "e").actual.devices[0].total_ms(), 2.5);
  const Malformed malformed[] = {
      {"neuroshard/evaluation/1", "neuroshard/plan/1",
       "e: format: expected \"neuroshard/evaluation/1\", \"neuroshard/simulated-iteration/1\" or "
       "\"neuroshard/measured-iterations/1\", got \"neuroshard/plan/1\""},
      {"\"predicted_ms\": 1.5, ", "", "e: predicted_ms: expected"},
      {"\"measured_ms\": 2.5", "\"measured_ms\": -1.0", "e: measured_ms: expected"},
      {"\"measured_compute_ms\": 2.0", "\"measured_compute_ms\": \"2\"",
       "e: devices[0].measured_compute_ms: expected"},
      {"\"measured_ms\": 2.5", "\"measured_ms\": 2.5, \"model\": 3", "e: model: expected"},
      {"\"measured_ms\": 2.5", "\"measured_ms\": 2.5, \"warnings\": [\"a\", 1]",
       "e: warnings[1]: expected"}};
  for (const auto& [from, to, message] : malformed) {
    const std::string changed = replaced(text, from, to);
    EXPECT_THAT(input_error([&] { (void)parse_evaluation(changed, "e"); }),
                testing::StartsWith(std::string(message)));
  }
  EXPECT_EQ(
      input_error([] {
        (void)parse_evaluation(
            R"({"format": "neuroshard/evaluation/1", "predicted_ms": 1.0, "measured_ms": 2.0, "devices": []})",
            "e");
      }),
      "e: devices: expected an array of at least one device, got an empty array");
}

}  // namespace
}  // namespace neuroshard
