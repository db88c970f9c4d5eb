// The order of devices by cost against sorting them anew.
#include "neuroshard/search/beam/device_order.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <utility>
#include <vector>

namespace neuroshard {
namespace {

RC_GTEST_PROP(DeviceOrderProperty, IsSortedAfterEveryChange, ()) {
  // Few distinct costs, so that many are equal.
  const auto any_cost = rc::gen::map(rc::gen::inRange(0, 6), [](int c) { return 0.5 * c; });
  auto costs = *rc::gen::nonEmpty(rc::gen::container<std::vector<double>>(any_cost));
  DeviceOrder order;
  order.assign(costs);
  for (int change = 0; change < 10; ++change) {
    std::vector<std::pair<double, int>> expected;
    for (std::size_t d = 0; d < costs.size(); ++d) {
      expected.emplace_back(costs[d], static_cast<int>(d));
    }
    std::sort(expected.begin(), expected.end());
    const auto entries = order.entries();
    RC_ASSERT(entries.size() == expected.size());
    for (std::size_t rank = 0; rank < entries.size(); ++rank) {
      RC_ASSERT(std::make_pair(entries[rank].cost, entries[rank].device) == expected[rank]);
    }
    const auto rank = *rc::gen::inRange<std::size_t>(0, costs.size());
    const double cost = *any_cost;
    costs[entries[rank].device] = cost;
    order.change(rank, cost);
  }
}

}  // namespace
}  // namespace neuroshard
