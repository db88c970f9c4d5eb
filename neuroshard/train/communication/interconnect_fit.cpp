// A search along each of an interconnect's parameters.
#include "neuroshard/train/communication/interconnect_fit.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

#include "neuroshard/core/interconnect.h"

namespace neuroshard {

namespace {

/// More samples would only take longer: there are four parameters.
constexpr std::size_t kMostSamples = 200;

/// Whatever was measured, the fit is what readers of its model take.
double rate_of(double log2_gb_per_s) {
  return std::clamp(std::exp2(log2_gb_per_s), kMinLinkGbPerS, kMaxLinkGbPerS);
}
double latency_of(double log2_ms) { return std::min(std::exp2(log2_ms), kMaxLinkLatencyMs); }

/// Base-2 logarithms of the fitted parameters.
struct Links {
  std::array<double, 2> rate;     ///< in the host, between hosts [GB/s]
  std::array<double, 2> latency;  ///< [ms]

  [[nodiscard]] Interconnect interconnect() const {
    return {.intra_host_gb_per_s = rate_of(rate[0]),
            .intra_host_latency_ms = latency_of(latency[0]),
            .devices_per_card = 1,
            .card_gb_per_s = rate_of(rate[1]),
            .inter_host_latency_ms = latency_of(latency[1])};
  }
};

/// Sum over the devices of the first samples, and their number.
struct ErrorSum {
  double sum = 0.0;
  double count = 0.0;
};

ErrorSum error_of(const CommunicationCosts& costs, const Links& links, std::size_t most_samples) {
  const CommunicationCostsHeader& header = costs.header;
  LinkSchedule schedule(
      links.interconnect(),
      {.world_size = header.world_size, .local_world_size = header.local_world_size},
      header.batch_size, element_bytes(header.data_type));
  const std::vector<double> together(header.world_size, 0.0);
  std::vector<double> ends(header.world_size);
  double sum = 0.0;
  const std::size_t count = std::min(costs.samples.size(), most_samples);
  for (std::size_t i = 0; i < count; ++i) {
    const CommunicationCostSample& sample = costs.samples[i];
    const std::vector<double> columns(sample.columns.begin(), sample.columns.end());
    schedule.ends(columns, together, ends);
    for (std::size_t d = 0; d < ends.size(); ++d) {
      sum += std::abs(
          std::log(std::max(ends[d], kShortestMs) / std::max(sample.backward_ms[d], kShortestMs)));
    }
  }
  return {sum, static_cast<double>(count * ends.size())};
}

double mean_error(const std::vector<const CommunicationCosts*>& files, const Links& links) {
  ErrorSum all;
  for (const CommunicationCosts* costs : files) {
    const ErrorSum own =
        error_of(*costs, links, std::max<std::size_t>(kMostSamples / files.size(), 1));
    all.sum += own.sum;
    all.count += own.count;
  }
  return all.sum / all.count;
}

/// Links on which the slowest device of each sample would do nothing but send at the best rate that
/// any sample shows; the latency is the shortest time.
Links first_guess(const std::vector<const CommunicationCosts*>& files) {
  double shortest = std::numeric_limits<double>::infinity();
  double best_rate = 1e-6;
  for (const CommunicationCosts* costs : files) {
    const CommunicationCostsHeader& header = costs->header;
    const double bytes_per_column = static_cast<double>(element_bytes(header.data_type)) *
                                    static_cast<double>(header.batch_size) *
                                    (header.world_size - 1) / header.world_size;
    for (const CommunicationCostSample& sample : costs->samples) {
      const double longest =
          *std::max_element(sample.backward_ms.begin(), sample.backward_ms.end());
      const auto columns =
          static_cast<double>(*std::max_element(sample.columns.begin(), sample.columns.end()));
      shortest = std::min(shortest, longest);
      best_rate =
          std::max(best_rate, columns * bytes_per_column / std::max(longest, kShortestMs) / 1e6);
    }
  }
  const double rate = std::log2(best_rate);
  const double latency = std::log2(std::max(0.5 * shortest, kShortestMs));
  return {{rate, rate}, {latency, latency}};
}

}  // namespace

Interconnect fit_interconnect(const std::vector<const CommunicationCosts*>& files) {
  bool has_intra = false;
  bool has_inter = false;
  for (const CommunicationCosts* costs : files) {
    has_intra = has_intra || costs->header.local_world_size > 1;
    has_inter = has_inter || costs->header.world_size > costs->header.local_world_size;
  }
  Links links = first_guess(files);
  std::vector<double*> unknown;
  if (has_intra) unknown.insert(unknown.end(), {links.rate.data(), links.latency.data()});
  if (has_inter) unknown.insert(unknown.end(), {&links.rate[1], &links.latency[1]});
  double best = mean_error(files, links);
  for (double step = 2.0; step > 1e-3;) {
    bool better = false;
    for (double* value : unknown) {
      for (const double change : {step, -step}) {
        *value += change;
        const double error = mean_error(files, links);
        if (error < best) {
          best = error;
          better = true;
          break;
        }
        *value -= change;
      }
    }
    if (!better) step *= 0.5;
  }
  if (has_intra != has_inter) {
    const int known = has_intra ? 0 : 1;
    links.rate[1 - known] = links.rate[known];
    links.latency[1 - known] = links.latency[known];
  }
  return links.interconnect();
}

}  // namespace neuroshard
