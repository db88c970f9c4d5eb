// Forward pass, loss and exact gradients of the computation cost network.
#include "neuroshard/train/compute/trainable_network.h"

#include <algorithm>
#include <cassert>
#include <cmath>
#include <numbers>

#include "neuroshard/train/layer_kernel.h"
#include "neuroshard/train/matrix_product.h"

namespace neuroshard {

namespace {

using Eigen::Index;
using Eigen::MatrixXf;
using Eigen::VectorXf;

constexpr auto kBound = static_cast<float>(kLogLoadBound);
/// The head's thresholds begin between these [ms], evenly on a logarithmic scale.
constexpr float kLowestThreshold = 0.03F;
constexpr float kHighestThreshold = 300.0F;
/// The most that the linear part's slope may be while a network is trained from nothing: it grows
/// faster than the hidden units and would leave them no room below kMostSlope.
constexpr float kMostLinear = 0.8F;
/// spread_units: a unit of the encoder is 0 for this share of the pieces, at least and at the most.
constexpr float kLeastOff = 0.05F;
constexpr float kMostOff = 0.9F;
/// How much the hidden units move a load's logarithm to begin with.
constexpr float kFirstCorrection = 0.3F;
/// Sums that differ by less, relatively, differ by rounding.
constexpr float kEqual = 1e-5F;
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

/// Scales each unit's weighted sum of `input` to a standard deviation of 1, and makes the unit 0
/// for a share of the columns that rises from unit to unit, in either half (`unit_sign`). Returns
/// what the layer makes of `input`.
MatrixXf spread_layer(MatrixXf& weights, MatrixXf& bias, const MatrixXf& input) {
  MatrixXf output = weights * input;
  const Index units = output.rows();
  const auto last = static_cast<float>(output.cols() - 1);
  std::vector<float> values(static_cast<std::size_t>(output.cols()));
  for (Index unit = 0; unit < units; ++unit) {
    const float mean = output.row(unit).mean();
    const float deviation = std::sqrt((output.row(unit).array() - mean).square().mean());
    if (deviation > kEqual * (1.0F + std::abs(mean))) {
      weights.row(unit) /= deviation;
      output.row(unit) /= deviation;
    }
    const Index rising = (units + 1) / 2;
    const bool rises = unit < rising;
    const float place = (static_cast<float>(rises ? unit : unit - rising) + 0.5F) /
                        static_cast<float>(rises ? rising : units - rising);
    for (Index i = 0; i < output.cols(); ++i) values[static_cast<std::size_t>(i)] = output(unit, i);
    const float off = kLeastOff + (kMostOff - kLeastOff) * place;
    const auto threshold = values.begin() + static_cast<std::ptrdiff_t>(off * last);
    std::nth_element(values.begin(), threshold, values.end());
    bias(unit, 0) = -*threshold;
  }
  output.colwise() += bias.col(0);
  return output.cwiseMax(0.0F);
}

}  // namespace

struct TrainableNetwork::Activations {
  std::vector<MatrixXf> inputs;  ///< of each encoder layer
  MatrixXf encoded;              ///< summands x pieces
  MatrixXf correction;           ///< bounded_loads: tanh of the loads' corrections
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
    most_linear_ = kMostLinear;
    const auto loads = static_cast<float>(inputs);
    const double weight = 2.0 / static_cast<double>(inputs);
    parameters_.push_back(uniform_matrix(shape.head, inputs, 0.0, weight, random));
    parameters_.push_back(MatrixXf::Constant(shape.head, 1, -1.0F));
    parameters_.push_back(uniform_matrix(shape.head, 1, 0.0, 0.2 / shape.head, random));
    parameters_.push_back(MatrixXf::Constant(inputs, 1, 0.999F * kMostLinear / loads));
    parameters_.push_back(MatrixXf::Constant(1, 1, shape.estimate_offset_ms));
    threshold_unit_ =
        VectorXf::LinSpaced(shape.head, std::log(kLowestThreshold), std::log(kHighestThreshold))
            .array()
            .exp();
    initialise_bounded(random);
    if (shape.has_optimizer_offsets) parameters_.push_back(MatrixXf::Zero(1, 1));
    if (shape.has_widest_factors) parameters_.push_back(MatrixXf::Zero(kWidestClasses, 1));
  } else {
    parameters_.push_back(he_uniform(shape.head, inputs, random));
    parameters_.push_back(MatrixXf::Zero(shape.head, 1));
    parameters_.push_back(he_uniform(shape.head, 1, random) / std::sqrt(shape.head));
    parameters_.push_back(MatrixXf::Zero(inputs, 1));
    parameters_.push_back(MatrixXf::Zero(1, 1));
  }
}

TrainableNetwork::TrainableNetwork(const ComputeNetwork& network, double speed) {
  assert(network.architecture == ComputeArchitecture::bounded_loads);
  const auto scale = static_cast<float>(speed);
  const auto matrix = [](const std::vector<float>& values, Index rows) {
    return MatrixXf(
        Eigen::Map<const MatrixXf>(values.data(), rows, static_cast<Index>(values.size()) / rows));
  };
  shape_.num_features = static_cast<int>(network.feature_mean.size());
  shape_.num_growing_features = static_cast<int>(num_growing_features(network.schema));
  shape_.estimate_offset_ms = static_cast<float>(network.estimate.offset_ms) * scale;
  shape_.head = network.head.outputs;
  shape_.encoder.clear();
  for (const DenseLayer& layer : network.encoder) {
    shape_.encoder.push_back(layer.outputs);
    parameters_.push_back(matrix(layer.weights, layer.outputs));
    parameters_.push_back(matrix(layer.bias, layer.outputs));
  }
  parameters_.back().array() += std::log(scale);
  parameters_.push_back(matrix(network.head.weights, network.head.outputs));
  most_linear_ = static_cast<float>(kMostSlope);
  // A unit that begins at 0 may not move: nor did it matter.
  threshold_unit_ =
      -scale * Eigen::Map<const VectorXf>(network.head.bias.data(), network.head.outputs);
  parameters_.push_back(MatrixXf::Constant(network.head.outputs, 1, -1.0F));
  parameters_.push_back(matrix(network.head_output, network.head.outputs));
  parameters_.push_back(matrix(network.linear, static_cast<Index>(network.linear.size())));
  parameters_.push_back(MatrixXf::Constant(1, 1, network.offset * scale));
  shape_.has_optimizer_offsets = network.rowwise_adagrad_offset.has_value();
  if (shape_.has_optimizer_offsets) {
    const float ratio = *network.rowwise_adagrad_offset / network.offset;
    parameters_.push_back(MatrixXf::Constant(1, 1, std::log(ratio)));
  }
  shape_.has_widest_factors = !network.widest_factors.empty();
  if (shape_.has_widest_factors) {
    parameters_.push_back(matrix(network.widest_factors, kWidestClasses).array().log());
  }
}

float TrainableNetwork::weight_sign(std::size_t layer, Index unit, Index input) const {
  const bool last = layer + 1 == num_layers();
  const Index hidden = layer == 0 ? 0 : shape_.encoder[layer - 1];
  const float out = last ? 1.0F : unit_sign(static_cast<int>(unit), shape_.encoder[layer]);
  if (input < hidden) {
    return out * unit_sign(static_cast<int>(input), static_cast<int>(hidden));
  }
  // A layer that is the first and the last sees the features twice.
  return (input - hidden) % shape_.num_features < shape_.num_growing_features ? out : 0.0F;
}

void TrainableNetwork::initialise_bounded(Random& random) {
  // Growing features rise together, so weights of one sign add up: they are smaller than He's.
  constexpr double kAligned = 2.5;
  for (std::size_t layer = 0; layer < num_layers(); ++layer) {
    MatrixXf& weights = parameters_[2 * layer];
    const auto aligned = static_cast<float>(kAligned / static_cast<double>(weights.cols()));
    for (Index unit = 0; unit < weights.rows(); ++unit) {
      for (Index input = 0; input < weights.cols(); ++input) {
        const float sign = weight_sign(layer, unit, input);
        if (sign != 0.0F) {
          weights(unit, input) = sign * aligned * static_cast<float>(random.uniform());
        }
      }
    }
  }
  // Begin with loads near the estimate.
  MatrixXf& last = parameters_[head_at() - 2];
  last *= 0.05F;
  const Index estimate = last.cols() - shape_.num_features;
  constexpr float kLn2 = std::numbers::ln2_v<float>;
  last.col(estimate).setConstant(kLn2 / std::max(shape_.estimate_scale, 1e-6F));
  parameters_[head_at() - 1].setConstant(kLn2 * shape_.estimate_mean);
}

void TrainableNetwork::spread_units(const PieceBatch& batch) {
  if (!has_loads()) return;
  MatrixXf input = batch.features;
  for (std::size_t layer = 0; layer + 1 < num_layers(); ++layer) {
    input = spread_layer(parameters_[2 * layer], parameters_[2 * layer + 1], input);
  }
  auto of_units = parameters_[head_at() - 2].leftCols(input.rows());
  const float size = of_units.cwiseAbs().rowwise().sum().mean();
  if (size > 0.0F) of_units *= kFirstCorrection / size;
  // Loads stay where they were, on the average.
  parameters_[head_at() - 1] -= (of_units * input).rowwise().mean();
}

std::vector<float> TrainableNetwork::step_sizes() const {
  std::vector<float> sizes(parameters_.size(), 1.0F);
  if (!has_loads()) return sizes;
  // About what each kind of parameter begins as, of the shipped shape; the encoder's are some 1.
  sizes[head_at()] = 0.1F;
  sizes[output_at()] = 0.03F;
  sizes[linear_at()] = 0.03F;
  sizes[offset_at()] = 0.003F;
  if (shape_.has_optimizer_offsets) sizes[adagrad_at()] = 0.1F;
  return sizes;
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
      output.rowwise() -= batch.log_estimate.transpose();
      a.correction = (output.array() / kBound).tanh();
      output = kBound * a.correction;
      output.rowwise() += batch.log_estimate.transpose();
      a.encoded = output.array().exp();
    } else {
      kernels::add_and_rectify(output, parameters_[2 * layer + 1]);
      (last ? a.encoded : a.inputs[layer + 1]) = std::move(output);
    }
  }
  kernels::sum_pieces(a.encoded, batch.first_piece, a.sums);
  if (shape_.has_widest_factors) {
    for (Index sample = 0; sample < a.sums.cols(); ++sample) {
      a.sums.col(sample) *= widest_factor(batch, sample);
    }
  }
  multiply(parameters_[head_at()], Transpose::no, a.sums, Transpose::no, Product::assign, a.hidden);
  kernels::add_and_rectify(a.hidden, head_bias());
  a.cost = a.hidden.transpose() * parameters_[output_at()].col(0) +
           a.sums.transpose() * parameters_[linear_at()].col(0);
  a.cost.array() += parameters_[offset_at()](0, 0);
  if (shape_.has_optimizer_offsets) {
    const float rise = adagrad_offset() - parameters_[offset_at()](0, 0);
    for (Index sample = 0; sample < a.cost.size(); ++sample) {
      if (has_adagrad_offset(batch, sample)) a.cost[sample] += rise;
    }
  }
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
    const VectorXf compared = lifted.array() + batch.granularity;
    difference = compared.array().log() - (batch.target.array() + batch.granularity).log();
    slope = (cost.array() > kSmallestCost).select(compared.cwiseInverse(), 0.0F);
  }
  backward(batch, activations, 2.0F * difference.cwiseProduct(slope), gradients);
  return static_cast<double>(difference.squaredNorm());
}

void TrainableNetwork::backward(const PieceBatch& batch, const Activations& a,
                                const VectorXf& cost_gradient,
                                std::vector<MatrixXf>& gradients) const {
  gradients.resize(parameters_.size());
  gradients[offset_at()] = MatrixXf::Constant(1, 1, cost_gradient.sum());
  if (shape_.has_optimizer_offsets) {
    float of_adagrad = 0.0F;
    for (Index sample = 0; sample < cost_gradient.size(); ++sample) {
      if (has_adagrad_offset(batch, sample)) of_adagrad += cost_gradient[sample];
    }
    const float ratio = std::exp(parameters_[adagrad_at()](0, 0));
    gradients[offset_at()](0, 0) += (ratio - 1.0F) * of_adagrad;
    gradients[adagrad_at()] = MatrixXf::Constant(1, 1, adagrad_offset() * of_adagrad);
  }
  gradients[output_at()] = a.hidden * cost_gradient;
  gradients[linear_at()] =
      has_loads() ? MatrixXf(a.sums * cost_gradient) : MatrixXf(MatrixXf::Zero(a.sums.rows(), 1));
  MatrixXf hidden_gradient = parameters_[output_at()] * cost_gradient.transpose();
  kernels::keep_active(a.hidden, hidden_gradient);
  multiply(hidden_gradient, Transpose::no, a.sums, Transpose::yes, Product::assign,
           gradients[head_at()]);
  gradients[head_at() + 1] = hidden_gradient.rowwise().sum();
  if (has_loads()) gradients[head_at() + 1].array() *= threshold_unit_.array();

  MatrixXf sums_gradient = parameters_[linear_at()] * cost_gradient.transpose();
  multiply(parameters_[head_at()], Transpose::yes, hidden_gradient, Transpose::no, Product::add,
           sums_gradient);
  if (shape_.has_widest_factors) {
    MatrixXf& of_factors = gradients[widest_at()];
    of_factors = MatrixXf::Zero(kWidestClasses, 1);
    for (Index sample = 0; sample < a.sums.cols(); ++sample) {
      of_factors(static_cast<Index>(batch.widest[static_cast<std::size_t>(sample)]), 0) +=
          sums_gradient.col(sample).dot(a.sums.col(sample));
      sums_gradient.col(sample) *= widest_factor(batch, sample);
    }
  }
  MatrixXf output_gradient;
  spread_to_pieces(sums_gradient, batch.first_piece, output_gradient);
  if (has_loads()) {  // d exp(B tanh(x / B)) = exp(B tanh(x / B)) (1 - tanh^2)
    output_gradient.array() *= a.encoded.array() * (1.0F - a.correction.array().square());
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
    // A matrix of its own, as one that cannot grow for lack of memory is freed twice (Eigen 3.4);
    // what eval() returns is constant, and would be copied.
    output_gradient = MatrixXf(input_gradient.topRows(shape_.encoder[layer - 1]));
    kernels::keep_active(a.inputs[layer], output_gradient);
  }
}

void TrainableNetwork::project_signs() {
  for (std::size_t layer = 0; layer < num_layers(); ++layer) {
    MatrixXf& weights = parameters_[2 * layer];
    for (Index input = 0; input < weights.cols(); ++input) {
      // Within a column, the units of one sign are contiguous.
      Index unit = 0;
      while (unit < weights.rows()) {
        const float sign = weight_sign(layer, unit, input);
        Index end = unit + 1;
        while (end < weights.rows() && weight_sign(layer, end, input) == sign) ++end;
        auto block = weights.col(input).segment(unit, end - unit);
        if (sign > 0.0F) block = block.cwiseMax(0.0F);
        if (sign < 0.0F) block = block.cwiseMin(0.0F);
        unit = end;
      }
    }
  }
}

void TrainableNetwork::project_head() {
  for (const std::size_t at : {head_at(), output_at(), linear_at()}) {
    parameters_[at] = parameters_[at].cwiseMax(0.0F);
  }
  parameters_[head_at() + 1] = parameters_[head_at() + 1].cwiseMin(0.0F);
  project_offsets();
  MatrixXf& linear = parameters_[linear_at()];
  const auto loads = static_cast<float>(linear.size());
  constexpr auto kLeast = static_cast<float>(kLeastSlope);
  constexpr auto kMost = static_cast<float>(kMostSlope);
  const float missing = kLeast - linear.sum();
  if (missing > 0.0F) linear.array() += missing / loads;
  if (linear.sum() > most_linear_) linear *= most_linear_ / linear.sum();
  const float active = parameters_[head_at()].rowwise().sum().dot(parameters_[output_at()].col(0));
  const float room = std::max(kMost - linear.sum(), 0.0F);
  if (active > room) parameters_[output_at()] *= room / active;
}

void TrainableNetwork::project_offsets() {
  constexpr auto kFactor = static_cast<float>(kEstimateFactor);
  float& offset = parameters_[offset_at()](0, 0);
  const float highest = shape_.estimate_offset_ms * kFactor;
  offset = std::clamp(offset, shape_.estimate_offset_ms / kFactor, highest);
  if (!shape_.has_optimizer_offsets) return;
  float& ratio = parameters_[adagrad_at()](0, 0);
  ratio = std::clamp(ratio, 0.0F, std::log(highest / offset));
}

void TrainableNetwork::project_widest() {
  MatrixXf& factors = parameters_[widest_at()];
  factors(kWidestClasses - 1, 0) = 0.0F;
  const float least = std::log(kLeastWidestFactor);
  for (Index i = kWidestClasses - 1; i-- > 0;) {
    factors(i, 0) = std::clamp(factors(i, 0), least, factors(i + 1, 0));
  }
}

float TrainableNetwork::widest_factor(const PieceBatch& batch, Index sample) const {
  const std::size_t number = batch.widest[static_cast<std::size_t>(sample)];
  return std::exp(parameters_[widest_at()](static_cast<Index>(number), 0));
}

bool TrainableNetwork::has_adagrad_offset(const PieceBatch& batch, Index sample) const {
  return shape_.has_optimizer_offsets && batch.rowwise_adagrad[static_cast<std::size_t>(sample)];
}

float TrainableNetwork::adagrad_offset() const {
  return parameters_[offset_at()](0, 0) * std::exp(parameters_[adagrad_at()](0, 0));
}

void TrainableNetwork::project() {
  if (!has_loads()) return;
  project_signs();
  project_head();
  if (shape_.has_widest_factors) project_widest();
}

MatrixXf TrainableNetwork::head_bias() const {
  const MatrixXf& bias = parameters_[head_at() + 1];
  return has_loads() ? MatrixXf(bias.cwiseProduct(threshold_unit_)) : bias;
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
  network.head.bias = flat(head_bias());
  network.head_output = flat(parameters_[output_at()] * scale);
  if (has_loads()) network.linear = flat(parameters_[linear_at()] * scale);
  network.offset = parameters_[offset_at()](0, 0) * scale;
  if (shape_.has_optimizer_offsets) {
    network.rowwise_adagrad_offset = std::max(adagrad_offset() * scale, network.offset);
  }
  if (shape_.has_widest_factors) {
    const MatrixXf factors = parameters_[widest_at()].array().exp();
    network.widest_factors = flat(factors.cwiseMax(kLeastWidestFactor).cwiseMin(1.0F));
  }
  return network;
}

}  // namespace neuroshard
