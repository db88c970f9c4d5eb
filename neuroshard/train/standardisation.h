// Features brought to one scale, as the training samples have them.
#pragma once

#include <Eigen/Core>
#include <vector>

namespace neuroshard {

/// (x - mean) * scale, feature by feature.
struct Standardisation {
  Eigen::VectorXf mean;
  Eigen::VectorXf scale;
};

/// Mean 0 and variance 1 over the columns of `samples`, sample i having columns [first_column[i],
/// first_column[i + 1]) of `features`; constant features become 0: their mean is their value, their
/// scale 0.
[[nodiscard]] Standardisation standardise(const Eigen::MatrixXf& features,
                                          const std::vector<int>& first_column,
                                          const std::vector<int>& samples);

}  // namespace neuroshard
