// How well a computation cost model predicts the measured costs of a file.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "neuroshard/collect/compute/usual_speed.h"
#include "neuroshard/cost/compute/compute_cost_model.h"
#include "neuroshard/train/compute/device_scatter.h"
#include "neuroshard/train/metrics.h"

namespace neuroshard {

/// A sample's predicted and measured cost [ms].
struct TestedSample {
  /// In its file. Where that gives none, the sample's place among the others, all-to-alls apart
  /// from all-reduces and partial sums, from 2: its line where nothing else stands before it.
  std::int64_t id = 0;
  double predicted_ms = 0.0;
  double measured_ms = 0.0;  ///< of two measurements the geometric mean
};

/// The test on one file, or on several together.
struct ModelTest {
  PredictionMetrics metrics;
  /// Median over the samples of measured over predicted cost, less 1: above 0 if the model is too
  /// low. The rest of the error is scatter among the samples of one file.
  double bias = 0.0;
  /// Samples left out because their two measurements differ too much to tell a prediction's error.
  std::size_t left_out = 0;
  std::vector<TestedSample> samples;
  /// Whether its file is of sets of plans (has_planned_sets), in an order that is known.
  bool is_of_plans = false;
};

/// The test on one file, or on what of a file is of one kind.
struct FileTest {
  std::string path;
  ModelTest result;
  std::string kind{};  ///< of communication: "forward", "backward", "all_reduce", "partial_sums"
};

/// The test of these samples, of which there is at least one.
[[nodiscard]] ModelTest tested(std::vector<TestedSample> samples);

/// Two measurements of a sample that differ by more than this, relative to the smaller, leave it
/// out of a test.
inline constexpr double kLargestDisagreement = 0.15;

struct ModelTestOptions {
  /// Not empty: a file of the same samples measured a second time. Only those that both have and
  /// that agree are tested, whatever is predicted for them.
  std::string again{};
  /// Given: costs are brought to this usual speed (usual_cost_ms), before two measurements are
  /// compared too. Else they are as measured.
  std::optional<UsualSpeed> usual{};
};

/// Of all samples of a file of measured computation costs. Throws InputError if a file is malformed
/// or has no samples, if the second one has other tables or other pieces under the same number, or
/// if it is to be brought to the usual speed and has no reference sets, or others than those known.
[[nodiscard]] ModelTest test_compute_model(const ComputeCostModel& model, const std::string& path,
                                           const ModelTestOptions& options = {});

/// All samples of the tests as one.
[[nodiscard]] ModelTest joined(std::span<const FileTest> tests);

/// How far devices that are planned alike differ, from the tests of sets of plans; none of too few.
[[nodiscard]] std::optional<DeviceScatter> device_scatter(std::span<const FileTest> tests);

}  // namespace neuroshard
