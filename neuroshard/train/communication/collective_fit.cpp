// Non-negative least squares of relative errors.
#include "neuroshard/train/communication/collective_fit.h"

#include <fmt/format.h>

#include <Eigen/Core>
#include <algorithm>
#include <utility>

#include "neuroshard/core/error.h"
#include "neuroshard/core/numbers/random.h"
#include "neuroshard/cost/communication/ring_all_reduce.h"
#include "neuroshard/workload/generate/nonnegative_least_squares.h"

namespace neuroshard {

namespace {

using Eigen::Index;
using Observations = std::vector<const CollectiveObservation*>;

constexpr std::size_t kFewestLines = 10;
/// Shorter ones have no relative error.
constexpr double kShortestLineMs = 1e-6;

/// Those of memory only where it was measured.
std::vector<double> terms_of(const CollectiveObservation& line, bool with_memory) {
  std::vector<double> result;
  if (line.kind == CollectiveKind::all_reduce) {
    const auto terms = all_reduce_terms(line.interconnect, line.topology, line.bytes);
    result.assign(terms.begin(), terms.end());
    if (!with_memory) result.resize(kNumLinkAllReduceTerms);
  } else {
    const auto terms = partial_sum_terms(line.bytes);
    result.assign(terms.begin(), terms.end());
    if (!with_memory) result.resize(kNumPlainPartialSumTerms);
  }
  return result;
}

double measured_ms(const CollectiveObservation& line) { return std::max(line.ms, kShortestLineMs); }

std::vector<double> fitted_weights(const Observations& lines) {
  const auto count = static_cast<Index>(lines.size());
  const bool with_memory =
      std::none_of(lines.begin(), lines.end(), [](const auto* line) { return line->is_simulated; });
  const auto num_terms = static_cast<Index>(terms_of(*lines.front(), with_memory).size());
  Eigen::MatrixXd terms(count, num_terms);
  for (Index i = 0; i < count; ++i) {
    const CollectiveObservation& line = *lines[static_cast<std::size_t>(i)];
    const std::vector<double> of_line = terms_of(line, with_memory);
    for (Index t = 0; t < num_terms; ++t) {
      terms(i, t) = of_line[static_cast<std::size_t>(t)] / measured_ms(line);
    }
  }
  // Columns of one length: the terms differ by orders of magnitude.
  const Eigen::VectorXd lengths = terms.colwise().norm();
  for (Index t = 0; t < num_terms; ++t) {
    if (lengths[t] > 0.0) terms.col(t) /= lengths[t];
  }
  const Eigen::VectorXd weights = nonnegative_least_squares(terms, Eigen::VectorXd::Ones(count));
  std::vector<double> result;
  for (Index t = 0; t < num_terms; ++t) {
    result.push_back(lengths[t] > 0.0 ? std::min(weights[t] / lengths[t], kMostCollectiveWeight)
                                      : 0.0);
  }
  return result;
}

std::vector<double>& weights_of_kind(CollectiveWeights& weights, CollectiveKind kind) {
  return kind == CollectiveKind::all_reduce ? weights.all_reduce : weights.partial_sums;
}

double predicted_ms(const CollectiveWeights& weights, const CollectiveObservation& line) {
  return line.kind == CollectiveKind::all_reduce
             ? weights.all_reduce_ms(line.interconnect, line.topology, line.bytes)
             : weights.partial_sums_ms(line.bytes);
}

double predicted_by_rates_ms(const CollectiveObservation& line) {
  return line.kind == CollectiveKind::all_reduce
             ? ring_all_reduce_ms(line.interconnect, line.topology, line.bytes)
             : line.bytes / (line.interconnect.memory_gb_per_s * 1e6);
}

template <typename Predict>
PredictionMetrics metrics_of(const Observations& lines, const Predict& predict) {
  std::vector<double> predicted;
  std::vector<double> measured;
  for (const CollectiveObservation* line : lines) {
    predicted.push_back(predict(*line));
    measured.push_back(measured_ms(*line));
  }
  return prediction_metrics(predicted, measured);
}

/// A fifth of them are kept from the fit, at random.
std::pair<Observations, Observations> split(const Observations& lines, Random& random) {
  std::vector<const CollectiveObservation*> order = lines;
  random.shuffle(order);
  const auto middle = order.begin() + static_cast<std::ptrdiff_t>(order.size() / 5);
  return {{middle, order.end()}, {order.begin(), middle}};
}

Observations of_kind(const std::vector<CollectiveObservation>& lines, CollectiveKind kind) {
  Observations result;
  for (const CollectiveObservation& line : lines) {
    if (line.kind == kind) result.push_back(&line);
  }
  return result;
}

void append(const Observations& more, Observations& lines) {
  lines.insert(lines.end(), more.begin(), more.end());
}

CollectiveMetrics fit_kind(CollectiveKind kind, const Observations& lines,
                           const Observations& held_out, Random& random, CollectiveFit& fit) {
  std::map<std::string, Observations> by_cluster;
  for (const CollectiveObservation* line : lines) by_cluster[line->cluster].push_back(line);
  Observations training;
  Observations unseen;
  for (const auto& [cluster, own] : by_cluster) {
    if (own.size() < kFewestLines) {
      throw InputError("costs",
                       fmt::format("at least {} lines of {} from \"{}\"", kFewestLines,
                                   to_string(kind), cluster),
                       fmt::format("{}", own.size()));
    }
    auto [to_fit, to_test] = split(own, random);
    weights_of_kind(fit.clusters[cluster], kind) = fitted_weights(to_fit);
    append(to_fit, training);
    append(to_test, unseen);
  }
  CollectiveWeights of_all;
  weights_of_kind(of_all, kind) = fitted_weights(training);
  const auto predict = [&](const CollectiveObservation& line) {
    return predicted_ms(by_cluster.contains(line.cluster) ? fit.clusters.at(line.cluster) : of_all,
                        line);
  };
  return {kind, metrics_of(training, predict), metrics_of(unseen, predict),
          metrics_of(held_out, predict), metrics_of(unseen, predicted_by_rates_ms)};
}

}  // namespace

CollectiveFit fit_collectives(const std::vector<CollectiveObservation>& training,
                              const std::vector<CollectiveObservation>& held_out,
                              std::uint64_t seed) {
  CollectiveFit fit;
  Random random = Random::for_stream(seed, 2);
  for (const CollectiveKind kind : {CollectiveKind::all_reduce, CollectiveKind::partial_sums}) {
    const Observations lines = of_kind(training, kind);
    if (lines.empty()) continue;
    fit.metrics.push_back(fit_kind(kind, lines, of_kind(held_out, kind), random, fit));
  }
  return fit;
}

void add_to_model(const CollectiveFit& fit, CommunicationModelInfo& info) {
  for (TrainedCluster& cluster : info.clusters) {
    const auto own = fit.clusters.find(cluster.interconnect.name);
    if (own == fit.clusters.end()) continue;
    const auto& [name, weights] = *own;
    if (!weights.all_reduce.empty()) cluster.collectives.all_reduce = weights.all_reduce;
    if (!weights.partial_sums.empty()) cluster.collectives.partial_sums = weights.partial_sums;
  }
  for (const CollectiveMetrics& metrics : fit.metrics) {
    const auto add = [&](const char* set, const PredictionMetrics& values) {
      if (values.count == 0) return;
      const std::string prefix = fmt::format("{}.{}.", to_string(metrics.kind), set);
      info.metrics[prefix + "lines"] = static_cast<double>(values.count);
      info.metrics[prefix + "mape"] = values.mape;
    };
    add("training", metrics.training);
    add("unseen", metrics.unseen);
    add("held_out", metrics.held_out);
  }
}

}  // namespace neuroshard
