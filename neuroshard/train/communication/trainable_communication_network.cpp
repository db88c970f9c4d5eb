// Forward pass, loss and exact gradients of the communication network.
#include "neuroshard/train/communication/trainable_communication_network.h"

#include <algorithm>
#include <cmath>

namespace neuroshard {

namespace {

using Eigen::Index;
using Eigen::MatrixXf;
using Eigen::VectorXf;

const std::vector<int> kEncoder{16, 16};
const std::vector<int> kHead{16, 1};
constexpr float kFirstDelay = -4.0F;  // exp(-4): 2 % longer than the links alone

/// Below each device's code the mean and the largest of all devices of its all-to-all; `largest` is
/// the device that each maximum came from.
MatrixXf join_context(const MatrixXf& codes, const std::vector<int>& first_device,
                      Eigen::MatrixXi& largest) {
  const Index units = codes.rows();
  const auto samples = static_cast<Index>(first_device.size()) - 1;
  MatrixXf joined(3 * units, codes.cols());
  joined.topRows(units) = codes;
  largest.resize(units, samples);
  for (Index sample = 0; sample < samples; ++sample) {
    const int first = first_device[sample];
    const int count = first_device[sample + 1] - first;
    const auto own = codes.middleCols(first, count);
    const VectorXf mean = own.rowwise().mean();
    VectorXf maximum(units);
    for (Index unit = 0; unit < units; ++unit) {
      Index at = 0;
      maximum[unit] = own.row(unit).maxCoeff(&at);
      largest(unit, sample) = first + static_cast<int>(at);
    }
    joined.block(units, first, units, count).colwise() = mean;
    joined.block(2 * units, first, units, count).colwise() = maximum;
  }
  return joined;
}

/// The gradient of the codes from that of the joined ones.
MatrixXf split_context(const MatrixXf& joined, const std::vector<int>& first_device,
                       const Eigen::MatrixXi& largest) {
  const Index units = joined.rows() / 3;
  MatrixXf codes = joined.topRows(units);
  for (Index sample = 0; sample + 1 < static_cast<Index>(first_device.size()); ++sample) {
    const int first = first_device[sample];
    const int count = first_device[sample + 1] - first;
    const VectorXf mean = joined.block(units, first, units, count).rowwise().sum() / count;
    const VectorXf maximum = joined.block(2 * units, first, units, count).rowwise().sum();
    codes.middleCols(first, count).colwise() += mean;
    for (Index unit = 0; unit < units; ++unit) {
      codes(unit, largest(unit, sample)) += maximum[unit];
    }
  }
  return codes;
}

}  // namespace

struct TrainableCommunicationNetwork::Activations {
  DenseActivations encoder;
  DenseActivations head;
  Eigen::MatrixXi largest;
  VectorXf delay_ms;  ///< beyond the links' schedule
  VectorXf time_ms;
};

TrainableCommunicationNetwork::TrainableCommunicationNetwork(int num_features, Random& random)
    : encoder_(num_features, kEncoder, true, random, parameters_),
      head_(3 * kEncoder.back(), kHead, false, random, parameters_) {
  // Begins near the link schedule.
  parameters_[head_.weights_at(head_.size() - 1)] *= 0.1F;
  parameters_[head_.weights_at(head_.size() - 1) + 1].setConstant(kFirstDelay);
}

void TrainableCommunicationNetwork::forward(const DeviceBatch& batch, Activations& a) const {
  encoder_.forward(parameters_, batch.features, a.encoder);
  head_.forward(parameters_, join_context(a.encoder.output, batch.first_device, a.largest), a.head);
  a.delay_ms = batch.rest_ms.array() *
               a.head.output.row(0).transpose().cwiseMin(kLargestDelay).array().exp();
  a.time_ms = batch.lag_ms + batch.rest_ms + a.delay_ms;
}

VectorXf TrainableCommunicationNetwork::predict(const DeviceBatch& batch) const {
  Activations activations;
  forward(batch, activations);
  return activations.time_ms;
}

double TrainableCommunicationNetwork::loss_and_gradients(const DeviceBatch& batch,
                                                         Parameters& gradients) const {
  Activations a;
  forward(batch, a);
  const VectorXf difference = a.time_ms.array().log() - batch.target_ms.array().log();
  const auto output = a.head.output.row(0).transpose().array();
  // Every all-to-all counts alike, however many devices it has.
  VectorXf weight(difference.size());
  for (std::size_t i = 0; i + 1 < batch.first_device.size(); ++i) {
    const int count = batch.first_device[i + 1] - batch.first_device[i];
    weight.segment(batch.first_device[i], count).setConstant(1.0F / static_cast<float>(count));
  }
  // d log(lag + rest (1 + exp(y))) / dy = rest exp(y) / time, below the bound of y.
  const VectorXf slope =
      (output < kLargestDelay).select(a.delay_ms.array() / a.time_ms.array(), 0.0F);
  gradients.resize(parameters_.size());
  const VectorXf output_gradient = 2.0F * weight.cwiseProduct(difference).cwiseProduct(slope);
  const MatrixXf joined_gradient =
      head_.backward(parameters_, a.head, output_gradient.transpose(), gradients);
  (void)encoder_.backward(parameters_, a.encoder,
                          split_context(joined_gradient, batch.first_device, a.largest), gradients);
  return static_cast<double>(weight.dot(difference.cwiseAbs2()));
}

CommunicationNetwork TrainableCommunicationNetwork::exported(const VectorXf& feature_mean,
                                                             const VectorXf& feature_scale) const {
  const auto flat = [](const MatrixXf& matrix) {
    return std::vector<float>(matrix.data(), matrix.data() + matrix.size());
  };
  const auto layers_of = [&](const DenseLayers& layers) {
    std::vector<DenseLayer> result;
    for (std::size_t layer = 0; layer < layers.size(); ++layer) {
      const MatrixXf& weights = parameters_[layers.weights_at(layer)];
      result.push_back({static_cast<int>(weights.cols()), static_cast<int>(weights.rows()),
                        flat(weights), flat(parameters_[layers.weights_at(layer) + 1])});
    }
    return result;
  };
  return {flat(feature_mean), flat(feature_scale), layers_of(encoder_), layers_of(head_)};
}

}  // namespace neuroshard
