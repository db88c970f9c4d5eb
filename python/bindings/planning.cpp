// Bindings of search, baselines and evaluate.
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include <memory>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "module.h"
#include "neuroshard/baselines/planner_catalog.h"
#include "neuroshard/collect/compute/cpu/compute_benchmark.h"
#include "neuroshard/core/error.h"
#include "neuroshard/cost/model_catalog.h"
#include "neuroshard/cost/model_files.h"
#include "neuroshard/evaluate/comparison.h"
#include "neuroshard/evaluate/comparison_io.h"
#include "neuroshard/evaluate/comparison_models.h"
#include "neuroshard/evaluate/comparison_run.h"
#include "neuroshard/evaluate/evaluation_io.h"
#include "neuroshard/evaluate/plan_evaluation.h"
#include "neuroshard/evaluate/task_warnings.h"
#include "neuroshard/io/checksum.h"
#include "neuroshard/io/json/json_reader.h"
#include "neuroshard/io/output_files.h"
#include "neuroshard/io/plan_io.h"
#include "neuroshard/io/task_io.h"
#include "neuroshard/paper/ablations.h"
#include "neuroshard/plan/plan_models.h"
#include "neuroshard/plan/plan_request_io.h"
#include "neuroshard/plan/plan_task.h"
#include "neuroshard/plan/plan_warnings.h"
#include "neuroshard/search/search_json.h"

namespace neuroshard::python {

namespace {

using Names = std::vector<std::string>;

/// A document, and the warnings and notes that come with it.
using Answer = std::tuple<std::string, Names, Names>;

/// As search_json.h says; `place` is what errors call them.
PlannerOptions planner_options(const std::string& text, const std::string& place) {
  const Json json = parse_json(text, place);
  return planner_options_from_json(JsonReader(json, place));
}

/// `request` as plan_request_io.h says.
Answer plan(const std::string& text, const std::string& request) {
  const Task task = parse_task(text, "task");
  const Json json = parse_json(request, "request");
  PlannedTask planned = plan_task(task, plan_request_from_json(JsonReader(json, "plan")));
  return {plan_text(planned.document), std::move(planned.warnings), std::move(planned.notes)};
}

Answer plan_again(const std::string& text, const Names& models) {
  PlannedTask planned = plan_like(parse_plan(text, "plan"), models, "plan");
  return {plan_text(planned.document), std::move(planned.warnings), std::move(planned.notes)};
}

/// The document's plan; throws as `neuroshard evaluate` does if it breaks a rule.
PlanDocument valid_plan(const std::string& text) {
  PlanDocument document = parse_plan(text, "plan");
  require_valid(document, "plan");
  return document;
}

Answer price(const std::string& text, const Names& models, bool lower_bound) {
  PricedPlan priced = price_plan(parse_plan(text, "plan"), {models, lower_bound}, "plan");
  return {plan_text(priced.document), std::move(priced.warnings), std::move(priced.notes)};
}

/// Tasks by name; a journal that is continued must agree on both.
std::vector<NamedTask> named_tasks(const std::vector<std::pair<std::string, std::string>>& tasks) {
  std::vector<NamedTask> named;
  for (const auto& [name, text] : tasks) {
    const Task task = parse_task(text, name);
    const std::string sha256 = sha256_hex(to_line(to_json(task)));
    named.push_back({name, task, Json::Object{{"name", name}, {"sha256", sha256}}});
  }
  return named;
}

/// Options of a comparison, besides its tasks and models.
struct ComparisonRequest {
  Names algorithms;          ///< none: all
  std::int64_t arena_bytes;  ///< 0: nothing is measured
  std::string reference;
  std::string journal;
  Names controls;
};

std::string compare(const std::vector<std::pair<std::string, std::string>>& tasks,
                    const Names& models, const PlannerOptions& options,
                    const ComparisonRequest& request) {
  refuse_output_that_is_input(request.journal, request.controls, "journal");
  refuse_output_that_is_model(request.journal, models, ModelsRead::named_or_default, "journal");
  std::vector<NamedTask> named = named_tasks(tasks);
  const std::vector<CostModels> of_tasks = models_of_tasks(named, models);
  for (std::size_t t = 0; t < named.size(); ++t) {
    named[t].identity.set("communication_model",
                          to_json(ModelReference{of_tasks[t].communication->name(),
                                                 of_tasks[t].communication_sha256}));
  }
  ComparisonRunOptions run;
  run.planner = options;
  run.controls = request.controls;
  if (request.arena_bytes > 0) {
    ComputeBenchmarkOptions settings;
    settings.arena_bytes = request.arena_bytes;
    settings.num_threads = options.num_threads;
    run.measuring = cpu_backend(settings, 1);
  }
  ComparisonRun comparison(
      request.algorithms.empty() ? make_planners() : find_planners(request.algorithms), run);
  const std::vector<ComparisonEntry> entries = comparison.compare(named, of_tasks, request.journal);
  return to_line(comparison_document(of_tasks, entries, summarize(entries, request.reference),
                                     {.reference = request.reference,
                                      .platform = "",
                                      .warnings = comparison_warnings(named, of_tasks)}));
}

Answer evaluate(const std::string& text, const Names& models, std::int64_t arena_bytes,
                int num_threads, std::uint64_t seed) {
  const PlanDocument document = valid_plan(text);
  const ModelsOfPlan found = models_of_plan(document, models, "plan");
  const Simulator simulator(document.task, found.models.compute, found.models.communication);
  Names warnings = prediction_warnings(found.models, simulator, document.plan);
  warnings.insert(warnings.end(), found.changes.begin(), found.changes.end());
  // Before threads are pinned to cores, which the process then seems to have fewer of.
  const std::string difference = measurement_difference(simulator.compute());
  if (!difference.empty()) {
    warnings.push_back(simulator.compute().name() + ": measured on " + difference);
  }
  ComputeBenchmarkOptions settings;
  settings.arena_bytes = arena_bytes;
  settings.num_threads = num_threads;
  settings.data_type = arena_data_type(document.task);
  const std::unique_ptr<ComputeBackend> backend = cpu_backend(settings, 1).make();
  const SimulatedPlan simulated{&simulator, &document.plan};
  const PlanEvaluation evaluation = evaluate_plans({&simulated, 1}, *backend, seed).front();
  return {to_line(to_json(evaluation)), warnings, found.notes};
}

}  // namespace

void bind_planning(nb::module_& module) {
  module.def("list_algorithms", [] {
    Names names;
    for (const auto& planner : make_planners()) names.emplace_back(planner->name());
    return names;
  });
  module.def("plan", [](const std::string& task, const std::string& request) {
    return without_gil([&] { return plan(task, request); });
  });
  module.def("plan_like", [](const std::string& plan, const Names& models) {
    return without_gil([&] { return plan_again(plan, models); });
  });
  module.def("price", [](const std::string& plan, const Names& models, bool lower_bound) {
    return without_gil([&] { return price(plan, models, lower_bound); });
  });
  module.def("compare",
             [](const std::vector<std::pair<std::string, std::string>>& tasks, const Names& models,
                const Names& algorithms, const std::string& options, std::int64_t arena_bytes,
                const std::string& reference, const std::string& journal, const Names& controls) {
               return without_gil([&] {
                 return compare(tasks, models, planner_options(options, "compare"),
                                {algorithms, arena_bytes, reference, journal, controls});
               });
             });
  module.def("evaluate", [](const std::string& plan, const Names& models, std::int64_t arena_bytes,
                            int num_threads, std::uint64_t seed) {
    return without_gil([&] { return evaluate(plan, models, arena_bytes, num_threads, seed); });
  });
}

}  // namespace neuroshard::python
