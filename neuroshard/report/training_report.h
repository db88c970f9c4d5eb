// The results of training: metrics of a model on each part of the data.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "neuroshard/train/communication/communication_trainer.h"
#include "neuroshard/train/compute/compute_trainer.h"
#include "neuroshard/train/metrics.h"

namespace neuroshard {

/// Kendall's tau with this number of decimals, or "not defined".
[[nodiscard]] std::string tau_text(const std::optional<double>& tau, int decimals);

/// One line of a table of metrics.
struct MetricsRow {
  std::string name;
  PredictionMetrics metrics;
};

/// `counted` names the elements that metrics are computed over, e.g. "samples". Rows without any
/// are left out.
[[nodiscard]] std::string metrics_table(const std::string& counted,
                                        std::span<const MetricsRow> rows);

/// Other predictions of the same all-to-alls, to stand below the model's.
struct RivalMetrics {
  std::string name;
  CommunicationMetrics unseen_placements;
  CommunicationMetrics held_out;
};

/// A line on how far devices that are planned alike differ; empty where that was not found.
[[nodiscard]] std::string scatter_text(const std::optional<DeviceScatter>& scatter);

/// `model` is the file that was written.
[[nodiscard]] std::string training_text(const ComputeTrainingResult& result,
                                        const std::string& model);
[[nodiscard]] std::string training_text(const CommunicationTrainingResult& result,
                                        const std::string& model,
                                        std::span<const RivalMetrics> rivals = {});

/// The tests of all-reduces and partial sums; empty without any.
[[nodiscard]] std::string collectives_text(const CollectiveFit& fit);

/// "epoch 3 of 60: validation MAPE 4.20%, 12.00 s left".
[[nodiscard]] std::string epoch_text(const EpochStats& epoch);

}  // namespace neuroshard
