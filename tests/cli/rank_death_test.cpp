// A process that dies or hangs in the middle of a measurement ends the others, and no data is lost.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <fstream>
#include <optional>
#include <set>
#include <sstream>
#include <thread>

#include "neuroshard/io/communication_costs_io.h"
#include "tests/cli/run_mpi.h"

namespace neuroshard {
namespace {

using namespace testing_cli;
using Clock = std::chrono::steady_clock;

/// A program that runs in parallel with the test; killed at the end of the test if it still runs.
class RunningProgram {
 public:
  explicit RunningProgram(Arguments words, const std::string& err = "/dev/null") {
    std::vector<char*> argv;
    for (std::string& word : words) argv.push_back(word.data());
    argv.push_back(nullptr);
    posix_spawn_file_actions_t actions;
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_addopen(&actions, 0, "/dev/null", O_RDONLY, 0);
    posix_spawn_file_actions_addopen(&actions, 1, "/dev/null", O_WRONLY, 0);
    posix_spawn_file_actions_addopen(&actions, 2, err.c_str(), O_WRONLY | O_CREAT, 0600);
    EXPECT_EQ(posix_spawnp(&pid_, argv[0], &actions, nullptr, argv.data(), environ), 0);
    posix_spawn_file_actions_destroy(&actions);
  }
  ~RunningProgram() {
    if (ended_ || pid_ <= 0) return;
    kill(pid_, SIGTERM);  // mpirun ends its processes; killed, it could not
    if (wait_for(std::chrono::seconds(10))) return;
    kill(pid_, SIGKILL);
    waitpid(pid_, nullptr, 0);
  }
  RunningProgram(const RunningProgram&) = delete;
  RunningProgram& operator=(const RunningProgram&) = delete;

  [[nodiscard]] pid_t pid() const { return pid_; }

  /// Its wait status if it ends in time.
  std::optional<int> wait_for(std::chrono::seconds time) {
    const auto end = Clock::now() + time;
    int status = 0;
    while (Clock::now() < end) {
      if (waitpid(pid_, &status, WNOHANG) == pid_) {
        ended_ = true;
        return status;
      }
      std::this_thread::sleep_for(std::chrono::milliseconds(20));
    }
    return std::nullopt;
  }

 private:
  pid_t pid_ = 0;
  bool ended_ = false;
};

/// False for one that has ended, waited for or not.
bool is_running(pid_t pid) {
  std::ifstream file("/proc/" + std::to_string(pid) + "/stat");
  std::string line;
  return std::getline(file, line) && line.substr(line.rfind(')') + 1, 2) != " Z";
}

/// The rank that mpirun gave a process; nothing for one that is none of its own, or has ended.
std::string rank_of(pid_t pid) {
  std::ifstream file("/proc/" + std::to_string(pid) + "/environ");
  constexpr std::string_view kName = "OMPI_COMM_WORLD_RANK=";
  for (std::string line; std::getline(file, line, '\0');) {
    if (line.starts_with(kName)) return line.substr(kName.size());
  }
  return "";
}

/// Processes of the executable that `parent` started, by /proc.
std::vector<pid_t> children_of(pid_t parent) {
  std::vector<pid_t> children;
  for (const auto& entry : std::filesystem::directory_iterator("/proc")) {
    std::ifstream file(entry.path() / "stat");
    std::string line;
    if (!std::getline(file, line)) continue;
    std::istringstream rest(line.substr(line.rfind(')') + 1));
    std::string state;
    pid_t its_parent = 0;
    rest >> state >> its_parent;
    if (its_parent == parent && line.find("(neuroshard)") != std::string::npos) {
      children.push_back(std::stoi(entry.path().filename()));
    }
  }
  return children;
}

std::size_t samples_in(const std::string& path) {
  return std::filesystem::exists(path) && std::filesystem::file_size(path) > 0
             ? read_communication_costs(path).samples.size()
             : 0;
}

/// Waits until `condition` holds; false if that takes longer than half a minute.
template <typename Condition>
bool wait_until(const Condition& condition) {
  const auto end = Clock::now() + std::chrono::seconds(30);
  while (!condition()) {
    if (Clock::now() > end) return false;
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
  }
  return true;
}

TEST(CliCommunication, AProcessThatDiesEndsTheOthersAndLosesNoSample) {
  SKIP_IN_UNKNOWN_CODE();
  const CliFolder folder;
  const std::string path = folder.file("costs.jsonl");
  const auto collect = [&](const char* samples) {
    return under_mpirun(
        2, {"collect", "communication", "--backend", "mpi", "--devices", "2", "--samples", samples,
            "--batch-size", "256", "--max-start-ms", "1", "-o", path});
  };
  std::size_t kept = 0;
  {
    RunningProgram mpirun(collect("1000000"));
    ASSERT_TRUE(wait_until([&] { return samples_in(path) >= 3; }));
    const std::vector<pid_t> processes = children_of(mpirun.pid());
    ASSERT_EQ(processes.size(), 2u);
    kept = samples_in(path);
    kill(processes.back(), SIGKILL);
    const std::optional<int> status = mpirun.wait_for(std::chrono::seconds(30));
    ASSERT_TRUE(status.has_value()) << "still running 30 s after one of its processes died";
    EXPECT_FALSE(WIFEXITED(*status) && WEXITSTATUS(*status) == 0);
    EXPECT_TRUE(wait_until([&] {
      return !is_running(processes.front()) && !is_running(processes.back());
    })) << "a process is left behind";
  }
  // The measured samples are kept, and the file is continued from them.
  const std::size_t left = samples_in(path);
  EXPECT_GE(left, kept);
  const CommandResult more = run_program(collect(std::to_string(left + 2).c_str()));
  EXPECT_EQ(more.exit_code, 0) << more.err;
  EXPECT_EQ(samples_in(path), left + 2);
}

/// True for a process that shares memory with another one for Open MPI's messages, so that all have
/// started: one that dies while mpirun 4.1 shakes hands with it can leave mpirun, which names it,
/// waiting for a lock for ever.
bool is_started(pid_t pid) {
  std::ifstream file("/proc/" + std::to_string(pid) + "/maps");
  std::set<std::string> segments;
  for (std::string line; std::getline(file, line);) {
    const std::size_t name = line.find("vader_segment");
    if (name != std::string::npos) segments.insert(line.substr(name));
  }
  return segments.size() >= 2;  // its own and the other's
}

/// The processes of a run of two that have started and are watched, by rank.
std::vector<pid_t> watched_ranks(const RunningProgram& mpirun) {
  std::vector<pid_t> ranks(2);
  for (const pid_t child : children_of(mpirun.pid())) {
    const std::string rank = rank_of(child);
    if (!children_of(child).empty() && is_started(child) && (rank == "0" || rank == "1")) {
      ranks[rank == "1"] = child;
    }
  }
  return ranks;
}

/// How process 1 of a run of two is ended.
enum class Loss { stopped, killed, killed_before_mpirun_looks };

/// Lets process 1 of a run of two be lost, and expects the run to end with an error that names it,
/// within the half minute that is promised.
void expect_end_after(Loss loss, const Arguments& command) {
  const CliFolder folder;
  const std::string err = folder.file("err");
  const EnvironmentVariable limit("NEUROSHARD_HANG_LIMIT", "3s");
  RunningProgram mpirun(under_mpirun(2, command), err);
  std::vector<pid_t> ranks;
  ASSERT_TRUE(wait_until([&] {
    ranks = watched_ranks(mpirun);
    return ranks[0] > 0 && ranks[1] > 0;
  })) << read_file(err);
  if (loss == Loss::killed_before_mpirun_looks) {
    // The other process ends for lack of it, and mpirun comes across both at once.
    const std::vector<pid_t> watches = children_of(ranks[1]);
    kill(mpirun.pid(), SIGSTOP);
    kill(ranks[1], SIGKILL);
    EXPECT_TRUE(wait_until([&] {
      return std::none_of(watches.begin(), watches.end(), is_running);
    })) << "a watch is left behind";
    kill(ranks[0], SIGKILL);
    kill(mpirun.pid(), SIGCONT);
  } else {
    kill(ranks[1], loss == Loss::stopped ? SIGSTOP : SIGKILL);
  }
  const std::optional<int> status = mpirun.wait_for(std::chrono::seconds(30));
  ASSERT_TRUE(status.has_value()) << "still running after 30 s";
  EXPECT_FALSE(WIFEXITED(*status) && WEXITSTATUS(*status) == 0);
  EXPECT_TRUE(wait_until([&] { return !is_running(ranks[0]) && !is_running(ranks[1]); }))
      << "a process is left behind";
  EXPECT_THAT(read_file(err),
              testing::ContainsRegex(
                  std::string("neuroshard: mpi: expected process 1 of 2, on [^ ]*, to go on, got "
                              "one that has ") +
                  (loss == Loss::stopped ? "stood still for 3 s " : "died, which ends the run")));
}

/// A collection that does not end by itself.
Arguments endless_collection(const CliFolder& folder) {
  return {
      "collect",   "communication", "--backend",    "mpi", "--devices", "2",
      "--samples", "1000000",       "--batch-size", "256", "-o",        folder.file("costs.jsonl")};
}

/// An evaluation that takes some seconds.
Arguments long_evaluation(const CliFolder& folder) {
  const std::string plan = folder.file("plan.json");
  (void)expect_success(
      Arguments{"plan", folder.write("task.json", kTask), "--steps", "10", "-o", plan} + kModels);
  return Arguments{"evaluate", plan, "--arena", "256MiB"} + kModels;
}

TEST(CliCommunication, AProcessThatHangsEndsTheOthersByName) {
  SKIP_IN_UNKNOWN_CODE();
  const CliFolder folder;
  expect_end_after(Loss::stopped, endless_collection(folder));
}

TEST(CliCommunication, AProcessOfAnEvaluationThatHangsEndsTheOthersByName) {
  SKIP_IN_UNKNOWN_CODE();
  const CliFolder folder;
  expect_end_after(Loss::stopped, long_evaluation(folder));
}

TEST(CliCommunication, AProcessOfAnEvaluationThatDiesEndsTheOthersByName) {
  SKIP_IN_UNKNOWN_CODE();
  const CliFolder folder;
  expect_end_after(Loss::killed, long_evaluation(folder));
}

TEST(CliCommunication, AProcessThatDiesIsNamedEvenIfAnotherEndsForLackOfIt) {
  SKIP_IN_UNKNOWN_CODE();
  const CliFolder folder;
  expect_end_after(Loss::killed_before_mpirun_looks, endless_collection(folder));
}

TEST(CliCommunication, AnErrorThatEndsARunNamesNoProcessThatDied) {
  SKIP_IN_UNKNOWN_CODE();
  const CliFolder folder;
  Arguments command = endless_collection(folder);
  command.back() = folder.file("missing/costs.jsonl");
  const CommandResult result = run_program(under_mpirun(2, command));
  EXPECT_NE(result.exit_code, 0);
  EXPECT_THAT(result.err, testing::HasSubstr("missing"));
  EXPECT_THAT(result.err, testing::Not(testing::HasSubstr("died")));
}

TEST(CliCommunication, MpirunThatDiesLeavesNoProcessBehind) {
  SKIP_IN_UNKNOWN_CODE();
  const CliFolder folder;
  RunningProgram mpirun(under_mpirun(2, endless_collection(folder)));
  std::vector<pid_t> ranks;
  ASSERT_TRUE(wait_until([&] {
    ranks = watched_ranks(mpirun);
    return ranks[0] > 0 && ranks[1] > 0;
  }));
  kill(mpirun.pid(), SIGKILL);
  EXPECT_TRUE(wait_until([&] { return !is_running(ranks[0]) && !is_running(ranks[1]); }));
}

TEST(CliCommunication, TheTimeForWhichAProcessMayHangIsATime) {
  SKIP_IN_UNKNOWN_CODE();
  const CliFolder folder;
  const EnvironmentVariable limit("NEUROSHARD_HANG_LIMIT", "soon");
  const CommandResult result = run_program(under_mpirun(2, endless_collection(folder)));
  EXPECT_EQ(result.exit_code, 2);
  EXPECT_THAT(result.err, testing::HasSubstr("neuroshard: NEUROSHARD_HANG_LIMIT: expected "));
}

}  // namespace
}  // namespace neuroshard
