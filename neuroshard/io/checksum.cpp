// SHA-256 through OpenSSL.
#include "neuroshard/io/checksum.h"

#include <fmt/format.h>
#include <openssl/evp.h>

#include <array>
#include <filesystem>
#include <system_error>

#include "neuroshard/core/error.h"
#include "neuroshard/io/file.h"

namespace neuroshard {

std::string sha256_hex(std::string_view bytes) {
  std::array<unsigned char, EVP_MAX_MD_SIZE> digest{};
  unsigned size = 0;
  if (EVP_Digest(bytes.data(), bytes.size(), digest.data(), &size, EVP_sha256(), nullptr) != 1) {
    throw MachineError(
        "SHA-256: expected OpenSSL to compute it, got a failure, as where memory "
        "is out");
  }
  std::string text;
  for (unsigned i = 0; i < size; ++i) text += fmt::format("{:02x}", digest[i]);
  return text;
}

std::string sha256_file(const std::string& path) {
  // Of a pipe whose bytes have been read there would be the checksum of nothing.
  std::error_code error;
  if (const auto status = std::filesystem::status(path, error); std::filesystem::is_other(status)) {
    throw InputError(path, "a file that can be read twice, for its SHA-256 too",
                     "a pipe or a device");
  }
  return sha256_hex(read_file(path));
}

}  // namespace neuroshard
