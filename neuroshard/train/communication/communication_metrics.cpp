// Predicted against measured times of all-to-alls.
#include "neuroshard/train/communication/communication_metrics.h"

#include <array>
#include <vector>

namespace neuroshard {

CommunicationMetrics communication_metrics(const CommunicationDataset& dataset,
                                           std::span<const int> samples,
                                           std::span<const double> predicted_ms) {
  std::array<std::vector<double>, 2> predicted;
  std::array<std::vector<double>, 2> measured;
  std::size_t next = 0;
  for (const int sample : samples) {
    const std::size_t side = dataset.direction[sample] == AllToAll::forward ? 0 : 1;
    for (int d = dataset.first_device[sample]; d < dataset.first_device[sample + 1]; ++d) {
      predicted[side].push_back(predicted_ms[next++]);
      measured[side].push_back(dataset.time_ms[d]);
    }
  }
  return {prediction_metrics(predicted[0], measured[0]),
          prediction_metrics(predicted[1], measured[1])};
}

}  // namespace neuroshard
