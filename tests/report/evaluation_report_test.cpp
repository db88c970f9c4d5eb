// Tables of evaluations: units in every title, marks, and explanations.
#include "neuroshard/report/evaluation_report.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace neuroshard {
namespace {

using testing::EndsWith;
using testing::HasSubstr;

PlanCost two_devices(double second_compute_ms) {
  PlanCost cost;
  cost.devices = {{5.0, 2.0, 1.0, 0, 4}, {second_compute_ms, 2.0, 1.0, 0, 4}};
  cost.cost_ms = cost.devices[1].total_ms();
  return cost;
}

TEST(EvaluationText, ExplainsItsColumns) {
  PlanEvaluation evaluation;
  evaluation.predicted = two_devices(7.0);
  evaluation.measured = two_devices(8.0);
  evaluation.interval = {0.01, 0.025};
  evaluation.compute_mape = 0.0625;
  evaluation.compute_tau = 1.0;
  EXPECT_EQ(evaluation_text(evaluation),
            "device  predicted ms  measured ms    +-   error  predicted total ms  part-measured "
            "total ms\n"
            "     0         5.000        5.000  1.0%   +0.0%               8.000               "
            "    8.000\n"
            "     1         7.000        8.000  2.5%  -12.5%              10.000               "
            "   11.000  <- slowest\n"
            "\n"
            "predicted and measured: computation; part-measured: measured computation with "
            "communication as predicted; +-: half the width of the 95% interval of the "
            "measurement\n"
            "computation: mean error 6.2%, rank correlation (tau) 1.000\n"
            "plan cost: predicted 10.000 ms, with measured computation 11.000 ms (prediction "
            "-9.1%)\n");
  evaluation.compute_tau.reset();
  EXPECT_THAT(evaluation_text(evaluation),
              HasSubstr("rank correlation (tau) not defined: all devices are equal\n"));
}

TEST(EvaluationText, SaysWhatWasExpected) {
  PlanEvaluation evaluation;
  evaluation.predicted = two_devices(7.0);
  evaluation.measured = two_devices(8.0);
  evaluation.interval = {0.01, 0.025};
  EXPECT_THAT(evaluation_text(evaluation), testing::Not(HasSubstr("expected")));
  evaluation.expected_ms = 10.45;
  EXPECT_THAT(
      evaluation_text(evaluation),
      testing::EndsWith("expected 10.450 ms, as devices that are planned alike differ (-5.0%)\n"));
  evaluation.drift = 1.1;
  evaluation.less_drift = two_devices(7.0);
  EXPECT_THAT(evaluation_text(evaluation), testing::EndsWith("differ (-5.0%; +4.5% less drift)\n"));
}

TEST(EvaluationText, MarksOneOfSeveralSlowestDevices) {
  PlanEvaluation evaluation;
  evaluation.predicted = two_devices(7.0);
  evaluation.measured = two_devices(8.0);
  evaluation.measured.devices[0].forward_comm_ms = 5.0;
  evaluation.interval = {0.01, 0.025};
  std::string text = evaluation_text(evaluation);
  EXPECT_THAT(text, HasSubstr("11.000\n     1 "));
  EXPECT_THAT(text, HasSubstr("11.000  <- slowest\n"));
  evaluation.measured = two_devices(5.0);
  text = evaluation_text(evaluation);
  EXPECT_THAT(text, testing::Not(HasSubstr("<- slowest")));
  EXPECT_THAT(text, HasSubstr("8.000\nthe 2 devices take equally long\n\npredicted and"));
}

TEST(IterationsText, HasUnitsAndTheCriticalPath) {
  PlanIterations iterations;
  iterations.devices = {{1.0, 2.0, 3.0, 6.5}, {1.5, 4.0, 3.0, 0.5}};
  iterations.cost_ms = 12.5;
  iterations.iterations = 1;
  iterations.interval = 0.02;
  const std::string measured = measured_iterations_text(two_devices(7.0), iterations);
  EXPECT_THAT(measured,
              testing::StartsWith(
                  "device  backward comm ms  measured ms  compute ms  measured ms  forward comm "
                  "ms  measured ms  total ms  measured ms\n"));
  EXPECT_THAT(measured, HasSubstr("12.500  <- ends last\n"));
  EXPECT_THAT(measured, HasSubstr("9.000  <- the others wait for it\n"));
  EXPECT_THAT(
      measured,
      EndsWith("critical path: device 1 enters the forward all-to-all last, 8.500 ms after "
               "the start; device 0 ends last\n"
               "plan cost: predicted 10.000 ms, measured 12.500 ms +- 2.0% (95% interval of "
               "1 iteration; prediction -20.0%)\n"));
  EXPECT_THAT(simulated_iteration_text(two_devices(7.0), iterations),
              EndsWith("plan cost: predicted 10.000 ms, with simulated communication 12.500 ms "
                       "(prediction -20.0%)\n"));
}

TEST(IterationsText, HasTheAllReduceAndTheIndicesWhereThereAreAny) {
  PlanIterations iterations;
  iterations.devices = {{.backward_comm_ms = 1.0,
                         .update_ms = 2.0,
                         .lookup_ms = 3.0,
                         .forward_comm_ms = 6.5,
                         .all_reduce_ms = 0.125,
                         .indices_ms = 0.75}};
  PlanCost predicted;
  predicted.devices = {{5.0, 2.0, 1.0, 0, 4, 0.25}};
  const std::string text = measured_iterations_text(predicted, iterations);
  EXPECT_THAT(text, testing::StartsWith("device  backward comm ms  measured ms  all-reduce ms  "
                                        "measured ms  compute ms"));
  EXPECT_THAT(text, HasSubstr("0.250        0.125"));
  EXPECT_THAT(text, HasSubstr("sending a batch's indices takes up to 0.750 ms, no part of the "
                              "cost"));
}

TEST(ValueCheckText, SaysWhetherTheValuesAreEqual) {
  ValueCheck check{.iterations = 2, .outputs = 64, .weights = 8, .output_difference = 0.5};
  EXPECT_THAT(
      value_check_text(check),
      testing::StartsWith("NOT EQUAL: in 2 iterations, 64 pooled values differ by at "
                          "most 0.5, 8 updated weights by at most 0, from those of whole "));
  check.output_difference = 0.0;
  EXPECT_THAT(value_check_text(check), testing::StartsWith("equal: "));
}

}  // namespace
}  // namespace neuroshard
