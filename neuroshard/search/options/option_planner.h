// Planning with listed options: one option for each table and devices for its shards.
#pragma once

#include <cstdint>
#include <vector>

#include "neuroshard/search/options/option_task.h"

namespace neuroshard {

struct OptionPlannerOptions {
  /// Neighbours that each chain of annealing tries; 0: a number that follows from the task's size.
  std::int64_t steps = 0;
  std::uint64_t seed = 0;
  /// 0 is one per core; the result does not depend on it.
  int num_threads = 0;
};

struct OptionPlan {
  std::vector<ChosenOption> chosen{};  ///< of each table
  double cost_ms = 0.0;                ///< of the slowest device
  double lower_bound_ms = 0.0;         ///< no choice that fits into memory costs less
  std::int64_t steps = 0;              ///< neighbours tried, and those that were accepted
  std::int64_t accepted = 0;
};

/// The choice of least cost found that fits into memory: the best of several constructions,
/// improved by rounds of annealing. It depends on the task, the steps and the seed alone. Throws
/// InputError for an invalid task, InfeasibleError if no choice that fits was found, which says
/// whether that is proven.
[[nodiscard]] OptionPlan plan_options(const OptionTask& task,
                                      const OptionPlannerOptions& options = {});

}  // namespace neuroshard
