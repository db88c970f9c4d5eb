// `neuroshard check`: is a plan valid for its task?
#include <fmt/format.h>

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "cli/commands.h"
#include "cli/options/conventions.h"
#include "cli/streams/output.h"
#include "neuroshard/core/error.h"
#include "neuroshard/core/units.h"
#include "neuroshard/io/plan_io.h"
#include "neuroshard/report/check_report.h"

namespace neuroshard::cli {

namespace {

struct CheckOptions {
  std::string plan;
  bool json = false;
};

void run(const CheckOptions& options) {
  const PlanDocument document = read_plan(options.plan);
  const std::vector<std::string> found = violations(document.task, document.plan);
  fmt::print("{}", options.json ? to_line(check_json(options.plan, found)) + "\n"
                                : check_text(options.plan, document, found));
  if (found.empty()) return;
  throw InfeasibleError(
      fmt::format("{}: not valid: {}", options.plan,
                  format_count(static_cast<std::int64_t>(found.size()), "violation")));
}

}  // namespace

void add_check_command(CLI::App& app) {
  auto options = std::make_shared<CheckOptions>();
  CLI::App* command = app.add_subcommand("check", "Check that a plan is valid for its task");
  add_input_option(*command, "plan", options->plan, "Plan file (.json)")->required();
  command->add_flag("--json", options->json, "Print the result as JSON");
  add_examples(*command, {"check plan.json", "plan task.json -o - | neuroshard check -"});
  command->callback([options] { run(*options); });
}

}  // namespace neuroshard::cli
