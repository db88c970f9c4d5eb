// Outputs and inputs by the conventions of command lines.
#include "cli/streams/output.h"

#include <fmt/format.h>

#include "neuroshard/core/error.h"
#include "neuroshard/core/text/printable.h"
#include "neuroshard/io/file.h"
#include "neuroshard/io/kept_data.h"
#include "neuroshard/io/output_files.h"

namespace neuroshard::cli {

namespace {

constexpr const char* kDash = "-";
constexpr const char* kStandardInput = "/dev/stdin";

std::string input_path(const std::string& given) { return given == kDash ? kStandardInput : given; }

void add_force_flag(CLI::App& command, bool& force) {
  command.add_flag("--force", force,
                   "Replace an output that is measured data, a journal or a model");
}

std::string with_dash(const std::string& help, const char* stream) {
  return fmt::format("{}; -: standard {}", help, stream);
}

}  // namespace

CLI::Option* add_input_option(CLI::App& command, const std::string& name, std::string& path,
                              const std::string& help) {
  return command.add_option(name, path, with_dash(help, "input"))->transform(input_path);
}

CLI::Option* add_input_option(CLI::App& command, const std::string& name,
                              std::vector<std::string>& paths, const std::string& help) {
  return command.add_option(name, paths, with_dash(help, "input"))->transform(input_path);
}

bool is_standard_input(const std::string& path) { return path == kStandardInput; }

CLI::Option* add_output_option(CLI::App& command, std::string& output, bool& force,
                               const std::string& help) {
  add_force_flag(command, force);
  return command.add_option("-o,--output", output, with_dash(help, "output"));
}

CLI::Option* add_output_file_option(CLI::App& command, std::string& output, bool& force,
                                    const std::string& help) {
  add_force_flag(command, force);
  return command.add_option("-o,--output", output, help)->check(refused_dash);
}

std::string refused_dash(const std::string& path) {
  return path == kDash ? "expected a name of its own, got - (standard output)" : "";
}

bool is_standard_output(const std::string& output) { return output == kDash; }

void check_output(const std::string& output, bool force) {
  if (output.empty() || is_standard_output(output)) return;
  if (!force) refuse_to_replace_kept_data(output);
  require_writable(output);
}

void write_output(const std::string& output, std::string_view bytes) {
  if (is_standard_output(output)) {
    fmt::print("{}", bytes);
  } else if (!output.empty()) {
    write_file(output, bytes);
  }
}

std::string written_text(const std::string& output) {
  if (output.empty() || is_standard_output(output)) return "";
  return fmt::format("\nwritten to {}\n", printable(output));
}

}  // namespace neuroshard::cli
