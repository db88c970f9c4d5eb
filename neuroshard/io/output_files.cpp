// Compares files, not paths; tries outputs without a trace.
#include "neuroshard/io/output_files.h"

#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>
#include <system_error>

#include "neuroshard/core/error.h"
#include "neuroshard/io/file.h"
#include "neuroshard/io/file_detail.h"

namespace neuroshard {

namespace fs = std::filesystem;

namespace {

/// Whether both paths lead to one file, or would if it were there.
bool same_file(const std::string& a, const std::string& b) {
  std::error_code error;
  if (fs::exists(a, error) && !fs::is_regular_file(a, error)) return false;
  if (fs::equivalent(a, b, error)) return true;
  const fs::path one = fs::weakly_canonical(fs::absolute(with_links_followed(a), error), error);
  if (error) return false;
  const fs::path other = fs::weakly_canonical(fs::absolute(with_links_followed(b), error), error);
  return !error && one == other;
}

}  // namespace

void refuse_output_that_is_input(const std::string& output, const std::vector<std::string>& inputs,
                                 const std::string& place) {
  if (output.empty()) return;
  for (const std::string& input : inputs) {
    if (input.empty() || !same_file(output, input)) continue;
    throw InputError(place, "another file than those that are read",
                     output == input ? output : fmt::format("{}, which is {}", output, input));
  }
}

void require_writable(const std::string& path) {
  std::error_code error;
  if (!fs::is_fifo(path, error)) {
    const AtomicFile never_committed(path);
  } else if (::access(path.c_str(), W_OK) != 0) {
    throw InputError(path, "a writable file", system_reason(errno));
  }
}

}  // namespace neuroshard
