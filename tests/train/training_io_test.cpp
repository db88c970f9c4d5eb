// Metrics and tests of models as JSON.
#include "neuroshard/train/training_io.h"

#include <gtest/gtest.h>

#include <limits>
#include <vector>

namespace neuroshard {
namespace {

FileTest file_test() {
  FileTest test{"costs.jsonl", {}};
  test.result.metrics = prediction_metrics(std::vector{1.0, 3.0}, std::vector{2.0, 4.0});
  test.result.bias = 0.5;
  test.result.left_out = 3;
  test.result.samples = {{7, 1.0, 2.0}, {9, 3.0, 4.0}};
  return test;
}

TEST(TrainingIo, ModelTests) {
  const FileTest test = file_test();
  EXPECT_EQ(to_line(model_tests_json("m", {&test, 1})),
            R"({"format": "neuroshard/model-test/1", "model": "m", "files": [{"file": )"
            R"("costs.jsonl", "bias": 0.5, "left_out": 3, "metrics": {"samples": 2, "mse": 1.0, )"
            R"("mae": 1.0, "mape": 0.375, "median": 0.25, "percentile_95": 0.5, )"
            R"("largest_factor": 2.0, "kendall_tau": 1.0}}]})");
}

TEST(TrainingIo, TestedSamples) {
  const FileTest test = file_test();
  EXPECT_EQ(tested_samples_lines({&test, 1}),
            R"({"file": "costs.jsonl", "index": 7, "predicted_ms": 1.0, "measured_ms": 2.0})"
            "\n"
            R"({"file": "costs.jsonl", "index": 9, "predicted_ms": 3.0, "measured_ms": 4.0})"
            "\n");
}

/// The published network may predict 0, which no factor makes the measured cost.
TEST(TrainingIo, WhatIsNotDefinedIsNull) {
  PredictionMetrics metrics = prediction_metrics(std::vector{0.0}, std::vector{2.0});
  EXPECT_DOUBLE_EQ(metrics.largest_factor, 2.0 / kLeastPredicted_ms);
  metrics.largest_factor = std::numeric_limits<double>::infinity();
  const Json json = to_json(metrics);
  EXPECT_EQ(*json.find("largest_factor"), Json());
  EXPECT_EQ(*json.find("kendall_tau"), Json());
  EXPECT_EQ(*json.find("mape"), Json(1.0));
  EXPECT_NO_THROW((void)to_line(json));
}

}  // namespace
}  // namespace neuroshard
