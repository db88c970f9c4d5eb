// Helpers of the tests of io: temporary files, golden files, and malformed variants of a text.
#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <functional>
#include <string>
#include <string_view>

#include "neuroshard/core/error.h"
#include "neuroshard/io/file.h"

namespace neuroshard {

/// A folder for one test, removed at its end.
class TemporaryFolder {
 public:
  TemporaryFolder() {
    std::string pattern = (std::filesystem::temp_directory_path() / "neuroshard-XXXXXX").string();
    path_ = mkdtemp(pattern.data());
  }
  ~TemporaryFolder() { std::filesystem::remove_all(path_); }
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;

  [[nodiscard]] std::string file(std::string_view name) const {
    return path_ + "/" + std::string(name);
  }
  [[nodiscard]] std::size_t num_files() const {
    const std::filesystem::directory_iterator files(path_);
    return static_cast<std::size_t>(std::distance(begin(files), end(files)));
  }

 private:
  std::string path_;
};

/// Message of the InputError that `action` throws; its exit code must be 2.
inline std::string input_error(const std::function<void()>& action) {
  try {
    action();
  } catch (const InputError& error) {
    EXPECT_EQ(error.exit_code(), 2);
    return error.what();
  }
  return "no error";
}

/// The golden file's bytes. With NEUROSHARD_UPDATE_GOLDEN set, `written` becomes the golden file.
inline std::string golden(std::string_view name, std::string_view written) {
  const std::string path =
      std::string(NEUROSHARD_SOURCE_DIR) + "/tests/io/golden/" + std::string(name);
  if (std::getenv("NEUROSHARD_UPDATE_GOLDEN")) write_file(path, written);
  return read_file(path);
}

/// `text` with its only occurrence of `from` replaced.
inline std::string replaced(std::string text, std::string_view from, std::string_view to) {
  const std::size_t at = text.find(from);
  EXPECT_NE(at, std::string::npos) << from;
  EXPECT_EQ(text.find(from, at + 1), std::string::npos) << from;
  return at == std::string::npos ? text : text.replace(at, from.size(), to);
}

/// A malformed variant of a valid text, and the whole message that it must lead to.
struct Malformed {
  std::string_view from;
  std::string_view to;
  std::string_view message;
};

}  // namespace neuroshard
