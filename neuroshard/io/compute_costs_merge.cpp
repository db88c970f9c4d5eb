// Merging of cost files.
#include "neuroshard/io/compute_costs_merge.h"

#include <fmt/format.h>
#include <zlib.h>

#include <map>
#include <optional>

#include "neuroshard/core/error.h"
#include "neuroshard/io/compute_costs_io.h"
#include "neuroshard/io/file.h"

namespace neuroshard {

namespace {

std::string gzip(const std::string& text) {
  constexpr int kGzipWindow = 15 + 16;
  z_stream stream{};
  if (deflateInit2(&stream, Z_BEST_COMPRESSION, Z_DEFLATED, kGzipWindow, 9, Z_DEFAULT_STRATEGY) !=
      Z_OK) {
    throw MachineError("zlib: out of memory");
  }
  std::string result;
  std::string chunk(std::size_t{1} << 18, '\0');
  // zlib counts with 32 bits.
  constexpr std::size_t kMostAtOnce = std::size_t{1} << 30;
  std::size_t given = 0;
  int status = Z_OK;
  while (status != Z_STREAM_END) {
    if (stream.avail_in == 0 && given < text.size()) {
      stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(text.data() + given));
      stream.avail_in = static_cast<uInt>(std::min(text.size() - given, kMostAtOnce));
      given += stream.avail_in;
    }
    stream.next_out = reinterpret_cast<Bytef*>(chunk.data());
    stream.avail_out = static_cast<uInt>(chunk.size());
    status = deflate(&stream, given == text.size() ? Z_FINISH : Z_NO_FLUSH);
    result.append(chunk, 0, chunk.size() - stream.avail_out);
  }
  deflateEnd(&stream);
  return result;
}

/// The lines of all files.
struct Merging {
  std::optional<Json> header;
  std::map<std::int64_t, Json> lines;  ///< by number
  MergedCosts counts;
  std::optional<std::size_t> num_references;  ///< times of reference sets in a sample

  void add(const std::string& path) {
    const std::string text = read_maybe_compressed_file(path);
    require_as_many_references(parse_compute_costs(text, path), path);
    (void)read_json_lines(
        text, path, [&](const JsonReader& line) { add_header(line, path); },
        [&](const JsonReader& line) { add_sample(line); });
  }

 private:
  /// The reader refuses a file whose samples have several numbers of them.
  void require_as_many_references(const ComputeCosts& costs, const std::string& path) {
    if (costs.samples.empty()) return;
    const std::size_t own = costs.samples.front().reference_ms.size();
    if (!num_references) num_references = own;
    if (own == *num_references) return;
    throw InputError(path + ": reference_ms",
                     fmt::format("{} times, as in the first file", *num_references),
                     fmt::format("{}", own));
  }

  void add_header(const JsonReader& line, const std::string& path) {
    Json own = line.object();
    if (!header) {
      header = std::move(own);
      return;
    }
    const auto difference = first_difference(*header, own);
    if (difference.empty()) return;
    throw InputError(fmt::format("{}: line 1: {}", path, difference.front().place),
                     fmt::format("{} as in the first file", difference.front().expected),
                     difference.front().actual);
  }

  void add_sample(const JsonReader& line) {
    const std::int64_t index = line.field("index").integer();
    if (!lines.emplace(index, line.object()).second) {
      ++counts.repeated;
      return;
    }
    ++(line.optional_field("skipped") ? counts.skipped : counts.samples);
  }
};

}  // namespace

MergedCosts merge_compute_costs(const std::vector<std::string>& paths, const std::string& output) {
  if (paths.empty()) throw InputError("costs", "at least one file", "none");
  Merging merging;
  for (const std::string& path : paths) merging.add(path);
  std::string text = to_line(*merging.header) + '\n';
  for (const auto& [index, line] : merging.lines) text += to_line(line) + '\n';
  write_file(output, output.ends_with(".gz") ? gzip(text) : text);
  return merging.counts;
}

}  // namespace neuroshard
