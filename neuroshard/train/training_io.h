// Metrics and results of training as JSON (docs/formats.md, "Answers of commands").
#pragma once

#include <span>
#include <string>

#include "neuroshard/io/json/json.h"
#include "neuroshard/train/communication/communication_metrics.h"
#include "neuroshard/train/communication/communication_trainer.h"
#include "neuroshard/train/compute/compute_trainer.h"
#include "neuroshard/train/compute/model_test.h"
#include "neuroshard/train/metrics.h"

namespace neuroshard {

/// {"samples": ..., "mse": ..., "mae": ..., "mape": ..., "median": ..., "percentile_95": ...,
/// "largest_factor": ..., "kendall_tau": ...}; null are a tau that is not defined and the factor of
/// a prediction of 0.
[[nodiscard]] Json to_json(const PredictionMetrics& metrics);
/// {"forward": ..., "backward": ...}
[[nodiscard]] Json to_json(const CommunicationMetrics& metrics);
[[nodiscard]] Json to_json(const DeviceScatter& scatter);

/// "neuroshard/training/1"; `model` is the file that was written.
[[nodiscard]] Json training_json(const ComputeTrainingResult& result, const std::string& model);
[[nodiscard]] Json training_json(const CommunicationTrainingResult& result,
                                 const std::string& model);

/// "neuroshard/training/1" of a model whose all-to-alls were kept.
[[nodiscard]] Json training_json(const ExtendedCommunicationModel& extended,
                                 const std::string& model);

/// "neuroshard/model-test/1"; `model` is the name or path that the user gave.
[[nodiscard]] Json model_tests_json(const std::string& model, std::span<const FileTest> tests);

/// One line a sample, {"file": ..., "index": ..., "predicted_ms": ..., "measured_ms": ...}.
[[nodiscard]] std::string tested_samples_lines(std::span<const FileTest> tests);

}  // namespace neuroshard
