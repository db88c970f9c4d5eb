// Explanations of plans, in words and as JSON.
#pragma once

#include <cstddef>
#include <string>

#include "neuroshard/decide/explanation.h"
#include "neuroshard/decide/why_not.h"
#include "neuroshard/io/json/json.h"

namespace neuroshard {

/// What limits the plan; the tables of its slowest device, of more than `max_tables` the costliest;
/// the lower bound; what would help.
[[nodiscard]] std::string explanation_text(const Explanation& explanation,
                                           std::size_t max_tables = 10);
[[nodiscard]] std::string table_explanation_text(const TableExplanation& explanation);
[[nodiscard]] std::string why_not_text(const WhyNot& why_not, const Task& task);

/// "neuroshard/explanation/1", "neuroshard/table-explanation/1" and "neuroshard/why-not/1".
[[nodiscard]] Json explanation_json(const Explanation& explanation);
[[nodiscard]] Json table_explanation_json(const TableExplanation& explanation);
[[nodiscard]] Json why_not_json(const WhyNot& why_not, const Task& task);

}  // namespace neuroshard
