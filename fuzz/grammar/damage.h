// What is done to well-formed inputs: values at the edges of what is allowed and beyond, and
// structure that is nearly right.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "fuzz/grammar/json_text.h"
#include "neuroshard/core/numbers/random.h"

namespace neuroshard::fuzz {

/// Whether something happens that happens once in `n` times.
[[nodiscard]] inline bool once_in(std::uint64_t n, Random& random) { return random.below(n) == 0; }

template <typename Values>
[[nodiscard]] auto one_of(const Values& values, Random& random) {
  return values[random.below(std::size(values))];
}

/// Of every order of magnitude alike, and in one of eight cases one of the limits.
[[nodiscard]] std::int64_t integer_between(std::int64_t low, std::int64_t high, Random& random);
/// Likewise; above 0.
[[nodiscard]] double number_between(double low, double high, Random& random);

/// A token: a number at the edges of 32 and 64 bits and of a double, or one that JSON has not.
[[nodiscard]] std::string extreme_number(Random& random);

/// Bytes that a terminal, a page, a format string or a decoder of UTF-8 would take for its own.
[[nodiscard]] std::string hostile_text(Random& random);
/// The same without bytes that are not UTF-8, so that JSON may have it.
[[nodiscard]] std::string odd_name(Random& random);

/// One change of a value or of the structure, somewhere in the tree.
void damage(JsonText& root, Random& random);

/// One change of bytes: bits flipped, ranges removed, repeated or replaced, the end cut off.
void damage_bytes(std::string& bytes, Random& random);

/// The text of the tree: in a third of the cases as it is, in the others with one to three changes
/// of its values and structure or, rarely, of its bytes.
[[nodiscard]] std::string damaged_text(JsonText root, Random& random);

/// The same of a file of lines, of which lines may also be missing, empty, joined, twice or in
/// another order, and the last one without its end.
[[nodiscard]] std::string damaged_lines(std::vector<JsonText> lines, Random& random);

}  // namespace neuroshard::fuzz
