// What goes on with a value that a reader has accepted: plans made, checked, priced, explained and
// reported. Invariants that do not hold are violations.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "fuzz/torture/workplace.h"
#include "neuroshard/core/numbers/random.h"
#include "neuroshard/core/task.h"
#include "neuroshard/io/plan_io.h"
#include "neuroshard/plan/plan_task.h"
#include "neuroshard/report/page/report_data.h"

namespace neuroshard::fuzz {

/// Plans a task of a few tables and devices in a few steps, and takes the plan through its file,
/// check, report, price and explanation. Returns false, without having done anything, for a larger
/// task, and where there is no plan.
bool use_task(const Task& task, Workplace& place, Random& random);

/// Checks a plan; one that is valid and small is priced, reported and explained. Returns false for
/// others.
bool use_plan(const PlanDocument& document, Workplace& place, Random& random);

// Their steps, which throw the library's own errors. Models are those of `models`, or if that is
// empty the plan's own.

/// A few steps, with any cuts and options.
[[nodiscard]] PlanRequest any_request(Random& random);

/// Plans, and takes the plan through its file and check; `document` is as it was read.
[[nodiscard]] PlannedTask plan_and_read_back(const Task& task, const CostModels& models,
                                             const Planner& planner, const PlanRequest& request);

/// A plan that was made by models that are still there costs what it was predicted to.
void require_priced_as_planned(const PlanDocument& document, bool lower_bound);

/// The page, and its summary for notebooks.
void require_page(const ReportData& data);

void require_table_explained(const PlanDocument& document, const std::string& table,
                             const std::vector<std::string>& models);
void require_plan_explained(const PlanDocument& document, const std::vector<std::string>& models);

/// Finite and at least 0, of the plan and of each device.
void require_cost(const PlanCost& cost);

/// A text for people: nothing that a terminal obeys but the ends of lines.
void require_text(std::string_view text);

}  // namespace neuroshard::fuzz
