// Iterations: the device that the others wait for, the one that ends last, and their documents.
#include "neuroshard/evaluate/iteration.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "neuroshard/evaluate/evaluation_io.h"

namespace neuroshard {
namespace {

PlanIterations two_devices() {
  PlanIterations iterations;
  iterations.devices = {{1.0, 2.0, 3.0, 6.5}, {1.5, 4.0, 3.0, 0.5}};  // enter at 6.0 and 8.5
  iterations.cost_ms = iteration_cost_ms(iterations.devices);
  iterations.iterations = 9;
  iterations.interval = 0.02;
  return iterations;
}

PlanCost predicted() {
  PlanCost cost;
  cost.cost_ms = 10.0;
  cost.devices = {{5.0, 2.0, 1.0, 0, 4}, {7.0, 2.0, 1.0, 0, 4}};
  return cost;
}

TEST(Iteration, CriticalPath) {
  const PlanIterations iterations = two_devices();
  const CriticalPath path = critical_path(iterations.devices);
  EXPECT_EQ(path.last_to_enter, 1u);
  EXPECT_EQ(path.entered_ms, 8.5);
  EXPECT_EQ(path.last_to_end, 0u);
  EXPECT_EQ(iterations.cost_ms, 12.5);
  EXPECT_EQ(iteration_cost_ms({}), 0.0);
}

TEST(IterationJson, NamesTheFormatAndLosesNothing) {
  const Json measured = measured_iterations_json(predicted(), two_devices(), true);
  EXPECT_EQ(*measured.find("format"), Json("neuroshard/measured-iterations/1"));
  EXPECT_EQ(*measured.find("measured_ms"), Json(12.5));
  EXPECT_EQ(*measured.find("entered_ms"), Json(8.5));
  EXPECT_EQ(*measured.find("oversubscribed"), Json(true));
  EXPECT_EQ(*measured.find("iterations"), Json(9));
  EXPECT_EQ(to_line((*measured.find("devices")->array())[1]),
            R"({"predicted_compute_ms": 7.0, "predicted_forward_comm_ms": 2.0, )"
            R"("predicted_backward_comm_ms": 1.0, "predicted_total_ms": 10.0, )"
            R"("measured_backward_comm_ms": 1.5, "measured_update_ms": 4.0, )"
            R"("measured_lookup_ms": 3.0, "measured_forward_comm_ms": 0.5, )"
            R"("measured_total_ms": 9.0, "measured_indices_ms": 0.0})");
  const Json simulated = simulated_iteration_json(predicted(), two_devices());
  EXPECT_EQ(*simulated.find("format"), Json("neuroshard/simulated-iteration/1"));
  EXPECT_EQ(*simulated.find("simulated_ms"), Json(12.5));
  EXPECT_EQ(*(*simulated.find("devices")->array())[0].find("simulated_total_ms"), Json(12.5));
}

TEST(Iteration, TheAllReduceIsPartOfItAndSendingIndicesIsNot) {
  PlanIterations iterations = two_devices();
  for (DeviceIteration& device : iterations.devices) {
    device.all_reduce_ms = 0.25;
    device.indices_ms = 7.0;
  }
  EXPECT_EQ(critical_path(iterations.devices).entered_ms, 8.75);
  EXPECT_EQ(iteration_cost_ms(iterations.devices), 12.75);
  const Json measured = measured_iterations_json(predicted(), iterations, false);
  const Json& first = (*measured.find("devices")->array())[0];
  EXPECT_EQ(*first.find("measured_all_reduce_ms"), Json(0.25));
  EXPECT_EQ(*first.find("measured_indices_ms"), Json(7.0));
  const Json simulated = simulated_iteration_json(predicted(), iterations);
  EXPECT_EQ(*(*simulated.find("devices")->array())[0].find("simulated_all_reduce_ms"), Json(0.25));
}

TEST(ValueCheckJson, SaysWhetherTheValuesAgree) {
  ValueCheck check{.iterations = 2, .outputs = 64, .weights = 8, .output_difference = 0.5};
  check.tolerance = 0.25;
  EXPECT_EQ(to_line(to_json(check)),
            R"({"format": "neuroshard/value-check/1", "agrees": false, "iterations": 2, )"
            R"("outputs": 64, "weights": 8, "output_difference": 0.5, "weight_difference": 0.0, )"
            R"("tolerance": 0.25})");
  check.tolerance = 0.5;
  EXPECT_TRUE(check.agrees());
  check.weight_difference = HUGE_VAL;  // of a value that is no number
  EXPECT_EQ(to_line(to_json(check)),
            R"({"format": "neuroshard/value-check/1", "agrees": false, "iterations": 2, )"
            R"("outputs": 64, "weights": 8, "output_difference": 0.5, "weight_difference": null, )"
            R"("tolerance": 0.5})");
}

TEST(EvaluationJson, ATauThatIsNotDefinedIsNull) {
  PlanEvaluation evaluation;
  evaluation.predicted = evaluation.measured = predicted();
  evaluation.interval = {0.01, 0.02};
  const Json json = to_json(evaluation);
  EXPECT_EQ(*json.find("format"), Json("neuroshard/evaluation/1"));
  EXPECT_EQ(*json.find("compute_tau"), Json());
  evaluation.compute_tau = 0.5;
  EXPECT_EQ(*to_json(evaluation).find("compute_tau"), Json(0.5));
}

}  // namespace
}  // namespace neuroshard
