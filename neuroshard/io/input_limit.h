// How much of a file is read before it is refused, so that no input takes all memory.
#pragma once

#include <cstdint>
#include <string>

namespace neuroshard {

/// Most bytes of a file, decompressed: 1 GiB, or what the environment variable NEUROSHARD_MAX_INPUT
/// says, e.g. "8GiB". Throws InputError for a variable that is not a size of at least one byte.
[[nodiscard]] std::int64_t max_input_bytes();

/// Most values of one JSON text, a 32nd of `max_input_bytes()`: a value of two characters takes 40
/// bytes of memory.
[[nodiscard]] std::int64_t max_json_values();

/// Throws InputError "<place>: expected at most 1.00 GiB (NEUROSHARD_MAX_INPUT), got <actual>".
[[noreturn]] void fail_too_large(const std::string& place, const std::string& actual);

}  // namespace neuroshard
