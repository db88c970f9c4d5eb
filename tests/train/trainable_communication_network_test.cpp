// The communication network in training: its predictions and gradients against the formula in
// double precision.
#include "neuroshard/train/communication/trainable_communication_network.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

namespace neuroshard {
namespace {

using Eigen::Index;
using Eigen::MatrixXd;
using Eigen::MatrixXf;
using Eigen::VectorXd;
using DoubleParameters = std::vector<MatrixXd>;

constexpr int kFeatures = 5;
constexpr std::size_t kEncoderLayers = 2;
constexpr std::size_t kHeadLayers = 2;

/// All-to-alls of 2, 3, 4, ... devices.
DeviceBatch random_batch(int samples, Random& random) {
  DeviceBatch batch;
  batch.first_device.push_back(0);
  for (int i = 0; i < samples; ++i) {
    batch.first_device.push_back(batch.first_device.back() + 2 + i % 4);
  }
  const int devices = batch.first_device.back();
  const auto uniform = [&](double low, double high) {
    return Eigen::VectorXf(Eigen::VectorXf::NullaryExpr(
        devices, [&] { return static_cast<float>(random.uniform(low, high)); }));
  };
  batch.features = MatrixXf::NullaryExpr(kFeatures, devices,
                                         [&] { return static_cast<float>(random.normal()); });
  batch.lag_ms = uniform(0.0, 2.0);
  batch.rest_ms = uniform(0.1, 3.0);
  batch.target_ms = uniform(0.1, 6.0);
  return batch;
}

DoubleParameters as_double(const Parameters& parameters) {
  DoubleParameters result;
  for (const MatrixXf& parameter : parameters) result.push_back(parameter.cast<double>());
  return result;
}

MatrixXd dense(const DoubleParameters& p, std::size_t layer, const MatrixXd& input) {
  return (p[2 * layer] * input).colwise() + p[2 * layer + 1].col(0);
}

/// Times of one all-to-all's devices.
VectorXd reference_times(const DoubleParameters& p, const DeviceBatch& batch, Index sample) {
  const int first = batch.first_device[sample];
  const int count = batch.first_device[sample + 1] - first;
  MatrixXd codes = batch.features.middleCols(first, count).cast<double>();
  for (std::size_t layer = 0; layer < kEncoderLayers; ++layer) {
    codes = dense(p, layer, codes).cwiseMax(0.0);
  }
  const VectorXd mean = codes.rowwise().mean();
  const VectorXd largest = codes.rowwise().maxCoeff();
  VectorXd times(count);
  for (int d = 0; d < count; ++d) {
    MatrixXd joined(3 * codes.rows(), 1);
    joined << codes.col(d), mean, largest;
    for (std::size_t layer = 0; layer < kHeadLayers; ++layer) {
      joined = dense(p, kEncoderLayers + layer, joined);
      if (layer + 1 < kHeadLayers) joined = joined.cwiseMax(0.0);
    }
    const double delay = std::exp(std::min(joined(0, 0), 2.0));
    times[d] = batch.lag_ms[first + d] + batch.rest_ms[first + d] * (1.0 + delay);
  }
  return times;
}

double reference_loss(const DoubleParameters& p, const DeviceBatch& batch) {
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

MatrixXd numeric_gradient(DoubleParameters p, std::size_t at, const DeviceBatch& batch) {
  constexpr double kStep = 1e-6;
  MatrixXd gradient(p[at].rows(), p[at].cols());
  for (Index i = 0; i < gradient.size(); ++i) {
    const double value = p[at].data()[i];
    p[at].data()[i] = value + kStep;
    const double above = reference_loss(p, batch);
    p[at].data()[i] = value - kStep;
    const double below = reference_loss(p, batch);
    p[at].data()[i] = value;
    gradient.data()[i] = (above - below) / (2.0 * kStep);
  }
  return gradient;
}

/// Moves the parameters to where delays are large enough to matter; `shift` of the last bias.
TrainableCommunicationNetwork disturbed_network(Random& random, float shift) {
  TrainableCommunicationNetwork network(kFeatures, random);
  for (MatrixXf& parameter : network.parameters()) {
    parameter = parameter.unaryExpr(
        [&](float value) { return value + static_cast<float>(random.uniform(-0.1, 0.2)); });
  }
  network.parameters().back().array() += shift;
  return network;
}

TEST(TrainableCommunicationNetwork, PredictsByTheFormula) {
  Random random(3);
  const TrainableCommunicationNetwork network = disturbed_network(random, 3.0F);
  const DeviceBatch batch = random_batch(9, random);
  const Eigen::VectorXf predicted = network.predict(batch);
  const DoubleParameters p = as_double(network.parameters());
  for (Index sample = 0; sample < 9; ++sample) {
    const VectorXd times = reference_times(p, batch, sample);
    for (Index d = 0; d < times.size(); ++d) {
      const double actual = predicted[batch.first_device[sample] + d];
      EXPECT_NEAR(actual, times[d], 1e-5 * times[d]);
      EXPECT_GE(actual, batch.lag_ms[batch.first_device[sample] + d]);
    }
  }
}

TEST(TrainableCommunicationNetwork, GradientsAreThoseOfTheFormula) {
  for (const float shift : {3.0F, 3.4F}) {  // the larger one puts some delays at their bound
    Random random(5);
    const TrainableCommunicationNetwork network = disturbed_network(random, shift);
    const DeviceBatch batch = random_batch(8, random);
    Parameters gradients;
    const double loss = network.loss_and_gradients(batch, gradients);
    const DoubleParameters p = as_double(network.parameters());
    EXPECT_NEAR(loss, reference_loss(p, batch), 1e-4 * loss);
    ASSERT_EQ(gradients.size(), network.parameters().size());
    double largest = 0.0;
    for (std::size_t at = 0; at < gradients.size(); ++at) {
      const MatrixXd numeric = numeric_gradient(p, at, batch);
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
  const TrainableCommunicationNetwork network(kFeatures, random);
  const DeviceBatch batch = random_batch(20, random);
  const Eigen::VectorXf predicted = network.predict(batch);
  for (Index d = 0; d < predicted.size(); ++d) {
    const float links = batch.lag_ms[d] + batch.rest_ms[d];
    EXPECT_GE(predicted[d], links);
    EXPECT_LT(predicted[d], 1.3F * links);
  }
}

}  // namespace
}  // namespace neuroshard
