// The executable `neuroshard`: command line in, exit code out.
#include <fmt/format.h>
#ifdef __GLIBC__
#include <malloc.h>
#endif

#include <cerrno>
#include <cstdio>
#include <new>
#include <string>
#include <string_view>
#include <system_error>
#include <vector>

#include "cli/commands.h"
#include "neuroshard/core/error.h"
#include "neuroshard/core/printable.h"
#include "neuroshard/core/version.h"

namespace {

/// Prints a message as one line, whatever names and paths in it consist of.
void print_error(std::string_view message) {
  const std::string line = neuroshard::printable(message);
  (void)std::fprintf(stderr, "neuroshard: %s\n", line.c_str());  // never throws, unlike fmt::print
}

/// Writes out what is left of stdout's buffer; exit code 2 if the results could not be written.
int flush_results() {
  if (std::fflush(stdout) == 0 && std::ferror(stdout) == 0) return 0;
  print_error("stdout: expected a writable file, got " + std::generic_category().message(errno));
  return 2;
}

int run(int argc, char** argv) {
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
  neuroshard::cli::add_compare_command(app);
  neuroshard::cli::add_paper_table_command(app);
  neuroshard::cli::add_evaluate_command(app);
  neuroshard::cli::add_check_command(app);
  neuroshard::cli::add_model_command(app);
  try {
    app.parse(argc, argv);
  } catch (const CLI::Success& request) {  // --help and --version
    (void)app.exit(request);
  } catch (const CLI::RequiredError& error) {
    const std::vector<std::string> found = app.remaining(/*recurse=*/true);
    print_error(error.what() + (found.empty() ? "" : ", got \"" + found.front() + "\""));
    return 2;
  } catch (const CLI::ParseError& error) {
    print_error(error.what());
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
  keep_freed_memory();
  try {
    return run(argc, argv);
  } catch (const neuroshard::Error& error) {
    print_error(error.what());
    return error.exit_code();
  } catch (const std::bad_alloc&) {
    print_error("out of memory");
    return 3;
  } catch (const std::system_error& error) {
    const bool on_stdout = std::ferror(stdout) != 0;  // where printing throws
    print_error(on_stdout ? "stdout: expected a writable file, got " + error.code().message()
                          : error.what());
    return on_stdout ? 2 : 3;
  } catch (const std::exception& error) {
    print_error(error.what());
    return 3;
  }
}
