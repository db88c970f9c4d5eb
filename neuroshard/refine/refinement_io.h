// A refinement as JSON (docs/formats.md, "Answers of commands").
#pragma once

#include <string>

#include "neuroshard/io/json/json.h"
#include "neuroshard/refine/model_refinement.h"

namespace neuroshard {

/// "neuroshard/refinement/1"; `model` is the file that was written.
[[nodiscard]] Json refinement_json(const RefinementResult& result, const std::string& model);

}  // namespace neuroshard
