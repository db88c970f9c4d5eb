// safetensors: 8 bytes of header size, a JSON header, then all tensors' bytes without gaps.
#include "neuroshard/io/safetensors.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <span>

#include "neuroshard/core/error.h"
#include "neuroshard/io/checksum.h"
#include "neuroshard/io/file.h"
#include "neuroshard/io/json/json.h"
#include "neuroshard/io/json/json_reader.h"

namespace neuroshard {

static_assert(std::endian::native == std::endian::little, "safetensors files are little-endian");

namespace {

constexpr std::size_t kSizeBytes = 8;
constexpr std::uint64_t kMaxHeaderBytes = 100'000'000;  // the public library's limit
constexpr std::string_view kMetadata = "__metadata__";

/// A tensor as the header declares it.
struct Entry {
  std::string name;
  bool is_double = false;
  std::vector<std::int64_t> shape;
  std::uint64_t num_values = 0;
  std::uint64_t begin = 0;  ///< first byte, from the start of the data
  std::uint64_t end = 0;
};

std::uint64_t product_of(const JsonReader& shape) {
  std::uint64_t product = 1;
  for (std::size_t i = 0; i < shape.array_size(); ++i) {
    const auto size = static_cast<std::uint64_t>(
        shape.element(i).integer(0, std::numeric_limits<std::int64_t>::max()));
    if (__builtin_mul_overflow(product, size, &product) || product > (std::uint64_t{1} << 48)) {
      shape.fail("a product of at most 2^48 values", "a larger one");
    }
  }
  return product;
}

Entry entry_from_json(const JsonReader& reader, const std::string& name, std::size_t data_size) {
  reader.allow_fields({"dtype", "shape", "data_offsets"});
  Entry entry;
  entry.name = name;
  const JsonReader type = reader.field("dtype");
  if (type.text() != "F32" && type.text() != "F64") type.fail("\"F32\" or \"F64\"");
  entry.is_double = type.text() == "F64";
  const JsonReader shape = reader.field("shape");
  entry.num_values = product_of(shape);
  for (std::size_t i = 0; i < shape.array_size(); ++i) {
    entry.shape.push_back(shape.element(i).integer());
  }
  const JsonReader offsets = reader.field("data_offsets");
  if (offsets.array_size() != 2) offsets.fail("a pair [begin, end]");
  const auto last = static_cast<std::int64_t>(data_size);
  entry.begin = static_cast<std::uint64_t>(offsets.element(0).integer(0, last));
  entry.end = static_cast<std::uint64_t>(offsets.element(1).integer(0, last));
  const std::uint64_t size = entry.num_values * (entry.is_double ? 8 : 4);
  if (entry.end < entry.begin || entry.end - entry.begin != size) {
    offsets.fail(fmt::format("{} bytes as the shape has {} values", size, entry.num_values),
                 fmt::format("[{}, {}]", entry.begin, entry.end));
  }
  return entry;
}

std::map<std::string, std::string> metadata_from_json(const JsonReader& reader) {
  std::map<std::string, std::string> metadata;
  reader.for_each_field([&](const std::string& key, const JsonReader& value) {
    metadata.emplace(key, value.text());
  });
  return metadata;
}

/// Fails unless the tensors follow each other without gap or overlap and fill the data.
void check_layout(std::vector<Entry>& entries, std::size_t data_size, const std::string& file) {
  std::stable_sort(entries.begin(), entries.end(), [](const Entry& a, const Entry& b) {
    return a.begin != b.begin ? a.begin < b.begin : a.end < b.end;
  });
  std::uint64_t next = 0;
  for (const Entry& entry : entries) {
    if (entry.begin != next) {
      throw InputError(
          fmt::format("{}: {}", file, field_place(field_place("", entry.name), "data_offsets")),
          fmt::format("a begin of {}, where the tensor before ends", next),
          fmt::to_string(entry.begin));
    }
    next = entry.end;
  }
  if (next != data_size) {
    throw InputError(file, fmt::format("{} bytes of tensor data", next), fmt::to_string(data_size));
  }
}

/// Fails unless every number lies within a float's range.
template <typename T>
void check_range(std::span<const T> values, const std::string& place) {
  const auto found = std::find_if(values.begin(), values.end(), [](T value) {
    return !(std::abs(value) <= std::numeric_limits<float>::max());
  });
  if (found == values.end()) return;
  throw InputError(fmt::format("{}[{}]", place, found - values.begin()),
                   "a finite number that a float can hold", fmt::to_string(*found));
}

/// The tensor's values, stored as T.
template <typename T>
std::vector<float> values_from_bytes(const Entry& entry, std::string_view data,
                                     const std::string& place) {
  std::vector<T> stored(entry.num_values);
  if (!stored.empty()) {
    std::memcpy(stored.data(), data.data() + entry.begin, stored.size() * sizeof(T));
  }
  check_range(std::span<const T>(stored), place);
  return std::vector<float>(stored.begin(), stored.end());
}

Tensor tensor_from_bytes(const Entry& entry, std::string_view data, const std::string& file) {
  const std::string place = fmt::format("{}: {}", file, field_place("", entry.name));
  return {entry.shape, entry.is_double ? values_from_bytes<double>(entry, data, place)
                                       : values_from_bytes<float>(entry, data, place)};
}

void check_checksum(const TensorFile& result, std::string_view data, const std::string& file,
                    ChecksumPolicy policy) {
  const auto stored = result.metadata.find(std::string(kDataChecksum));
  const std::string place = fmt::format("{}: {}.{}", file, kMetadata, kDataChecksum);
  if (stored == result.metadata.end()) {
    if (policy == ChecksumPolicy::if_present) return;
    throw InputError(place, "the checksum of the tensors", "nothing");
  }
  const std::string actual = sha256_hex(data);
  if (stored->second != actual) throw InputError(place, actual, in_quotes(stored->second));
}

/// The header's text; throws unless it lies within the file.
std::string_view header_of(std::string_view bytes, const std::string& file) {
  std::uint64_t size = 0;
  if (bytes.size() < kSizeBytes) {
    throw InputError(file, "a safetensors file, of at least 8 bytes",
                     fmt::format("{} bytes", bytes.size()));
  }
  std::memcpy(&size, bytes.data(), kSizeBytes);
  const std::uint64_t limit = std::min<std::uint64_t>(bytes.size() - kSizeBytes, kMaxHeaderBytes);
  if (size > limit) {
    throw InputError(file + ": header size", fmt::format("at most {} bytes", limit),
                     fmt::to_string(size));
  }
  return bytes.substr(kSizeBytes, size);
}

/// Appends the values' bytes to `data` and returns the tensor's entry in the header.
Json add_tensor(const std::string& name, const Tensor& tensor, std::string& data) {
  std::int64_t num_values = 1;
  for (const std::int64_t size : tensor.shape) num_values *= size;
  if (num_values != static_cast<std::int64_t>(tensor.values.size())) {
    throw InputError(field_place("", name), fmt::format("{} values to fill its shape", num_values),
                     fmt::to_string(tensor.values.size()));
  }
  check_range(std::span<const float>(tensor.values), field_place("", name));
  const std::size_t begin = data.size();
  if (num_values > 0) {
    data.append(reinterpret_cast<const char*>(tensor.values.data()),
                tensor.values.size() * sizeof(float));
  }
  Json entry;
  entry.set("dtype", "F32");
  entry.set("shape", Json::Array(tensor.shape.begin(), tensor.shape.end()));
  entry.set("data_offsets", Json::Array{begin, data.size()});
  return entry;
}

Json metadata_to_json(const TensorFile& file, std::string_view data) {
  std::map<std::string, std::string> metadata = file.metadata;
  metadata[std::string(kDataChecksum)] = sha256_hex(data);
  Json::Object members;
  for (const auto& [key, value] : metadata) members.push_back({key, value});
  return members;
}

}  // namespace

TensorFile parse_tensors(std::string_view bytes, const std::string& file, ChecksumPolicy policy) {
  const std::string_view header_text = header_of(bytes, file);
  const std::string_view data = bytes.substr(kSizeBytes + header_text.size());
  const Json header = parse_json(header_text, file + ": header", /*one_line=*/true);
  const JsonReader reader(header, file);

  TensorFile result;
  std::vector<Entry> entries;
  reader.for_each_field([&](const std::string& key, const JsonReader& value) {
    if (key == kMetadata) {
      result.metadata = metadata_from_json(value);
    } else {
      entries.push_back(entry_from_json(value, key, data.size()));
    }
  });
  check_layout(entries, data.size(), file);
  check_checksum(result, data, file, policy);
  for (const Entry& entry : entries) {
    result.tensors.emplace(entry.name, tensor_from_bytes(entry, data, file));
  }
  return result;
}

TensorFile read_tensors(const std::string& path, ChecksumPolicy policy) {
  return parse_tensors(read_file(path), path, policy);
}

std::string tensor_bytes(const TensorFile& file) {
  std::string data;
  Json::Object entries;
  for (const auto& [name, tensor] : file.tensors) {
    if (name == kMetadata) throw InputError("tensors", "another name", in_quotes(name));
    entries.push_back({name, add_tensor(name, tensor, data)});
  }
  entries.insert(entries.begin(), {std::string(kMetadata), metadata_to_json(file, data)});
  std::string header = to_line(entries);
  header.append((8 - header.size() % 8) % 8, ' ');  // so that the data are aligned
  const std::uint64_t size = header.size();
  std::string bytes(kSizeBytes, '\0');
  std::memcpy(bytes.data(), &size, kSizeBytes);
  return bytes + header + data;
}

void write_tensors(const TensorFile& file, const std::string& path) {
  write_file(path, tensor_bytes(file));
}

}  // namespace neuroshard
