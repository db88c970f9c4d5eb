// What a report of a training shows: predictions next to measurements, errors, the learning curve.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "neuroshard/train/communication/communication_trainer.h"
#include "neuroshard/train/compute/compute_trainer.h"

namespace neuroshard {

/// A measured cost, the trained model's prediction of it, and what it is of.
struct PredictedSample {
  double predicted_ms = 0.0;
  double measured_ms = 0.0;
  int part = 0;                 ///< index into TrainingReportData::parts
  std::int64_t batch_size = 0;  ///< samples over all devices
  double width = 0.0;           ///< mean columns of a piece; 0: of no pieces
};

/// The errors of the samples that have something in common, such as a table.
struct GroupErrors {
  std::string name;
  std::size_t samples = 0;
  double mape = 0.0;  ///< mean of |predicted / measured - 1|
  double bias = 0.0;  ///< mean of predicted / measured, less 1
};

/// The metrics of one part of the data, as `train` prints them.
struct PartMetrics {
  std::string name;
  PredictionMetrics metrics;
};

struct TrainingReportData {
  std::string model;                       ///< the file
  std::string kind;                        ///< "compute" or "communication"
  std::vector<PartMetrics> metrics{};      ///< parts without samples left out
  std::vector<EpochStats> epochs{};        ///< of each network after another, counted from 1
  std::vector<int> best_epochs{};          ///< of each network
  std::vector<std::string> parts{};        ///< that samples are of
  std::vector<PredictedSample> samples{};  ///< at most kMaxShownSamples, evenly chosen of all
  std::size_t num_samples = 0;             ///< of which these are
  std::string group_title;                 ///< "table", or "cluster and devices"
  std::vector<GroupErrors> groups{};       ///< of all samples; one may be in several
};

/// A page stays small and quick with as many.
inline constexpr std::size_t kMaxShownSamples = 20'000;

/// Of a model that was trained on the files at `paths`, which `dataset` was loaded from, with this
/// seed. Reads the files again: throws InputError as loading them does, and for a file that has
/// fewer samples than then; those that it has gained since are left out.
[[nodiscard]] TrainingReportData training_report_data(const ComputeTrainingResult& result,
                                                      const ComputeDataset& dataset,
                                                      const std::vector<std::string>& paths,
                                                      std::uint64_t seed, const std::string& model);

/// Likewise; `held_out` are the files that were only tested on.
[[nodiscard]] TrainingReportData training_report_data(const CommunicationTrainingResult& result,
                                                      const std::vector<std::string>& paths,
                                                      const std::vector<std::string>& held_out,
                                                      const std::string& model);

}  // namespace neuroshard
