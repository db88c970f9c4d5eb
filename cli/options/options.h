// Values that several subcommands take, parsed with errors that name the option.
#pragma once

#include <CLI/CLI.hpp>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "neuroshard/core/machine/parallel.h"
#include "neuroshard/core/table.h"
#include "neuroshard/search/planner.h"

namespace neuroshard::cli {

/// "10:60" -> (10, 60); "8" -> (8, 8). Throws InputError unless 1 <= MIN <= MAX.
[[nodiscard]] std::pair<int, int> parse_range(const std::string& text, const std::string& option);

/// "0.9:0.98" -> (0.9, 0.98). Throws InputError unless 0 < MIN <= MAX <= 1.
[[nodiscard]] std::pair<double, double> parse_shares(const std::string& text,
                                                     const std::string& option);

/// A `--model` that may be given twice, each time with one name or file: what follows is no model
/// too.
CLI::Option* add_models_option(CLI::App& command, std::vector<std::string>& models,
                               const std::string& help);

/// For CLI11: refuses anything but one of some words; CLI::IsMember's list in --help is cut short
/// where it finds no memory.
[[nodiscard]] CLI::Validator one_of(std::vector<std::string> words);

/// For CLI11: refuses anything but an integer in [low, high]. CLI11 itself takes -1 for a number
/// without sign and 010 for 8.
[[nodiscard]] CLI::Validator integer_between(std::int64_t low, std::int64_t high);

/// For CLI11: refuses anything but a number in [low, high]; CLI11's own range takes nan.
[[nodiscard]] CLI::Validator number_between(double low, double high);

/// For CLI11: refuses anything but a number from 0 to below 1: with a share of 1 nothing is left.
[[nodiscard]] CLI::Validator share_below_one();

/// For CLI11: refuses anything but an integer of 64 bits without sign.
[[nodiscard]] CLI::Validator seed();

/// For `--members`.
inline constexpr int kMaxMembers = 64;

/// For `--threads`; 0 stands for one per core.
using neuroshard::kMaxThreads;

/// What `--time-limit` of planning is.
inline constexpr const char* kTimeLimitHelp =
    "Stop planning after this time, with the best plan so far; if not given, the first plan is "
    "finished and the work of improving it is what takes 1s on a known machine";

/// `--cuts`, `--steps`, `--improvement`, `--pessimism` and `--least-gain`; the defaults are those
/// of `options`. No steps stand for the time limit, where the command has one.
void add_improvement_options(CLI::App& command, PlannerOptions& options,
                             bool has_time_limit = true);

[[nodiscard]] Optimizer parse_optimizer(const std::string& text, const std::string& option);
[[nodiscard]] DataType parse_data_type(const std::string& text, const std::string& option);

}  // namespace neuroshard::cli
