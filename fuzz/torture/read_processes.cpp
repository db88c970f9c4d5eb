// The promises of what takes a process for each input: platform files, of which SimGrid reads one
// in its life, and command lines.
#include <fcntl.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cmath>
#include <exception>
#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "fuzz/grammar/grammar.h"
#include "fuzz/promise.h"
#include "fuzz/torture/readers.h"
#include "fuzz/torture/use.h"
#include "neuroshard/collect/communication/simgrid_simulation.h"
#include "neuroshard/core/machine/child_process.h"
#include "neuroshard/io/file.h"
#include "neuroshard/io/json/json.h"

namespace neuroshard::fuzz {

namespace {

namespace fs = std::filesystem;

constexpr int kSimulatedDevices = 2;

/// Two all-to-alls between the first hosts of the platform.
void simulate_on(const std::string& platform) {
  std::int64_t left = 2;
  simulate_all_to_alls(
      {.platform = platform, .world_size = kSimulatedDevices, .batch_size = 64},
      [&]() -> std::optional<NumberedCase> {
        if (left == 0) return std::nullopt;
        return NumberedCase{left--, {.columns = {8, 4}, .start_ms = {0.0, 1.0}}};
      },
      [](std::int64_t, const AllToAllMeasurement& measured) {
        for (const auto* times : {&measured.forward_ms, &measured.backward_ms}) {
          require(times->size() == kSimulatedDevices, "each device has a time");
          for (const double ms : *times) {
            require(std::isfinite(ms) && ms >= 0.0, "simulated times are finite and at least 0");
          }
        }
      });
}

/// What a child says: whether it came to its end, and the message of an error.
constexpr char kDone = 'd';
constexpr char kRefused = 'r';
constexpr char kBroken = 'b';

int simulate_in_child(const std::string& platform, int out) {
  std::string said(1, kDone);
  try {
    simulate_on(platform);
  } catch (const InputError& error) {
    said = kRefused + std::string(error.what());
  } catch (const MachineError& error) {  // built without SimGrid
    said = kRefused + std::string(error.what());
  } catch (const std::exception& error) {
    said = kBroken + std::string(error.what());
  }
  (void)!::write(out, said.data(), said.size());
  return 0;
}

int wait_for(pid_t child) {
  int status = 0;
  while (::waitpid(child, &status, 0) < 0 && errno == EINTR) continue;
  return status;
}

/// Every file's bytes by its path in the folder.
std::map<std::string, std::string> state_of(const fs::path& folder) {
  std::map<std::string, std::string> files;
  for (const auto& entry : fs::recursive_directory_iterator(folder)) {
    files[entry.path().string()] = entry.is_regular_file() ? read_file(entry.path()) : "";
  }
  return files;
}

struct Ended {
  int status = 0;
  std::string out;
  std::string err;
};

/// Runs the executable in a folder.
Ended run_in(const std::string& folder, const Workplace& place, std::vector<std::string> words) {
  words.insert(words.begin(), place.executable());
  std::vector<char*> arguments;
  for (std::string& word : words) arguments.push_back(word.data());
  arguments.push_back(nullptr);
  const std::string out = place.file("stdout");
  const std::string err = place.file("stderr");
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_addopen(&actions, 0, "/dev/null", O_RDONLY, 0);
  posix_spawn_file_actions_addopen(&actions, 1, out.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0600);
  posix_spawn_file_actions_addopen(&actions, 2, err.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0600);
  posix_spawn_file_actions_addchdir_np(&actions, folder.c_str());
  pid_t child = 0;
  const int error = posix_spawn(&child, arguments[0], &actions, nullptr, arguments.data(), environ);
  posix_spawn_file_actions_destroy(&actions);
  if (error != 0) throw std::runtime_error(words[0] + ": not started");
  Ended ended;
  ended.status = wait_for(child);
  ended.out = read_file(out);
  ended.err = read_file(err);
  return ended;
}

std::vector<std::string> words_of(std::string_view bytes) {
  std::vector<std::string> words;
  while (!bytes.empty()) {
    const std::size_t end = bytes.find('\0');
    words.emplace_back(bytes.substr(0, end));
    bytes.remove_prefix(end == std::string_view::npos ? bytes.size() : end + 1);
  }
  return words;
}

/// The last line says what is wrong; lines before it may be notes and warnings.
void require_refusal(const std::string& err) {
  require(err.ends_with('\n'), "a message ends its line");
  const std::size_t begin = err.rfind('\n', err.size() - 2);
  const std::string last = err.substr(begin == std::string::npos ? 0 : begin + 1);
  require(last.starts_with("neuroshard: "), "a message begins with the program's name");
}

}  // namespace

Outcome read_platform_file(std::string_view bytes, Workplace& place, Random&) {
  const std::string path = place.write("platform.xml", bytes);
  const std::optional<EndedChild> ended =
      run_in_child([&](int out) { return simulate_in_child(path, out); });
  if (!ended) throw std::runtime_error("no process");
  const std::string& said = ended->written;
  require(ended->exit_code == 0, "a platform does not end the process");
  require(!said.empty(), "a simulation comes to an end");
  if (said.front() == kDone) return Outcome::used;
  const std::string message = said.substr(1);
  require(said.front() == kRefused, message);
  require_message(message);
  require(message.starts_with(path + ": "), "a message names the file");
  return Outcome::refused;
}

Outcome run_command_line(std::string_view words, Workplace& place, Random&) {
  const std::string folder = place.file("commands");
  fs::remove_all(folder);
  fs::create_directory(folder);
  for (const OptionFile& file : option_files())
    (void)place.write("commands/" + file.name, file.text);
  const auto before = state_of(folder);
  const Ended ended = run_in(folder, place, words_of(words));
  require(WIFEXITED(ended.status), "a command ends by itself");
  const int code = WEXITSTATUS(ended.status);
  require(code >= 0 && code <= 3, "exit codes are 0 to 3");
  if (!ended.err.empty()) require_text(ended.err);
  if (!ended.out.empty()) require_text(ended.out);
  const auto after = state_of(folder);
  for (const auto& [path, bytes] : after) {
    require(path.find(".neuroshard-") == std::string::npos, "no temporary file is left");
  }
  if (code == 0) return Outcome::used;
  require_refusal(ended.err);
  if (code == 2) {
    require(ended.out.empty(), "what is refused prints no result");
    require(after == before, "what is refused writes nothing");
  }
  require(code != 3, "no option makes the machine fail: " + ended.err);
  return Outcome::refused;
}

}  // namespace neuroshard::fuzz
