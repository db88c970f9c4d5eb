// Evaluations of a plan as tables: measured or simulated next to predicted, device by device.
#pragma once

#include <string>

#include "neuroshard/core/sharding_plan.h"
#include "neuroshard/evaluate/iteration.h"
#include "neuroshard/evaluate/plan_evaluation.h"

namespace neuroshard {

/// Computation measured on one machine.
[[nodiscard]] std::string evaluation_text(const PlanEvaluation& evaluation);

/// All-to-alls simulated, computation as predicted.
[[nodiscard]] std::string simulated_iteration_text(const PlanCost& predicted,
                                                   const PlanIterations& simulated);

/// Whole iterations measured among processes.
[[nodiscard]] std::string measured_iterations_text(const PlanCost& predicted,
                                                   const PlanIterations& measured);

/// Whether the processes' values are those of one device, a line.
[[nodiscard]] std::string value_check_text(const ValueCheck& check);

}  // namespace neuroshard
