// Named arrays of numbers in the public safetensors format, in which models are stored
// (https://github.com/huggingface/safetensors, docs/formats.md).
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace neuroshard {

/// An array in row-major order; `values` has as many elements as the product of `shape`.
struct Tensor {
  std::vector<std::int64_t> shape;
  std::vector<float> values;

  friend bool operator==(const Tensor&, const Tensor&) = default;
};

struct TensorFile {
  std::map<std::string, std::string> metadata;
  std::map<std::string, Tensor> tensors;

  friend bool operator==(const TensorFile&, const TensorFile&) = default;
};

/// The metadata entry with the SHA-256 of all tensors' bytes. The writer sets it.
inline constexpr std::string_view kDataChecksum = "data_sha256";

/// Whether a file must have the checksum; where there is one it is always verified.
enum class ChecksumPolicy { if_present, required };

/// Reads F32 and F64 (rounded to float) tensors. Throws InputError "file: place: expected ..., got
/// ..." unless the file is whole and consistent and every number in it finite.
[[nodiscard]] TensorFile read_tensors(const std::string& path,
                                      ChecksumPolicy policy = ChecksumPolicy::required);

/// As `read_tensors`; `file` names the bytes in errors.
[[nodiscard]] TensorFile parse_tensors(std::string_view bytes, const std::string& file,
                                       ChecksumPolicy policy = ChecksumPolicy::required);

/// Writes F32 tensors, in order of their names, and the checksum. Throws InputError if a tensor's
/// values do not fill its shape or are not finite.
void write_tensors(const TensorFile& file, const std::string& path);
[[nodiscard]] std::string tensor_bytes(const TensorFile& file);

}  // namespace neuroshard
