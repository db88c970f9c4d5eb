// Forward pass, loss and exact gradients of the computation cost network.
#include "neuroshard/train/compute/trainable_network.h"

#include <algorithm>
#include <cassert>
#include <cmath>

#include "neuroshard/train/layer_kernel.h"
#include "neuroshard/train/matrix_product.h"

namespace neuroshard {

namespace {

using Eigen::Index;
using Eigen::MatrixXf;
using Eigen::VectorXf;

/// As in inference: exp of larger values would only begin a divergence.
constexpr float kMaxLogLoad = 20.0F;
/// Predictions below this are lifted to it under the logarithm (units of the network's scale).
constexpr float kSmallestCost = 1e-5F;

MatrixXf uniform_matrix(Index rows, Index columns, double low, double high, Random& random) {
  return MatrixXf::NullaryExpr(rows, columns,
                               [&] { return static_cast<float>(random.uniform(low, high)); });
}

/// Uniform with the variance of He et al. 2015 for layers followed by ReLU.
MatrixXf he_uniform(Index outputs, Index inputs, Random& random) {
  const double bound = std::sqrt(6.0 / static_cast<double>(inputs));
  return uniform_matrix(outputs, inputs, -bound, bound, random);
}

/// Every piece gets its sample's column.
void spread_to_pieces(const MatrixXf& sums, const std::vector<int>& first_piece,
                      MatrixXf& columns) {
  columns.resize(sums.rows(), first_piece.back());
  for (Index sample = 0; sample < sums.cols(); ++sample) {
    for (int piece = first_piece[sample]; piece < first_piece[sample + 1]; ++piece) {
      columns.col(piece) = sums.col(sample);
    }
  }
}

}  // namespace

struct TrainableNetwork::Activations {
  std::vector<MatrixXf> inputs;  ///< of each encoder layer
  MatrixXf encoded;              ///< summands x pieces
  MatrixXf sums;                 ///< summands x samples
  MatrixXf hidden;               ///< of the head, after ReLU
  VectorXf cost;
};

TrainableNetwork::TrainableNetwork(const NetworkShape& shape, Random& random) : shape_(shape) {
  assert(!shape.encoder.empty());
  Index inputs = shape.num_features;
  for (std::size_t layer = 0; layer < num_layers(); ++layer) {
    const bool last = layer + 1 == num_layers();
    if (last && has_loads()) inputs += shape.num_features;
    const Index outputs = shape.encoder[layer];
    parameters_.push_back(he_uniform(outputs, inputs, random));
    parameters_.push_back(MatrixXf::Zero(outputs, 1));
    inputs = outputs;
  }
  if (has_loads()) {
    // Start as a sum of small loads: each piece of about a dozen adds its share of the mean cost.
    parameters_[head_at() - 2] *= 0.1F;
    parameters_[head_at() - 1].setConstant(-2.5F);
    const double weight = 2.0 / static_cast<double>(inputs);
    parameters_.push_back(uniform_matrix(shape.head, inputs, 0.0, weight, random));
    parameters_.push_back(uniform_matrix(shape.head, 1, -1.0, 0.0, random));
    parameters_.push_back(uniform_matrix(shape.head, 1, 0.0, 1.0 / shape.head, random));
    parameters_.push_back(MatrixXf::Constant(inputs, 1, 1.0F / static_cast<float>(inputs)));
    parameters_.push_back(MatrixXf::Constant(1, 1, 0.01F));
  } else {
    parameters_.push_back(he_uniform(shape.head, inputs, random));
    parameters_.push_back(MatrixXf::Zero(shape.head, 1));
    parameters_.push_back(he_uniform(shape.head, 1, random) / std::sqrt(shape.head));
    parameters_.push_back(MatrixXf::Zero(inputs, 1));
    parameters_.push_back(MatrixXf::Zero(1, 1));
  }
}

void TrainableNetwork::forward(const PieceBatch& batch, Activations& a) const {
  a.inputs.resize(num_layers());
  a.inputs[0] = batch.features;
  for (std::size_t layer = 0; layer < num_layers(); ++layer) {
    const bool last = layer + 1 == num_layers();
    MatrixXf output;
    if (last && has_loads()) {
      MatrixXf joined(a.inputs[layer].rows() + batch.features.rows(), batch.features.cols());
      joined << a.inputs[layer], batch.features;
      a.inputs[layer] = std::move(joined);
    }
    multiply(parameters_[2 * layer], Transpose::no, a.inputs[layer], Transpose::no, Product::assign,
             output);
    if (last && has_loads()) {
      output.colwise() += parameters_[2 * layer + 1].col(0);
      a.encoded = output.cwiseMin(kMaxLogLoad).array().exp();
    } else {
      kernels::add_and_rectify(output, parameters_[2 * layer + 1]);
      (last ? a.encoded : a.inputs[layer + 1]) = std::move(output);
    }
  }
  kernels::sum_pieces(a.encoded, batch.first_piece, a.sums);
  multiply(parameters_[head_at()], Transpose::no, a.sums, Transpose::no, Product::assign, a.hidden);
  kernels::add_and_rectify(a.hidden, parameters_[head_at() + 1]);
  a.cost = a.hidden.transpose() * parameters_[output_at()].col(0) +
           a.sums.transpose() * parameters_[linear_at()].col(0);
  a.cost.array() += parameters_[offset_at()](0, 0);
}

VectorXf TrainableNetwork::predict(const PieceBatch& batch) const {
  Activations activations;
  forward(batch, activations);
  return activations.cost;
}

double TrainableNetwork::loss_and_gradients(const PieceBatch& batch, Loss loss,
                                            std::vector<MatrixXf>& gradients) const {
  Activations activations;
  forward(batch, activations);
  const VectorXf& cost = activations.cost;
  VectorXf difference;
  VectorXf slope;  // of the compared quantity in the cost
  if (loss == Loss::squared_error) {
    difference = cost - batch.target;
    slope = VectorXf::Ones(cost.size());
  } else {
    const VectorXf lifted = cost.cwiseMax(kSmallestCost);
    difference = lifted.array().log() - batch.target.array().log();
    slope = (cost.array() > kSmallestCost).select(lifted.cwiseInverse(), 0.0F);
  }
  backward(batch, activations, 2.0F * difference.cwiseProduct(slope), gradients);
  return static_cast<double>(difference.squaredNorm());
}

void TrainableNetwork::backward(const PieceBatch& batch, const Activations& a,
                                const VectorXf& cost_gradient,
                                std::vector<MatrixXf>& gradients) const {
  gradients.resize(parameters_.size());
  gradients[offset_at()] = MatrixXf::Constant(1, 1, cost_gradient.sum());
  gradients[output_at()] = a.hidden * cost_gradient;
  gradients[linear_at()] =
      has_loads() ? MatrixXf(a.sums * cost_gradient) : MatrixXf(MatrixXf::Zero(a.sums.rows(), 1));
  MatrixXf hidden_gradient = parameters_[output_at()] * cost_gradient.transpose();
  kernels::keep_active(a.hidden, hidden_gradient);
  multiply(hidden_gradient, Transpose::no, a.sums, Transpose::yes, Product::assign,
           gradients[head_at()]);
  gradients[head_at() + 1] = hidden_gradient.rowwise().sum();

  MatrixXf sums_gradient = parameters_[linear_at()] * cost_gradient.transpose();
  multiply(parameters_[head_at()], Transpose::yes, hidden_gradient, Transpose::no, Product::add,
           sums_gradient);
  MatrixXf output_gradient;
  spread_to_pieces(sums_gradient, batch.first_piece, output_gradient);
  if (has_loads()) {  // d exp(x) = exp(x)
    output_gradient.array() *= a.encoded.array();
  } else {
    kernels::keep_active(a.encoded, output_gradient);
  }
  for (std::size_t layer = num_layers(); layer-- > 0;) {
    multiply(output_gradient, Transpose::no, a.inputs[layer], Transpose::yes, Product::assign,
             gradients[2 * layer]);
    gradients[2 * layer + 1] = output_gradient.rowwise().sum();
    if (layer == 0) break;
    MatrixXf input_gradient;
    multiply(parameters_[2 * layer], Transpose::yes, output_gradient, Transpose::no,
             Product::assign, input_gradient);
    // Of the last layer's joined input, the features are below the hidden units.
    output_gradient = input_gradient.topRows(shape_.encoder[layer - 1]);
    kernels::keep_active(a.inputs[layer], output_gradient);
  }
}

void TrainableNetwork::project() {
  if (!has_loads()) return;
  for (const std::size_t at : {head_at(), output_at(), linear_at(), offset_at()}) {
    parameters_[at] = parameters_[at].cwiseMax(0.0F);
  }
}

ComputeNetwork TrainableNetwork::exported(FeatureSchema schema, const VectorXf& feature_mean,
                                          const VectorXf& feature_scale, float scale) const {
  const auto flat = [](const MatrixXf& matrix) {
    return std::vector<float>(matrix.data(), matrix.data() + matrix.size());
  };
  const auto layer_at = [&](std::size_t at) {
    return DenseLayer{static_cast<int>(parameters_[at].cols()),
                      static_cast<int>(parameters_[at].rows()), flat(parameters_[at]),
                      flat(parameters_[at + 1])};
  };
  ComputeNetwork network;
  network.architecture = shape_.architecture;
  network.schema = schema;
  network.feature_mean = flat(feature_mean);
  network.feature_scale = flat(feature_scale);
  for (std::size_t layer = 0; layer < num_layers(); ++layer) {
    network.encoder.push_back(layer_at(2 * layer));
  }
  network.head = layer_at(head_at());
  network.head_output = flat(parameters_[output_at()] * scale);
  if (has_loads()) network.linear = flat(parameters_[linear_at()] * scale);
  network.offset = parameters_[offset_at()](0, 0) * scale;
  return network;
}

}  // namespace neuroshard
