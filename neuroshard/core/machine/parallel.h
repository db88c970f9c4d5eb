// Parallel loops: a pool of threads over which independent pieces of work are dealt out.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>

namespace neuroshard {

/// As many threads as may be asked for, by options and in files.
inline constexpr int kMaxThreads = 1024;

/// Where a pool's threads run.
enum class ThreadPlacement {
  anywhere,
  /// Each on a core of its own (while there are enough), the constructing thread included, for as
  /// long as the pool lives. For timing: the system may wake two threads up on one core and leave
  /// them there for longer than a short loop takes, which then takes twice as long. Between loops
  /// the threads stay awake for a fifth of a millisecond, as those of OpenMP do.
  one_per_core,
};

/// A fixed number of threads, the calling one included. Loops must not be nested on one pool.
class ThreadPool {
 public:
  /// `num_threads` <= 0 means one per core this process may use. Throws MachineError if the machine
  /// does not have that many threads to give.
  explicit ThreadPool(int num_threads = 0, ThreadPlacement placement = ThreadPlacement::anywhere);
  ~ThreadPool();
  ThreadPool(const ThreadPool&) = delete;
  ThreadPool& operator=(const ThreadPool&) = delete;

  [[nodiscard]] int num_threads() const noexcept { return num_threads_; }

  /// Calls body(i, worker) once for every i in [0, count), 0 <= worker < num_threads(), in any
  /// order, dealt out dynamically; returns when all are done. The first exception thrown by a body
  /// is thrown again here, after the others have ended.
  void for_each(std::size_t count, const std::function<void(std::size_t index, int worker)>& body);

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
  int num_threads_;
};

/// Lets the calling thread, and the threads that it begins, run on all cores that it had before a
/// pool placed it on one, for as long as this object lives: for work between a pool's loops that
/// has threads of its own. Without such a pool it does nothing.
class AllCores {
 public:
  AllCores();
  ~AllCores();
  AllCores(const AllCores&) = delete;
  AllCores& operator=(const AllCores&) = delete;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

/// Cores this process may use.
[[nodiscard]] int available_cores();

}  // namespace neuroshard
