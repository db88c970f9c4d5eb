// The limit is of the process: libraries have no options for it.
#include "neuroshard/io/input_limit.h"

#include <fmt/format.h>

#include <cstdlib>

#include "neuroshard/core/error.h"
#include "neuroshard/core/machine/memory_limit.h"
#include "neuroshard/core/units.h"

namespace neuroshard {

namespace {

constexpr const char* kVariable = "NEUROSHARD_MAX_INPUT";
constexpr std::int64_t kMaxInputBytes = std::int64_t{1} << 30;
constexpr std::int64_t kBytesPerJsonValue = 32;

/// Nothing is asked for less, which is much more frequent.
constexpr double kLittleMemory = 1 << 20;

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

void require_memory(double bytes, std::string_view place, std::string_view purpose) {
  if (bytes < kLittleMemory) return;
  const auto available = static_cast<double>(available_memory_bytes());
  if (available <= 0.0 || bytes <= available) return;
  throw MachineError(fmt::format("{}: expected {} of memory free {}, got {}", place,
                                 format_bytes(bytes), purpose, format_bytes(available)));
}

}  // namespace neuroshard
