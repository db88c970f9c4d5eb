// The communication network's features of each device: the loads of its links and its lag,
// independent of scale.
#pragma once

#include <Eigen/Core>
#include <span>
#include <string>
#include <vector>

#include "neuroshard/cost/communication/link_schedule.h"

namespace neuroshard {

/// Names of the features, in order; "communication/1" is this list.
[[nodiscard]] const std::vector<std::string>& communication_feature_names();
inline constexpr std::string_view kCommunicationSchema = "communication/1";

/// An all-to-all by the link schedule alone, and the features of every device in it. All times are
/// divided by the time that the all-to-all takes if all start together, so that a faster
/// interconnect or a larger batch looks the same to the network.
struct CommunicationFeatures {
  Eigen::MatrixXf values;       ///< features x devices
  std::vector<double> ends_ms;  ///< of the link schedule
  double last_start_ms = 0.0;   ///< no device ends before it
};

enum class AllToAll { forward, backward };

/// Features of an all-to-all in which device d enters at start_ms[d].
void communication_features(LinkSchedule& schedule, AllToAll direction,
                            std::span<const double> columns, std::span<const double> start_ms,
                            CommunicationFeatures& features);

}  // namespace neuroshard
