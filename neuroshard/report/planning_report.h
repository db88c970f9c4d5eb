// The report of a plan that was made or priced.
#pragma once

#include <string>
#include <vector>

#include "neuroshard/plan/plan_task.h"

namespace neuroshard {

/// Task, models, cost per device, cuts, lower bound, spread of the model's networks and, if they
/// were requested, the baselines.
[[nodiscard]] std::string planning_report(const PlannedTask& planned);

/// The same of a plan that was only priced.
[[nodiscard]] std::string pricing_report(const PricedPlan& priced);

/// What a communication model has not learned (unlearned_costs), a line each.
[[nodiscard]] std::string unlearned_text(const std::vector<std::string>& costs);

/// "models: NAME for computation; NAME for communication", a line.
[[nodiscard]] std::string models_line(const CostModels& models);

}  // namespace neuroshard
