// Warnings on stderr.
#include "cli/warnings.h"

#include <fmt/format.h>

#include <cstdio>

#include "neuroshard/core/printable.h"

namespace neuroshard::cli {

void print_warnings(const std::vector<std::string>& lines) {
  for (const std::string& line : lines)
    fmt::print(stderr, "neuroshard: warning: {}\n", printable(line));
}

void print_notes(const std::vector<std::string>& lines) {
  for (const std::string& line : lines)
    fmt::print(stderr, "neuroshard: note: {}\n", printable(line));
}

void warn_of_measurement_difference(const ComputeCostModel& model, const std::string& difference) {
  if (!difference.empty()) print_warnings({model.name() + ": measured on " + difference});
}

}  // namespace neuroshard::cli
