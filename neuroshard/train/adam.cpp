// The Adam optimizer.
#include "neuroshard/train/adam.h"

#include <cassert>
#include <cmath>

namespace neuroshard {

namespace {
constexpr float kBeta1 = 0.9F;
constexpr float kBeta2 = 0.999F;
constexpr float kEpsilon = 1e-8F;
}  // namespace

Adam::Adam(const std::vector<Eigen::MatrixXf>& parameters) {
  for (const Eigen::MatrixXf& parameter : parameters) {
    mean_.push_back(Eigen::MatrixXf::Zero(parameter.rows(), parameter.cols()));
    variance_.push_back(mean_.back());
  }
}

void Adam::step(std::vector<Eigen::MatrixXf>& parameters,
                const std::vector<Eigen::MatrixXf>& gradients, double learning_rate,
                const std::vector<float>& sizes) {
  assert(sizes.empty() || sizes.size() == parameters.size());
  ++steps_;
  const double correction1 = 1.0 - std::pow(kBeta1, steps_);
  const double correction2 = 1.0 - std::pow(kBeta2, steps_);
  const auto rate = static_cast<float>(learning_rate * std::sqrt(correction2) / correction1);
  for (std::size_t i = 0; i < parameters.size(); ++i) {
    mean_[i] = kBeta1 * mean_[i] + (1.0F - kBeta1) * gradients[i];
    variance_[i] = kBeta2 * variance_[i] + (1.0F - kBeta2) * gradients[i].cwiseAbs2();
    const float step = sizes.empty() ? rate : rate * sizes[i];
    parameters[i].array() -= step * mean_[i].array() / (variance_[i].array().sqrt() + kEpsilon);
  }
}

}  // namespace neuroshard
