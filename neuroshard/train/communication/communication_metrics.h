// How well predicted all-to-alls match measured ones.
#pragma once

#include <span>

#include "neuroshard/train/communication/communication_dataset.h"
#include "neuroshard/train/metrics.h"

namespace neuroshard {

/// Of every device's time in every all-to-all, forward and backward apart.
struct CommunicationMetrics {
  PredictionMetrics forward;
  PredictionMetrics backward;
};

/// Of the all-to-alls `samples`; `predicted_ms` has the times of their devices, side by side.
[[nodiscard]] CommunicationMetrics communication_metrics(const CommunicationDataset& dataset,
                                                         std::span<const int> samples,
                                                         std::span<const double> predicted_ms);

}  // namespace neuroshard
