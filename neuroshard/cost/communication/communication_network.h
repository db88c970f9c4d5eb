// The parameters of the communication network, which training produces and inference uses.
#pragma once

#include <vector>

#include "neuroshard/cost/compute/compute_network.h"

namespace neuroshard {

/// Equivariant under any exchange of devices, for any number of them: every device is encoded by
/// the same layers, its own code is joined with the mean and the largest of all devices', and the
/// same head turns that into y, which says how much longer the device takes than its links alone
/// would,
///
///   end_d = last_start + (schedule_end_d - last_start) * (1 + exp(y_d)),   y_d <= 2,
///
/// so whatever was learned, no device ends before the last has started, and none earlier than its
/// links allow.
struct CommunicationNetwork {
  std::vector<float> feature_mean;   ///< subtracted from each feature,
  std::vector<float> feature_scale;  ///< then multiplied
  std::vector<DenseLayer> encoder;   ///< ReLU after each
  std::vector<DenseLayer> head;      ///< ReLU after each but the last, which has one output
};

inline constexpr float kLargestDelay = 2.0F;

}  // namespace neuroshard
