// The executable `neuroshard`: command line in, exit code out.
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/resource.h>
#include <unistd.h>
#ifdef __GLIBC__
#include <malloc.h>
#endif

#include <array>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <new>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include "cli/commands.h"
#include "cli/options/conventions.h"
#include "cli/streams/console.h"
#include "neuroshard/core/error.h"
#include "neuroshard/core/text/utf8.h"
#include "neuroshard/core/units.h"
#include "neuroshard/core/version.h"
#include "neuroshard/io/json/json.h"

namespace {

using neuroshard::cli::say_error;
using Clock = std::chrono::steady_clock;

/// Puts something that cannot be used in place of standard streams that are closed: a file opened
/// later would take their place, and get what is written to them.
void keep_standard_streams() {
  // The mode in which each is not used, so that reading and writing fail as if they were closed;
  // but what is said on stderr may be lost.
  constexpr std::array<std::pair<int, int>, 3> kModes{
      {{STDIN_FILENO, O_WRONLY}, {STDOUT_FILENO, O_RDONLY}, {STDERR_FILENO, O_WRONLY}}};
  for (const auto& [stream, mode] : kModes) {
    if (::fcntl(stream, F_GETFD) < 0) (void)::open("/dev/null", mode);  // takes the lowest number
  }
}

/// What a command took, for --verbose.
void say_what_it_took(Clock::time_point start) {
  rusage usage{};
  (void)::getrusage(RUSAGE_SELF, &usage);
  const std::chrono::duration<double> seconds = Clock::now() - start;
  neuroshard::cli::say_details(
      {fmt::format("took {}, at most {} of memory", neuroshard::format_seconds(seconds.count()),
                   neuroshard::format_bytes(1024.0 * static_cast<double>(usage.ru_maxrss)))});
}

/// Writes out what is left of stdout's buffer; exit code 2 if the results could not be written.
int flush_results() {
  if (std::fflush(stdout) == 0 && std::ferror(stdout) == 0) return 0;
  say_error("stdout: expected a writable file, got " + std::generic_category().message(errno));
  return 2;
}

/// Names and paths go into files and JSON, which are UTF-8: that they cannot is said before any
/// work.
void require_utf8(int argc, char** argv) {
  for (int i = 1; i < argc; ++i) {
    if (neuroshard::is_utf8(argv[i])) continue;
    throw neuroshard::InputError(fmt::format("argument {}", i), "text in UTF-8",
                                 neuroshard::in_quotes(argv[i]));
  }
}

int run(int argc, char** argv) {
  require_utf8(argc, argv);
  neuroshard::cli::refuse_options_without_value(argc, argv);
  CLI::App app{"Shards the embedding tables of recommendation models over devices.", "neuroshard"};
  app.set_version_flag("--version", std::string(neuroshard::version()));
  app.require_subcommand(1);
  neuroshard::cli::add_workload_command(app);
  neuroshard::cli::add_collect_command(app);
  neuroshard::cli::add_train_command(app);
  neuroshard::cli::add_calibrate_command(app);
  neuroshard::cli::add_refine_model_command(app);
  neuroshard::cli::add_plan_command(app);
  neuroshard::cli::add_price_command(app);
  neuroshard::cli::add_explain_command(app);
  neuroshard::cli::add_capacity_command(app);
  neuroshard::cli::add_compare_command(app);
  neuroshard::cli::add_paper_table_command(app);
  neuroshard::cli::add_evaluate_command(app);
  neuroshard::cli::add_check_command(app);
  neuroshard::cli::add_report_command(app);
  neuroshard::cli::add_model_command(app);
  neuroshard::cli::add_completion_command(app);
  neuroshard::cli::add_common_options(app);
  const Clock::time_point start = Clock::now();
  try {
    app.parse(argc, argv);
    say_what_it_took(start);
  } catch (const CLI::Success& request) {  // --help and --version
    (void)app.exit(request);
  } catch (const CLI::RequiredError& error) {
    const std::vector<std::string> found = app.remaining(/*recurse=*/true);
    say_error(error.what() + (found.empty() ? "" : ", got \"" + found.front() + "\"") +
              neuroshard::cli::suggestion_for(app, found));
    return 2;
  } catch (const CLI::ParseError& error) {
    const std::vector<std::string> unexpected = app.remaining(/*recurse=*/true);
    say_error(error.what() + neuroshard::cli::suggestion_for(app, unexpected));
    return 2;
  }
  return flush_results();
}

/// Keeps freed memory for the next allocation: training frees and allocates megabytes in every
/// step, and asking the system for their pages again took a fifth of its time.
void keep_freed_memory() {
#ifdef __GLIBC__
  (void)mallopt(M_MMAP_THRESHOLD, 32 << 20);  // the most it takes
  (void)mallopt(M_TRIM_THRESHOLD, 512 << 20);
  (void)mallopt(M_TOP_PAD, 16 << 20);
#endif
}

}  // namespace

int main(int argc, char** argv) {
  keep_standard_streams();
  // A file that grows beyond its limit is a write that fails, with a message.
  (void)std::signal(SIGXFSZ, SIG_IGN);
  keep_freed_memory();
  try {
    return run(argc, argv);
  } catch (const neuroshard::Error& error) {
    say_error(error.what());
    return error.exit_code();
  } catch (const std::bad_alloc&) {
    say_error("out of memory");
    return 3;
  } catch (const std::system_error& error) {
    const bool on_stdout = std::ferror(stdout) != 0;  // where printing throws
    say_error(on_stdout ? "stdout: expected a writable file, got " + error.code().message()
                        : error.what());
    return on_stdout ? 2 : 3;
  } catch (const std::exception& error) {
    say_error(error.what());
    return 3;
  }
}
