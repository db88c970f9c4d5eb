// The training loop that all networks share: batches, Adam, validation, the best epoch kept.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "neuroshard/core/machine/parallel.h"
#include "neuroshard/core/numbers/random.h"
#include "neuroshard/train/dense_layers.h"

namespace neuroshard {

struct TrainingLoopOptions {
  int epochs = 200;
  int batch_size = 512;         ///< samples
  double learning_rate = 3e-3;  ///< at the start
  bool cosine = true;           ///< it falls to 0 over the epochs as half a cosine; else constant
  int patience = 300;           ///< epochs without a better validation error before it stops
};

struct EpochStats {
  int epoch = 0;
  int most_epochs = 0;         ///< of the whole training, if nothing stops sooner
  double training_loss = 0.0;  ///< mean over samples
  double validation_mape = 0.0;
  double seconds = 0.0;  ///< since training began
};

/// The network and its data, as the loop needs them.
struct TrainingSubject {
  Parameters* parameters = nullptr;
  std::vector<float> step_sizes;  ///< of each parameter, relative to the learning rate; empty: 1
  std::vector<int> samples;       ///< to train on
  /// Sum of the losses of some samples and its gradients; called from several threads at once.
  std::function<double(std::span<const int> samples, Parameters& gradients)> loss_and_gradients;
  /// After each step; may be empty.
  std::function<void()> project;
  std::function<double()> validation_mape;
};

struct TrainingLoopResult {
  int best_epoch = 0;
  std::vector<EpochStats> epochs;
  double seconds = 0.0;
};

/// Trains, and leaves the parameters of the epoch with the best validation MAPE. Bit-reproducible
/// on one machine, on any number of threads. Throws InputError if the validation error is NaN or
/// infinite in every epoch.
TrainingLoopResult run_training_loop(const TrainingSubject& subject,
                                     const TrainingLoopOptions& options, Random& random,
                                     ThreadPool& pool,
                                     const std::function<void(const EpochStats&)>& on_epoch);

}  // namespace neuroshard
