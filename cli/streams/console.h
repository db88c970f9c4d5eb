// What the executable says on stderr: messages, each a line, and at most one line of progress,
// which a message wipes away first.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace neuroshard::cli {

/// How much is said on stderr; errors are always said.
enum class Verbosity {
  quiet,    ///< errors alone
  normal,   ///< and progress, notes and warnings
  verbose,  ///< and what was used: models, time, memory
};

/// Of the process, as stderr is.
void set_verbosity(Verbosity verbosity);
[[nodiscard]] Verbosity verbosity();

/// Prints whole lines to stderr as they are. What cannot be written is lost without an error: a
/// command whose result is there has not failed because nobody listens.
void say(std::string_view lines);

/// "neuroshard: ..." as one line, whatever the names and paths in it consist of.
void say_error(std::string_view message);

/// As `say`, unless quiet: what a command has done, where its result is a file.
void say_done(std::string_view lines);

/// A line "neuroshard: ..." each, if verbose.
void say_details(const std::vector<std::string>& lines);

/// Whether stderr is a terminal that can take a line back, and its width in characters.
struct Terminal {
  bool takes_lines_back = false;
  std::size_t columns = 80;
};
[[nodiscard]] Terminal terminal();

/// Puts the text in place of the line of progress; only on a terminal that can take it back.
void show_progress(std::string_view text);

/// Takes the line of progress away, if there is one. To be called before printing to stdout, which
/// may be the same terminal.
void wipe_progress();

}  // namespace neuroshard::cli
