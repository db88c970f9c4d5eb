// Fits of all-reduces and partial sums to lines whose law is known.
#include "neuroshard/train/communication/collective_fit.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "neuroshard/core/error.h"
#include "neuroshard/core/numbers/random.h"
#include "neuroshard/cost/communication/ring_all_reduce.h"

namespace neuroshard {
namespace {

/// All-reduces that take twice what the links' rates say, with a hundredth of noise.
std::vector<CollectiveObservation> slow_rings(const char* interconnect, int world_size, int count,
                                              std::uint64_t seed) {
  std::vector<CollectiveObservation> lines;
  Random random(seed);
  for (int i = 0; i < count; ++i) {
    CollectiveObservation line;
    line.cluster = interconnect;
    line.interconnect = find_interconnect(interconnect);
    line.topology.world_size = world_size;
    line.topology.local_world_size = 1;
    line.is_simulated = true;
    line.bytes = std::round(std::exp2(random.uniform(8.0, 26.0)));
    line.ms = random.uniform(0.99, 1.01) * 2.0 *
              ring_all_reduce_ms(line.interconnect, line.topology, line.bytes);
    lines.push_back(line);
  }
  return lines;
}

/// Additions that take three times as long for each byte from 8 to 16 MiB as before and after.
std::vector<CollectiveObservation> with_a_cache(bool is_simulated) {
  Random random = Random::for_stream(6, 0);
  std::vector<CollectiveObservation> lines;
  for (int i = 0; i < 300; ++i) {
    CollectiveObservation line;
    line.kind = CollectiveKind::partial_sums;
    line.cluster = "host";
    line.is_simulated = is_simulated;
    line.bytes = std::round(std::exp2(random.uniform(20.0, 27.0)));
    constexpr double kCache = 0x1p23;
    line.ms = random.uniform(0.99, 1.01) * 1e-7 *
              (line.bytes + 2.0 * std::clamp(line.bytes - kCache, 0.0, kCache));
    lines.push_back(line);
  }
  return lines;
}

TEST(CollectiveFit, MeasuredLinesHaveMemory) {
  EXPECT_LT(fit_collectives(with_a_cache(false), {}, 0).metrics[0].unseen.mape, 0.015);
  EXPECT_GT(fit_collectives(with_a_cache(true), {}, 0).metrics[0].unseen.mape, 0.03);
}

TEST(CollectiveFit, FollowsTheLinesAndOtherNumbersOfDevices) {
  std::vector<CollectiveObservation> training = slow_rings("ethernet-10g", 4, 60, 1);
  for (const auto& line : slow_rings("ethernet-10g", 16, 60, 2)) training.push_back(line);
  for (const auto& line : slow_rings("ethernet-25g", 8, 60, 3)) training.push_back(line);
  std::vector<CollectiveObservation> held_out = slow_rings("ethernet-10g", 9, 20, 4);
  // A cluster that is not trained on: by the law of all together.
  for (const auto& line : slow_rings("ethernet-50g", 6, 20, 5)) held_out.push_back(line);
  const CollectiveFit fit = fit_collectives(training, held_out, 0);
  ASSERT_EQ(fit.metrics.size(), 1u);
  EXPECT_EQ(fit.metrics[0].training.count, 144u);
  EXPECT_EQ(fit.metrics[0].unseen.count, 36u);
  EXPECT_LT(fit.metrics[0].unseen.mape, 0.015);
  EXPECT_EQ(fit.metrics[0].held_out.count, 40u);
  EXPECT_LT(fit.metrics[0].held_out.mape, 0.02);
  EXPECT_NEAR(fit.metrics[0].links_unseen.mape, 0.5, 0.01);
  EXPECT_EQ(fit.clusters.size(), 2u);
  for (const auto& [name, weights] : fit.clusters) {
    EXPECT_TRUE(weights.partial_sums.empty()) << name;
    for (const double weight : weights.all_reduce) EXPECT_GE(weight, 0.0) << name;
  }
  CommunicationModelInfo info;
  info.clusters.resize(2);
  info.clusters[0].interconnect.name = "ethernet-25g";
  info.clusters[1].interconnect.name = "pcie4";
  info.clusters[1].collectives.partial_sums = {1.0};
  add_to_model(fit, info);
  EXPECT_EQ(info.clusters[0].collectives.all_reduce, fit.clusters.at("ethernet-25g").all_reduce);
  EXPECT_TRUE(info.clusters[1].collectives.all_reduce.empty());
  EXPECT_EQ(info.clusters[1].collectives.partial_sums.size(), 1u);
  EXPECT_EQ(info.metrics.at("all_reduce.unseen.lines"), 36.0);
  EXPECT_EQ(info.metrics.at("all_reduce.held_out.mape"), fit.metrics[0].held_out.mape);
}

TEST(CollectiveFit, PartialSumsAreSlowerBeyondTheCaches) {
  std::vector<CollectiveObservation> lines;
  Random random(7);
  for (int i = 0; i < 200; ++i) {
    CollectiveObservation line;
    line.kind = CollectiveKind::partial_sums;
    line.cluster = "mine";
    line.bytes = std::round(std::exp2(random.uniform(10.0, 28.0)));
    line.ms = 0.002 + line.bytes / 2e7 + std::max(line.bytes - 8388608.0, 0.0) / 1e7;
    lines.push_back(line);
  }
  const CollectiveFit fit = fit_collectives(lines, {}, 0);
  EXPECT_LT(fit.metrics.at(0).unseen.mape, 1e-6);
  EXPECT_EQ(fit.metrics.at(0).held_out.count, 0u);
  EXPECT_NEAR(fit.clusters.at("mine").partial_sums_ms(1e6), 0.052, 1e-6);
}

TEST(CollectiveFit, LinksWithoutLatencyGiveWeightsThatModelsMayHave) {
  std::vector<CollectiveObservation> lines = slow_rings("ethernet-10g", 2, 60, 1);
  for (CollectiveObservation& line : lines) {
    line.interconnect.inter_host_latency_ms = 0.0;
    if (line.bytes > 1e6) line.ms += 5.0;  // a jump that no link explains
  }
  const CollectiveFit fit = fit_collectives(lines, {}, 0);
  EXPECT_LT(fit.metrics[0].training.mape, 0.1);
  for (const double weight : fit.clusters.at("ethernet-10g").all_reduce) {
    EXPECT_GE(weight, 0.0);
    EXPECT_LT(weight, 1e6);
  }
}

TEST(CollectiveFit, TooFewLinesAreRefused) {
  try {
    (void)fit_collectives(slow_rings("ethernet-10g", 4, 9, 1), {}, 0);
    ADD_FAILURE();
  } catch (const InputError& error) {
    EXPECT_STREQ(error.what(),
                 "costs: expected at least 10 lines of all_reduce from \"ethernet-10g\", got 9");
  }
  EXPECT_TRUE(fit_collectives({}, {}, 0).metrics.empty());
}

}  // namespace
}  // namespace neuroshard
