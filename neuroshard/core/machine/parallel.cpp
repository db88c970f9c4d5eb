// Parallel loops over a pool of waiting threads. Mutex, condition variables and plain atomics only:
// libraries' pools (oneTBB, Eigen) synchronise in ways that ThreadSanitizer cannot follow.
#include "neuroshard/core/machine/parallel.h"

#include <fmt/format.h>
#include <sched.h>

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <exception>
#include <mutex>
#include <optional>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

#include "neuroshard/core/error.h"

namespace neuroshard {

namespace {

/// One loop: indices are dealt out until none is left or a body has thrown.
struct Loop {
  std::size_t count;
  const std::function<void(std::size_t, int)>& body;
  std::atomic<std::size_t> next{0};
  std::mutex error_mutex{};
  std::exception_ptr first_error{};

  void work(int worker) {
    try {
      while (true) {
        const std::size_t i = next.fetch_add(1, std::memory_order_relaxed);
        if (i >= count) return;
        body(i, worker);
      }
    } catch (...) {
      next.store(count, std::memory_order_relaxed);
      const std::lock_guard lock(error_mutex);
      if (!first_error) first_error = std::current_exception();
    }
  }
};

}  // namespace

int available_cores() {
  cpu_set_t cores;
  if (sched_getaffinity(0, sizeof(cores), &cores) == 0) return CPU_COUNT(&cores);
  return 1;
}

namespace {

/// The cores that the calling thread had before a pool placed it on one; none while it is on no
/// pool's core.
thread_local std::optional<cpu_set_t> cores_before;

/// Lets the calling thread run on the `number`-th core (modulo their count) of the set only.
void run_on_core(const cpu_set_t& cores, int number) {
  int skip = number % CPU_COUNT(&cores);
  for (int core = 0; core < CPU_SETSIZE; ++core) {
    if (!CPU_ISSET(core, &cores) || skip-- > 0) continue;
    cpu_set_t only;
    CPU_ZERO(&only);
    CPU_SET(core, &only);
    sched_setaffinity(0, sizeof(only), &only);  // best effort: without it only timing is worse
    return;
  }
}

/// Waits for a condition for the time that putting a thread to sleep and waking it may take, some
/// tens of microseconds, more on a virtual machine. For timing: the duration of a loop of a
/// millisecond would otherwise depend on the scheduler.
template <typename F>
void spin_until(const F& condition) {
  constexpr auto kLongest = std::chrono::microseconds(200);
  const auto end = std::chrono::steady_clock::now() + kLongest;
  while (std::chrono::steady_clock::now() < end) {
    for (int i = 0; i < 64; ++i) {
      if (condition()) return;
#if defined(__x86_64__)
      __builtin_ia32_pause();
#endif
    }
  }
}

}  // namespace

struct ThreadPool::Impl {
  Impl(int num_helpers, ThreadPlacement placement) {
    pinned = placement == ThreadPlacement::one_per_core &&
             sched_getaffinity(0, sizeof(callers_cores), &callers_cores) == 0;
    try {
      threads.reserve(static_cast<std::size_t>(num_helpers));
      for (int worker = 1; worker <= num_helpers; ++worker) {
        threads.emplace_back([this, worker] {
          if (pinned) run_on_core(callers_cores, worker);
          wait_and_work(worker);
        });
      }
    } catch (const std::system_error& error) {
      const std::size_t started = threads.size();
      stop();
      throw MachineError(fmt::format("threads: expected {}, got {}: {}", num_helpers + 1,
                                     started + 1, error.code().message()));
    } catch (...) {  // no memory for one: those before it still run
      stop();
      throw;
    }
    if (!pinned) return;
    others_cores = std::exchange(cores_before, cores_before.value_or(callers_cores));
    run_on_core(callers_cores, 0);
  }

  ~Impl() {
    if (pinned) {
      cores_before = others_cores;
      sched_setaffinity(0, sizeof(callers_cores), &callers_cores);
    }
    stop();
  }

  void stop() {
    {
      const std::lock_guard lock(mutex);
      stopping = true;
    }
    start.notify_all();
    for (std::thread& thread : threads) thread.join();
    threads.clear();
  }

  void wait_and_work(int worker) {
    std::uint64_t last_round = 0;
    std::unique_lock lock(mutex);
    while (true) {
      if (pinned) {
        lock.unlock();
        spin_until([&] { return stopping.load() || round.load() != last_round; });
        lock.lock();
      }
      start.wait(lock, [&] { return stopping || round != last_round; });
      if (stopping) return;
      last_round = round;
      Loop* current = loop;
      lock.unlock();
      current->work(worker);
      lock.lock();
      if (--busy == 0) done.notify_one();
    }
  }

  void run(Loop& work) {
    {
      const std::lock_guard lock(mutex);
      loop = &work;
      busy = threads.size();
      ++round;
    }
    start.notify_all();
    work.work(0);
    if (pinned) spin_until([&] { return busy.load() == 0; });
    std::unique_lock lock(mutex);
    done.wait(lock, [&] { return busy == 0; });
  }

  std::mutex mutex;
  std::condition_variable start;
  std::condition_variable done;
  std::vector<std::thread> threads;
  Loop* loop = nullptr;
  // Changed under the mutex; atomic for those who spin.
  std::atomic<std::size_t> busy{0};
  std::atomic<std::uint64_t> round{0};
  std::atomic<bool> stopping{false};
  bool pinned = false;
  cpu_set_t callers_cores{};
  std::optional<cpu_set_t> others_cores;  ///< `cores_before`, of a pool that was there before
};

struct AllCores::Impl {
  cpu_set_t cores{};  ///< to go back to
};

AllCores::AllCores() {
  if (!cores_before) return;
  auto impl = std::make_unique<Impl>();
  if (sched_getaffinity(0, sizeof(impl->cores), &impl->cores) != 0) return;
  if (sched_setaffinity(0, sizeof(cpu_set_t), &*cores_before) == 0) impl_ = std::move(impl);
}

AllCores::~AllCores() {
  if (impl_) sched_setaffinity(0, sizeof(impl_->cores), &impl_->cores);
}

ThreadPool::ThreadPool(int num_threads, ThreadPlacement placement)
    : num_threads_(num_threads > 0 ? num_threads : available_cores()) {
  if (num_threads_ > 1 || placement == ThreadPlacement::one_per_core) {
    impl_ = std::make_unique<Impl>(num_threads_ - 1, placement);
  }
}

ThreadPool::~ThreadPool() = default;

void ThreadPool::for_each(std::size_t count, const std::function<void(std::size_t, int)>& body) {
  Loop loop{.count = count, .body = body};
  if (num_threads_ > 1 && count > 1) {
    impl_->run(loop);
  } else {
    loop.work(0);
  }
  if (loop.first_error) std::rethrow_exception(loop.first_error);
}

}  // namespace neuroshard
