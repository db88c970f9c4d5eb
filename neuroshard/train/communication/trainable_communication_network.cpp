// Forward pass, loss and exact gradients of the communication network.
#include "neuroshard/train/communication/trainable_communication_network.h"

namespace neuroshard {

namespace {

using Eigen::Index;
using Eigen::MatrixXf;
using Eigen::VectorXf;

const std::vector<int> kLayers{16, 16, static_cast<int>(kNumLastEnds)};
constexpr float kFirstBias = 5.0F;  // of links that are not slower: 98 % of the weight

}  // namespace

struct TrainableCommunicationNetwork::Activations {
  DenseActivations layers;
  MatrixXf weights;  ///< of the ends; columns add up to 1
  VectorXf rest_ms;  ///< of each all-to-all
  VectorXf time_ms;  ///< of each device
};

TrainableCommunicationNetwork::TrainableCommunicationNetwork(int num_features, Random& random)
    : layers_(num_features, kLayers, false, random, parameters_) {
  // Begins near the links' own speed.
  parameters_[layers_.weights_at(layers_.size() - 1)] *= 0.1F;
  parameters_[layers_.weights_at(layers_.size() - 1) + 1](0, 0) = kFirstBias;
}

void TrainableCommunicationNetwork::forward(const AllToAllBatch& batch, Activations& a) const {
  layers_.forward(parameters_, batch.contexts, a.layers);
  a.weights = (a.layers.output.rowwise() - a.layers.output.colwise().maxCoeff()).array().exp();
  a.weights = a.weights.array().rowwise() / a.weights.colwise().sum().array();
  a.rest_ms = a.weights.cwiseProduct(batch.rests_ms).colwise().sum();
  a.time_ms = batch.lag_ms;
  for (Index i = 0; i < a.rest_ms.size(); ++i) {
    const int first = batch.first_device[i];
    const int count = batch.first_device[i + 1] - first;
    a.time_ms.segment(first, count) += a.rest_ms[i] * batch.share.segment(first, count);
  }
}

VectorXf TrainableCommunicationNetwork::predict(const AllToAllBatch& batch) const {
  Activations activations;
  forward(batch, activations);
  return activations.time_ms;
}

double TrainableCommunicationNetwork::loss_and_gradients(const AllToAllBatch& batch,
                                                         Parameters& gradients) const {
  Activations a;
  forward(batch, a);
  const VectorXf difference = a.time_ms.array().log() - batch.target_ms.array().log();
  const VectorXf slope = difference.array() * batch.share.array() / a.time_ms.array();
  double loss = 0.0;
  VectorXf rest_gradient(a.rest_ms.size());
  for (Index i = 0; i < a.rest_ms.size(); ++i) {
    const int first = batch.first_device[i];
    const int count = batch.first_device[i + 1] - first;
    // Every all-to-all counts alike, however many devices it has.
    loss += static_cast<double>(difference.segment(first, count).squaredNorm()) / count;
    rest_gradient[i] = 2.0F * slope.segment(first, count).sum() / static_cast<float>(count);
  }
  // d rest / d output_k = w_k (rest_k - rest), as the weights are a softmax.
  const MatrixXf output_gradient =
      (a.weights.array() * (batch.rests_ms.rowwise() - a.rest_ms.transpose()).array()).rowwise() *
      rest_gradient.transpose().array();
  gradients.resize(parameters_.size());
  (void)layers_.backward(parameters_, a.layers, output_gradient, gradients);
  return loss;
}

CommunicationNetwork TrainableCommunicationNetwork::exported(const VectorXf& feature_mean,
                                                             const VectorXf& feature_scale) const {
  const auto flat = [](const MatrixXf& matrix) {
    return std::vector<float>(matrix.data(), matrix.data() + matrix.size());
  };
  CommunicationNetwork network{flat(feature_mean), flat(feature_scale), {}};
  for (std::size_t layer = 0; layer < layers_.size(); ++layer) {
    const MatrixXf& weights = parameters_[layers_.weights_at(layer)];
    network.layers.push_back({static_cast<int>(weights.cols()), static_cast<int>(weights.rows()),
                              flat(weights), flat(parameters_[layers_.weights_at(layer) + 1])});
  }
  return network;
}

}  // namespace neuroshard
