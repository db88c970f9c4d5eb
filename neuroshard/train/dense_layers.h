// A stack of dense layers with ReLU and its gradients, of which trainable networks are built.
#pragma once

#include <Eigen/Core>
#include <vector>

#include "neuroshard/core/numbers/random.h"

namespace neuroshard {

/// Weights and bias of each layer, one after the other, so that optimizers need not know them.
using Parameters = std::vector<Eigen::MatrixXf>;

/// The values of a forward pass that the backward pass needs.
struct DenseActivations {
  std::vector<Eigen::MatrixXf> inputs;  ///< of each layer
  Eigen::MatrixXf output;               ///< of the last
};

/// One layer after the other in a list of parameters, in which others may stand before and after.
class DenseLayers {
 public:
  /// Appends one layer per element of `outputs`, which is its number of outputs, initialised after
  /// He et al. 2015, to `parameters`.
  DenseLayers(int num_inputs, const std::vector<int>& outputs, bool relu_at_end, Random& random,
              Parameters& parameters);

  /// Columns are samples.
  void forward(const Parameters& parameters, const Eigen::MatrixXf& input,
               DenseActivations& activations) const;

  /// From the gradient of the output; fills these layers' gradients and returns the input's.
  [[nodiscard]] Eigen::MatrixXf backward(const Parameters& parameters,
                                         const DenseActivations& activations,
                                         Eigen::MatrixXf output_gradient,
                                         Parameters& gradients) const;

  [[nodiscard]] std::size_t size() const { return num_layers_; }
  [[nodiscard]] std::size_t weights_at(std::size_t layer) const { return first_ + 2 * layer; }

 private:
  std::size_t first_;
  std::size_t num_layers_;
  bool relu_at_end_;
};

}  // namespace neuroshard
