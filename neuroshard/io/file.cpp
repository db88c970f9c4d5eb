// Files as a whole, with the system's reason in every error.
#include "neuroshard/io/file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <climits>
#include <cstdlib>
#include <memory>
#include <new>
#include <optional>
#include <utility>

#include "neuroshard/core/units.h"
#include "neuroshard/io/file_detail.h"
#include "neuroshard/io/input_limit.h"

namespace neuroshard {

namespace {

/// Closes a descriptor at the end of a scope.
struct Closer {
  int descriptor;
  ~Closer() { ::close(descriptor); }
};

constexpr std::size_t kReadChunk = std::size_t{1} << 18;

/// Whether a byte is left to read, which is gone then.
bool has_more(int descriptor, const std::string& path) {
  char byte = 0;
  for (;;) {
    const ssize_t count = ::read(descriptor, &byte, 1);
    if (count >= 0) return count > 0;
    if (errno != EINTR) fail_read(path, errno);
  }
}

/// Room for `size` bytes of the file at `path`.
void make_room(std::string& bytes, std::size_t size, const std::string& path) {
  require_memory(static_cast<double>(size), path, "to read it");
  try {
    bytes.reserve(size);
  } catch (const std::bad_alloc&) {
    throw MachineError(fmt::format("{}: expected {} of memory to read it, got none", path,
                                   format_bytes(static_cast<double>(size))));
  }
}

std::string folder_of(const std::string& path) {
  const std::size_t slash = path.rfind('/');
  if (slash == std::string::npos) return ".";
  return slash == 0 ? "/" : path.substr(0, slash);
}

/// The most links from one to the next that Linux follows.
constexpr int kMostLinks = 40;

/// What the symbolic link at `path` says; nothing if there is no link.
std::optional<std::string> link_at(const std::string& path) {
  std::string target(PATH_MAX, '\0');
  const ssize_t size = ::readlink(path.c_str(), target.data(), target.size());
  if (size < 0) return std::nullopt;
  target.resize(static_cast<std::size_t>(size));
  return target;
}

/// Whether the path is that of an open descriptor, which must not be renamed over, even where it
/// leads to a file. What else lies below /dev is a device, which its status tells, or a file like
/// any other, as in /dev/shm.
bool is_open_descriptor(const std::string& path) {
  constexpr std::array<std::string_view, 3> kStreams{"/dev/stdin", "/dev/stdout", "/dev/stderr"};
  return std::find(kStreams.begin(), kStreams.end(), path) != kStreams.end() ||
         path.starts_with("/dev/fd/") || path.starts_with("/proc/");
}

std::optional<struct stat> status_of(const std::string& path) {
  struct stat status {};
  if (::stat(path.c_str(), &status) != 0) return std::nullopt;
  return status;
}

/// Best effort: makes a rename in the folder permanent.
void sync_folder(const std::string& folder) {
  const int descriptor = ::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (descriptor < 0) return;
  (void)::fsync(descriptor);
  ::close(descriptor);
}

}  // namespace

std::string read_file(const std::string& path) {
  const int descriptor = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (descriptor < 0) fail_read(path, errno);
  const Closer closer{descriptor};
  const auto most = static_cast<std::size_t>(max_input_bytes());
  struct stat status {};
  std::string bytes;
  if (::fstat(descriptor, &status) == 0 && S_ISREG(status.st_mode)) {
    if (std::cmp_greater(status.st_size, most)) {
      fail_too_large(path, format_bytes(static_cast<double>(status.st_size)));
    }
    make_room(bytes, static_cast<std::size_t>(status.st_size) + 1, path);
  }
  for (;;) {
    const std::size_t size = bytes.size();
    if (size == most && has_more(descriptor, path)) fail_too_large(path, "more");
    if (size == most) return bytes;
    if (size == bytes.capacity()) make_room(bytes, size + std::max(size, kReadChunk), path);
    bytes.resize(std::min(bytes.capacity(), most));
    const ssize_t count = ::read(descriptor, bytes.data() + size, bytes.size() - size);
    const int error = errno;
    bytes.resize(size + (count > 0 ? static_cast<std::size_t>(count) : 0));
    if (count == 0) return bytes;
    if (count < 0 && error != EINTR) fail_read(path, error);
  }
}

std::string read_maybe_compressed_file(const std::string& path) {
  if (!path.ends_with(".gz")) return read_file(path);
  errno = 0;
  const std::unique_ptr<gzFile_s, decltype(&gzclose)> file(gzopen(path.c_str(), "rbe"), &gzclose);
  if (!file) fail_read(path, errno != 0 ? errno : ENOMEM);
  gzbuffer(file.get(), 1u << 18);
  const std::int64_t most = max_input_bytes();
  std::string bytes;
  std::string chunk(std::size_t{1} << 18, '\0');
  for (;;) {
    const int count = gzread(file.get(), chunk.data(), static_cast<unsigned>(chunk.size()));
    const int system_error = errno;
    int error = Z_OK;
    const char* reason = gzerror(file.get(), &error);
    if (error == Z_ERRNO) fail_read(path, system_error);
    if (error == Z_MEM_ERROR) fail_read(path, ENOMEM);
    if (count < 0 || error == Z_BUF_ERROR) throw InputError(path, "a whole gzip file", reason);
    if (count == 0) return bytes;
    const std::size_t size = bytes.size() + static_cast<std::size_t>(count);
    if (std::cmp_greater(size, most)) fail_too_large(path, "more when decompressed");
    if (size > bytes.capacity()) make_room(bytes, std::max(size, 2 * bytes.capacity()), path);
    bytes.append(chunk.data(), static_cast<std::size_t>(count));
  }
}

std::string with_links_followed(const std::string& path) {
  const std::unique_ptr<char, decltype(&std::free)> real(::realpath(path.c_str(), nullptr),
                                                         &std::free);
  if (real) return real.get();
  // The last link leads to no file yet.
  std::string followed = path;
  for (int links = 0; links < kMostLinks; ++links) {
    const std::optional<std::string> target = link_at(followed);
    if (!target) return followed;
    followed = target->starts_with('/') ? *target : folder_of(followed) + "/" + *target;
  }
  return path;
}

AtomicFile::AtomicFile(const std::string& path) : path_(path), target_(path) {
  // Of which the system would only know when it gets its name.
  if (path.empty()) fail_to("to open it", path, ENOENT);
  const std::optional<struct stat> status = status_of(path);
  if (status && S_ISDIR(status->st_mode)) throw InputError(path, "a file to write", "a folder");
  if ((status && !S_ISREG(status->st_mode)) || is_open_descriptor(path)) {
    descriptor_ = ::open(path.c_str(), O_WRONLY | O_APPEND | O_CLOEXEC);
    if (descriptor_ < 0) fail_to("to open it", path, errno);
    return;
  }
  if (status && ::access(path.c_str(), W_OK) != 0) fail_to("to write it", path, errno);
  if (!status && errno == ELOOP) fail_to("to follow its links", path, ELOOP);
  target_ = with_links_followed(path);
  open_temporary(status ? status->st_mode & 07777u : 0);
}

void AtomicFile::open_temporary(unsigned mode) {
  static std::atomic<unsigned> counter{0};
  do {
    temporary_ = fmt::format("{}/.neuroshard-{}-{}.tmp", folder_of(target_), ::getpid(),
                             counter.fetch_add(1));
    descriptor_ = ::open(temporary_.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
  } while (descriptor_ < 0 && errno == EEXIST);
  if (descriptor_ < 0) {
    const int error = errno;
    temporary_.clear();
    fail_to("to make a file next to it", path_, error);
  }
  if (mode != 0) (void)::fchmod(descriptor_, mode);
}

AtomicFile::~AtomicFile() {
  if (descriptor_ >= 0) ::close(descriptor_);
  if (!temporary_.empty()) ::unlink(temporary_.c_str());
}

void AtomicFile::write(std::string_view bytes) {
  size_ += bytes.size();
  if (const int error = write_all(descriptor_, bytes)) fail_write(path_, size_, error);
}

void AtomicFile::commit() {
  const bool direct = temporary_.empty();
  if (::fsync(descriptor_) != 0 && !(direct && (errno == EINVAL || errno == EROFS))) {
    fail_to(fmt::format("to make {} bytes permanent", size_), path_, errno);
  }
  const int closed = ::close(descriptor_);
  descriptor_ = -1;
  if (closed != 0) fail_write(path_, size_, errno);
  if (direct) return;
  if (::rename(temporary_.c_str(), target_.c_str()) != 0) {
    const int error = errno;
    // There may be hours of work in it, and the folder may let nobody rename.
    const std::string kept = fmt::format("; what was written is kept in {}", temporary_);
    temporary_.clear();
    fail_to("to give the new file its name", path_, error, kept);
  }
  temporary_.clear();
  sync_folder(folder_of(target_));
}

void write_file(const std::string& path, std::string_view bytes) {
  AtomicFile file(path);
  file.write(bytes);
  file.commit();
}

}  // namespace neuroshard
