// The answer to whether a plan is valid for its task.
#pragma once

#include <string>
#include <vector>

#include "neuroshard/io/plan_io.h"

namespace neuroshard {

/// `file` is the plan's, `found` its violations: a line each, or one line for a valid plan.
[[nodiscard]] std::string check_text(const std::string& file, const PlanDocument& document,
                                     const std::vector<std::string>& found);

/// "neuroshard/check/1" (docs/formats.md, "Answers of commands").
[[nodiscard]] Json check_json(const std::string& file, const std::vector<std::string>& found);

}  // namespace neuroshard
