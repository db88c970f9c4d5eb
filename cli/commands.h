// The subcommands: each adds itself, with its options, to the command line.
#pragma once

#include <CLI/CLI.hpp>

namespace neuroshard::cli {

void add_collect_command(CLI::App& app);
void add_train_command(CLI::App& app);

}  // namespace neuroshard::cli
