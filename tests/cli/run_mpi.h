// Runs the executable under mpirun.
#pragma once

#include <string>

#include "tests/cli/run_cli.h"

#ifdef __SANITIZE_THREAD__
#define SKIP_IN_UNKNOWN_CODE() \
  GTEST_SKIP() << "neither Open MPI nor SimGrid is built so that ThreadSanitizer sees through it"
#else
#define SKIP_IN_UNKNOWN_CODE()
#endif

namespace neuroshard::testing_cli {

/// mpirun with these options and `processes` processes of the executable. Leak checks are off, as
/// Open MPI itself leaks.
inline Arguments under_mpirun(int processes, const Arguments& arguments,
                              const Arguments& options = {"--oversubscribe"}) {
  Arguments words{"env", "LSAN_OPTIONS=detect_leaks=0", "mpirun", "--allow-run-as-root"};
  words.insert(words.end(), options.begin(), options.end());
  words.insert(words.end(), {"-np", std::to_string(processes), NEUROSHARD_EXECUTABLE});
  words.insert(words.end(), arguments.begin(), arguments.end());
  return words;
}

}  // namespace neuroshard::testing_cli
