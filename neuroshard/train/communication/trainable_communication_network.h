// The communication network while it is trained: its parameters and their gradients.
#pragma once

#include <Eigen/Core>
#include <vector>

#include "neuroshard/core/numbers/random.h"
#include "neuroshard/cost/communication/communication_network.h"
#include "neuroshard/train/dense_layers.h"

namespace neuroshard {

/// All-to-alls with their devices side by side.
struct AllToAllBatch {
  Eigen::MatrixXf contexts;       ///< standardised; features x all-to-alls
  Eigen::MatrixXf rests_ms;       ///< kNumLastEnds x all-to-alls
  std::vector<int> first_device;  ///< all-to-alls + 1
  Eigen::VectorXf lag_ms;         ///< of each device behind the last one's start
  Eigen::VectorXf share;          ///< of each device, of the time from the last start to the end
  Eigen::VectorXf target_ms;      ///< measured, from the device's own entry
};

class TrainableCommunicationNetwork {
 public:
  TrainableCommunicationNetwork(int num_features, Random& random);

  [[nodiscard]] Parameters& parameters() { return parameters_; }
  [[nodiscard]] const Parameters& parameters() const { return parameters_; }

  /// Predicted times [ms], from each device's own entry.
  [[nodiscard]] Eigen::VectorXf predict(const AllToAllBatch& batch) const;

  /// Sum over the all-to-alls of their devices' mean squared error of the logarithm; writes its
  /// gradients.
  double loss_and_gradients(const AllToAllBatch& batch, Parameters& gradients) const;

  [[nodiscard]] CommunicationNetwork exported(const Eigen::VectorXf& feature_mean,
                                              const Eigen::VectorXf& feature_scale) const;

 private:
  struct Activations;
  void forward(const AllToAllBatch& batch, Activations& activations) const;

  Parameters parameters_;
  DenseLayers layers_;
};

}  // namespace neuroshard
