// Calibration: adapts a computation cost model to the machine at hand, from some
// thousand well-chosen samples, or a few hundred, that are measured on it in minutes.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "neuroshard/collect/compute/compute_backend.h"
#include "neuroshard/collect/compute/compute_collector.h"
#include "neuroshard/train/compute/compute_trainer.h"

namespace neuroshard {

struct CalibrationOptions {
  /// A model of bounded loads: of another machine, or of this one at another time.
  std::shared_ptr<const NeuralComputeModel> model;
  std::string name;  ///< of the calibrated model
  /// Of the measured costs, one file for each batch size and optimizer: a run that was stopped goes
  /// on where it was.
  std::string folder;
  /// A model file that may be replaced; may be empty. If it was trained on exactly the costs in
  /// `folder`, that calibration was finished, and this one begins anew: their files are removed,
  /// and nothing else, once all else was checked and the backend has its memory.
  std::string replaced_model;
  int samples = 3000;  ///< at the most, over all files
  /// Sets that are not measured but trained on at the costs that are expected of them, at the most:
  /// fewer where the time limit is below some minutes.
  int expected_sets = 3000;
  /// Measures the standard reference sets (collect/compute/reference_sets.h) all along, by which
  /// training tells the machine's slow minutes from costs. A folder of costs without them goes on
  /// without them.
  bool has_reference_sets = false;
  /// Of measuring and training: no sample begins after most of it.
  double time_limit_seconds = 600.0;
  std::uint64_t seed = 0;  ///< of the tables and sets
  ComputeBackendFactory backend;
  int num_threads = 0;  ///< of training; <= 0: one per core
};

/// Sets that alternate while they are measured.
inline constexpr int kCalibrationInFlight = 512;

/// Repetitions for sets that differ by orders of magnitude: long ones need not be repeated as
/// often.
[[nodiscard]] RepetitionOptions calibration_repetitions();

/// The files in `folder`.
[[nodiscard]] std::vector<std::string> calibration_files(const CalibrationOptions& options);

/// How slow a machine was at times, relative to its usual speed: 1.1 is a tenth slower.
struct SlownessRange {
  double fastest = 1.0;
  double slowest = 1.0;
};

struct CalibrationResult {
  std::shared_ptr<const NeuralComputeModel> model;
  std::int64_t samples = 0;
  std::int64_t samples_before = 0;  ///< of these, in the folder before anything was measured
  double speed = 1.0;  ///< median of measured over predicted cost of the model as it was
  /// Of nine of ten samples, what reference sets took relative to their median over all samples;
  /// none without reference sets.
  std::optional<SlownessRange> slowness;
  /// As the model has it, if it was found.
  std::optional<DeviceScatter> scatter;
  // On all samples, at the usual speed where they have reference sets. Training saw all but those
  // of `validation`:
  PredictionMetrics before;      ///< the model as it was
  PredictionMetrics validation;  ///< the calibrated model on samples that chose its epoch
  PredictionMetrics after;       ///< the calibrated model
};

/// Measures sets of tables that cover the whole space (coverage_workload), and sets of the devices
/// of the model's plans (PlannedSets), at batch sizes across the model's trained range, then trains
/// the model on with small steps, on these and on sets that are not measured
/// (ComputeTrainingOptions::unmeasured), beginning with its costs multiplied by the median of what
/// both kinds cost, or are expected to, over the predicted cost. A folder that another model's
/// plans were measured in is refused. Throws InputError if fewer than kFewestTrainingSamples could
/// be measured, and as the collector and the trainer. `on_epoch` is as train_compute_model's.
[[nodiscard]] CalibrationResult calibrate(
    const CalibrationOptions& options,
    const std::function<void(const CollectionProgress&)>& on_sample,
    const std::function<void(const EpochStats&)>& on_epoch = {});

}  // namespace neuroshard
