// Evaluations of a plan as JSON (docs/formats.md, "Answers of commands").
#pragma once

#include "neuroshard/core/sharding_plan.h"
#include "neuroshard/evaluate/iteration.h"
#include "neuroshard/evaluate/plan_evaluation.h"
#include "neuroshard/io/json/json.h"

namespace neuroshard {

/// "neuroshard/evaluation/1": computation measured on one machine, communication predicted.
[[nodiscard]] Json to_json(const PlanEvaluation& evaluation);

/// "neuroshard/simulated-iteration/1": computation predicted, all-to-alls simulated.
[[nodiscard]] Json simulated_iteration_json(const PlanCost& predicted,
                                            const PlanIterations& simulated);

/// "neuroshard/measured-iterations/1": whole iterations, measured among processes.
/// `oversubscribed` if processes shared cores.
[[nodiscard]] Json measured_iterations_json(const PlanCost& predicted,
                                            const PlanIterations& measured, bool oversubscribed);

/// "neuroshard/value-check/1".
[[nodiscard]] Json to_json(const ValueCheck& check);

}  // namespace neuroshard
