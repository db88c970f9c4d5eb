// What communication cost models answer unless they know better.
#include "neuroshard/cost/communication/communication_cost_model.h"

#include <algorithm>
#include <cstddef>

#include "neuroshard/core/interconnect.h"

namespace neuroshard {

double CommunicationCostModel::partial_sums_ms(double bytes) const {
  return bytes / (kHostMemoryGbPerS * 1e6);
}

double CommunicationCostModel::least_cost_ms(const Topology& topology, std::int64_t batch_size,
                                             std::span<const double> compute_ms,
                                             std::span<const double> columns) const {
  double least = 0.0;
  for (std::size_t d = 0; d < columns.size(); ++d) {
    least = std::max(least, compute_ms[d] + floor_ms(topology, batch_size, columns[d]));
  }
  return least;
}

}  // namespace neuroshard
