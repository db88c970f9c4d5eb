// The weights of the ends that the communication model mixes.
#include "neuroshard/cost/communication/communication_network.h"

#include <gtest/gtest.h>

#include <cmath>
#include <numeric>
#include <vector>

namespace neuroshard {
namespace {

TEST(CommunicationNetwork, WeightsAreTheSoftmaxOfItsLayers) {
  CommunicationNetwork network;
  network.feature_mean = {1.0F, 2.0F};
  network.feature_scale = {2.0F, 0.5F};
  // Outputs x inputs, column by column: the second unit is negative, and the ReLU takes it away.
  network.layers = {{2, 2, {1.0F, -1.0F, 1.0F, -1.0F}, {0.5F, 0.0F}},
                    {2, 4, {1.0F, 2.0F, 0.0F, -1.0F, 9.0F, 9.0F, 9.0F, 9.0F}, {0, 0, 1.0F, 0}}};
  // (3 - 1) * 2 = 4 and (4 - 2) * 0.5 = 1; hidden 5.5; outputs 5.5, 11, 1, -5.5.
  const std::vector<float> context{3.0F, 4.0F};
  const MixtureWeights weights = mixture_weights(network, context);
  const std::vector<double> y{5.5, 11.0, 1.0, -5.5};
  double sum = 0.0;
  for (const double value : y) sum += std::exp(value);
  for (std::size_t k = 0; k < y.size(); ++k) {
    EXPECT_NEAR(weights[k], std::exp(y[k]) / sum, 1e-12) << k;
  }
  AllToAllEnds ends;
  ends.rests_ms = {1.0, 2.0, 3.0, 4.0};
  EXPECT_NEAR(mixed(ends, weights),
              weights[0] + 2.0 * weights[1] + 3.0 * weights[2] + 4.0 * weights[3], 1e-12);
}

TEST(CommunicationNetwork, WeightsAddUpToOneForAnyParameters) {
  CommunicationNetwork network;
  network.feature_mean = {0.0F};
  network.feature_scale = {1e30F};
  network.layers = {{1, 4, {1e30F, -1e30F, 1e30F, 0.0F}, {0, 0, 0, 0}}};
  const std::vector<float> context{1e8F};
  const MixtureWeights weights = mixture_weights(network, context);
  EXPECT_EQ(std::accumulate(weights.begin(), weights.end(), 0.0), 1.0);
}

}  // namespace
}  // namespace neuroshard
