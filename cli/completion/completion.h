// Scripts by which shells complete the command line, made from the tree of subcommands.
#pragma once

#include <CLI/CLI.hpp>
#include <string>

namespace neuroshard::cli {

/// A script for bash, zsh or fish that completes subcommands, options and what completion_tree.h
/// says of their values. `root` is the whole command line.
[[nodiscard]] std::string bash_completion(const CLI::App& root);
[[nodiscard]] std::string zsh_completion(const CLI::App& root);
[[nodiscard]] std::string fish_completion(const CLI::App& root);

}  // namespace neuroshard::cli
