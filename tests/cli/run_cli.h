// Runs the executable as a user would: arguments in; exit code, stdout, stderr and files out.
#pragma once

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <spawn.h>
#include <sys/ioctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <map>
#include <regex>
#include <string>
#include <vector>

#include "tests/io/io_test_util.h"

namespace neuroshard::testing_cli {

using Arguments = std::vector<std::string>;

/// Models that need no file.
inline const Arguments kAnalytic{"--model", "analytic-cpu", "--model", "analytic-ethernet-25g"};

/// Makes three small tasks in the folder `output`.
inline Arguments tasks_command(const std::string& output, const char* seed = "1") {
  return {"workload", "tasks",     "dlrm-2021", "--count", "3",  "--tables", "2:4", "--max-dim",
          "16",       "--devices", "2",         "--seed",  seed, "-o",       output};
}

struct CommandResult {
  int exit_code = -1;  ///< minus the signal's number if one ended it
  std::string out;
  std::string err;
};

/// Runs a program, found in PATH, with its arguments; `out_path` is where stdout goes, a temporary
/// file if empty.
inline CommandResult run_program(Arguments words, const std::string& out_path = "") {
  const TemporaryFolder folder;
  const std::string out = out_path.empty() ? folder.file("out") : out_path;
  const std::string err = folder.file("err");
  std::vector<char*> argv;
  for (std::string& word : words) argv.push_back(word.data());
  argv.push_back(nullptr);
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_addopen(&actions, 0, "/dev/null", O_RDONLY, 0);
  posix_spawn_file_actions_addopen(&actions, 1, out.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0600);
  posix_spawn_file_actions_addopen(&actions, 2, err.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0600);
  pid_t child = 0;
  const int error = posix_spawnp(&child, argv[0], &actions, nullptr, argv.data(), environ);
  posix_spawn_file_actions_destroy(&actions);
  EXPECT_EQ(error, 0) << argv[0];
  CommandResult result;
  int status = 0;
  if (error != 0 || waitpid(child, &status, 0) != child) return result;
  result.exit_code = WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
  if (out_path.empty()) result.out = read_file(out);
  result.err = read_file(err);
  return result;
}

/// Runs the executable.
inline CommandResult run_cli(const Arguments& arguments, const std::string& out_path = "") {
  Arguments words{NEUROSHARD_EXECUTABLE};
  words.insert(words.end(), arguments.begin(), arguments.end());
  return run_program(std::move(words), out_path);
}

/// Runs the executable with stdout and stderr on a terminal of 60 columns, whose kind TERM says;
/// `out` is what it showed, with the terminal's own ends of lines, "\r\n".
inline CommandResult run_on_terminal(const Arguments& arguments) {
  CommandResult result;
  const int terminal = posix_openpt(O_RDWR | O_NOCTTY);
  const bool opened = terminal >= 0 && grantpt(terminal) == 0 && unlockpt(terminal) == 0;
  EXPECT_TRUE(opened);
  if (!opened) return result;
  const winsize size{.ws_row = 24, .ws_col = 60, .ws_xpixel = 0, .ws_ypixel = 0};
  EXPECT_EQ(ioctl(terminal, TIOCSWINSZ, &size), 0);
  const std::string name = ptsname(terminal);
  Arguments words{NEUROSHARD_EXECUTABLE};
  words.insert(words.end(), arguments.begin(), arguments.end());
  std::vector<char*> argv;
  for (std::string& word : words) argv.push_back(word.data());
  argv.push_back(nullptr);
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_addopen(&actions, 0, "/dev/null", O_RDONLY, 0);
  posix_spawn_file_actions_addopen(&actions, 1, name.c_str(), O_WRONLY | O_NOCTTY, 0);
  posix_spawn_file_actions_adddup2(&actions, 1, 2);
  pid_t child = 0;
  const int error = posix_spawnp(&child, argv[0], &actions, nullptr, argv.data(), environ);
  posix_spawn_file_actions_destroy(&actions);
  EXPECT_EQ(error, 0);
  if (error != 0) return result;
  // Reading fails once the program, which is the only one with the other end, has closed it.
  char part[4096];
  for (ssize_t count = 0; (count = read(terminal, part, sizeof part)) > 0;) {
    result.out.append(part, static_cast<std::size_t>(count));
  }
  int status = 0;
  if (waitpid(child, &status, 0) != child) return result;
  close(terminal);
  result.exit_code = WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
  return result;
}

inline std::string joined(const Arguments& arguments) {
  std::string text;
  for (const std::string& argument : arguments) text += " '" + argument + "'";
  return text;
}

/// Runs a command that must succeed; returns stdout.
inline std::string expect_success(const Arguments& arguments) {
  const CommandResult result = run_cli(arguments);
  EXPECT_EQ(result.exit_code, 0) << joined(arguments) << '\n' << result.err;
  return result.out;
}

/// Without the lines of progress that it begins with: under a sanitizer, or on a busy machine, a
/// command takes longer than the seconds after which it says how far it is.
inline std::string without_progress(std::string err) {
  static const std::regex progress(
      "(planning|first plan|improving|lower bound|baseline|[0-9]+ of [0-9]+)[^\\n]*, [^\\n]*\\n");
  std::smatch line;
  while (std::regex_search(err, line, progress, std::regex_constants::match_continuous)) {
    err = line.suffix();
  }
  return err;
}

/// One line "neuroshard: ..." on stderr, and nothing else but progress before it.
inline void expect_one_line(const std::string& stderr_text) {
  const std::string err = without_progress(stderr_text);
  EXPECT_THAT(err, testing::StartsWith("neuroshard: "));
  EXPECT_EQ(std::count(err.begin(), err.end(), '\n'), 1) << err;
  EXPECT_EQ(err.empty() ? '\0' : err.back(), '\n') << err;
  EXPECT_TRUE(std::all_of(err.begin(), err.end() - (err.empty() ? 0 : 1), [](unsigned char c) {
    return c >= 0x20 && c != 0x7f;
  })) << err;
}

/// A variable that commands see for as long as this lives.
class EnvironmentVariable {
 public:
  EnvironmentVariable(const char* name, const std::string& value) : name_(name) {
    setenv(name, value.c_str(), 1);
  }
  ~EnvironmentVariable() { unsetenv(name_); }
  EnvironmentVariable(const EnvironmentVariable&) = delete;
  EnvironmentVariable& operator=(const EnvironmentVariable&) = delete;

 private:
  const char* name_;
};

/// A folder for a test, whose state can be compared.
class CliFolder {
 public:
  [[nodiscard]] std::string file(std::string_view name) const { return folder_.file(name); }
  std::string write(std::string_view name, std::string_view text) const {
    write_file(file(name), text);
    return file(name);
  }
  /// Every file's bytes by its path in the folder; folders end in '/'.
  [[nodiscard]] std::map<std::string, std::string> state() const {
    namespace fs = std::filesystem;
    std::map<std::string, std::string> files;
    const fs::path root(file(""));
    for (const auto& entry : fs::recursive_directory_iterator(root)) {
      const std::string name = fs::relative(entry.path(), root);
      if (entry.is_directory()) {
        files[name + "/"] = "";
      } else if (entry.is_symlink() && !entry.exists()) {
        files[name] = "to " + fs::read_symlink(entry.path()).string();
      } else {
        files[name] = read_file(entry.path());
      }
    }
    return files;
  }

 private:
  TemporaryFolder folder_;
};

/// Runs a command that must be refused: checks the exit code, one line on stderr that contains
/// `message`, nothing on stdout, and no file made or changed.
inline void expect_refusal(const CliFolder& folder, const Arguments& arguments,
                           const std::string& message, int exit_code = 2) {
  SCOPED_TRACE(joined(arguments));
  const auto before = folder.state();
  const CommandResult result = run_cli(arguments);
  EXPECT_EQ(result.exit_code, exit_code);
  expect_one_line(result.err);
  EXPECT_THAT(result.err, testing::HasSubstr(message));
  EXPECT_EQ(result.out, "");
  EXPECT_TRUE(folder.state() == before) << "files were made or changed";
}

/// A call, and a part of what is said.
struct Refused {
  Arguments arguments;
  std::string message;
};

inline void expect_refusals(const std::vector<Refused>& cases) {
  const CliFolder folder;
  for (const Refused& refused : cases) {
    expect_refusal(folder, refused.arguments, refused.message);
  }
}

/// A valid task of three tables on two devices of 1 MiB.
inline constexpr std::string_view kTask =
    R"({"format": "neuroshard/task/1", "batch_size": 1024, "optimizer": "sgd",
 "tables": [
  {"name": "user", "num_embeddings": 1000, "embedding_dim": 64, "pooling_factor": 3.0, "data_type": "fp32", "index_distribution": {"zipf_exponent": 1.1}},
  {"name": "item", "num_embeddings": 2000, "embedding_dim": 32, "pooling_factor": 1.5, "data_type": "fp32"},
  {"name": "ad", "num_embeddings": 500, "embedding_dim": 10, "pooling_factor": 20.0, "data_type": "fp32", "reuse_histogram": [1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0]}],
 "topology": {"world_size": 2, "local_world_size": 2, "memory_bytes": 1048576}})";

inline const Arguments kModels{"--model", "a100-40gb", "--model", "analytic-a100-nvswitch"};

inline Arguments operator+(Arguments left, const Arguments& right) {
  left.insert(left.end(), right.begin(), right.end());
  return left;
}

}  // namespace neuroshard::testing_cli
