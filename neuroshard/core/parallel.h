// Parallel loops: a pool of threads over which independent pieces of work are dealt out.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>

namespace neuroshard {

/// A fixed number of threads, the calling one included. Loops must not be nested on one pool.
class ThreadPool {
 public:
  /// `num_threads` <= 0 means one per core this process may use.
  explicit ThreadPool(int num_threads = 0);
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

/// Cores this process may use.
[[nodiscard]] int available_cores();

}  // namespace neuroshard
