// Costs at the usual speed.
#include "neuroshard/collect/compute/usual_speed.h"

#include <cmath>
#include <utility>

#include "neuroshard/core/error.h"
#include "neuroshard/core/numbers/median.h"
#include "neuroshard/core/text/printable.h"

namespace neuroshard {

double mean_of_references(std::span<const double> reference_ms) {
  double sum = 0.0;
  for (const double ms : reference_ms) sum += std::log(ms);
  return std::exp(sum / static_cast<double>(reference_ms.size()));
}

UsualSpeed usual_speed(const std::vector<ComputeCosts>& files) {
  std::map<std::string, std::vector<double>> means;
  for (const ComputeCosts& costs : files) {
    if (costs.header.reference_sets.empty()) continue;
    for (const ComputeCostSample& sample : costs.samples) {
      means[costs.header.reference_sets].push_back(mean_of_references(sample.reference_ms));
    }
  }
  UsualSpeed usual;
  for (auto& [reference_sets, values] : means) {
    usual[reference_sets] = median(std::move(values));
  }
  return usual;
}

std::vector<double> slowness(const std::vector<ComputeCosts>& files, const UsualSpeed& usual) {
  std::vector<double> slowness;
  for (const ComputeCosts& costs : files) {
    const auto known = usual.find(costs.header.reference_sets);
    if (known == usual.end()) continue;
    for (const ComputeCostSample& sample : costs.samples) {
      slowness.push_back(mean_of_references(sample.reference_ms) / known->second);
    }
  }
  return slowness;
}

double usual_cost_ms(const ComputeCostSample& sample, const std::string& reference_sets,
                     const UsualSpeed& usual, const std::string& place) {
  const double measured = sample.forward_ms + sample.backward_ms;
  if (reference_sets.empty()) return measured;
  const auto known = usual.find(reference_sets);
  if (known == usual.end()) {
    std::string names;
    for (const auto& [name, ms] : usual) names += (names.empty() ? "" : " or ") + printable(name);
    throw InputError(place + ": reference_sets", names.empty() ? "none" : names,
                     printable(reference_sets));
  }
  return measured * known->second / mean_of_references(sample.reference_ms);
}

}  // namespace neuroshard
