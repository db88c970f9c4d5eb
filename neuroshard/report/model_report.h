// Cost models as a person wants to see them: which there are, what one was trained on, and how well
// one predicts measured costs.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "neuroshard/cost/model_catalog.h"
#include "neuroshard/train/compute/model_test.h"

namespace neuroshard {

[[nodiscard]] std::string models_table(const std::vector<ModelEntry>& models);

/// Everything that the model's file says of it, one fact a line. Throws InputError for a broken
/// file.
[[nodiscard]] std::string model_text(const ModelEntry& entry);

/// A line for each file that the model was tested on.
[[nodiscard]] std::string model_tests_table(std::span<const FileTest> tests);

}  // namespace neuroshard
