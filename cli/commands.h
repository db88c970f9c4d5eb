// The subcommands: each adds itself, with its options, to the command line.
#pragma once

#include <CLI/CLI.hpp>

namespace neuroshard::cli {

void add_calibrate_command(CLI::App& app);
void add_capacity_command(CLI::App& app);
void add_check_command(CLI::App& app);
void add_collect_command(CLI::App& app);
void add_compare_command(CLI::App& app);
void add_completion_command(CLI::App& app);
void add_evaluate_command(CLI::App& app);
void add_explain_command(CLI::App& app);
void add_model_command(CLI::App& app);
void add_paper_table_command(CLI::App& app);
void add_plan_command(CLI::App& app);
void add_price_command(CLI::App& app);
void add_refine_model_command(CLI::App& app);
void add_report_command(CLI::App& app);
void add_train_command(CLI::App& app);
void add_workload_command(CLI::App& app);

}  // namespace neuroshard::cli
