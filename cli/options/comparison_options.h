// The options of subcommands that compare algorithms.
#pragma once

#include <CLI/CLI.hpp>
#include <string>
#include <vector>

#include "cli/options/gpu_options.h"
#include "neuroshard/evaluate/comparison_run.h"

namespace neuroshard::cli {

struct ComparisonOptions {
  std::vector<std::string> models;
  std::vector<std::string> algorithms{"all"};
  std::string time_limit = "1s";
  const CLI::App* command = nullptr;  ///< which has these options
  PlannerOptions planner;
  bool measure = false;
  std::string arena = "4GiB";
  BackendOptions measuring;           ///< with `measure`: on what
  std::vector<std::string> controls;  ///< with `measure`: files of samples to measure again
  bool has_reference_sets = false;    ///< with `measure`: those of the model run next to the plans
};

void add_comparison_options(CLI::App& command, ComparisonOptions& options);

/// The run that the options describe; throws InputError for an unknown algorithm or a malformed
/// value.
[[nodiscard]] ComparisonRunOptions comparison_run_options(const ComparisonOptions& options);

/// "12 of 100 tasks, 3.00 s left".
[[nodiscard]] std::string progress_text(const ComparisonProgress& progress);

}  // namespace neuroshard::cli
