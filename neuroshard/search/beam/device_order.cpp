// Devices in the order of their costs.
#include "neuroshard/search/beam/device_order.h"

#include <algorithm>
#include <tuple>

namespace neuroshard {

namespace {

/// Up to this many, moving entries one by one takes less time than looking for the place.
constexpr std::size_t kFewDevices = 32;

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
  if (entries_.size() <= kFewDevices) {
    std::size_t at = rank;
    for (; at + 1 < entries_.size() && goes_first(entries_[at + 1], changed); ++at) {
      entries_[at] = entries_[at + 1];
    }
    for (; at > 0 && goes_first(changed, entries_[at - 1]); --at) entries_[at] = entries_[at - 1];
    entries_[at] = changed;
    return;
  }
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
