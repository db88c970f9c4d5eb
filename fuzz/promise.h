// What every reader promises: a value that keeps its invariants, or a refusal in one printable
// line. Anything else is a violation.
#pragma once

#include <algorithm>
#include <stdexcept>
#include <string>
#include <string_view>

#include "neuroshard/core/error.h"
#include "neuroshard/core/text/utf8.h"

namespace neuroshard::fuzz {

/// A promise was not kept; what() says which.
class Violation : public std::logic_error {
 public:
  using std::logic_error::logic_error;
};

inline void require(bool ok, std::string_view what) {
  if (!ok) throw Violation("violated: " + std::string(what));
}

inline bool is_utf8(std::string_view text) {
  for (std::size_t i = 0; i < text.size();) {
    const std::size_t length = utf8_length(text, i);
    if (length == 0) return false;
    i += length;
  }
  return true;
}

/// A message has one line, no control characters, UTF-8 alone, and an end.
inline void require_message(std::string_view message) {
  const bool printable = std::none_of(message.begin(), message.end(), [](char c) {
    return static_cast<unsigned char>(c) < 0x20 || c == 0x7f;
  });
  require(!message.empty(), "a message says something");
  require(printable, "a message is one printable line");
  require(is_utf8(message), "a message is UTF-8");
  require(message.size() < 20'000, "a message is short");
}

/// Runs a reader and the check of its result. Returns false if it refused the input, by an
/// InputError that names `file`.
template <typename Body>
bool accept_or_refuse(const Body& body, const std::string& file = "f") {
  try {
    body();
    return true;
  } catch (const InputError& error) {
    const std::string_view message = error.what();
    require_message(message);
    require(message.starts_with(file + ": "), "a message names the file");
    return false;
  }
}

/// Runs what goes on with a value that was read. Returns false if it ended with one of the
/// library's own errors: the answer is no, or an input does not go with another.
template <typename Body>
bool answered(const Body& body) {
  try {
    body();
    return true;
  } catch (const Error& error) {
    require_message(error.what());
    return false;
  }
}

}  // namespace neuroshard::fuzz
