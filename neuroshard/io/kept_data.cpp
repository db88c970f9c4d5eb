// Files by their first bytes.
#include "neuroshard/io/kept_data.h"

#include <zlib.h>

#include <array>
#include <cstddef>
#include <filesystem>
#include <memory>
#include <string_view>
#include <system_error>
#include <utility>

#include "neuroshard/core/error.h"

namespace neuroshard {

namespace {

/// Enough for the format, which is the first field of a header.
constexpr std::size_t kBeginning = 4096;

/// Formats of JSON Lines, by the beginning of their names, and what such a file is.
constexpr std::array<std::pair<std::string_view, std::string_view>, 4> kFormats{
    {{"neuroshard/compute-costs/", "measured computation costs that are there already"},
     {"neuroshard/communication-costs/", "communication costs that are there already"},
     {"neuroshard/comparison-journal/", "a comparison's journal that is there already"},
     {"neuroshard/runtime-costs/", "measured steps of TorchRec that are there already"}}};

/// The first bytes of a file, decompressed.
std::string beginning_of(const std::string& path) {
  const std::unique_ptr<gzFile_s, decltype(&gzclose)> file(gzopen(path.c_str(), "rbe"), &gzclose);
  std::string bytes(kBeginning, '\0');
  const int count = file ? gzread(file.get(), bytes.data(), static_cast<unsigned>(kBeginning)) : 0;
  bytes.resize(count > 0 ? static_cast<std::size_t>(count) : 0);
  return bytes;
}

/// A safetensors file begins with the length of its JSON header, in eight bytes with the lowest
/// first; no header has 2^48 bytes, and no text a zero byte.
bool begins_as_safetensors(std::string_view bytes) {
  return bytes.size() > 8 && bytes[6] == '\0' && bytes[7] == '\0' && bytes[8] == '{';
}

}  // namespace

std::string kept_data_at(const std::string& path) {
  std::error_code error;
  if (!std::filesystem::is_regular_file(path, error)) return "";
  const std::string bytes = beginning_of(path);
  if (begins_as_safetensors(bytes)) return "a model that is there already";
  const std::string_view line = std::string_view(bytes).substr(0, bytes.find('\n'));
  if (!line.starts_with('{') || line.find("\"format\"") == std::string_view::npos) return "";
  for (const auto& [format, words] : kFormats) {
    if (line.find(format) != std::string_view::npos) return std::string(words);
  }
  return "";
}

void refuse_to_replace_kept_data(const std::string& path) {
  if (std::string found = kept_data_at(path); !found.empty()) {
    throw InputError(path, "a new file, or --force", found);
  }
}

}  // namespace neuroshard
