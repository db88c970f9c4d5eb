// Files: whole or not at all, and the system's reason when it refuses.
#include "neuroshard/io/file.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>

#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <filesystem>

#include "io_test_util.h"
#include "neuroshard/io/checksum.h"
#include "neuroshard/io/json/json.h"
#include "neuroshard/io/json/json_lines.h"
#include "no_descriptors.h"

namespace neuroshard {
namespace {

/// While it lives no file can grow beyond `bytes`, to simulate a full disk.
class FileSizeLimit {
 public:
  explicit FileSizeLimit(rlim_t bytes) {
    previous_handler_ = std::signal(SIGXFSZ, SIG_IGN);
    getrlimit(RLIMIT_FSIZE, &previous_);
    rlimit limit = previous_;
    limit.rlim_cur = bytes;
    setrlimit(RLIMIT_FSIZE, &limit);
  }
  ~FileSizeLimit() {
    setrlimit(RLIMIT_FSIZE, &previous_);
    (void)std::signal(SIGXFSZ, previous_handler_);
  }
  FileSizeLimit(const FileSizeLimit&) = delete;
  FileSizeLimit& operator=(const FileSizeLimit&) = delete;

 private:
  rlimit previous_{};
  void (*previous_handler_)(int);
};

TEST(WriteFile, ReplacesAndLeavesNoOtherFile) {
  const TemporaryFolder folder;
  const std::string path = folder.file("a.json");
  write_file(path, "old");
  chmod(path.c_str(), 0640);
  write_file(path, "new");
  EXPECT_EQ(read_file(path), "new");
  EXPECT_EQ(folder.num_files(), 1u);
  struct stat status {};
  ASSERT_EQ(stat(path.c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 0777u, 0640u);
}

TEST(WriteFile, WhatCannotTakeItsNameIsKept) {
  const TemporaryFolder folder;
  const std::string path = folder.file("a");
  std::string kept;
  {
    AtomicFile file(path);
    file.write("hours of work");
    for (const auto& entry : std::filesystem::directory_iterator(folder.file(""))) {
      kept = entry.path().filename().string();
    }
    std::filesystem::create_directory(path);  // a name that no file can take
    EXPECT_EQ(input_error([&] { file.commit(); }),
              path +
                  ": expected a writable file, got Is a directory; what was written is kept in " +
                  folder.file(kept));
  }
  EXPECT_THAT(kept, testing::StartsWith(".neuroshard-"));
  EXPECT_EQ(read_file(folder.file(kept)), "hours of work");
  EXPECT_EQ(folder.num_files(), 2u);
}

TEST(WriteFile, FollowsSymbolicLinks) {
  const TemporaryFolder folder;
  write_file(folder.file("real"), "old");
  std::filesystem::create_symlink("real", folder.file("link"));
  write_file(folder.file("link"), "new");
  EXPECT_TRUE(std::filesystem::is_symlink(folder.file("link")));
  EXPECT_EQ(read_file(folder.file("real")), "new");
}

TEST(WriteFile, WithoutCommitTheOldFileStays) {
  const TemporaryFolder folder;
  write_file(folder.file("a"), "old");
  {
    AtomicFile file(folder.file("a"));
    file.write("half of the new");
    EXPECT_EQ(folder.num_files(), 2u);
  }
  EXPECT_EQ(read_file(folder.file("a")), "old");
  EXPECT_EQ(folder.num_files(), 1u);
}

TEST(WriteFile, NamesPathAndReason) {
  const TemporaryFolder folder;
  const std::string missing = folder.file("none/plan.json");
  EXPECT_EQ(input_error([&] { write_file(missing, "x"); }),
            missing + ": expected a writable file, got No such file or directory");
  write_file(folder.file("file"), "");
  const std::string below_file = folder.file("file/plan.json");
  EXPECT_EQ(input_error([&] { write_file(below_file, "x"); }),
            below_file + ": expected a writable file, got Not a directory");
  const std::string a_folder = folder.file("");
  EXPECT_EQ(input_error([&] { write_file(a_folder, "x"); }),
            a_folder + ": expected a file to write, got a folder");
  EXPECT_EQ(input_error([&] { write_file("", "x"); }),
            ": expected a writable file, got No such file or directory");
}

TEST(WriteFile, RefusesReadOnlyFiles) {
  if (geteuid() == 0) GTEST_SKIP() << "root may write everything";
  const TemporaryFolder folder;
  write_file(folder.file("a"), "old");
  chmod(folder.file("a").c_str(), 0444);
  EXPECT_EQ(input_error([&] { write_file(folder.file("a"), "x"); }),
            folder.file("a") + ": expected a writable file, got Permission denied");
}

TEST(WriteFile, AFullDiskIsBadInputAndLeavesTheOldFile) {
  const TemporaryFolder folder;
  write_file(folder.file("a"), "old");
  {
    const FileSizeLimit limit(1000);
    EXPECT_EQ(input_error([&] { write_file(folder.file("a"), std::string(5000, 'x')); }),
              folder.file("a") + ": expected room to write 5000 bytes, got File too large");
  }
  EXPECT_EQ(read_file(folder.file("a")), "old");
  EXPECT_EQ(folder.num_files(), 1u);
}

TEST(WriteFile, WritesDevicesDirectly) {
  write_file("/dev/null", "x");
  EXPECT_TRUE(std::filesystem::is_character_file("/dev/null"));
  EXPECT_EQ(input_error([] { write_file("/dev/full", "four"); }),
            "/dev/full: expected room to write 4 bytes, got No space left on device");
}

/// A folder among the devices, removed at the end of a scope.
struct FolderOfSharedMemory {
  std::string path = "/dev/shm/neuroshard-XXXXXX";
  const bool is_made = mkdtemp(path.data()) != nullptr;

  FolderOfSharedMemory() = default;
  ~FolderOfSharedMemory() {
    if (is_made) std::filesystem::remove_all(path);
  }
  FolderOfSharedMemory(const FolderOfSharedMemory&) = delete;
  FolderOfSharedMemory& operator=(const FolderOfSharedMemory&) = delete;
};

TEST(WriteFile, FilesBelowDevAreMadeAndReplaced) {
  const FolderOfSharedMemory folder;
  if (!folder.is_made) GTEST_SKIP() << "no folder can be made in /dev/shm";
  const std::string path = folder.path + "/a.json";
  EXPECT_EQ(input_error([&] { write_file(path, "longer than the new"); }), "no error");
  EXPECT_EQ(input_error([&] { write_file(path, "new"); }), "no error");
  ASSERT_TRUE(std::filesystem::exists(path));
  EXPECT_EQ(read_file(path), "new");
  const std::string missing = "/dev/no-such-folder/a.json";
  EXPECT_EQ(input_error([&] { write_file(missing, "x"); }),
            missing + ": expected a writable file, got No such file or directory");
}

TEST(WriteFile, AnOpenDescriptorOfAFileStaysThatOfTheFile) {
  const TemporaryFolder folder;
  const std::string path = folder.file("a");
  const int descriptor = ::open(path.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
  ASSERT_GE(descriptor, 0);
  for (const char* names : {"/dev/fd/", "/proc/self/fd/"}) {
    write_file(names + std::to_string(descriptor), "x");
  }
  struct stat status {};
  EXPECT_EQ(::fstat(descriptor, &status), 0);
  EXPECT_EQ(status.st_size, 2);
  EXPECT_EQ(status.st_nlink, 1u);
  ::close(descriptor);
}

TEST(ReadFile, NamesPathAndReason) {
  const TemporaryFolder folder;
  EXPECT_EQ(input_error([&] { (void)read_file(folder.file("none")); }),
            folder.file("none") + ": expected a readable file, got No such file or directory");
  EXPECT_EQ(input_error([&] { (void)read_file(folder.file("")); }),
            folder.file("") + ": expected a readable file, got Is a directory");
}

TEST(ReadFile, ReadsEverySize) {
  const TemporaryFolder folder;
  for (const std::size_t size : {0, 1, 262'143, 262'144, 262'145, 1'000'000}) {
    const std::string bytes(size, 'x');
    write_file(folder.file("a"), bytes);
    EXPECT_EQ(read_file(folder.file("a")), bytes);
  }
}

void write_gzip(const std::string& path, const std::string& bytes) {
  gzFile file = gzopen(path.c_str(), "wb");
  ASSERT_NE(file, nullptr);
  gzwrite(file, bytes.data(), static_cast<unsigned>(bytes.size()));
  gzclose(file);
}

/// Sets the limit of inputs until the end of a scope.
struct InputLimit {
  explicit InputLimit(const char* limit) { ::setenv("NEUROSHARD_MAX_INPUT", limit, 1); }
  ~InputLimit() { ::unsetenv("NEUROSHARD_MAX_INPUT"); }
  InputLimit(const InputLimit&) = delete;
  InputLimit& operator=(const InputLimit&) = delete;
};

TEST(ReadFile, RefusesMoreThanTheLimit) {
  const TemporaryFolder folder;
  const std::string path = folder.file("a");
  write_file(path, std::string(4096, 'x'));
  const InputLimit limit("2KiB");
  EXPECT_EQ(input_error([&] { (void)read_file(path); }),
            path + ": expected at most 2.00 KiB (NEUROSHARD_MAX_INPUT), got 4.00 KiB");
  EXPECT_EQ(input_error([] { (void)read_file("/dev/zero"); }),
            "/dev/zero: expected at most 2.00 KiB (NEUROSHARD_MAX_INPUT), got more");
  const InputLimit enough("4KiB");
  EXPECT_EQ(read_file(path).size(), 4096);
}

TEST(ReadFile, RefusesWhatDecompressesToMoreThanTheLimit) {
  const TemporaryFolder folder;
  const std::string path = folder.file("a.gz");
  gzFile file = gzopen(path.c_str(), "wb9");
  const std::string zeros(1 << 20, '\0');
  for (int i = 0; i < 16; ++i) gzwrite(file, zeros.data(), static_cast<unsigned>(zeros.size()));
  gzclose(file);
  const InputLimit limit("1MiB");
  EXPECT_EQ(
      input_error([&] { (void)read_maybe_compressed_file(path); }),
      path + ": expected at most 1.00 MiB (NEUROSHARD_MAX_INPUT), got more when decompressed");
}

TEST(ReadFile, RefusesALimitThatIsNone) {
  for (const char* text : {"much", "0", "-1GiB", "1e300GiB"}) {
    const InputLimit limit(text);
    EXPECT_THAT(input_error([] { (void)read_file("/dev/null"); }),
                testing::HasSubstr("NEUROSHARD_MAX_INPUT: expected"))
        << text;
  }
}

TEST(ParseJson, RefusesMoreValuesThanTheLimit) {
  const InputLimit limit("320");
  EXPECT_EQ(to_line(parse_json("[0,0,0,0,0,0,0,0,0,0]", "a.json")),
            "[0, 0, 0, 0, 0, 0, 0, 0, 0, 0]");
  EXPECT_EQ(input_error([] { (void)parse_json("[0,0,0,0,0,0,0,0,0,0,0]", "a.json"); }),
            "a.json: expected at most 11 values (NEUROSHARD_MAX_INPUT), got more");
  EXPECT_THROW((void)parse_json("[[[[[[[[[[[[]]]]]]]]]]]]", "a.json"), InputError);
}

TEST(ReadMaybeCompressedFile, Decompresses) {
  const TemporaryFolder folder;
  const std::string bytes(1'000'000, 'x');
  write_gzip(folder.file("a.gz"), bytes);
  EXPECT_EQ(read_maybe_compressed_file(folder.file("a.gz")), bytes);
  const std::string whole = read_file(folder.file("a.gz"));
  write_file(folder.file("half.gz"), whole.substr(0, whole.size() / 2));
  EXPECT_THAT(input_error([&] { (void)read_maybe_compressed_file(folder.file("half.gz")); }),
              testing::HasSubstr("expected a whole gzip file, got "));
  std::string damaged = whole;
  damaged[damaged.size() / 2] ^= 0x55;
  write_file(folder.file("damaged.gz"), damaged);
  EXPECT_THAT(input_error([&] { (void)read_maybe_compressed_file(folder.file("damaged.gz")); }),
              testing::HasSubstr("expected a whole gzip file, got "));
  EXPECT_THAT(input_error([&] { (void)read_maybe_compressed_file(folder.file("none.gz")); }),
              testing::HasSubstr("expected a readable file, got No such file or directory"));
  std::filesystem::create_directory(folder.file("folder.gz"));
  EXPECT_THAT(input_error([&] { (void)read_maybe_compressed_file(folder.file("folder.gz")); }),
              testing::HasSubstr("expected a readable file, got Is a directory"));
}

/// Of a file that is read whole; "" if reading it is no error of the machine.
std::string machine_error(const std::string& path) {
  try {
    (void)read_maybe_compressed_file(path);
  } catch (const MachineError& error) {
    EXPECT_EQ(error.exit_code(), 3);
    return error.what();
  } catch (const InputError& error) {
    ADD_FAILURE() << error.what();
  }
  return "";
}

TEST(ReadMaybeCompressedFile, AFailingDeviceIsNoBadInput) {
  // Nothing is mapped at the first address, so that reading there is an error of input and output.
  constexpr const char* kFailing = "/proc/self/mem";
  const int descriptor = ::open(kFailing, O_RDONLY | O_CLOEXEC);
  char byte = 0;
  const bool fails = descriptor >= 0 && ::read(descriptor, &byte, 1) < 0 && errno == EIO;
  if (descriptor >= 0) ::close(descriptor);
  if (!fails) GTEST_SKIP() << "no file that cannot be read";
  const TemporaryFolder folder;
  for (const char* name : {"a.jsonl", "a.jsonl.gz"}) {
    std::filesystem::create_symlink(kFailing, folder.file(name));
    EXPECT_EQ(machine_error(folder.file(name)),
              folder.file(name) + ": expected a readable file, got Input/output error");
  }
}

TEST(AppendFile, CutsOffWhatComesAfterSomeBytes) {
  const TemporaryFolder folder;
  const std::string path = folder.file("a.jsonl");
  write_file(path, "one\ntwo\nthr");
  AppendFile file(path);
  file.cut_to(100);
  EXPECT_EQ(read_file(path), "one\ntwo\nthr");
  file.cut_to(4);
  file.append_line("2");
  EXPECT_EQ(read_file(path), "one\n2\n");
  AppendFile device("/dev/null");
  device.cut_to(0);
}

TEST(AppendFile, CutsOffATruncatedLine) {
  const TemporaryFolder folder;
  const std::string path = folder.file("a.jsonl");
  const std::string long_line(200'000, 'y');
  for (const std::string& tail : {std::string(), std::string("half"), long_line}) {
    write_file(path, "one\ntwo\n" + tail);
    AppendFile file(path);
    EXPECT_EQ(file.cut_truncated_line(), tail.size());
    file.append_line("three");
    file.sync();
    EXPECT_EQ(read_file(path), "one\ntwo\nthree\n");
  }
  write_file(path, "no newline");
  AppendFile file(path);
  EXPECT_EQ(file.cut_truncated_line(), 10u);
  EXPECT_EQ(read_file(path), "");
}

TEST(AppendFile, TakesBackALineThatDoesNotFit) {
  const TemporaryFolder folder;
  const std::string path = folder.file("a.jsonl");
  AppendFile file(path);
  file.append_line("one");
  {
    const FileSizeLimit limit(10);
    EXPECT_EQ(input_error([&] { file.append_line("a long line"); }),
              path + ": expected room to write 12 bytes, got File too large");
  }
  EXPECT_EQ(read_file(path), "one\n");
  file.append_line("a long line");
  EXPECT_EQ(read_file(path), "one\na long line\n");
}

TEST(ReadFile, AMachineWithoutDescriptorsSaysNothingOfTheFile) {
#ifdef __SANITIZE_ADDRESS__
  GTEST_SKIP() << "UBSan needs descriptors to look at objects";
#endif
  const TemporaryFolder folder;
  const std::string path = folder.file("a.json");
  write_file(path, "{}");
  const NoDescriptors limit;
  try {
    (void)read_file(path);
    FAIL() << "expected an error";
  } catch (const MachineError& error) {
    EXPECT_EQ(error.what(), path + ": expected a readable file, got Too many open files");
  }
}

TEST(JsonLinesWriter, AHeaderThatDoesNotFitLeavesNoNewFile) {
  const TemporaryFolder folder;
  const std::string path = folder.file("a.jsonl");
  const auto write_header = [&] {
    const FileSizeLimit limit(10);
    const JsonLinesWriter writer(path, Json(Json::Object{{"format", "longer than ten bytes"}}),
                                 [](const JsonReader&) { return Json(); });
  };
  EXPECT_THAT(input_error(write_header), testing::HasSubstr("expected room to write"));
  EXPECT_EQ(folder.num_files(), 0U);
  write_file(path, "");
  EXPECT_THAT(input_error(write_header), testing::HasSubstr("expected room to write"));
  EXPECT_EQ(folder.num_files(), 1U) << "it was there before";
}

TEST(AppendFile, RefusesASecondWriter) {
  const TemporaryFolder folder;
  const std::string path = folder.file("a.jsonl");
  const AppendFile first(path);
  EXPECT_EQ(input_error([&] { const AppendFile second(path); }),
            path +
                ": expected a file that nobody else is writing, got one that another process "
                "appends to");
}

TEST(AppendFile, NamesPathAndReason) {
  const TemporaryFolder folder;
  EXPECT_EQ(input_error([&] { const AppendFile file(folder.file("none/a")); }),
            folder.file("none/a") + ": expected a writable file, got No such file or directory");
  EXPECT_EQ(input_error([] { AppendFile("/dev/full").append_line("x"); }),
            "/dev/full: expected room to write 2 bytes, got No space left on device");
}

TEST(Sha256, MatchesPublishedVectors) {  // FIPS 180-2, appendix B
  EXPECT_EQ(sha256_hex(""), "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
  EXPECT_EQ(sha256_hex("abc"), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
  const TemporaryFolder folder;
  write_file(folder.file("abc"), "abc");
  EXPECT_EQ(sha256_file(folder.file("abc")), sha256_hex("abc"));
}

TEST(Sha256, OfAPipeThatHasBeenReadThereIsNone) {
  int ends[2] = {};
  ASSERT_EQ(::pipe(ends), 0);
  ::close(ends[1]);
  const std::string path = "/dev/fd/" + std::to_string(ends[0]);
  EXPECT_EQ(input_error([&] { (void)sha256_file(path); }),
            path +
                ": expected a file that can be read twice, for its SHA-256 too, got a pipe or a "
                "device");
  ::close(ends[0]);
}

}  // namespace
}  // namespace neuroshard
