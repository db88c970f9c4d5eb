// The cost models of a comparison's tasks.
#pragma once

#include <string>
#include <vector>

#include "neuroshard/cost/model_catalog.h"
#include "neuroshard/evaluate/comparison_run.h"

namespace neuroshard {

/// For each task the models that `load_cost_models` finds for these names and its topology, loaded
/// once for each kind of topology; the computation model is the same for all. Throws as that does,
/// for no tasks too.
[[nodiscard]] std::vector<CostModels> models_of_tasks(const std::vector<NamedTask>& tasks,
                                                      const std::vector<std::string>& names);

/// What people are told of the communication models (`described`), each once.
[[nodiscard]] std::string communication_models_text(const std::vector<CostModels>& models);

}  // namespace neuroshard
