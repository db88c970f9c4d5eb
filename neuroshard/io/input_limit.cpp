// The limit is of the process: libraries have no options for it.
#include "neuroshard/io/input_limit.h"

#include <fmt/format.h>

#include <cstdlib>

#include "neuroshard/core/error.h"
#include "neuroshard/core/units.h"

namespace neuroshard {

namespace {

constexpr const char* kVariable = "NEUROSHARD_MAX_INPUT";
constexpr std::int64_t kMaxInputBytes = std::int64_t{1} << 30;
constexpr std::int64_t kBytesPerJsonValue = 32;

}  // namespace

std::int64_t max_input_bytes() {
  const char* given = std::getenv(kVariable);
  if (given == nullptr || *given == '\0') return kMaxInputBytes;
  const std::int64_t bytes = parse_bytes(given, kVariable);
  if (bytes < 1) throw InputError(kVariable, "a size of at least one byte, e.g. 8GiB", given);
  return bytes;
}

std::int64_t max_json_values() { return 1 + max_input_bytes() / kBytesPerJsonValue; }

void fail_too_large(const std::string& place, const std::string& actual) {
  throw InputError(place,
                   fmt::format("at most {} ({})",
                               format_bytes(static_cast<double>(max_input_bytes())), kVariable),
                   actual);
}

}  // namespace neuroshard
