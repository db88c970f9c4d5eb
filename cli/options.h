// Values that several subcommands take, parsed with errors that name the option.
#pragma once

#include <string>
#include <utility>

#include "neuroshard/core/table.h"

namespace neuroshard::cli {

/// "10:60" -> (10, 60); "8" -> (8, 8). Throws InputError unless 1 <= MIN <= MAX.
[[nodiscard]] std::pair<int, int> parse_range(const std::string& text, const std::string& option);

[[nodiscard]] Optimizer parse_optimizer(const std::string& text, const std::string& option);
[[nodiscard]] DataType parse_data_type(const std::string& text, const std::string& option);

}  // namespace neuroshard::cli
