// Bindings of report: plans as a page, and as a piece of HTML for notebooks.
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <string>
#include <utility>
#include <vector>

#include "module.h"
#include "neuroshard/io/file.h"
#include "neuroshard/plan/plan_models.h"
#include "neuroshard/report/page/report_page.h"

namespace neuroshard::python {

namespace {

/// Names with texts in the documented formats.
using NamedTexts = std::vector<std::pair<std::string, std::string>>;

void write_report(const NamedTexts& plans, const NamedTexts& evaluations,
                  const std::vector<std::string>& inputs, const std::string& path, bool force) {
  Output output{.path = path, .inputs = inputs, .force = force};
  std::vector<NamedPlan> named_plans;
  for (const auto& [name, text] : plans) {
    named_plans.push_back({name, parse_plan(text, name)});
    for (std::string& model : recorded_models(named_plans.back().document.model)) {
      output.models.push_back(std::move(model));
    }
  }
  std::vector<NamedEvaluation> named_evaluations;
  for (const auto& [name, text] : evaluations) {
    named_evaluations.push_back({name, parse_evaluation(text, name)});
  }
  check_output(output);
  write_file(path, report_page(report_data(named_plans, named_evaluations)));
}

}  // namespace

void bind_reporting(nb::module_& module) {
  module.def("write_report",
             [](const NamedTexts& plans, const NamedTexts& evaluations,
                const std::vector<std::string>& inputs, const std::string& path, bool force) {
               without_gil([&] { write_report(plans, evaluations, inputs, path, force); });
             });
  module.def("write_evaluation", [](const std::string& text, const std::string& path,
                                    const std::vector<std::string>& inputs, bool force) {
    without_gil([&] {
      (void)parse_evaluation(text, "evaluation");
      check_output({.path = path, .inputs = inputs, .force = force});
      write_file(path, to_document(parse_json(text, "evaluation")));
    });
  });
  module.def("plan_summary_html", [](const std::string& plan) {
    return without_gil([&] {
      return plan_summary_html(report_data({{"plan", parse_plan(plan, "plan")}}));
    });
  });
}

}  // namespace neuroshard::python
