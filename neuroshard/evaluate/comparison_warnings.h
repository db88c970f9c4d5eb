// The warnings of a comparison: what of its tasks and plans lies outside of what the models were
// trained on, and where their networks disagree.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "neuroshard/collect/compute/compute_backend.h"
#include "neuroshard/cost/model_catalog.h"
#include "neuroshard/evaluate/comparison_run.h"
#include "neuroshard/plan/collected_warnings.h"

namespace neuroshard {

/// Adds those of each task, and of the plans that its entries are of, which name the algorithm.
/// `models` are one pair for all tasks, or one for each; `entries` are as ComparisonRun returns
/// them, as many for each task, or none.
void add_warnings(const std::vector<NamedTask>& tasks, std::span<const CostModels> models,
                  std::span<const ComparisonEntry> entries, CollectedWarnings& warnings);
[[nodiscard]] std::vector<std::string> comparison_warnings(
    const std::vector<NamedTask>& tasks, std::span<const CostModels> models,
    std::span<const ComparisonEntry> entries = {});

/// Of plans that are measured by `backend`, besides: those of measuring_warnings, of the first
/// task's computation model and of each task's tables.
[[nodiscard]] std::vector<std::string> measuring_warnings(const std::vector<NamedTask>& tasks,
                                                          std::span<const CostModels> models,
                                                          const BackendDescription& backend);

}  // namespace neuroshard
