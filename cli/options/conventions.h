// What all subcommands have in common: --quiet and --verbose, values that are not empty, and what
// is said to a wrong word.
#pragma once

#include <CLI/CLI.hpp>
#include <string>
#include <vector>

namespace neuroshard::cli {

/// The subcommands of a command, in the order of its help.
[[nodiscard]] std::vector<CLI::App*> subcommands_of(CLI::App& command);
[[nodiscard]] std::vector<const CLI::App*> subcommands_of(const CLI::App& command);

/// Adds --quiet and --verbose to every command that does something, and has it refuse an empty
/// value of any option or argument, as of a variable of the shell that is not set.
void add_common_options(CLI::App& app);

/// Throws InputError for a word "--option=": CLI11 would take the next word for the value.
void refuse_options_without_value(int argc, char** argv);

/// The command's option --`name`. CLI11's own search by name, which excludes("--name") takes too,
/// may not throw, and ends the process where it finds no memory.
[[nodiscard]] CLI::Option* option_named(CLI::App& command, const std::string& name);

/// Whether the user gave option --`name`; not command.count("--name"), for the same reason.
[[nodiscard]] bool was_given(const CLI::App& command, const std::string& name);

/// Examples for the end of a command's --help, without "neuroshard" in front.
void add_examples(CLI::App& command, const std::vector<std::string>& examples);

/// "; did you mean --memory?" for the first of the words, of those that no command or option took,
/// that is nearly one; else "".
[[nodiscard]] std::string suggestion_for(const CLI::App& app,
                                         const std::vector<std::string>& words);

}  // namespace neuroshard::cli
