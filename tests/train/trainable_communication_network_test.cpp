// The communication network in training: its predictions and gradients against the formula in
// double precision.
#include "neuroshard/train/communication/trainable_communication_network.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "tests/train/double_precision.h"

namespace neuroshard {
namespace {

using Eigen::Index;
using Eigen::MatrixXd;
using Eigen::MatrixXf;
using Eigen::VectorXd;
using testing_train::DoubleParameters;
using testing_train::in_double;
using testing_train::numeric_gradient;

constexpr int kContexts = 5;
constexpr std::size_t kNumLayers = 3;

/// All-to-alls of 2, 3, 4, ... devices.
AllToAllBatch random_all_to_alls(int samples, Random& random) {
  AllToAllBatch batch;
  batch.first_device.push_back(0);
  for (int i = 0; i < samples; ++i) {
    batch.first_device.push_back(batch.first_device.back() + 2 + i % 4);
  }
  const auto uniform = [&](Index rows, Index columns, double low, double high) {
    return MatrixXf(MatrixXf::NullaryExpr(
        rows, columns, [&] { return static_cast<float>(random.uniform(low, high)); }));
  };
  const int devices = batch.first_device.back();
  batch.contexts = MatrixXf::NullaryExpr(kContexts, samples,
                                         [&] { return static_cast<float>(random.normal()); });
  batch.rests_ms = uniform(static_cast<Index>(kNumLastEnds), samples, 0.1, 8.0);
  batch.lag_ms = uniform(devices, 1, 0.0, 2.0);
  batch.share = uniform(devices, 1, 0.1, 1.0);
  batch.target_ms = uniform(devices, 1, 0.1, 6.0);
  return batch;
}

MatrixXd dense(const DoubleParameters& p, std::size_t layer, const MatrixXd& input) {
  return (p[2 * layer] * input).colwise() + p[2 * layer + 1].col(0);
}

/// Times of one all-to-all's devices.
VectorXd reference_times(const DoubleParameters& p, const AllToAllBatch& batch, Index sample) {
  MatrixXd y = batch.contexts.col(sample).cast<double>();
  for (std::size_t layer = 0; layer < kNumLayers; ++layer) {
    y = dense(p, layer, y);
    if (layer + 1 < kNumLayers) y = y.cwiseMax(0.0);
  }
  double rest = 0.0;
  for (Index k = 0; k < y.rows(); ++k) rest += std::exp(y(k, 0)) * batch.rests_ms(k, sample);
  rest /= y.array().exp().sum();
  const int first = batch.first_device[sample];
  const int count = batch.first_device[sample + 1] - first;
  return batch.lag_ms.segment(first, count).cast<double>() +
         rest * batch.share.segment(first, count).cast<double>();
}

double reference_loss(const DoubleParameters& p, const AllToAllBatch& batch) {
  double sum = 0.0;
  for (Index sample = 0; sample + 1 < static_cast<Index>(batch.first_device.size()); ++sample) {
    const VectorXd times = reference_times(p, batch, sample);
    for (Index d = 0; d < times.size(); ++d) {
      const double difference =
          std::log(times[d] / batch.target_ms[batch.first_device[sample] + d]);
      sum += difference * difference / static_cast<double>(times.size());
    }
  }
  return sum;
}

/// Moves the parameters to where no end has nearly all of the weight; `shift` of the last biases.
TrainableCommunicationNetwork disturbed_network(Random& random, float shift) {
  TrainableCommunicationNetwork network(kContexts, random);
  for (MatrixXf& parameter : network.parameters()) {
    parameter = parameter.unaryExpr(
        [&](float value) { return value + static_cast<float>(random.uniform(-0.2, 0.3)); });
  }
  network.parameters().back().bottomRows(3).array() += shift;
  return network;
}

TEST(TrainableCommunicationNetwork, PredictsByTheFormula) {
  Random random(3);
  const TrainableCommunicationNetwork network = disturbed_network(random, 4.0F);
  const AllToAllBatch batch = random_all_to_alls(9, random);
  const Eigen::VectorXf predicted = network.predict(batch);
  const DoubleParameters p = in_double(network.parameters());
  for (Index sample = 0; sample < 9; ++sample) {
    const VectorXd times = reference_times(p, batch, sample);
    for (Index d = 0; d < times.size(); ++d) {
      const double actual = predicted[batch.first_device[sample] + d];
      EXPECT_NEAR(actual, times[d], 1e-5 * times[d]);
      EXPECT_GE(actual, batch.lag_ms[batch.first_device[sample] + d]);
    }
  }
}

TEST(TrainableCommunicationNetwork, ExportsWhatItPredictsBy) {
  Random random(4);
  const TrainableCommunicationNetwork network = disturbed_network(random, 4.0F);
  const AllToAllBatch batch = random_all_to_alls(5, random);
  const Eigen::VectorXf mean = Eigen::VectorXf::Constant(kContexts, 0.5F);
  const Eigen::VectorXf scale = Eigen::VectorXf::Constant(kContexts, 2.0F);
  const CommunicationNetwork exported = network.exported(mean, scale);
  const Eigen::VectorXf predicted = network.predict(batch);
  for (Index sample = 0; sample < 5; ++sample) {
    const Eigen::VectorXf context =
        batch.contexts.col(sample).array() / scale.array() + mean.array();
    const MixtureWeights weights =
        mixture_weights(exported, {context.data(), static_cast<std::size_t>(context.size())});
    AllToAllEnds ends;
    for (std::size_t k = 0; k < kNumLastEnds; ++k) {
      ends.rests_ms[k] = batch.rests_ms(static_cast<Index>(k), sample);
    }
    const int first = batch.first_device[sample];
    EXPECT_NEAR(batch.lag_ms[first] + batch.share[first] * mixed(ends, weights), predicted[first],
                1e-4 * predicted[first]);
  }
}

TEST(TrainableCommunicationNetwork, GradientsAreThoseOfTheFormula) {
  for (const float shift : {4.0F, 6.0F}) {  // the larger one leaves the first end little weight
    Random random(5);
    const TrainableCommunicationNetwork network = disturbed_network(random, shift);
    const AllToAllBatch batch = random_all_to_alls(8, random);
    Parameters gradients;
    const double loss = network.loss_and_gradients(batch, gradients);
    const DoubleParameters p = in_double(network.parameters());
    EXPECT_NEAR(loss, reference_loss(p, batch), 1e-4 * loss);
    ASSERT_EQ(gradients.size(), network.parameters().size());
    double largest = 0.0;
    for (std::size_t at = 0; at < gradients.size(); ++at) {
      const MatrixXd numeric = numeric_gradient(
          p, at, [&](const DoubleParameters& moved) { return reference_loss(moved, batch); });
      const double scale = std::max(numeric.cwiseAbs().maxCoeff(), 1e-3);
      EXPECT_LT((gradients[at].cast<double>() - numeric).cwiseAbs().maxCoeff(), 2e-3 * scale)
          << "parameter " << at << ", shift " << shift;
      largest = std::max(largest, numeric.cwiseAbs().maxCoeff());
    }
    EXPECT_GT(largest, 1e-2) << "shift " << shift;  // else nothing was compared
  }
}

TEST(TrainableCommunicationNetwork, BeginsNearTheLinks) {
  Random random(1);
  const TrainableCommunicationNetwork network(kContexts, random);
  AllToAllBatch batch = random_all_to_alls(20, random);
  for (std::size_t k = 0; k < kSlowdowns.size(); ++k) {
    batch.rests_ms.row(static_cast<Index>(k)) =
        batch.rests_ms.row(0) * static_cast<float>(kSlowdowns[k]);
  }
  batch.rests_ms.row(static_cast<Index>(kNumLastEnds) - 1) = 1.5F * batch.rests_ms.row(0);
  const Eigen::VectorXf predicted = network.predict(batch);
  for (Index i = 0; i < 20; ++i) {
    for (int d = batch.first_device[i]; d < batch.first_device[i + 1]; ++d) {
      const float links = batch.lag_ms[d] + batch.share[d] * batch.rests_ms(0, i);
      EXPECT_GE(predicted[d], links * (1.0F - 1e-6F));
      EXPECT_LT(predicted[d], 1.3F * links);
    }
  }
}

}  // namespace
}  // namespace neuroshard
