// `neuroshard explain`: what limits a plan, and what would help.
#include <fmt/format.h>

#include <memory>
#include <string>
#include <vector>

#include "cli/commands.h"
#include "cli/options/conventions.h"
#include "cli/options/options.h"
#include "cli/streams/output.h"
#include "cli/streams/progress.h"
#include "cli/streams/warnings.h"
#include "neuroshard/core/error.h"
#include "neuroshard/core/units.h"
#include "neuroshard/io/plan_io.h"
#include "neuroshard/plan/plan_models.h"
#include "neuroshard/report/explanation_report.h"
#include "neuroshard/report/planning_report.h"

namespace neuroshard::cli {

namespace {

struct ExplainOptions {
  std::string plan;
  std::string table;
  std::string choice;
  std::string time_limit = "5s";
  ExplainRequest request;
  bool json = false;
};

template <typename Answer>
void print_reasons(const Answer& answer) {
  print_notes(answer.notes);
  print_warnings(answer.warnings);
  print_models_used(answer.models);
}

/// `answer` is about the document's plan.
template <typename Answer>
void print_explanation(const Answer& answer, const PlanDocument& document, const Json& json,
                       const std::string& text, bool as_json) {
  print_reasons(answer);
  fmt::print("{}", as_json ? to_document(json)
                           : text + unlearned_text(unlearned_costs(*answer.models.communication,
                                                                   document.plan)));
}

Explanation explained(const PlanDocument& document, const ExplainOptions& options) {
  ProgressLine line;
  ExplainRequest request = options.request;
  request.progress = [&](std::size_t done, std::size_t all) { line.show_planned(done, all); };
  return explain_plan(document, request, options.plan);
}

/// Throws if an option was given that would do nothing.
void refuse_without_effect(const CLI::App& command) {
  const auto exclude = [&](const char* question, const char* option, const char* reason) {
    if (!was_given(command, question) || !was_given(command, option)) return;
    throw InputError(fmt::format("--{} excludes --{}, as it {}", question, option, reason));
  };
  exclude("table", "time-limit", "plans nothing");
  exclude("table", "threads", "plans nothing");
  exclude("why-not", "threads", "plans on one thread");
}

void run(const CLI::App& command, ExplainOptions& options) {
  const bool of_table = was_given(command, "table");
  const bool of_choice = was_given(command, "why-not");
  if (of_table && of_choice) {
    throw InputError("--table excludes --why-not, which is of a table too");
  }
  refuse_without_effect(command);
  options.request.seconds_per_planning = parse_seconds(options.time_limit, "--time-limit");
  const PlanDocument document = read_plan(options.plan);
  if (of_table) {
    const TableExplanation answer =
        explain_table(document, options.table, options.request, options.plan);
    print_explanation(answer, document, table_explanation_json(answer),
                      table_explanation_text(answer), options.json);
  } else if (of_choice) {
    const Choice choice = parse_choice(options.choice, "--why-not");
    const WhyNot answer = why_not(document, choice, options.request, options.plan);
    print_explanation(answer, document, why_not_json(answer, document.task),
                      why_not_text(answer, document.task), options.json);
  } else {
    const Explanation answer = explained(document, options);
    print_explanation(answer, document, explanation_json(answer), explanation_text(answer),
                      options.json);
  }
}

}  // namespace

void add_explain_command(CLI::App& app) {
  auto options = std::make_shared<ExplainOptions>();
  CLI::App* command = app.add_subcommand(
      "explain", "Say in words what limits a plan, and what would help or another choice cost");
  add_input_option(*command, "plan", options->plan, "Plan file (.json)")->required();
  command->add_option("--table", options->table, "Explain this table alone");
  command->add_option("--why-not", options->choice,
                      "Force a choice and plan the rest again: TABLE:rows=R, TABLE:columns=C, "
                      "TABLE:replicated or TABLE:device=D");
  add_models_option(*command, options->request.models,
                    "Cost model by name or file; for a kind that is not given, the plan's own");
  command
      ->add_option("--time-limit", options->time_limit,
                   "Without --table: the most time for each plan that is made for comparison")
      ->capture_default_str();
  command
      ->add_option("--threads", options->request.num_threads,
                   "Without --table and --why-not: number of threads; 0: one per core")
      ->check(integer_between(0, kMaxThreads))
      ->capture_default_str();
  command->add_flag("--json", options->json, "Print the answer as JSON (docs/formats.md)");
  add_examples(*command, {"explain plan.json", "explain plan.json --table user_id",
                          "explain plan.json --why-not user_id:rows=4"});
  command->callback([options, command] { run(*command, *options); });
}

}  // namespace neuroshard::cli
