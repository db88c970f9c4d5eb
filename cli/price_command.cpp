// `neuroshard price`: the predicted cost of a plan, by its own models or others.
#include <fmt/format.h>

#include <memory>
#include <string>
#include <vector>

#include "cli/commands.h"
#include "cli/options/conventions.h"
#include "cli/options/options.h"
#include "cli/streams/output.h"
#include "cli/streams/warnings.h"
#include "neuroshard/cost/model_files.h"
#include "neuroshard/io/output_files.h"
#include "neuroshard/io/plan_io.h"
#include "neuroshard/plan/plan_models.h"
#include "neuroshard/plan/plan_task.h"
#include "neuroshard/report/planning_report.h"

namespace neuroshard::cli {

namespace {

struct PriceOptions {
  std::string plan;
  std::vector<std::string> models;
  bool json = false;
  bool force = false;
  std::string output;
};

void run(const PriceOptions& options) {
  refuse_output_that_is_input(options.output, {options.plan});
  refuse_output_that_is_model(options.output, options.models, ModelsRead::named_or_default);
  const PlanDocument document = read_plan(options.plan);
  refuse_output_that_is_model(options.output, recorded_models(document.model), ModelsRead::named);
  check_output(options.output, options.force);
  const PricedPlan priced = price_plan(document, {options.models}, options.plan);
  write_output(options.output, plan_text(priced.document));
  print_notes(priced.notes);
  print_warnings(priced.warnings);
  print_models_used(priced.models);
  if (is_standard_output(options.output)) return;
  if (options.json) {
    fmt::print("{}", plan_text(priced.document));
  } else {
    fmt::print("{}{}", pricing_report(priced), written_text(options.output));
  }
}

}  // namespace

void add_price_command(CLI::App& app) {
  auto options = std::make_shared<PriceOptions>();
  CLI::App* command = app.add_subcommand("price", "Predict what a plan costs, by any models");
  add_input_option(*command, "plan", options->plan, "Plan file (.json)")->required();
  add_models_option(*command, options->models,
                    "Cost model by name or file; for a kind that is not given, the plan's own");
  command->add_flag("--json", options->json, "Print the priced plan as JSON (docs/formats.md)");
  add_output_option(*command, options->output, options->force, "Plan to write (.json)");
  add_examples(*command, {"price plan.json", "price plan.json --model a100-80gb -o priced.json"});
  command->callback([options] { run(*options); });
}

}  // namespace neuroshard::cli
