// Bindings of search, baselines, decide and evaluate.
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include <algorithm>
#include <cstdint>
#include <iterator>
#include <memory>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "module.h"
#include "neuroshard/baselines/planner_catalog.h"
#include "neuroshard/collect/compute/cpu/compute_benchmark.h"
#include "neuroshard/core/error.h"
#include "neuroshard/cost/cost_shares.h"
#include "neuroshard/cost/model_catalog.h"
#include "neuroshard/cost/model_files.h"
#include "neuroshard/decide/capacity.h"
#include "neuroshard/decide/explanation.h"
#include "neuroshard/decide/why_not.h"
#include "neuroshard/evaluate/comparison.h"
#include "neuroshard/evaluate/comparison_io.h"
#include "neuroshard/evaluate/comparison_models.h"
#include "neuroshard/evaluate/comparison_run.h"
#include "neuroshard/evaluate/comparison_warnings.h"
#include "neuroshard/evaluate/evaluation_file.h"
#include "neuroshard/evaluate/evaluation_io.h"
#include "neuroshard/evaluate/plan_evaluation.h"
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
#include "neuroshard/plan/replan_task.h"
#include "neuroshard/report/capacity_report.h"
#include "neuroshard/report/explanation_report.h"
#include "neuroshard/search/options/option_json.h"
#include "neuroshard/search/search_json.h"

namespace neuroshard::python {

namespace {

using Names = std::vector<std::string>;

/// A document, and the warnings and notes that come with it.
using Answer = std::tuple<std::string, Names, Names>;

/// Whether the clock may stop the search.
bool has_time_limit(const Json& options) {
  const Json* limit = options.find("time_limit");
  return limit != nullptr && *limit != Json();
}

/// As search_json.h says; `place` is what errors call them.
PlannerOptions planner_options(const std::string& text, const std::string& place) {
  const Json json = parse_json(text, place);
  PlannerOptions options = planner_options_from_json(JsonReader(json, place));
  options.stop_by_clock = has_time_limit(json);
  return options;
}

/// `request` as plan_request_io.h says.
Answer plan(const std::string& text, const std::string& request) {
  const Task task = parse_task(text, "task");
  const Json json = parse_json(request, "request");
  PlannedTask planned = plan_task(task, plan_request_from_json(JsonReader(json, "plan")));
  return {plan_text(planned.document), std::move(planned.warnings), std::move(planned.notes)};
}

/// From an older plan, whose options are those that the request does not have.
Answer replan(const std::string& text, const std::string& older_text, double max_move,
              const std::string& request_text) {
  const Task task = parse_task(text, "task");
  const PlanDocument older = parse_plan(older_text, "plan");
  PlannerOptions defaults = options_of_older(older);
  defaults.num_threads = 0;
  const Json json = parse_json(request_text, "request");
  const PlanRequest request = plan_request_from_json(JsonReader(json, "replan"), defaults);
  PlannedTask planned = replan_task(task, older, max_move, request, "plan");
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
    settings.data_type = arena_data_type(named);
    run.measuring = cpu_backend(settings, 1);
  }
  ComparisonRun comparison(
      request.algorithms.empty() ? make_planners() : find_planners(request.algorithms), run);
  const std::vector<ComparisonEntry> entries = comparison.compare(named, of_tasks, request.journal);
  Names warnings = comparison_warnings(named, of_tasks, entries);
  if (run.measuring) {
    std::ranges::move(measuring_warnings(named, of_tasks, run.measuring->description),
                      std::back_inserter(warnings));
  }
  return to_line(comparison_document(
      of_tasks, entries, summarize(entries, request.reference),
      {.reference = request.reference, .platform = "", .warnings = std::move(warnings)}));
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
  std::ranges::move(measuring_warnings(simulator.compute(), difference, document.task.tables),
                    std::back_inserter(warnings));
  ComputeBenchmarkOptions settings;
  settings.arena_bytes = arena_bytes;
  settings.num_threads = num_threads;
  settings.data_type = arena_data_type(document.task);
  const std::unique_ptr<ComputeBackend> backend = cpu_backend(settings, 1).make();
  const SimulatedPlan simulated{&simulator, &document.plan};
  const PlanEvaluation evaluation = evaluate_plans({&simulated, 1}, *backend, seed).front();
  return {to_line(of_plan(to_json(evaluation), document, models_json(found.models), warnings)),
          warnings, found.notes};
}

/// JSON and words, with the warnings and notes that come with them.
using ExplainedAnswer = std::tuple<std::string, std::string, Names, Names>;

/// Of the whole plan; of one table, if `table` is not empty; or of a choice, likewise.
ExplainedAnswer explain(const std::string& text, const std::string& table,
                        const std::string& choice, const Names& models, int num_threads,
                        double seconds) {
  const PlanDocument document = parse_plan(text, "plan");
  const ExplainRequest request{models, num_threads, seconds};
  if (!table.empty()) {
    const TableExplanation answer = explain_table(document, table, request, "plan");
    return {to_line(table_explanation_json(answer)), table_explanation_text(answer),
            answer.warnings, answer.notes};
  }
  if (!choice.empty()) {
    const WhyNot answer = why_not(document, parse_choice(choice, "why_not"), request, "plan");
    return {to_line(why_not_json(answer, document.task)), why_not_text(answer, document.task),
            answer.warnings, answer.notes};
  }
  const Explanation answer = explain_plan(document, request, "plan");
  return {to_line(explanation_json(answer)), explanation_text(answer), answer.warnings,
          answer.notes};
}

ExplainedAnswer capacity(const std::string& text, const std::vector<int>& devices,
                         const std::vector<std::int64_t>& memory_bytes, const Names& models,
                         const std::string& options) {
  const Json json = parse_json(options, "capacity");
  CapacityRequest request{devices, memory_bytes, models};
  request.options = planner_options_from_json(JsonReader(json, "capacity"), request.options);
  request.options.stop_by_clock = has_time_limit(json);
  const Capacity answer = plan_capacity(parse_task(text, "task"), request);
  return {to_line(capacity_json(answer)), capacity_text(answer), answer.warnings, answer.notes};
}

/// Pieces of a task's tables as Python has them: table, columns, first row, rows (0: all), and in
/// how many slices the table's rows are (0: the whole table is copied to every device).
using SharedPieces =
    std::vector<std::tuple<int, std::int64_t, std::int64_t, std::int64_t, std::int64_t>>;

/// Of each piece, its share (cost/cost_shares.h) of computation, of the forward and of the backward
/// communication [ms]; warnings and notes.
using SharesAnswer = std::tuple<std::vector<std::tuple<double, double, double>>, Names, Names>;

SharesAnswer cost_shares(const std::string& text, const SharedPieces& pieces, const Names& models) {
  const Task task = parse_task(text, "task");
  const CostModels found = load_cost_models(models, task.topology);
  const Simulator simulator(task, found.compute, found.communication);
  const CostShares shares(simulator);
  SharesAnswer answer;
  std::get<1>(answer) = model_warnings(found, task, simulator.statistics());
  std::get<2>(answer) = model_notes(found, task.topology);
  for (const auto& [table, columns, first_row, rows, slices] : pieces) {
    if (table < 0 || table >= static_cast<int>(task.tables.size())) {
      throw InputError("pieces", "an index below " + std::to_string(task.tables.size()),
                       std::to_string(table));
    }
    const CostShare share =
        slices == 0 ? shares.of_copy(table)
                    : shares.of(piece_of(task, {table, 0, columns, 0, first_row, rows}), slices);
    std::get<0>(answer).emplace_back(share.compute_ms, share.forward_comm_ms,
                                     share.backward_comm_ms);
  }
  return answer;
}

/// A choice among listed options (docs/formats.md); `steps` 0 is the library's default.
std::string choose_options(const std::string& text, std::int64_t steps, std::uint64_t seed,
                           int num_threads) {
  const OptionTask task = parse_option_task(text, "options");
  return to_line(to_json(plan_options(task, {steps, seed, num_threads})));
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
  module.def("replan", [](const std::string& task, const std::string& plan, double max_move,
                          const std::string& request) {
    return without_gil([&] { return replan(task, plan, max_move, request); });
  });
  module.def("parse_share", [](const std::string& text, const std::string& place) {
    return parse_share(text, place);
  });
  module.def("explain", [](const std::string& plan, const std::string& table,
                           const std::string& choice, const Names& models, int num_threads,
                           double seconds) {
    return without_gil([&] { return explain(plan, table, choice, models, num_threads, seconds); });
  });
  module.def("capacity", [](const std::string& task, const std::vector<int>& devices,
                            const std::vector<std::int64_t>& memory_bytes, const Names& models,
                            const std::string& options) {
    return without_gil([&] { return capacity(task, devices, memory_bytes, models, options); });
  });
  module.def("parse_device_numbers", [](const std::string& text, const std::string& place) {
    return parse_device_numbers(text, place);
  });
  module.def("price", [](const std::string& plan, const Names& models, bool lower_bound) {
    return without_gil([&] { return price(plan, models, lower_bound); });
  });
  module.def("cost_shares",
             [](const std::string& task, const SharedPieces& pieces, const Names& models) {
               return without_gil([&] { return cost_shares(task, pieces, models); });
             });
  module.def("choose_options",
             [](const std::string& task, std::int64_t steps, std::uint64_t seed, int num_threads) {
               return without_gil([&] { return choose_options(task, steps, seed, num_threads); });
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
