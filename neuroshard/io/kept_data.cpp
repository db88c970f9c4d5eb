// Files by what they begin with.
#include "neuroshard/io/kept_data.h"

#include <fmt/format.h>
#include <zlib.h>

#include <array>
#include <cstddef>
#include <filesystem>
#include <memory>
#include <optional>
#include <string_view>
#include <system_error>
#include <utility>

#include "neuroshard/core/error.h"
#include "neuroshard/io/json/json_peek.h"

namespace neuroshard {

namespace {

/// Of a file that is read for its format. A header that says which tables were drawn from has a
/// hundred thousand bytes, and the format may come after that.
constexpr std::size_t kBeginning = std::size_t{1} << 24;

/// Formats, by the beginning of their names, and what such a file is.
constexpr std::array<std::pair<std::string_view, std::string_view>, 5> kFormats{
    {{"neuroshard/compute-costs/", "measured computation costs that are there already"},
     {"neuroshard/communication-costs/", "communication costs that are there already"},
     {"neuroshard/comparison-journal/", "a comparison's journal that is there already"},
     {"neuroshard/runtime-costs/", "measured steps of TorchRec that are there already"},
     {"neuroshard/runtime-model/", "a model of TorchRec's runtime that is there already"}}};

/// The first bytes of a file, decompressed, up to a number.
std::string beginning_of(const std::string& path) {
  constexpr std::size_t kChunk = std::size_t{1} << 18;
  const std::unique_ptr<gzFile_s, decltype(&gzclose)> file(gzopen(path.c_str(), "rbe"), &gzclose);
  std::string bytes;
  while (file && bytes.size() < kBeginning) {
    const std::size_t size = bytes.size();
    bytes.resize(size + kChunk);
    const int count = gzread(file.get(), bytes.data() + size, static_cast<unsigned>(kChunk));
    bytes.resize(size + (count > 0 ? static_cast<std::size_t>(count) : 0));
    if (count <= 0) break;
  }
  return bytes;
}

/// A safetensors file begins with the length of its JSON header, in eight bytes with the lowest
/// first; no header has 2^48 bytes, and no text a zero byte.
bool begins_as_safetensors(std::string_view bytes) {
  constexpr std::size_t kSizeBytes = 8;
  if (bytes.size() <= kSizeBytes || bytes[6] != '\0' || bytes[7] != '\0') return false;
  const std::size_t first = bytes.find_first_not_of(" \t\r\n", kSizeBytes);
  return first != std::string_view::npos && bytes[first] == '{';
}

}  // namespace

std::string kept_data_at(const std::string& path) {
  std::error_code error;
  if (!std::filesystem::is_regular_file(path, error)) return "";
  const std::string bytes = beginning_of(path);
  if (begins_as_safetensors(bytes)) return "a model that is there already";
  // JSON Lines have it in their first line, documents anywhere among their fields.
  const std::optional<std::string> found = peek_text_field(bytes, "format");
  if (!found) return "";
  for (const auto& [format, words] : kFormats) {
    if (found->starts_with(format)) return std::string(words);
  }
  return "";
}

void refuse_to_replace_kept_data(const std::string& path, std::string_view permission) {
  if (std::string found = kept_data_at(path); !found.empty()) {
    throw InputError(path, fmt::format("a new file, or {}", permission), found);
  }
}

}  // namespace neuroshard
