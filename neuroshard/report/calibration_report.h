// A calibration as text and as JSON.
#pragma once

#include <string>

#include "neuroshard/io/json/json.h"
#include "neuroshard/refine/calibration.h"

namespace neuroshard {

/// The change of speed and the errors before and after.
[[nodiscard]] std::string calibration_text(const CalibrationResult& result,
                                           const std::string& model_file);

/// {"format": "neuroshard/calibration/1", "model": ..., "samples": ..., "speed": ..., "before":
/// ...}.
[[nodiscard]] Json calibration_json(const CalibrationResult& result, const std::string& model_file);

}  // namespace neuroshard
