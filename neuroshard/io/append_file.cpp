// Files that grow line by line.
#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cassert>
#include <utility>

#include "neuroshard/io/file.h"
#include "neuroshard/io/file_detail.h"

namespace neuroshard {

namespace {

/// Reads as many bytes as there is room for, from `start` of a file that has them, however the
/// system divides them.
void read_all(int descriptor, off_t start, char* bytes, std::size_t size, const std::string& path) {
  while (size > 0) {
    const ssize_t count = ::pread(descriptor, bytes, size, start);
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) fail_read(path, errno);
    if (count == 0) throw InputError(path, "a readable file", "a shorter one");
    bytes += count;
    start += count;
    size -= static_cast<std::size_t>(count);
  }
}

/// The size of an open file.
off_t size_of(int descriptor, const std::string& path) {
  const off_t size = ::lseek(descriptor, 0, SEEK_END);
  if (size < 0) fail_to("to find its end", path, errno);
  return size;
}

/// Size of the file up to and with its last newline; `size` is all of it.
off_t size_of_whole_lines(int descriptor, off_t size, const std::string& path) {
  std::array<char, 1 << 16> chunk;
  for (off_t end = size; end > 0;) {
    const off_t start = std::max<off_t>(0, end - static_cast<off_t>(chunk.size()));
    const auto count = static_cast<std::size_t>(end - start);
    read_all(descriptor, start, chunk.data(), count, path);
    const std::string_view text(chunk.data(), count);
    if (const auto at = text.rfind('\n'); at != std::string_view::npos) {
      return start + static_cast<off_t>(at) + 1;
    }
    end = start;
  }
  return 0;
}

}  // namespace

AppendFile::AppendFile(const std::string& path) : path_(path) {
  constexpr int kFlags = O_RDWR | O_CREAT | O_APPEND | O_CLOEXEC;
  descriptor_ = ::open(path.c_str(), kFlags | O_EXCL, 0666);
  is_new_ = descriptor_ >= 0;
  if (descriptor_ < 0 && errno == EEXIST) descriptor_ = ::open(path.c_str(), kFlags, 0666);
  if (descriptor_ < 0) fail_to("to open it", path, errno);
  struct stat status {};
  regular_ = ::fstat(descriptor_, &status) == 0 && S_ISREG(status.st_mode);
  if (regular_ && ::flock(descriptor_, LOCK_EX | LOCK_NB) != 0) {
    const int error = errno;
    ::close(descriptor_);
    throw InputError(
        path, "a file that nobody else is writing",
        error == EWOULDBLOCK ? "one that another process appends to" : system_reason(error));
  }
}

AppendFile::~AppendFile() { ::close(descriptor_); }

std::size_t AppendFile::cut_truncated_line() {
  if (!regular_) return 0;
  const off_t size = size_of(descriptor_, path_);
  const off_t whole = size_of_whole_lines(descriptor_, size, path_);
  cut_to(static_cast<std::size_t>(whole));
  return static_cast<std::size_t>(size - whole);
}

void AppendFile::cut_to(std::size_t size) {
  if (!regular_ || std::cmp_less_equal(size_of(descriptor_, path_), size)) return;
  if (::ftruncate(descriptor_, static_cast<off_t>(size)) != 0) {
    fail_to("to cut off what is not whole", path_, errno);
  }
}

void AppendFile::append_line(std::string_view line) {
  assert(line.find('\n') == std::string_view::npos);
  std::string bytes(line);
  bytes += '\n';
  const off_t before = regular_ ? size_of(descriptor_, path_) : 0;
  const int error = write_all(descriptor_, bytes);  // one write, unless the disk is nearly full
  if (error == 0) return;
  if (regular_) (void)!::ftruncate(descriptor_, before);
  fail_write(path_, bytes.size(), error);
}

void AppendFile::remove_if_new() noexcept {
  if (is_new_) (void)::unlink(path_.c_str());
  is_new_ = false;
}

void AppendFile::sync() {
  if (regular_ && ::fdatasync(descriptor_) != 0) fail_to("to make lines permanent", path_, errno);
}

}  // namespace neuroshard
