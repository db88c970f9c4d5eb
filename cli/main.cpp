// The executable `neuroshard`: command line in, exit code out.
#include <fmt/format.h>

#include <cstdio>
#include <new>

#include "cli/commands.h"
#include "neuroshard/core/error.h"

namespace {

int run(int argc, char** argv) {
  CLI::App app{"Shards the embedding tables of recommendation models over devices.", "neuroshard"};
  app.set_version_flag("--version", NEUROSHARD_VERSION);
  app.require_subcommand(1);
  neuroshard::cli::add_workload_command(app);
  neuroshard::cli::add_collect_command(app);
  neuroshard::cli::add_train_command(app);
  neuroshard::cli::add_plan_command(app);
  neuroshard::cli::add_compare_command(app);
  neuroshard::cli::add_evaluate_command(app);
  neuroshard::cli::add_check_command(app);
  neuroshard::cli::add_model_command(app);
  try {
    app.parse(argc, argv);
  } catch (const CLI::Success& request) {  // --help and --version
    return app.exit(request);
  } catch (const CLI::ParseError& error) {
    fmt::print(stderr, "neuroshard: {}\n", error.what());
    return 2;
  }
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  try {
    return run(argc, argv);
  } catch (const neuroshard::Error& error) {
    fmt::print(stderr, "neuroshard: {}\n", error.what());
    return error.exit_code();
  } catch (const std::bad_alloc&) {
    fmt::print(stderr, "neuroshard: memory: expected more than this machine has free\n");
    return 3;
  } catch (const std::exception& error) {
    fmt::print(stderr, "neuroshard: {}\n", error.what());
    return 3;
  }
}
