// Prediction metrics.
#include "neuroshard/train/metrics.h"

#include <algorithm>
#include <cassert>
#include <cmath>
#include <cstdint>
#include <numeric>
#include <tuple>
#include <vector>

namespace neuroshard {

namespace {

/// Pairs of equal neighbours' runs in a sorted sequence of n.
template <typename Equal>
std::int64_t tied_pairs(std::size_t n, const Equal& equal_to_previous) {
  std::int64_t pairs = 0;
  std::int64_t run = 1;
  for (std::size_t i = 1; i <= n; ++i) {
    if (i < n && equal_to_previous(i)) {
      ++run;
    } else {
      pairs += run * (run - 1) / 2;
      run = 1;
    }
  }
  return pairs;
}

/// Sorts values and returns the number of pairs that stood in falling order.
std::int64_t sort_counting_inversions(std::vector<double>& values) {
  std::vector<double> merged(values.size());
  std::int64_t inversions = 0;
  for (std::size_t width = 1; width < values.size(); width *= 2) {
    for (std::size_t low = 0; low < values.size(); low += 2 * width) {
      const std::size_t middle = std::min(low + width, values.size());
      const std::size_t high = std::min(low + 2 * width, values.size());
      std::size_t left = low;
      std::size_t right = middle;
      for (std::size_t out = low; out < high; ++out) {
        if (left < middle && (right >= high || values[left] <= values[right])) {
          merged[out] = values[left++];
        } else {
          inversions += static_cast<std::int64_t>(middle - left);
          merged[out] = values[right++];
        }
      }
    }
    values.swap(merged);
  }
  return inversions;
}

}  // namespace

std::optional<double> kendall_tau(std::span<const double> a, std::span<const double> b) {
  assert(a.size() == b.size());
  const std::size_t n = a.size();
  std::vector<std::size_t> order(n);
  std::iota(order.begin(), order.end(), 0);
  std::sort(order.begin(), order.end(), [&](std::size_t i, std::size_t j) {
    return std::tie(a[i], b[i]) < std::tie(a[j], b[j]);
  });
  std::vector<double> by_a(n);
  for (std::size_t i = 0; i < n; ++i) by_a[i] = b[order[i]];
  const std::int64_t ties_a =
      tied_pairs(n, [&](std::size_t i) { return a[order[i]] == a[order[i - 1]]; });
  const std::int64_t ties_both = tied_pairs(
      n, [&](std::size_t i) { return a[order[i]] == a[order[i - 1]] && by_a[i] == by_a[i - 1]; });
  const std::int64_t discordant = sort_counting_inversions(by_a);
  const std::int64_t ties_b = tied_pairs(n, [&](std::size_t i) { return by_a[i] == by_a[i - 1]; });
  const auto pairs = static_cast<std::int64_t>(n) * (static_cast<std::int64_t>(n) - 1) / 2;
  const double scale = std::sqrt(static_cast<double>(pairs - ties_a)) *
                       std::sqrt(static_cast<double>(pairs - ties_b));
  if (scale == 0.0) return std::nullopt;
  return static_cast<double>(pairs - ties_a - ties_b + ties_both - 2 * discordant) / scale;
}

PredictionMetrics prediction_metrics(std::span<const double> predicted,
                                     std::span<const double> measured) {
  assert(predicted.size() == measured.size());
  PredictionMetrics metrics;
  metrics.count = predicted.size();
  if (predicted.empty()) return metrics;
  std::vector<double> errors;
  errors.reserve(predicted.size());
  for (std::size_t i = 0; i < predicted.size(); ++i) {
    const double error = predicted[i] - measured[i];
    metrics.mse += error * error;
    metrics.mae += std::abs(error);
    metrics.mape += std::abs(error) / measured[i];
    errors.push_back(std::abs(error) / measured[i]);
    const double ratio = std::max(predicted[i], kLeastPredicted_ms) / measured[i];
    metrics.largest_factor = std::max({metrics.largest_factor, ratio, 1.0 / ratio});
  }
  std::sort(errors.begin(), errors.end());
  metrics.median = errors[(errors.size() - 1) / 2];
  metrics.percentile_95 = errors[(errors.size() * 95 + 99) / 100 - 1];
  const auto count = static_cast<double>(predicted.size());
  metrics.mse /= count;
  metrics.mae /= count;
  metrics.mape /= count;
  metrics.kendall_tau = kendall_tau(predicted, measured);
  return metrics;
}

}  // namespace neuroshard
