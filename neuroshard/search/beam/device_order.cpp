// Devices in the order of their costs.
#include "neuroshard/search/beam/device_order.h"

#include <algorithm>
#include <tuple>

namespace neuroshard {

namespace {

bool goes_first(const DeviceOrder::Entry& a, const DeviceOrder::Entry& b) {
  return std::tie(a.cost, a.device) < std::tie(b.cost, b.device);
}

}  // namespace

void DeviceOrder::assign(std::span<const double> costs) {
  entries_.resize(costs.size());
  for (std::size_t d = 0; d < costs.size(); ++d) entries_[d] = {costs[d], static_cast<int>(d)};
  std::sort(entries_.begin(), entries_.end(), goes_first);
}

void DeviceOrder::change(std::size_t rank, double cost) {
  const Entry changed{cost, entries_[rank].device};
  const auto place = entries_.begin() + static_cast<std::ptrdiff_t>(rank);
  const auto behind = std::lower_bound(place + 1, entries_.end(), changed, goes_first);
  if (behind != place + 1) {
    std::move(place + 1, behind, place);
    *(behind - 1) = changed;
    return;
  }
  // The published network may predict a lower cost with one piece more.
  const auto before = std::lower_bound(entries_.begin(), place, changed, goes_first);
  std::move_backward(before, place, place + 1);
  *before = changed;
}

}  // namespace neuroshard
