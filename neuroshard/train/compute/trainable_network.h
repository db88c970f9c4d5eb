// The computation cost network while it is trained: its parameters and their gradients.
#pragma once

#include <Eigen/Core>
#include <cstdint>
#include <vector>

#include "neuroshard/core/numbers/random.h"
#include "neuroshard/cost/compute/compute_network.h"

namespace neuroshard {

/// Samples with their pieces side by side.
struct PieceBatch {
  Eigen::MatrixXf features;           ///< standardised; features x pieces
  std::vector<int> first_piece;       ///< samples + 1
  Eigen::VectorXf log_estimate;       ///< natural logarithm of each piece's estimate [ms]
  Eigen::VectorXf target;             ///< measured costs in units of the network's scale
  std::vector<std::size_t> widest;    ///< class of each sample's widest piece; may be empty without
                                      ///< factors of these
  std::vector<bool> rowwise_adagrad;  ///< of each sample; may be empty without offsets of these
  /// Of squared_log_error: added to both costs, so that errors of less than this count little.
  float granularity = 0.0F;

  [[nodiscard]] Eigen::Index size() const { return target.size(); }
};

/// The loss that training minimises.
enum class Loss {
  squared_error,      ///< of the cost, as in the paper
  squared_log_error,  ///< of the cost's logarithm: every order of magnitude counts alike
};

struct NetworkShape {
  ComputeArchitecture architecture = ComputeArchitecture::bounded_loads;
  int num_features = 0;
  std::vector<int> encoder{128, 64, 16};  ///< outputs of each layer; the last is what is summed
  int head = 32;                          ///< hidden units of the head
  // Of bounded_loads, whose unit is 1 ms:
  int num_growing_features = 0;  ///< the first ones
  float estimate_mean = 0.0F;    ///< standardisation of feature 0, log2 of the estimate
  float estimate_scale = 1.0F;
  float estimate_offset_ms = 0.01F;
  bool has_widest_factors = false;     ///< ComputeNetwork::widest_factors
  bool has_optimizer_offsets = false;  ///< ComputeNetwork::rowwise_adagrad_offset
};

/// Parameters, as one list of matrices so that optimizers need not know what they mean:
/// weights and bias of each encoder layer, of the head, then output, linear and offset, the
/// logarithm of row-wise Adagrad's offset over that, if any, and those of the widest factors.
class TrainableNetwork {
 public:
  TrainableNetwork(const NetworkShape& shape, Random& random);
  /// Goes on with a network of bounded_loads whose costs are multiplied by `speed`: its loads, its
  /// thresholds and its offset are, so that every prediction is. The estimate among the features
  /// must be multiplied by `speed` too, and its standardised values must not change.
  TrainableNetwork(const ComputeNetwork& network, double speed);

  /// Before training from nothing, of bounded_loads: scales and shifts the first weights such that
  /// each hidden unit of the encoder is 0 for a part of the batch's pieces, another part for each
  /// unit. Units that begin elsewhere are 0 for nearly all pieces, have no gradient, and stay so.
  void spread_units(const PieceBatch& batch);

  /// How large a step of the optimizer each parameter takes, relative to the learning rate: those
  /// of the head are small numbers, which equal steps would throw about.
  [[nodiscard]] std::vector<float> step_sizes() const;

  [[nodiscard]] std::vector<Eigen::MatrixXf>& parameters() { return parameters_; }
  [[nodiscard]] const std::vector<Eigen::MatrixXf>& parameters() const { return parameters_; }

  /// Predicted costs, in units of the network's scale.
  [[nodiscard]] Eigen::VectorXf predict(const PieceBatch& batch) const;

  /// Sum of the samples' losses; writes its gradients, shaped as the parameters.
  double loss_and_gradients(const PieceBatch& batch, Loss loss,
                            std::vector<Eigen::MatrixXf>& gradients) const;

  /// After a step of the optimizer, of bounded_loads: puts the parameters back to what keeps the
  /// model's bounds (ComputeArchitecture::bounded_loads). Weights of the wrong sign become 0;
  /// slopes, offsets and widest factors stay between their limits.
  void project();

  /// The network for inference, its outputs multiplied by `scale` [ms].
  [[nodiscard]] ComputeNetwork exported(FeatureSchema schema, const Eigen::VectorXf& feature_mean,
                                        const Eigen::VectorXf& feature_scale, float scale) const;

 private:
  struct Activations;
  void initialise_bounded(Random& random);
  /// Brings weights of the wrong sign back to 0.
  void project_signs();
  void project_head();
  void project_offsets();
  void project_widest();
  [[nodiscard]] float widest_factor(const PieceBatch& batch, Eigen::Index sample) const;
  [[nodiscard]] bool has_adagrad_offset(const PieceBatch& batch, Eigen::Index sample) const;
  /// Row-wise Adagrad's offset.
  [[nodiscard]] float adagrad_offset() const;
  [[nodiscard]] Eigen::MatrixXf head_bias() const;
  /// Sign that a weight of an encoder layer must have; 0 for any.
  [[nodiscard]] float weight_sign(std::size_t layer, Eigen::Index unit, Eigen::Index input) const;
  void forward(const PieceBatch& batch, Activations& activations) const;
  void backward(const PieceBatch& batch, const Activations& activations,
                const Eigen::VectorXf& cost_gradient,
                std::vector<Eigen::MatrixXf>& gradients) const;

  [[nodiscard]] bool has_loads() const {
    return shape_.architecture == ComputeArchitecture::bounded_loads;
  }
  [[nodiscard]] std::size_t num_layers() const { return shape_.encoder.size(); }
  // Positions in the list of parameters.
  [[nodiscard]] std::size_t head_at() const { return 2 * num_layers(); }
  [[nodiscard]] std::size_t output_at() const { return head_at() + 2; }
  [[nodiscard]] std::size_t linear_at() const { return head_at() + 3; }
  [[nodiscard]] std::size_t offset_at() const { return head_at() + 4; }
  [[nodiscard]] std::size_t adagrad_at() const { return head_at() + 5; }
  [[nodiscard]] std::size_t widest_at() const {
    return adagrad_at() + (shape_.has_optimizer_offsets ? 1 : 0);
  }

  NetworkShape shape_;
  std::vector<Eigen::MatrixXf> parameters_;
  /// Of bounded_loads: the head's biases are this times its parameters, so that steps of one size
  /// reach thresholds of hundreds of milliseconds as well as of microseconds.
  Eigen::VectorXf threshold_unit_;
  float most_linear_ = 0.0F;  ///< of bounded_loads: the sum of the linear part is at most this
};

}  // namespace neuroshard
