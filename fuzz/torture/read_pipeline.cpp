// The promise of a task's whole way: a plan that every later step accepts, or why there is none.
#include <cmath>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "fuzz/grammar/damage.h"
#include "fuzz/promise.h"
#include "fuzz/targets.h"
#include "fuzz/torture/readers.h"
#include "fuzz/torture/use.h"
#include "neuroshard/collect/compute/cpu/compute_benchmark.h"
#include "neuroshard/cost/simulator.h"
#include "neuroshard/evaluate/evaluation_file.h"
#include "neuroshard/evaluate/evaluation_io.h"
#include "neuroshard/evaluate/plan_evaluation.h"
#include "neuroshard/plan/plan_models.h"
#include "neuroshard/plan/plan_warnings.h"
#include "neuroshard/report/evaluation_report.h"
#include "neuroshard/report/page/report_json.h"

namespace neuroshard::fuzz {

namespace {

/// The least that there is: it is filled and read anew for every input.
constexpr std::int64_t kArenaBytes = std::int64_t{1} << 20;

bool same(const DeviceCost& a, const DeviceCost& b) {
  return a.compute_ms == b.compute_ms && a.all_reduce_ms == b.all_reduce_ms &&
         a.forward_comm_ms == b.forward_comm_ms && a.backward_comm_ms == b.backward_comm_ms;
}

void require_same(const PlanCost& read, const PlanCost& written) {
  require(read.cost_ms == written.cost_ms && read.devices.size() == written.devices.size(),
          "an evaluation reads back as written");
  for (std::size_t d = 0; d < read.devices.size(); ++d) {
    require(same(read.devices[d], written.devices[d]), "a device's evaluation does too");
  }
}

/// What holds pieces was measured, and nothing else.
void require_measured(const PlanEvaluation& evaluation, const PlanDocument& document) {
  const ShardingPlan& plan = document.plan;
  require_cost(evaluation.measured);
  require_same(evaluation.predicted, *document.predicted);
  std::vector<bool> holds(evaluation.measured.devices.size(), !plan.replicated_tables.empty());
  for (const Shard& shard : plan.shards) holds[static_cast<std::size_t>(shard.device)] = true;
  for (std::size_t d = 0; d < holds.size(); ++d) {
    require((evaluation.measured.devices[d].compute_ms > 0.0) == holds[d],
            "a device computes if it holds something");
    require(std::isfinite(evaluation.interval[d]) && evaluation.interval[d] >= 0.0,
            "the interval of a measurement is finite");
  }
  require(std::isfinite(evaluation.compute_mape) && evaluation.compute_mape >= 0.0,
          "the error of a prediction is finite");
  require_text(evaluation_text(evaluation));
}

/// As `neuroshard evaluate` does; returns what was written.
std::string evaluated(const PlanDocument& document, std::uint64_t seed) {
  const ModelsOfPlan found = models_of_plan(document, {}, "f");
  require(found.changes.empty(), "a plan's models are found again");
  const Simulator simulator(document.task, found.models.compute, found.models.communication);
  ComputeBenchmarkOptions options;
  options.num_threads = 1;
  options.arena_bytes = kArenaBytes;
  options.data_type = arena_data_type(document.task);
  const std::unique_ptr<ComputeBackend> backend = cpu_backend(options, 1).make();
  const SimulatedPlan simulated{&simulator, &document.plan};
  const PlanEvaluation evaluation = evaluate_plans({&simulated, 1}, *backend, seed).front();
  require_measured(evaluation, document);
  const std::vector<std::string> warnings =
      prediction_warnings(found.models, simulator, document.plan);
  std::string text =
      to_document(of_plan(to_json(evaluation), document, models_json(found.models), warnings));
  const EvaluationRecord read = parse_evaluation(text, "f");
  require(read.kind == EvaluationKind::computation && is_evaluation_of(read, document),
          "an evaluation is known as that of its plan");
  require_same(read.predicted, evaluation.predicted);
  require_same(read.actual, evaluation.measured);
  require(read.interval == evaluation.interval, "intervals read back as written");
  require(read.warnings == warnings, "warnings read back as written");
  return text;
}

}  // namespace

Outcome take_through_pipeline(std::string_view bytes, Workplace& place, Random& random) {
  if (!task(bytes)) return Outcome::refused;
  const CostModels& models = place.models(random);
  const Planner& planner = place.planner(random);
  PlannedTask planned;
  try {
    planned = plan_and_read_back(parse_task(bytes, "f"), models, planner, any_request(random));
  } catch (const InfeasibleError& error) {  // any other error breaks the promise
    require_message(error.what());
    return Outcome::read;
  }
  const PlanDocument& document = planned.document;
  const std::string evaluation = evaluated(document, random());
  const ReportData data =
      report_data({{"f", document}}, {{"e", parse_evaluation(evaluation, "e")}});
  require(!to_line(to_json(data)).empty(), "a plan with its evaluation has a report");
  require_page(data);
  require_table_explained(document, one_of(document.task.tables, random).name, {});
  require_plan_explained(document, {});
  require_priced_as_planned(document, true);
  return Outcome::used;
}

}  // namespace neuroshard::fuzz
