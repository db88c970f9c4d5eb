// A process that can open no file, as where its limit of them is reached.
#pragma once

#include <sys/resource.h>

namespace neuroshard {

/// While it lives no file can be opened.
class NoDescriptors {
 public:
  NoDescriptors() {
    getrlimit(RLIMIT_NOFILE, &previous_);
    rlimit limit = previous_;
    limit.rlim_cur = 0;
    setrlimit(RLIMIT_NOFILE, &limit);
  }
  ~NoDescriptors() { setrlimit(RLIMIT_NOFILE, &previous_); }
  NoDescriptors(const NoDescriptors&) = delete;
  NoDescriptors& operator=(const NoDescriptors&) = delete;

 private:
  rlimit previous_{};
};

}  // namespace neuroshard
