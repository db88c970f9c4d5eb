// Cost models as text: the list, the training data of one, and how well one predicts measured
// costs.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "neuroshard/cost/model_catalog.h"
#include "neuroshard/train/compute/model_test.h"

namespace neuroshard {

[[nodiscard]] std::string models_table(const std::vector<ModelEntry>& models);

/// All metadata of the model's file, one fact a line. Throws InputError for a broken file.
[[nodiscard]] std::string model_text(const ModelEntry& entry);

/// A line for each file that the model was tested on.
[[nodiscard]] std::string model_tests_table(std::span<const FileTest> tests);

}  // namespace neuroshard
