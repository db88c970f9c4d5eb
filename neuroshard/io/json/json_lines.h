// JSON Lines files of measurements: a header line, then one line per sample; read, or continued.
#pragma once

#include <cstdint>
#include <functional>
#include <set>
#include <string>
#include <string_view>

#include "neuroshard/io/file.h"
#include "neuroshard/io/json/json.h"
#include "neuroshard/io/json/json_reader.h"

namespace neuroshard {

/// Reads one line; the reader's location is "file: line N".
using LineReader = std::function<void(const JsonReader& line)>;

/// Gives the first line to `read_header`, every other one to `read_sample`. Returns true if the
/// last line is truncated (no newline, not JSON), which an interrupted writer may leave; that line
/// is ignored. Throws InputError for anything else that is not JSON, an empty line included.
[[nodiscard]] bool read_json_lines(std::string_view text, const std::string& file,
                                   const LineReader& read_header, const LineReader& read_sample);

/// Appends samples to a file, a new one or one that an earlier run has left. Samples carry their
/// "index" in the run's seeded sequence, so that a later run knows what is done.
class JsonLinesWriter {
 public:
  /// A missing or empty file gets the header. In another one the first line, through
  /// `canonical_header`, must equal `header`; InputError names the first field that differs. Then
  /// every other whole line goes to `read_sample`, if it is given, which may refuse it. The file is
  /// not touched if it is refused; a truncated last line is cut off if it is accepted.
  JsonLinesWriter(const std::string& path, const Json& header,
                  const std::function<Json(const JsonReader&)>& canonical_header,
                  const LineReader& read_sample = {});

  /// The "index" of the samples that the file already had.
  [[nodiscard]] const std::set<std::int64_t>& done() const noexcept { return done_; }

  void append(const Json& sample) { file_.append_line(to_line(sample)); }
  void sync() { file_.sync(); }
  void remove_if_new() noexcept { file_.remove_if_new(); }

 private:
  void continue_file(std::string_view text, const std::string& path, const Json& header,
                     const std::function<Json(const JsonReader&)>& canonical_header,
                     const LineReader& read_sample);

  AppendFile file_;
  std::set<std::int64_t> done_;
};

}  // namespace neuroshard
