// Plans on a simulated cluster: their computation as predicted or measured, their all-to-alls
// simulated (SimGrid).
#pragma once

#include <string>
#include <vector>

#include "neuroshard/core/sharding_plan.h"
#include "neuroshard/core/task.h"
#include "neuroshard/evaluate/comparison.h"
#include "neuroshard/evaluate/comparison_run.h"
#include "neuroshard/evaluate/iteration.h"

namespace neuroshard {

// SimGrid exists once per process: a second call of simulate_plan or simulate_communication throws
// std::logic_error. `platform` is as in SimulationOptions.

/// One iteration of the plan of which this is the predicted cost: its columns, its all-reduce, and
/// its computation and additions of partial sums as predicted. Throws InputError as
/// simulate_iterations.
[[nodiscard]] PlanIterations simulate_plan(const Task& task, const PlanCost& predicted,
                                           const std::string& platform,
                                           const PlanAdditions& additions = {});

/// Throws InputError, naming the task, unless all have the topology and batch size of the first, as
/// one cluster is simulated.
void require_one_cluster(const std::vector<NamedTask>& tasks);

/// Throws now, not after long work, what simulate_communication would throw of the platform: it is
/// tried out for the first of the tasks, at least one, in a process of its own. To be called before
/// this process simulates or has threads.
void require_platform(const std::vector<NamedTask>& tasks, const std::string& platform);

/// Puts simulated all-to-alls, and all-reduces, in the place of the predicted ones in the measured
/// costs of entries of these tasks: `measured_ms`, and `less_drift_ms` where there were controls.
/// Throws as require_one_cluster and simulate_plan.
void simulate_communication(const std::vector<NamedTask>& tasks, const std::string& platform,
                            std::vector<ComparisonEntry>& entries);

}  // namespace neuroshard
