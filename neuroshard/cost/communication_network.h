// The communication network: what training produces and inference uses.
#pragma once

#include <Eigen/Core>
#include <vector>

#include "neuroshard/cost/compute_network.h"

namespace neuroshard {

/// Equivariant under any exchange of devices, for any number of them: every device is encoded by
/// the same layers, its own code is joined with the mean and the largest of all devices', and the
/// same head turns that into its correction y of what the links alone would take,
///
///   end_d = last_start + (schedule_end_d - last_start) * exp(y_d),   -2 <= y_d <= 2,
///
/// so no device ends before the last has started, whatever was learned.
struct CommunicationNetwork {
  std::vector<float> feature_mean;   ///< subtracted from each feature,
  std::vector<float> feature_scale;  ///< then multiplied
  std::vector<DenseLayer> encoder;   ///< ReLU after each
  std::vector<DenseLayer> head;      ///< ReLU after each but the last, which has one output
};

inline constexpr float kLargestCorrection = 2.0F;

}  // namespace neuroshard
