// Files as a whole: read at once, or written so that nobody ever sees half of one.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace neuroshard {

/// The bytes of a file. Throws InputError "path: expected a readable file, got <reason>", also for
/// more than `max_input_bytes()`, and MachineError if that is the machine's (EIO, no descriptors).
[[nodiscard]] std::string read_file(const std::string& path);

/// As `read_file`; a file whose name ends in ".gz" is decompressed. Throws InputError also if it is
/// not a whole gzip file.
[[nodiscard]] std::string read_maybe_compressed_file(const std::string& path);

/// Where bytes that are written to `path` come to lie: symbolic links are followed, also one that
/// leads to no file yet. A path that is no link is as it was.
[[nodiscard]] std::string with_links_followed(const std::string& path);

/// A file being written. Its bytes go to a temporary file in the same folder, which takes the name
/// `path` in `commit`; without a commit it is removed and an old file at `path` stays as it was.
/// A symbolic link stays one: the file that it leads to is written, whether it is there or not.
/// Anything but a regular file (a pipe, /dev/stdout) is written directly. Every member function
/// throws InputError if the folder is missing or not writable or the disk is full, and MachineError
/// if the device fails.
class AtomicFile {
 public:
  explicit AtomicFile(const std::string& path);
  ~AtomicFile();
  AtomicFile(const AtomicFile&) = delete;
  AtomicFile& operator=(const AtomicFile&) = delete;

  void write(std::string_view bytes);

  /// Makes the file and its name permanent (fsync, rename). If the system does not give it the
  /// name, the temporary file stays, and the error says where.
  void commit();

 private:
  void open_temporary(unsigned mode);

  std::string path_;       ///< as given, for messages
  std::string target_;     ///< `path_` with symbolic links followed
  std::string temporary_;  ///< empty if written directly
  int descriptor_ = -1;
  std::size_t size_ = 0;  ///< bytes given to `write` so far
};

/// Writes a whole file through AtomicFile.
void write_file(const std::string& path, std::string_view bytes);

/// A file of lines that grows at its end and survives being interrupted: a line is one write, and
/// a line that could not be written whole is taken back. Locked against a second writer.
class AppendFile {
 public:
  /// Opens or creates the file. Throws InputError if that is not possible or if another process
  /// is appending to it.
  explicit AppendFile(const std::string& path);
  ~AppendFile();
  AppendFile(const AppendFile&) = delete;
  AppendFile& operator=(const AppendFile&) = delete;

  /// Cuts off a last line without its newline, as an interrupted writer leaves it. Returns the
  /// number of bytes cut.
  std::size_t cut_truncated_line();

  /// Cuts off what comes after the first `size` bytes, which whole lines end with; nothing of a
  /// file that is no longer.
  void cut_to(std::size_t size);

  /// Appends `line` (without newline inside) and a newline.
  void append_line(std::string_view line);

  /// Makes what was appended permanent (fdatasync).
  void sync();

  /// For what came to nothing: removes the file if it was not there before.
  void remove_if_new() noexcept;

 private:
  std::string path_;
  int descriptor_ = -1;
  bool regular_ = false;  ///< false for devices and pipes
  bool is_new_ = false;   ///< was not there before
};

}  // namespace neuroshard
