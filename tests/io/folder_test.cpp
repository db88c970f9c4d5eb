// What is in a folder, and why it cannot be read.
#include "neuroshard/io/folder.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/io/io_test_util.h"
#include "tests/io/no_descriptors.h"

namespace neuroshard {
namespace {

TEST(Folder, PathsAreInOrderAndSayTheirFolder) {
  const TemporaryFolder folder;
  std::error_code error = std::make_error_code(std::errc::io_error);
  EXPECT_THAT(paths_in(folder.file(""), error), testing::IsEmpty());
  EXPECT_FALSE(error);
  for (const char* name : {"b", "a", ".c", "d e"}) write_file(folder.file(name), "");
  const std::vector<std::string> all{folder.file(".c"), folder.file("a"), folder.file("b"),
                                     folder.file("d e")};
  const std::string with_slash = folder.file("");
  EXPECT_EQ(paths_in(with_slash, error), all);
  EXPECT_EQ(paths_in(with_slash.substr(0, with_slash.size() - 1), error), all);
}

TEST(Folder, SaysWhyItCannotBeRead) {
  const TemporaryFolder folder;
  write_file(folder.file("a"), "");
  std::error_code error;
  EXPECT_THAT(paths_in(folder.file("missing"), error), testing::IsEmpty());
  EXPECT_EQ(error, std::errc::no_such_file_or_directory);
  EXPECT_THAT(paths_in(folder.file("a"), error), testing::IsEmpty());
  EXPECT_EQ(error, std::errc::not_a_directory);
  {
    const NoDescriptors none;
    (void)paths_in(folder.file(""), error);
  }
  EXPECT_EQ(error, std::errc::too_many_files_open);
}

}  // namespace
}  // namespace neuroshard
