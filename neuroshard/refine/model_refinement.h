// Training on the search's own plans. A search exploits a model's errors, so the sets of pieces in
// its plans are measured and added to the training data, and the model is trained again, until
// predicted and measured costs of new plans agree.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "neuroshard/collect/compute/compute_collector.h"
#include "neuroshard/collect/compute/cpu/compute_benchmark.h"
#include "neuroshard/cost/communication/communication_cost_model.h"
#include "neuroshard/refine/planned_sets.h"
#include "neuroshard/search/planner.h"
#include "neuroshard/train/compute/compute_trainer.h"
#include "neuroshard/workload/generate/task_generator.h"
#include "neuroshard/workload/workload.h"

namespace neuroshard {

struct RefinementOptions {
  std::vector<std::string> costs;  ///< files of measured costs that training starts from
  Workload workload;               ///< tables of the tasks that plans are made for
  /// Tables, dimensions, batch size, optimizer and interconnect of the tasks. The numbers of
  /// devices in `devices` alternate, and every second task has so little memory that its tables
  /// fill `min_fill` to `max_fill` of it.
  TaskGeneratorOptions tasks{.interconnect = "pcie4", .batch_size = 4096};
  std::vector<int> devices{4, 8};
  int tasks_per_round = 24;
  int num_rounds = 4;       ///< at the most
  double tolerance = 0.05;  ///< ends when the mean gap of a round's plans is at most this
  int controls = 48;        ///< samples of `costs` that are measured again in each round
  std::string folder;  ///< of the measured costs and trained models: a run that was stopped goes on
  PlannerOptions planner = options_of_measured_plans();  ///< `steps` must be above 0
  ComputeBenchmarkOptions benchmark;
  /// The backend that measures; by default this machine's CPU with the options of `benchmark`.
  std::optional<ComputeBackendFactory> backend;
  ComputeTrainingOptions training;
};

/// The files in `folder` that are written, and read by a run that goes on.
[[nodiscard]] std::vector<std::string> refinement_files(const RefinementOptions& options);

/// The result of a round: measured plans of the model that was trained on all earlier rounds.
struct RefinementRound {
  int round = 0;
  int plans = 0;
  int sets = 0;
  double mean_gap = 0.0;      ///< of |predicted / measured - 1| of the plans' costs
  double bias = 0.0;          ///< mean of predicted / measured - 1
  PredictionMetrics devices;  ///< the plans' devices: predicted and measured computation
  /// Median over the controls of the ratio of the cost measured now to that in `costs`: the change
  /// of the machine's speed. Training multiplies the costs of `costs` by it. 1 without controls.
  double drift = 1.0;
};

struct RefinementCallbacks {
  std::function<void(const EpochStats&)> on_epoch;
  std::function<void(const CollectionProgress&)> on_sample;
  std::function<void(const RefinementRound&)> on_round;
};

struct RefinementResult {
  std::vector<RefinementRound> rounds;
  bool agreed = false;         ///< the last round's plans are within the tolerance
  ComputeTrainingResult last;  ///< of the model trained last, on everything measured
};

/// In `folder`: round-N.model.safetensors, the model that made the plans of round N, and
/// round-N.jsonl, the costs measured of them. Tables that the files of `costs` keep from training
/// are kept out of the tasks. Throws InputError as its parts do, and if the folder is of another
/// refinement.
[[nodiscard]] RefinementResult refine_model(
    const RefinementOptions& options,
    const std::shared_ptr<const CommunicationCostModel>& communication,
    const RefinementCallbacks& callbacks);

}  // namespace neuroshard
