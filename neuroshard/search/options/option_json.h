// A choice among listed options and its answer as JSON (docs/formats.md).
#pragma once

#include <string>

#include "neuroshard/io/json/json.h"
#include "neuroshard/search/options/option_planner.h"

namespace neuroshard {

inline constexpr const char* kOptionTaskFormat = "neuroshard/option-task/1";
inline constexpr const char* kOptionPlanFormat = "neuroshard/option-plan/1";

/// Reads "neuroshard/option-task/1" and checks it. `location` is what errors call it. Throws
/// InputError.
[[nodiscard]] OptionTask parse_option_task(const std::string& text, const std::string& location);

/// "neuroshard/option-plan/1".
[[nodiscard]] Json to_json(const OptionPlan& plan);

}  // namespace neuroshard
