// Where results go and documents come from: files, or "-" for standard output and input.
#pragma once

#include <CLI/CLI.hpp>
#include <string>
#include <string_view>
#include <vector>

namespace neuroshard::cli {

/// A document that is read: a path, for which "-" becomes that of standard input.
CLI::Option* add_input_option(CLI::App& command, const std::string& name, std::string& path,
                              const std::string& help);
CLI::Option* add_input_option(CLI::App& command, const std::string& name,
                              std::vector<std::string>& paths, const std::string& help);

/// Whether the path is that of standard input, which can be read once.
[[nodiscard]] bool is_standard_input(const std::string& path);

/// Adds -o,--output and --force: a result that may also go to standard output.
CLI::Option* add_output_option(CLI::App& command, std::string& output, bool& force,
                               const std::string& help);

/// Likewise for what is a file in any case, such as a model.
CLI::Option* add_output_file_option(CLI::App& command, std::string& output, bool& force,
                                    const std::string& help);

/// For CLI11: refuses "-" for what is a file or folder in any case.
[[nodiscard]] std::string refused_dash(const std::string& path);

/// Whether the result goes to standard output, which then gets nothing else.
[[nodiscard]] bool is_standard_output(const std::string& output);

/// Throws InputError now, not after long work, if the file could not be written, or is measured
/// data, a journal or a model, and `force` does not allow that it is replaced. An empty output and
/// standard output are fine.
void check_output(const std::string& output, bool force);

/// Writes the whole file, or to standard output; nothing for an empty output.
void write_output(const std::string& output, std::string_view bytes);

/// "\nwritten to plan.json\n" for the end of a text; "" where no file was written.
[[nodiscard]] std::string written_text(const std::string& output);

}  // namespace neuroshard::cli
