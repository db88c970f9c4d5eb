// `neuroshard check`: is a plan valid for its task?
#include <fmt/format.h>

#include <memory>
#include <string>

#include "cli/commands.h"
#include "neuroshard/core/error.h"
#include "neuroshard/io/plan_io.h"

namespace neuroshard::cli {

namespace {

void run(const std::string& file) {
  const PlanDocument document = read_plan(file);
  const std::vector<std::string> found = violations(document.task, document.plan);
  if (found.empty()) {
    fmt::print("{}: valid: {} shards of {} tables on {} devices\n", file,
               document.plan.shards.size(), document.task.tables.size(),
               document.task.topology.world_size);
    return;
  }
  for (const std::string& violation : found) fmt::print("{}: {}\n", file, violation);
  throw InfeasibleError(fmt::format("{}: not valid: {} violation{}", file, found.size(),
                                    found.size() == 1 ? "" : "s"));
}

}  // namespace

void add_check_command(CLI::App& app) {
  auto file = std::make_shared<std::string>();
  CLI::App* command = app.add_subcommand("check", "Is a plan valid for its task?");
  command->add_option("plan", *file, "Plan file (.json)")->required();
  command->callback([file] { run(*file); });
}

}  // namespace neuroshard::cli
