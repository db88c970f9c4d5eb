// JSON Lines: splits a file into lines and reads them one by one.
#include "neuroshard/io/json/json_lines.h"

#include <fmt/format.h>
#include <sys/stat.h>

#include <algorithm>

#include "neuroshard/core/error.h"

namespace neuroshard {

namespace {

struct Line {
  std::string_view text;
  bool complete;  ///< ended by a newline
};

/// Takes the first line off the text.
Line take_line(std::string_view& text) {
  const std::size_t newline = text.find('\n');
  const Line line{text.substr(0, newline), newline != std::string_view::npos};
  text.remove_prefix(line.complete ? newline + 1 : text.size());
  return line;
}

/// Whether the text is one whole JSON value.
bool is_json(std::string_view text) {
  try {
    (void)parse_json(text, "");
    return true;
  } catch (const InputError&) {
    return false;
  }
}

bool is_regular_file(const std::string& path) {
  struct stat status {};
  return ::stat(path.c_str(), &status) == 0 && S_ISREG(status.st_mode);
}

}  // namespace

bool read_json_lines(std::string_view text, const std::string& file, const LineReader& read_header,
                     const LineReader& read_sample) {
  std::size_t number = 0;
  do {
    const Line line = take_line(text);
    ++number;
    const bool is_header = number == 1;
    if (!is_header && !line.complete && !is_json(line.text)) return true;
    const std::string location = fmt::format("{}: line {}", file, number);
    const Json value = parse_json(line.text, location, true);
    const JsonReader reader(value, location);
    is_header ? read_header(reader) : read_sample(reader);
  } while (!text.empty());
  return false;
}

namespace {

/// The path, if lines can be appended to a file of that name; before the file is made.
const std::string& appendable(const std::string& path) {
  if (path.ends_with(".gz")) {
    throw InputError(path, "an uncompressed file to append to", "a name that ends in .gz");
  }
  return path;
}

/// Whether the last line is whole, be it without its newline, which an editor may have taken.
bool ends_whole(std::string_view text) {
  const std::size_t last = text.rfind('\n') + 1;
  return last == text.size() || (last > 0 && is_json(text.substr(last)));
}

}  // namespace

JsonLinesWriter::JsonLinesWriter(const std::string& path, const Json& header,
                                 const std::function<Json(const JsonReader&)>& canonical_header,
                                 const LineReader& read_sample)
    : file_(appendable(path)) {
  const std::string first_line = to_line(header);
  const std::string text = is_regular_file(path) ? read_file(path) : std::string();
  // Interrupted while the very first line was being written: nothing is lost by starting again.
  const bool is_new = text.find('\n') == std::string::npos && first_line.starts_with(text);
  if (!is_new) continue_file(text, path, header, canonical_header, read_sample);
  if (!is_new && ends_whole(text)) {
    if (!text.ends_with('\n')) file_.append_line("");
    return;
  }
  (void)file_.cut_truncated_line();
  if (!is_new) return;
  try {
    file_.append_line(first_line);
  } catch (...) {
    file_.remove_if_new();
    throw;
  }
}

void JsonLinesWriter::continue_file(std::string_view text, const std::string& path,
                                    const Json& header,
                                    const std::function<Json(const JsonReader&)>& canonical_header,
                                    const LineReader& read_sample) {
  const auto check_header = [&](const JsonReader& reader) {
    const auto difference = first_difference(header, canonical_header(reader));
    if (difference.empty()) return;
    throw InputError(
        fmt::format("{}: line 1: {}", path, difference.front().place),
        fmt::format("{} as in this run, to continue the file", difference.front().expected),
        difference.front().actual);
  };
  const auto note_index = [&](const JsonReader& sample) {
    if (read_sample) read_sample(sample);
    if (const auto index = sample.optional_field("index")) done_.insert(index->integer());
  };
  // What follows the last newline will be cut off unless it is whole, so it does not count.
  const std::size_t whole_lines = text.rfind('\n') + 1;
  if (whole_lines == 0) {
    throw InputError(path, "a file that begins with the header of this run",
                     in_quotes(text.substr(0, 40)));
  }
  const std::string_view kept = ends_whole(text) ? text : text.substr(0, whole_lines);
  (void)read_json_lines(kept, path, check_header, note_index);
}

}  // namespace neuroshard
