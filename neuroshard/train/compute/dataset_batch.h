// Samples of a data set as a batch that networks take, and what networks predict of them.
#pragma once

#include <Eigen/Core>
#include <span>
#include <vector>

#include "neuroshard/core/machine/parallel.h"
#include "neuroshard/cost/compute/neural_compute_model.h"
#include "neuroshard/train/compute/compute_dataset.h"
#include "neuroshard/train/compute/trainable_network.h"
#include "neuroshard/train/standardisation.h"

namespace neuroshard {

/// The samples, standardised, targets divided by `scale`. `features` are the data set's with an
/// estimate among them (set_estimate).
[[nodiscard]] PieceBatch make_batch(const ComputeDataset& dataset, const Eigen::MatrixXf& features,
                                    std::span<const int> samples, const Standardisation& standard,
                                    double scale);

/// Of the mean of the members, times `scale` [ms]; `features` as above.
[[nodiscard]] std::vector<double> predicted_costs(std::span<const TrainableNetwork> members,
                                                  const ComputeDataset& dataset,
                                                  const Eigen::MatrixXf& features,
                                                  std::span<const int> samples,
                                                  const Standardisation& standard, double scale,
                                                  ThreadPool& pool);

/// The standardisation of a model's features.
[[nodiscard]] Standardisation standardisation_of(const NeuralComputeModel& model);

/// Costs of all samples by a model of bounded loads [ms].
[[nodiscard]] std::vector<double> costs_by(const NeuralComputeModel& model,
                                           const ComputeDataset& dataset, ThreadPool& pool);

}  // namespace neuroshard
