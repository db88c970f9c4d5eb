// The Adam optimizer.
#pragma once

#include <Eigen/Core>
#include <vector>

namespace neuroshard {

/// Kingma and Ba 2015, algorithm 1, with its bias corrections.
class Adam {
 public:
  explicit Adam(const std::vector<Eigen::MatrixXf>& parameters);

  /// One step with the given learning rate, times each parameter's of `sizes` unless that is empty;
  /// gradients are shaped as the parameters.
  void step(std::vector<Eigen::MatrixXf>& parameters, const std::vector<Eigen::MatrixXf>& gradients,
            double learning_rate, const std::vector<float>& sizes = {});

 private:
  std::vector<Eigen::MatrixXf> mean_;
  std::vector<Eigen::MatrixXf> variance_;
  int steps_ = 0;
};

}  // namespace neuroshard
