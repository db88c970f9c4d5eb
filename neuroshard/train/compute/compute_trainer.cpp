// Training from nothing, or from an initial model in the way that adapts it best.
#include "neuroshard/train/compute/compute_trainer.h"

#include <fmt/format.h>

#include <cstddef>
#include <span>
#include <utility>
#include <vector>

#include "neuroshard/core/error.h"
#include "neuroshard/core/machine/parallel.h"
#include "neuroshard/train/compute/adaptation_choice.h"
#include "neuroshard/train/compute/ensemble_trainer.h"
#include "neuroshard/train/compute/expected_costs.h"

namespace neuroshard {

namespace {

/// With sets of expected costs, the first ones of `adaptations` are tried: the last has the most
/// epochs, and was no better.
constexpr std::size_t kWithExpectedCosts = 2;

/// The samples and, after them, the unmeasured sets with the costs that are expected of them; nine
/// of ten of these are trained on, the others help to choose the epoch.
ComputeDataset with_expected_costs(const ComputeDataset& dataset,
                                   const ComputeTrainingOptions& options, DatasetSplit& split) {
  ThreadPool pool(options.num_threads);
  ComputeDataset all = dataset;
  append(all, *options.unmeasured,
         expected_costs(*options.initial, dataset, split.training, *options.unmeasured, pool));
  for (std::size_t sample = dataset.size(); sample < all.size(); ++sample) {
    (sample % 10 == 0 ? split.validation : split.training).push_back(static_cast<int>(sample));
  }
  return all;
}

}  // namespace

ComputeTrainingOptions ComputeTrainingOptions::published() {
  ComputeTrainingOptions options;
  options.architecture = ComputeArchitecture::published;
  options.loop.learning_rate = 1e-3;
  options.loop.cosine = false;
  options.members = 1;
  return options;
}

FeatureSchema feature_schema_of(ComputeArchitecture architecture) {
  return architecture == ComputeArchitecture::published ? FeatureSchema::published
                                                        : FeatureSchema::work;
}

ComputeTrainingResult train_compute_model(const ComputeDataset& dataset,
                                          const ComputeTrainingOptions& options,
                                          const std::function<void(const EpochStats&)>& on_epoch) {
  if (dataset.num_known() < kFewestTrainingSamples) {
    throw InputError("costs",
                     fmt::format("at least {} samples to train on", kFewestTrainingSamples),
                     fmt::format("{}", dataset.num_known()));
  }
  DatasetSplit split = split_dataset(dataset, options.seed);
  if (!options.has_test) {
    split.training.insert(split.training.end(), split.unseen_combinations.begin(),
                          split.unseen_combinations.end());
    split.unseen_combinations.clear();
  }
  if (options.initial && dataset.schema != options.initial->members().front().schema) {
    throw InputError("costs", "the features of the model to go on from", "those of another schema");
  }
  EpochReport report(on_epoch);
  if (!options.initial) return train_ensemble(dataset, options, std::move(split), report);
  ComputeTrainingOptions adapting = options;
  adapting.members = options.initial->num_members();
  std::vector<PlannedCost> unseen;
  const auto train = [&](const ComputeDataset& data, std::span<const Adaptation> tried) {
    if (!adapting.adaptation) {
      TriedAdaptation best = best_adaptation(data, adapting, split, report, tried);
      adapting.adaptation = best.adaptation;
      unseen = std::move(best.unseen);
    }
    return train_ensemble(data, adapting, std::move(split), report, std::move(unseen));
  };
  if (!options.unmeasured) return train(dataset, adaptations());
  return train(with_expected_costs(dataset, options, split),
               std::span(adaptations()).first(kWithExpectedCosts));
}

}  // namespace neuroshard
