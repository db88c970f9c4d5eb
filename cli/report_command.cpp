// `neuroshard report`: plans as a page that people look at.
#include <fmt/format.h>

#include <memory>
#include <string>
#include <vector>

#include "cli/commands.h"
#include "cli/options/conventions.h"
#include "cli/streams/output.h"
#include "neuroshard/core/error.h"
#include "neuroshard/core/text/printable.h"
#include "neuroshard/core/units.h"
#include "neuroshard/cost/model_files.h"
#include "neuroshard/io/output_files.h"
#include "neuroshard/plan/plan_models.h"
#include "neuroshard/report/page/report_json.h"
#include "neuroshard/report/page/report_page.h"

namespace neuroshard::cli {

namespace {

struct ReportOptions {
  std::vector<std::string> plans;
  std::vector<std::string> evaluations;
  bool json = false;
  bool force = false;
  std::string output;
};

ReportData read_report_data(const ReportOptions& options) {
  std::vector<NamedPlan> plans;
  for (const std::string& path : options.plans) {
    plans.push_back({printable(path), read_plan(path)});
    refuse_output_that_is_model(options.output, recorded_models(plans.back().document.model),
                                ModelsRead::named);
  }
  std::vector<NamedEvaluation> evaluations;
  for (const std::string& path : options.evaluations) {
    evaluations.push_back({printable(path), read_evaluation(path)});
  }
  return report_data(plans, evaluations);
}

void run(const ReportOptions& options) {
  if (options.output.empty() && !options.json) {
    throw InputError("report: expected -o FILE for the page, or --json, got neither");
  }
  if (options.json && is_standard_output(options.output)) {
    throw InputError("report: expected --json or -o -, which both print, got both");
  }
  refuse_output_that_is_input(options.output, options.plans);
  refuse_output_that_is_input(options.output, options.evaluations);
  const ReportData data = read_report_data(options);
  check_output(options.output, options.force);
  std::string said;
  if (!options.output.empty()) {
    const std::string page = report_page(data);
    write_output(options.output, page);
    said = fmt::format("written to {} ({})\n", printable(options.output),
                       format_bytes(static_cast<double>(page.size())));
  }
  if (is_standard_output(options.output)) return;
  fmt::print("{}", options.json ? to_line(to_json(data)) + "\n" : said);
}

}  // namespace

void add_report_command(CLI::App& app) {
  auto options = std::make_shared<ReportOptions>();
  CLI::App* command = app.add_subcommand(
      "report", "Show plans as a page: costs, memory, tables, search, baselines, measurements");
  add_input_option(
      *command, "plans", options->plans,
      "Plan files (.json) of one task, the one to show first and others to compare it with")
      ->required();
  command
      ->add_option("--evaluation", options->evaluations,
                   "What evaluate -o wrote of one of the plans; may be given more than once")
      ->expected(1)
      ->take_all();
  command->add_flag("--json", options->json, "Print what the page shows as JSON (docs/formats.md)");
  add_output_option(*command, options->output, options->force,
                    "Page to write (.html), which opens without a network");
  add_examples(*command, {"report plan.json -o report.html",
                          "report plan.json --evaluation evaluation.json -o report.html"});
  command->callback([options] { run(*options); });
}

}  // namespace neuroshard::cli
