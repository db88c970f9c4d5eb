// Worker processes, with what they are doing in memory that the watching process sees.
#include "fuzz/torture/workers.h"

#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <filesystem>
#include <new>
#include <stdexcept>
#include <thread>
#include <typeinfo>

#include "fuzz/promise.h"

namespace neuroshard::fuzz {

namespace {

using Clock = std::chrono::steady_clock;

constexpr std::uint64_t kMostFailures = 1'000;

/// A failure, in shared memory.
struct Told {
  std::uint64_t number = 0;
  char reason[500] = {};
};

/// What one worker tells, likewise.
struct Slot {
  std::atomic<std::uint64_t> number{0};   ///< of the input at hand
  std::atomic<std::int64_t> since_ms{0};  ///< when it was begun
  std::atomic<std::uint64_t> tries{0};
  std::atomic<std::uint64_t> read{0};
  std::atomic<std::uint64_t> used{0};
  std::atomic<std::uint64_t> failures{0};
  std::array<Told, kMostFailuresTold> told{};  ///< the first `failures` of them
};

std::int64_t now_ms() {
  return std::chrono::duration_cast<std::chrono::milliseconds>(Clock::now().time_since_epoch())
      .count();
}

void tell(Slot& slot, std::uint64_t number, const std::string& reason) {
  const std::uint64_t count = slot.failures.load();
  if (count < slot.told.size()) {
    Told& told = slot.told[count];
    told.number = number;
    const std::size_t length = std::min(reason.size(), sizeof(told.reason) - 1);
    std::memcpy(told.reason, reason.data(), length);
    told.reason[length] = '\0';
  }
  slot.failures.store(count + 1);
}

void try_one(const Reader& reader, const TortureOptions& options, std::uint64_t number,
             Workplace& place, Slot& slot) {
  slot.number.store(number);
  slot.since_ms.store(now_ms());
  try {
    const Outcome outcome = try_input(reader, options.seed, number, place);
    if (outcome != Outcome::refused) ++slot.read;
    if (outcome == Outcome::used) ++slot.used;
  } catch (const Violation& violation) {
    tell(slot, number, violation.what());
  } catch (const std::exception& error) {
    tell(slot, number, std::string(typeid(error).name()) + ": " + error.what());
  } catch (...) {
    tell(slot, number, "something thrown that is no exception");
  }
  ++slot.tries;
}

/// Tries every `options.processes`-th input from `begin` on.
[[noreturn]] void work(const Reader& reader, const TortureOptions& options, std::uint64_t begin,
                       const std::string& folder, Slot& slot) {
  (void)::setpgid(0, 0);  // so that what it starts ends with it
  (void)::prctl(PR_SET_PDEATHSIG, SIGKILL);
  {
    Workplace place(options.executable, folder);
    const std::uint64_t end = options.first + options.runs;
    const auto step = static_cast<std::uint64_t>(options.processes);
    for (std::uint64_t number = begin; number < end; number += step) {
      try_one(reader, options, number, place, slot);
      if (slot.failures.load() >= kMostFailures) break;
    }
  }
  slot.since_ms.store(0);
  ::_exit(0);
}

class Workers {
 public:
  Workers(const Reader& reader, const TortureOptions& options)
      : reader_(reader), options_(options), children_(options.processes, 0) {
    const std::size_t bytes = sizeof(Slot) * children_.size();
    void* memory =
        ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED) throw std::runtime_error("no shared memory");
    slots_ = static_cast<Slot*>(memory);
    for (std::size_t w = 0; w < children_.size(); ++w) new (slots_ + w) Slot;
    if (mkdtemp(folder_.data()) == nullptr) throw std::runtime_error("no folder for files");
  }
  ~Workers() {
    ::munmap(slots_, sizeof(Slot) * children_.size());
    std::error_code ignored;
    std::filesystem::remove_all(folder_, ignored);
  }
  Workers(const Workers&) = delete;
  Workers& operator=(const Workers&) = delete;

  void run() {
    for (std::size_t w = 0; w < children_.size(); ++w) start(w, options_.first + w);
    while (std::any_of(children_.begin(), children_.end(), [](pid_t child) { return child > 0; })) {
      for (std::size_t w = 0; w < children_.size(); ++w) {
        if (children_[w] > 0) watch(w);
      }
      std::this_thread::sleep_for(std::chrono::milliseconds(20));
    }
  }

  [[nodiscard]] TortureResult result() const {
    TortureResult result;
    for (std::size_t w = 0; w < children_.size(); ++w) {
      const Slot& slot = slots_[w];
      result.tries += slot.tries.load();
      result.read += slot.read.load();
      result.used += slot.used.load();
      result.failures += slot.failures.load();
      const std::size_t told = std::min<std::size_t>(slot.failures.load(), slot.told.size());
      for (std::size_t i = 0; i < told; ++i) {
        result.first_ones.push_back({slot.told[i].number, slot.told[i].reason});
      }
    }
    return result;
  }

 private:
  void start(std::size_t w, std::uint64_t begin) {
    if (begin >= options_.first + options_.runs) return;
    slots_[w].number.store(begin);
    slots_[w].since_ms.store(now_ms());
    children_[w] = ::fork();
    if (children_[w] == 0) work(reader_, options_, begin, folder_, slots_[w]);
    if (children_[w] < 0) throw std::runtime_error("no process");
  }

  void watch(std::size_t w) {
    Slot& slot = slots_[w];
    int status = 0;
    if (::waitpid(children_[w], &status, WNOHANG) == children_[w]) {
      (void)::kill(-children_[w], SIGKILL);  // what it may have left
      children_[w] = 0;
      if (WIFEXITED(status) && WEXITSTATUS(status) == 0) return;
      go_on_after(w, WIFSIGNALED(status)
                         ? "ended by signal " + std::to_string(WTERMSIG(status))
                         : "ended with exit code " + std::to_string(WEXITSTATUS(status)));
      return;
    }
    const std::int64_t since = slot.since_ms.load();
    if (since == 0 || now_ms() - since < 1000 * kMostSecondsPerInput) return;
    (void)::kill(-children_[w], SIGKILL);
    (void)::waitpid(children_[w], &status, 0);
    children_[w] = 0;
    go_on_after(w, "took longer than " + std::to_string(kMostSecondsPerInput) + " s");
  }

  /// Another process takes over behind the input that ended this one.
  void go_on_after(std::size_t w, const std::string& reason) {
    Slot& slot = slots_[w];
    const std::uint64_t number = slot.number.load();
    tell(slot, number, reason);
    ++slot.tries;
    if (slot.failures.load() < kMostFailures) {
      start(w, number + static_cast<std::uint64_t>(options_.processes));
    }
  }

  const Reader& reader_;
  const TortureOptions& options_;
  std::vector<pid_t> children_;
  /// Of the workers' own, which one that is ended leaves.
  std::string folder_ =
      (std::filesystem::temp_directory_path() / "neuroshard-torture-XXXXXX").string();
  Slot* slots_ = nullptr;
};

}  // namespace

TortureResult torture(const Reader& reader, const TortureOptions& options) {
  Workers workers(reader, options);
  workers.run();
  TortureResult result = workers.result();
  if (result.first_ones.size() > kMostFailuresTold) result.first_ones.resize(kMostFailuresTold);
  return result;
}

}  // namespace neuroshard::fuzz
