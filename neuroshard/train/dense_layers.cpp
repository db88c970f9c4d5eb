// Dense layers forward and back.
#include "neuroshard/train/dense_layers.h"

#include <cmath>

#include "neuroshard/train/matrix_product.h"

namespace neuroshard {

using Eigen::MatrixXf;

DenseLayers::DenseLayers(int num_inputs, const std::vector<int>& outputs, bool relu_at_end,
                         Random& random, Parameters& parameters)
    : first_(parameters.size()), num_layers_(outputs.size()), relu_at_end_(relu_at_end) {
  int inputs = num_inputs;
  for (const int count : outputs) {
    const double bound = std::sqrt(6.0 / static_cast<double>(inputs));
    parameters.emplace_back(MatrixXf::NullaryExpr(
        count, inputs, [&] { return static_cast<float>(random.uniform(-bound, bound)); }));
    parameters.emplace_back(MatrixXf::Zero(count, 1));
    inputs = count;
  }
}

void DenseLayers::forward(const Parameters& parameters, const MatrixXf& input,
                          DenseActivations& activations) const {
  activations.inputs.resize(num_layers_);
  activations.inputs[0] = input;
  for (std::size_t layer = 0; layer < num_layers_; ++layer) {
    const bool last = layer + 1 == num_layers_;
    MatrixXf& output = last ? activations.output : activations.inputs[layer + 1];
    multiply(parameters[weights_at(layer)], Transpose::no, activations.inputs[layer], Transpose::no,
             Product::assign, output);
    output.colwise() += parameters[weights_at(layer) + 1].col(0);
    if (!last || relu_at_end_) output = output.cwiseMax(0.0F);
  }
}

MatrixXf DenseLayers::backward(const Parameters& parameters, const DenseActivations& activations,
                               MatrixXf output_gradient, Parameters& gradients) const {
  for (std::size_t layer = num_layers_; layer-- > 0;) {
    const bool last = layer + 1 == num_layers_;
    if (!last || relu_at_end_) {
      const MatrixXf& output = last ? activations.output : activations.inputs[layer + 1];
      output_gradient = (output.array() > 0.0F).select(output_gradient, 0.0F);
    }
    multiply(output_gradient, Transpose::no, activations.inputs[layer], Transpose::yes,
             Product::assign, gradients[weights_at(layer)]);
    gradients[weights_at(layer) + 1] = output_gradient.rowwise().sum();
    MatrixXf input_gradient;
    multiply(parameters[weights_at(layer)], Transpose::yes, output_gradient, Transpose::no,
             Product::assign, input_gradient);
    output_gradient = std::move(input_gradient);
  }
  return output_gradient;
}

}  // namespace neuroshard
