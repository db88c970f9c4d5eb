// Trainings of each adaptation that leave a part of the samples out.
#include "neuroshard/train/compute/adaptation_choice.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <map>
#include <utility>

namespace neuroshard {

namespace {

/// Parts of the training sets that an adaptation is tried on.
constexpr std::size_t kFolds = 5;

/// The part of each training sample. All samples of one set are of one part, and so are neighbours
/// among sets of plans, as each tells much of the others.
std::vector<std::size_t> folds_of(const ComputeDataset& dataset, const std::vector<int>& training) {
  // Blocks of neighbours and other sets, numbered in the order in which they are met, so that no
  // part is empty before another has two.
  std::map<std::pair<bool, std::int64_t>, std::size_t> numbers;
  std::vector<std::size_t> folds;
  for (const int sample : training) {
    const int set = dataset.same_as[sample];
    const std::int64_t place = dataset.planned_place[set];
    const std::pair<bool, std::int64_t> key =
        place < 0 ? std::pair{false, std::int64_t{set}} : std::pair{true, place / kPlannedBlock};
    folds.push_back(numbers.emplace(key, numbers.size()).first->second % kFolds);
  }
  return folds;
}

}  // namespace

const std::array<Adaptation, 3>& adaptations() {
  static const std::array<Adaptation, 3> all{
      {{10.0, {.epochs = 100, .batch_size = 32, .learning_rate = 5e-4}},
       {1.0, {.epochs = 100, .batch_size = 32, .learning_rate = 1e-3}},
       {0.35, {.epochs = 300, .batch_size = 32, .learning_rate = 3e-3}}}};
  return all;
}

TriedAdaptation best_adaptation(const ComputeDataset& dataset, ComputeTrainingOptions options,
                                const DatasetSplit& split, EpochReport& report,
                                std::span<const Adaptation> adaptations) {
  const std::size_t folds = split.training.size() > kManySamples ? 1 : kFolds;
  int epochs = 0;
  int most_epochs = 0;
  for (const Adaptation& adaptation : adaptations) {
    epochs += static_cast<int>(folds) * adaptation.loop.epochs;
    most_epochs = std::max(most_epochs, adaptation.loop.epochs);
  }
  report.expect(options.members * (epochs + most_epochs));
  const std::vector<std::size_t> part_of = folds_of(dataset, split.training);
  double least_error = std::numeric_limits<double>::infinity();
  TriedAdaptation best{adaptations.front(), {}};
  for (const Adaptation& adaptation : adaptations) {
    options.adaptation = adaptation;
    double error = 0.0;
    std::vector<PlannedCost> unseen;
    for (std::size_t fold = 0; fold < folds; ++fold) {
      DatasetSplit part;
      part.validation = split.validation;
      std::vector<int> left_out;
      for (std::size_t i = 0; i < split.training.size(); ++i) {
        (part_of[i] == fold ? left_out : part.training).push_back(split.training[i]);
      }
      if (left_out.empty() || part.training.empty()) continue;  // where there are few blocks
      error += static_cast<double>(left_out.size()) *
               error_of_ensemble(dataset, options, std::move(part), left_out, report, unseen);
    }
    if (error < least_error) {
      least_error = error;
      best = {adaptation, std::move(unseen)};
    }
  }
  return best;
}

}  // namespace neuroshard
