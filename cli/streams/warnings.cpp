// Warnings on stderr.
#include "cli/streams/warnings.h"

#include "cli/streams/console.h"

namespace neuroshard::cli {

namespace {

void say_lines(const std::string& kind, const std::vector<std::string>& lines) {
  if (verbosity() == Verbosity::quiet) return;
  for (const std::string& line : lines) say_error(std::string(kind).append(": ").append(line));
}

std::string named(const char* kind, const std::string& name, const std::string& file,
                  const std::string& sha256) {
  std::string line = std::string(kind) + ": " + name;
  if (!file.empty()) line += ", " + file;
  return sha256.empty() ? line : line + ", sha256 " + sha256;
}

}  // namespace

void print_warnings(const std::vector<std::string>& lines) { say_lines("warning", lines); }

void print_notes(const std::vector<std::string>& lines) { say_lines("note", lines); }

void print_models_used(const CostModels& models) {
  say_details(
      {named("computation", models.compute->name(), models.compute_file, models.compute_sha256),
       named("communication", models.communication->name(), models.communication_file,
             models.communication_sha256)});
}

}  // namespace neuroshard::cli
