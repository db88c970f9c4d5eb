// How much is read, or made in memory, before it is refused, so that no input takes all memory.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace neuroshard {

/// Most bytes of a file, decompressed: 1 GiB, or what the environment variable NEUROSHARD_MAX_INPUT
/// says, e.g. "8GiB". Throws InputError for a variable that is not a size of at least one byte.
[[nodiscard]] std::int64_t max_input_bytes();

/// Most values of one JSON text, a 32nd of `max_input_bytes()`: a value of two characters takes 40
/// bytes of memory.
[[nodiscard]] std::int64_t max_json_values();

/// Throws InputError "<place>: expected at most 1.00 GiB (NEUROSHARD_MAX_INPUT), got <actual>".
[[noreturn]] void fail_too_large(const std::string& place, const std::string& actual);

/// Throws MachineError "<place>: expected 3.20 GiB of memory free <purpose>, got 1.00 GiB" where
/// the process may not take so many bytes more, by what the machine has free and its limits leave.
/// Nothing is asked for less than a MiB.
void require_memory(double bytes, std::string_view place, std::string_view purpose);

}  // namespace neuroshard
