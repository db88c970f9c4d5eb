// The parts of a plan's report, one below the other.
#include "neuroshard/report/planning_report.h"

#include <fmt/format.h>

#include <string>

#include "neuroshard/core/text/printable.h"
#include "neuroshard/core/units.h"
#include "neuroshard/plan/plan_models.h"
#include "neuroshard/report/moves_report.h"
#include "neuroshard/report/plan_report.h"

namespace neuroshard {

namespace {

/// Which models nobody asked for.
std::string defaults_text(const CostModels& models) {
  if (!models.compute_is_default && !models.communication_is_default) return "";
  const char* which = !models.communication_is_default ? "computation model is the default"
                      : !models.compute_is_default     ? "communication model is the default"
                                                       : "models are defaults";
  return fmt::format("the {}; --model names another, neuroshard model list shows them\n", which);
}

std::string heading(const PricedPlan& priced) {
  const Task& task = priced.document.task;
  const ComputeCostModel& compute = *priced.models.compute;
  const CommunicationCostModel& communication = *priced.models.communication;
  return fmt::format(
      "{} on {}, batch {}, {}\n"
      "computation:   {}\n"
      "communication: {}\n"
      "{}\n",
      format_count(static_cast<std::int64_t>(task.tables.size()), "table"),
      format_count(task.topology.world_size, "device"), task.batch_size, to_string(task.optimizer),
      printable(described(compute)), printable(described(communication)),
      defaults_text(priced.models));
}

std::string placement(const PricedPlan& priced) {
  const PlanDocument& document = priced.document;
  return fmt::format("{}\n{}\n", plan_table(document.task, document.plan, *document.predicted),
                     cuts_text(document.task, document.plan));
}

/// How certain the cost is: what it is expected to be, the lower bound, and the spread within the
/// model.
std::string confidence(const PricedPlan& priced) {
  return expected_cost_text(priced.expected_ms, priced.models.compute->scatter()) +
         lower_bound_text(priced.lower_bound_ms, priced.document.predicted->cost_ms,
                          bound_scope(priced.document)) +
         disagreement_text(priced.models.compute->num_members(), priced.member_ranges) +
         unlearned_text(unlearned_costs(*priced.models.communication, priced.document.plan));
}

std::string baselines(const PlannedTask& planned, const std::string& algorithm) {
  if (planned.baselines.empty()) return "";
  std::vector<AlgorithmOutcome> outcomes{
      {algorithm, true, planned.document.predicted->cost_ms, planned.stats.wall_ms, ""}};
  outcomes.insert(outcomes.end(), planned.baselines.begin(), planned.baselines.end());
  return fmt::format("\n{}", outcomes_table(outcomes));
}

std::string moves(const PlanDocument& document) {
  return document.moves ? "\n" + moves_text(*document.moves) : "";
}

}  // namespace

std::string unlearned_text(const std::vector<std::string>& costs) {
  std::string text;
  for (const std::string& line : costs) text += printable(line) + "\n";
  return text;
}

std::string models_line(const CostModels& models) {
  return fmt::format("models: {} for computation; {} for communication\n",
                     printable(described(*models.compute)),
                     printable(described(*models.communication)));
}

std::string planning_report(const PlannedTask& planned) {
  const std::string& algorithm = *planned.document.search.find("algorithm")->text();
  return heading(planned) + placement(planned) +
         fmt::format("{}: predicted cost {:.3f} ms, found in {}{}\n", algorithm,
                     planned.document.predicted->cost_ms,
                     format_seconds(planned.stats.wall_ms * 1e-3),
                     planned.stats.stopped_by_clock
                         ? ", when the time limit stopped it: more time may find a better one"
                         : "") +
         confidence(planned) + moves(planned.document) + baselines(planned, algorithm);
}

std::string pricing_report(const PricedPlan& priced) {
  return heading(priced) + placement(priced) +
         fmt::format("predicted cost {:.3f} ms\n", priced.document.predicted->cost_ms) +
         confidence(priced) + moves(priced.document);
}

}  // namespace neuroshard
