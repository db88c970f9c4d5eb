// Trains a computation cost model on measured costs, and tests it.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "neuroshard/cost/compute/neural_compute_model.h"
#include "neuroshard/train/compute/compute_dataset.h"
#include "neuroshard/train/compute/device_scatter.h"
#include "neuroshard/train/compute/trainable_network.h"
#include "neuroshard/train/metrics.h"
#include "neuroshard/train/training_loop.h"

namespace neuroshard {

/// Fewer known samples (ComputeDataset::num_known) cannot be split into training, validation and
/// test.
inline constexpr std::size_t kFewestTrainingSamples = 30;

/// How far a model of another machine is changed by the samples of this one.
struct Adaptation {
  double prior_strength = 1.0;  ///< of its estimate's weights (estimate_fit.h)
  TrainingLoopOptions loop;     ///< of its networks
};

/// From little, for the same machine in another mood, to much, for another machine or operator.
[[nodiscard]] const std::array<Adaptation, 3>& adaptations();

struct ComputeTrainingOptions {
  ComputeArchitecture architecture = ComputeArchitecture::bounded_loads;
  TrainingLoopOptions loop{.learning_rate = 0.01};
  int members = 4;         ///< networks of the ensemble, trained in parallel
  std::uint64_t seed = 0;  ///< of the split, the first weights and the order of samples
  int num_threads = 0;     ///< <= 0: one per core; the result does not depend on it
  std::string name;        ///< of the model
  /// Of bounded loads: errors of less than this [ms] count little, as if every cost were higher by
  /// as much. Where a GPU spends more on launches than on tables its costs are far from convex in
  /// the work, and a model that is held to them errs more where tables are what counts.
  double granularity_ms = 0.0;
  /// Of bounded loads: costs also depend on a set's widest piece (ComputeNetwork::widest_factors),
  /// as those of FBGEMM's operator on GPUs do. They do as well if the initial model's do.
  bool has_widest_factors = false;
  /// Of bounded loads: running anything at all costs more with row-wise Adagrad
  /// (ComputeNetwork::rowwise_adagrad_offset), as FBGEMM's operator on CPUs does. It does as well
  /// if the initial model's does.
  bool has_optimizer_offsets = false;
  bool has_test = true;  ///< a tenth of the samples is kept for a test, not for training
  /// A bounded model of another machine or operator to go on from, or none. Its features'
  /// standardisation is kept, its members are trained on, `members` and `loop` are not used, and
  /// its estimate and costs begin multiplied by the median of the training sets' cost over the
  /// predicted one, sets of expected cost (`unmeasured`) among them; then the estimate is fitted to
  /// the samples, and the networks are trained on.
  std::shared_ptr<const NeuralComputeModel> initial;
  /// How far; none: the one of `adaptations` that predicts samples best which it was not trained on
  /// (five-fold cross-validation of the training sets; of more than 600, one fifth alone). With
  /// sets of expected costs, one of the first two.
  std::optional<Adaptation> adaptation;
  /// With an initial model: sets without costs (UnmeasuredSets) of the whole space of tables, which
  /// are trained on with the costs that are expected of them (expected_costs.h), so that networks
  /// stay where they were, but for what the samples have in common, in places where there are none.
  /// The estimate is fitted to the samples alone, and metrics are of these; the speed that the
  /// model begins with is of both. Or none.
  std::shared_ptr<const ComputeDataset> unmeasured;
  /// With an initial model of the same operator: what that knows is known still, so the model's
  /// range is its range and the samples' together. Else it is the samples' alone.
  bool keeps_range = false;

  /// The paper's single network and training: Adam with a constant 1e-3 on the squared error.
  [[nodiscard]] static ComputeTrainingOptions published();
};

/// Metrics of the samples that cost at least as much as the granularity.
struct LargeSampleMetrics {
  double from_ms = 0.0;
  PredictionMetrics validation;
  PredictionMetrics unseen_combinations;
  PredictionMetrics unseen_tables;
};

struct ComputeTrainingResult {
  std::shared_ptr<const NeuralComputeModel> model;
  std::optional<Adaptation> adaptation;  ///< of an initial model
  std::vector<FolderSpeed> speeds;       ///< as the dataset has them
  std::vector<int> best_epochs;  ///< of each member: the one that was kept, by validation MAPE
  std::vector<EpochStats>
      epochs;  ///< of the members, one member's after another's, each counted from 1
  // Of the mean of the members' predictions.
  PredictionMetrics training;
  PredictionMetrics validation;
  PredictionMetrics unseen_combinations;
  PredictionMetrics unseen_tables;
  /// By how much devices of plans differ that are planned alike, where there are samples of plans:
  /// of an adaptation, by trainings that did not see them and most of their plans; else, or if too
  /// few of these are devices of one plan, by the model itself, where it had many samples.
  std::optional<DeviceScatter> scatter;
  std::optional<LargeSampleMetrics> large_samples;  ///< of a training with a granularity
  double seconds = 0.0;
};

/// Features that a network of this architecture is trained on.
[[nodiscard]] FeatureSchema feature_schema_of(ComputeArchitecture architecture);

/// Bit-reproducible on one machine. Throws InputError if there are too few samples to split, or if
/// their costs differ so much that training overflows. `on_epoch` is called by one thread at a
/// time, after each epoch of any member, with the number of epochs done by all.
[[nodiscard]] ComputeTrainingResult train_compute_model(
    const ComputeDataset& dataset, const ComputeTrainingOptions& options,
    const std::function<void(const EpochStats&)>& on_epoch = {});

}  // namespace neuroshard
