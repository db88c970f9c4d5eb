// How well a computation cost model predicts the measured costs of a file.
#pragma once

#include <string>

#include "neuroshard/cost/compute/compute_cost_model.h"
#include "neuroshard/train/metrics.h"

namespace neuroshard {

struct ModelTest {
  PredictionMetrics metrics;
  /// Median over the samples of measured over predicted cost, less 1: above 0 if the model is too
  /// low. The rest of the error is scatter among the samples of one file.
  double bias = 0.0;
};

/// The test on one file.
struct FileTest {
  std::string path;
  ModelTest result;
};

/// Of all samples of a file of measured computation costs. Throws InputError if the file is
/// malformed or has no samples.
[[nodiscard]] ModelTest test_compute_model(const ComputeCostModel& model, const std::string& path);

}  // namespace neuroshard
