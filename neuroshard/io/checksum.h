// SHA-256, by which models, data and plans name the files they depend on.
#pragma once

#include <string>
#include <string_view>

namespace neuroshard {

/// SHA-256 of the bytes as 64 lower-case hexadecimal digits.
[[nodiscard]] std::string sha256_hex(std::string_view bytes);

/// SHA-256 of a file's bytes. Throws InputError if the file cannot be read, or not twice: a pipe.
[[nodiscard]] std::string sha256_file(const std::string& path);

}  // namespace neuroshard
