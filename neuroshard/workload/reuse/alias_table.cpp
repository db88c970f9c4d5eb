// Setting up an alias table: slots with too little weight are filled up from those with too much.
#include "neuroshard/workload/reuse/alias_table.h"

#include <numeric>

namespace neuroshard {

namespace {

std::uint64_t as_threshold(double probability) {
  return probability >= 1.0 ? ~std::uint64_t{0} : static_cast<std::uint64_t>(probability * 0x1p64);
}

}  // namespace

AliasTable::AliasTable(std::span<const double> weights) : slots_(weights.size()) {
  const double sum = std::accumulate(weights.begin(), weights.end(), 0.0);
  std::vector<double> probability;  // of the slot's own outcome, given the slot
  std::vector<std::size_t> small;
  std::vector<std::size_t> large;
  for (std::size_t i = 0; i < weights.size(); ++i) {
    probability.push_back(weights[i] / sum * static_cast<double>(weights.size()));
    slots_[i].alias = i;
    (probability[i] < 1.0 ? small : large).push_back(i);
  }
  while (!small.empty() && !large.empty()) {
    const std::size_t low = small.back();
    const std::size_t high = large.back();
    small.pop_back();
    slots_[low] = {as_threshold(probability[low]), high};
    probability[high] -= 1.0 - probability[low];
    if (probability[high] < 1.0) {
      large.pop_back();
      small.push_back(high);
    }
  }
  // The remaining slots differ from 1 by rounding only and keep their own outcomes.
}

}  // namespace neuroshard
