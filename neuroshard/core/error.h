// The errors that cross a public boundary: what was wrong, where, and the exit code it leads to.
#pragma once

#include <stdexcept>
#include <string>

namespace neuroshard {

/// Base of every error that the library throws on purpose. `exit_code()` is the command line's, and
/// `what()` one line of UTF-8 that a terminal shows and does not obey, whatever names and paths in
/// the message consist of (core/text/printable.h).
class Error : public std::runtime_error {
 public:
  Error(const std::string& message, int exit_code);
  [[nodiscard]] int exit_code() const noexcept { return exit_code_; }

 private:
  int exit_code_;
};

/// Bad input or usage (exit code 2). One line: "file: place: expected X, got Y".
class InputError : public Error {
 public:
  explicit InputError(const std::string& message) : Error(message, 2) {}

  /// `place` names the field in the user's own terms, e.g. "tables[3].embedding_dim".
  /// An error raised below io does not know the file; io adds it with `in_file`.
  InputError(const std::string& place, const std::string& expected, const std::string& actual)
      : Error(place + ": expected " + expected + ", got " + actual, 2) {}

  [[nodiscard]] InputError in_file(const std::string& file) const {
    return InputError(file + ": " + what());
  }
};

/// The question was understood and the answer is no, e.g. no feasible plan (exit code 1).
class InfeasibleError : public Error {
 public:
  explicit InfeasibleError(const std::string& message) : Error(message, 1) {}
};

/// The machine failed: out of memory, full disk, device error (exit code 3).
class MachineError : public Error {
 public:
  explicit MachineError(const std::string& message) : Error(message, 3) {}
};

/// No memory for one piece of work; a smaller one may well fit.
class OutOfMemory : public MachineError {
 public:
  using MachineError::MachineError;
};

}  // namespace neuroshard
