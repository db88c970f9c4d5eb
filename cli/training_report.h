// What training looks like on the command line: progress, and a table of metrics.
#pragma once

#include <functional>
#include <string>

#include "cli/progress.h"
#include "neuroshard/io/json/json.h"
#include "neuroshard/train/communication/communication_metrics.h"
#include "neuroshard/train/metrics.h"
#include "neuroshard/train/training_loop.h"

namespace neuroshard::cli {

[[nodiscard]] Json metrics_json(const PredictionMetrics& metrics);
[[nodiscard]] Json metrics_json(const CommunicationMetrics& metrics);

/// `counted` is what the numbers are taken over, e.g. "samples".
void print_metrics_heading(const char* counted);
void print_metrics(const char* name, const PredictionMetrics& metrics);
/// Forward and backward, a line each.
void print_metrics(const std::string& name, const CommunicationMetrics& metrics);

/// Shows each epoch of so many on the line, which must outlive it.
[[nodiscard]] std::function<void(const EpochStats&)> progress_on(ProgressLine& line, int epochs);

}  // namespace neuroshard::cli
