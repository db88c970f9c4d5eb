// The command line as shells complete it: subcommands, options, and what their values may be.
#pragma once

#include <CLI/CLI.hpp>
#include <string>
#include <vector>

namespace neuroshard::cli {

/// What completes a value: any of these.
struct CompletedValue {
  std::vector<std::string> words{};
  bool models = false;  ///< names of `neuroshard model list`, asked for when a shell completes them
  bool files = true;
};

struct CompletedOption {
  std::vector<std::string> names{};  ///< with their dashes
  std::string help{};
  bool takes_value = false;
  CompletedValue value{};
};

struct CompletedCommand {
  std::string path{};  ///< "collect compute"; "" for the whole
  std::string name{};
  std::string help{};
  std::vector<CompletedCommand> subcommands{};
  std::vector<CompletedOption> options{};
  CompletedValue positional{};  ///< of the first argument that is not an option's
};

/// `root` is the whole command line.
[[nodiscard]] CompletedCommand completion_tree(const CLI::App& root);

/// All commands, each before its subcommands.
[[nodiscard]] std::vector<const CompletedCommand*> all_of(const CompletedCommand& root);

}  // namespace neuroshard::cli
