// Parallel loops over Eigen's header-only thread pool, which ThreadSanitizer can see through.
#include "neuroshard/core/parallel.h"

#include <sched.h>

#include <atomic>
#include <exception>
#include <mutex>
#include <unsupported/Eigen/CXX11/ThreadPool>

namespace neuroshard {

int available_cores() {
  cpu_set_t cores;
  if (sched_getaffinity(0, sizeof(cores), &cores) == 0) return CPU_COUNT(&cores);
  return 1;
}

struct ThreadPool::Impl {
  explicit Impl(int num_helpers) : helpers(num_helpers) {}
  Eigen::ThreadPool helpers;
};

ThreadPool::ThreadPool(int num_threads)
    : num_threads_(num_threads > 0 ? num_threads : available_cores()) {
  if (num_threads_ > 1) impl_ = std::make_unique<Impl>(num_threads_ - 1);
}

ThreadPool::~ThreadPool() = default;

void ThreadPool::for_each(std::size_t count, const std::function<void(std::size_t, int)>& body) {
  std::atomic<std::size_t> next{0};
  std::mutex error_mutex;
  std::exception_ptr first_error;

  const auto work = [&](int worker) {
    try {
      for (std::size_t i; (i = next.fetch_add(1, std::memory_order_relaxed)) < count;) {
        body(i, worker);
      }
    } catch (...) {
      next.store(count, std::memory_order_relaxed);
      const std::lock_guard lock(error_mutex);
      if (!first_error) first_error = std::current_exception();
    }
  };

  const int helpers =
      count > 1 ? static_cast<int>(std::min<std::size_t>(num_threads_ - 1, count - 1)) : 0;
  if (helpers == 0) {
    work(0);
  } else {
    Eigen::Barrier all_done(helpers);
    for (int helper = 1; helper <= helpers; ++helper) {
      impl_->helpers.Schedule([&, helper] {
        work(helper);
        all_done.Notify();
      });
    }
    work(0);
    all_done.Wait();
  }
  if (first_error) std::rethrow_exception(first_error);
}

}  // namespace neuroshard
