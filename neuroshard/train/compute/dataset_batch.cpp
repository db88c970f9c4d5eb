// Batches of samples, and predictions block by block.
#include "neuroshard/train/compute/dataset_batch.h"

#include <algorithm>
#include <numbers>
#include <numeric>

namespace neuroshard {

using Eigen::Index;
using Eigen::MatrixXf;
using Eigen::VectorXf;

PieceBatch make_batch(const ComputeDataset& dataset, const MatrixXf& features,
                      std::span<const int> samples, const Standardisation& standard, double scale) {
  PieceBatch batch;
  batch.first_piece.push_back(0);
  batch.target.resize(static_cast<Index>(samples.size()));
  for (std::size_t i = 0; i < samples.size(); ++i) {
    const int pieces = dataset.first_piece[samples[i] + 1] - dataset.first_piece[samples[i]];
    batch.first_piece.push_back(batch.first_piece.back() + pieces);
    batch.target[static_cast<Index>(i)] = static_cast<float>(dataset.cost_ms[samples[i]] / scale);
    batch.widest.push_back(dataset.widest[static_cast<std::size_t>(samples[i])]);
    batch.rowwise_adagrad.push_back(dataset.rowwise_adagrad[static_cast<std::size_t>(samples[i])]);
  }
  batch.features.resize(features.rows(), batch.first_piece.back());
  batch.log_estimate.resize(batch.first_piece.back());
  for (std::size_t i = 0; i < samples.size(); ++i) {
    const int pieces = batch.first_piece[i + 1] - batch.first_piece[i];
    batch.features.middleCols(batch.first_piece[i], pieces) =
        ((features.middleCols(dataset.first_piece[samples[i]], pieces).colwise() - standard.mean)
             .array()
             .colwise() *
         standard.scale.array())
            .matrix();
    batch.log_estimate.segment(batch.first_piece[i], pieces) =
        features.row(0).segment(dataset.first_piece[samples[i]], pieces).transpose() *
        std::numbers::ln2_v<float>;
  }
  return batch;
}

std::vector<double> predicted_costs(std::span<const TrainableNetwork> members,
                                    const ComputeDataset& dataset, const MatrixXf& features,
                                    std::span<const int> samples, const Standardisation& standard,
                                    double scale, ThreadPool& pool) {
  constexpr std::size_t kBlock = 256;
  std::vector<double> predicted(samples.size());
  pool.for_each((samples.size() + kBlock - 1) / kBlock, [&](std::size_t block, int) {
    const std::size_t first = block * kBlock;
    const std::size_t count = std::min(kBlock, samples.size() - first);
    const PieceBatch batch =
        make_batch(dataset, features, samples.subspan(first, count), standard, scale);
    for (const TrainableNetwork& member : members) {
      const VectorXf cost = member.predict(batch);
      for (std::size_t i = 0; i < count; ++i) {
        predicted[first + i] +=
            cost[static_cast<Index>(i)] * scale / static_cast<double>(members.size());
      }
    }
  });
  return predicted;
}

Standardisation standardisation_of(const NeuralComputeModel& model) {
  const ComputeNetwork& network = model.members().front();
  Standardisation standard;
  const auto size = static_cast<Index>(network.feature_mean.size());
  standard.mean = Eigen::Map<const VectorXf>(network.feature_mean.data(), size);
  standard.scale = Eigen::Map<const VectorXf>(network.feature_scale.data(), size);
  return standard;
}

std::vector<double> costs_by(const NeuralComputeModel& model, const ComputeDataset& dataset,
                             ThreadPool& pool) {
  MatrixXf features = dataset.features;
  set_estimate(model.members().front().estimate, dataset.work, features);
  std::vector<TrainableNetwork> members;
  for (const ComputeNetwork& member : model.members()) members.emplace_back(member, 1.0);
  std::vector<int> samples(dataset.size());
  std::iota(samples.begin(), samples.end(), 0);
  return predicted_costs(members, dataset, features, samples, standardisation_of(model), 1.0, pool);
}

}  // namespace neuroshard
