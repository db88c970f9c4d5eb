// Plans made of tasks, and what is done with plans.
#include "fuzz/torture/use.h"

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "fuzz/grammar/damage.h"
#include "fuzz/promise.h"
#include "neuroshard/core/sharding_plan.h"
#include "neuroshard/core/text/printable.h"
#include "neuroshard/decide/explanation.h"
#include "neuroshard/report/check_report.h"
#include "neuroshard/report/explanation_report.h"
#include "neuroshard/report/page/report_json.h"
#include "neuroshard/report/page/report_page.h"
#include "neuroshard/report/planning_report.h"

namespace neuroshard::fuzz {

namespace {

constexpr std::size_t kMostTables = 8;
constexpr int kMostDevices = 8;
/// Planning that takes longer is stopped by the clock [s].
constexpr double kPlanningSeconds = 0.5;

bool is_small(const Task& task) {
  return task.tables.size() <= kMostTables && task.topology.world_size <= kMostDevices;
}

ExplainRequest quick_request(const std::vector<std::string>& models) {
  ExplainRequest request;
  request.models = models;
  request.num_threads = 1;
  request.seconds_per_planning = 0.01;
  return request;
}

void require_report_of(const PlanDocument& document, Random& random) {
  const ReportData data = report_data({{"f", document}});
  require(!to_line(to_json(data)).empty(), "a plan has a report");
  if (once_in(20, random)) require_page(data);
}

/// Of every table, and of the whole; each may also be refused.
void require_explanation(const PlanDocument& document, const std::vector<std::string>& models,
                         Random& random) {
  for (const Table& table : document.task.tables) {
    (void)answered([&] { require_table_explained(document, table.name, models); });
  }
  if (!once_in(4, random)) return;
  (void)answered([&] { require_plan_explained(document, models); });
}

void require_planned(const PlannedTask& planned) {
  const PlanDocument& document = planned.document;
  require(violations(document.task, document.plan).empty(), "a plan that was made is valid");
  require_cost(*document.predicted);
  require(document.predicted->cost_ms > 0.0, "a plan costs something");
  require(planned.lower_bound_ms <= document.predicted->cost_ms * (1.0 + 1e-6),
          "no plan costs less than the lower bound");
  require(!planned.expected_ms || *planned.expected_ms >= document.predicted->cost_ms,
          "a plan is not expected to cost less than predicted");
  require_text(planning_report(planned));
  for (const AlgorithmOutcome& outcome : planned.baselines) {
    require(outcome.found || !outcome.reason.empty(), "no plan has a reason");
  }
}

}  // namespace

void require_cost(const PlanCost& cost) {
  const auto is_time = [](double ms) { return std::isfinite(ms) && ms >= 0.0; };
  require(is_time(cost.cost_ms), "a plan's cost is finite and at least 0");
  for (const DeviceCost& device : cost.devices) {
    require(is_time(device.compute_ms) && is_time(device.all_reduce_ms) &&
                is_time(device.forward_comm_ms) && is_time(device.backward_comm_ms),
            "a device's costs are finite and at least 0");
    require(device.memory_bytes >= 0 && device.num_columns >= 0, "a device's sums do not overflow");
    require(device.total_ms() <= cost.cost_ms * (1.0 + 1e-9), "no device costs more than the plan");
  }
}

void require_text(std::string_view text) {
  require(!text.empty(), "a text says something");
  for (std::size_t begin = 0; begin < text.size();) {
    const std::size_t end = std::min(text.find('\n', begin), text.size());
    const std::string_view line = text.substr(begin, end - begin);
    require(printable(line) == line, "a text has nothing that a terminal obeys");
    begin = end + 1;
  }
}

PlanRequest any_request(Random& random) {
  PlanRequest request;
  PlannerOptions& options = request.options;
  options.seed = random();
  options.num_threads = 1;
  options.time_limit_seconds = kPlanningSeconds;
  options.stop_by_clock = true;
  options.steps = static_cast<std::int64_t>(1 + random.below(50));
  options.cuts = {!once_in(4, random), once_in(2, random), once_in(2, random)};
  if (once_in(2, random)) options.improvement = ImprovementSchedule::brief;
  options.pessimism = random.uniform();
  options.least_gain = once_in(2, random) ? 0.0 : random.uniform();
  request.baselines = once_in(20, random);
  return request;
}

PlannedTask plan_and_read_back(const Task& task, const CostModels& models, const Planner& planner,
                               const PlanRequest& request) {
  PlannedTask planned = plan_task(task, models, planner, request);
  require_planned(planned);
  const std::string text = plan_text(planned.document);
  planned.document = parse_plan(text, "f");
  require(plan_text(planned.document) == text, "a plan reads back as written");
  const std::vector<std::string> found = violations(planned.document.task, planned.document.plan);
  require(found.empty(), "a plan that is read back is valid");
  require_text(check_text("f", planned.document, found));
  return planned;
}

void require_priced_as_planned(const PlanDocument& document, bool lower_bound) {
  const PricedPlan priced = price_plan(document, {{}, lower_bound}, "f");
  const double planned_ms = document.predicted->cost_ms;
  const double cost_ms = priced.document.predicted->cost_ms;
  require(std::abs(cost_ms - planned_ms) <= 1e-9 * planned_ms,
          "a plan is priced as it was planned");
  require(priced.lower_bound_ms <= cost_ms * (1.0 + 1e-6),
          "a priced plan does not cost less than its lower bound");
  require_text(pricing_report(priced));
}

void require_page(const ReportData& data) {
  require(report_page(data).find("</html>") != std::string::npos, "a plan has a page");
  require(!plan_summary_html(data).empty(), "a plan has a summary");
}

void require_table_explained(const PlanDocument& document, const std::string& table,
                             const std::vector<std::string>& models) {
  const TableExplanation answer = explain_table(document, table, quick_request(models), "f");
  require_text(table_explanation_text(answer));
  (void)to_line(table_explanation_json(answer));
}

void require_plan_explained(const PlanDocument& document, const std::vector<std::string>& models) {
  const Explanation answer = explain_plan(document, quick_request(models), "f");
  require_text(explanation_text(answer));
  (void)to_line(explanation_json(answer));
}

bool use_task(const Task& task, Workplace& place, Random& random) {
  if (!is_small(task)) return false;
  const CostModels& models = place.models(random);
  const Planner& planner = place.planner(random);
  const PlanRequest request = any_request(random);
  return answered([&] {
    const PlanDocument document = plan_and_read_back(task, models, planner, request).document;
    require_report_of(document, random);
    if (!once_in(4, random)) return;
    require_priced_as_planned(document, once_in(2, random));
    require_explanation(document, {}, random);
  });
}

bool use_plan(const PlanDocument& document, Workplace& place, Random& random) {
  const std::vector<std::string> found = violations(document.task, document.plan);
  require_text(check_text("f", document, found));
  (void)to_line(check_json("f", found));
  if (!found.empty() || !is_small(document.task)) return false;
  std::vector<std::string> models;
  if (!once_in(4, random)) {
    const CostModels& chosen = place.models(random);
    models = {chosen.compute->name(), chosen.communication->name()};
  }
  return answered([&] {
    const PricedPlan priced = price_plan(document, {models, once_in(8, random)}, "f");
    require_cost(*priced.document.predicted);
    require_text(pricing_report(priced));
    require_report_of(priced.document, random);
    if (once_in(4, random)) require_explanation(document, models, random);
  });
}

}  // namespace neuroshard::fuzz
