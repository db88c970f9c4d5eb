// The cost models of a plan: those that it was made with, where they are now, and the warnings
// about them.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "neuroshard/cost/model_catalog.h"
#include "neuroshard/io/plan_io.h"

namespace neuroshard {

/// {"compute": {"name", "sha256", "file"}, "communication": {...}}, as in PlanDocument::model.
[[nodiscard]] Json models_json(const CostModels& models);

/// What an object of that form refers to: of each kind that it has, the model's path, or its name
/// if it has none.
[[nodiscard]] std::vector<std::string> recorded_models(const Json& made_with);

/// The models in `names`. For a kind without one, the model that `made_with` (of the form of
/// models_json) refers to: at its recorded path, or else by its name. A kind that is in neither
/// gets the default. `file` names the plan in errors. Throws InputError saying which file to give
/// if a model is not found.
[[nodiscard]] CostModels load_models_of_plan(const Json& made_with, const Topology& topology,
                                             const std::vector<std::string>& names,
                                             const std::string& file);

/// A line for each model that is not the one that `made_with` names, by its file's hash, or by its
/// name if it has no file.
[[nodiscard]] std::vector<std::string> changed_models(const Json& made_with,
                                                      const CostModels& models);

/// Reasons to trust these models' predictions for the task less, a line each: what of it is outside
/// the range that a model was trained on. `statistics` are table_statistics(task), if they are
/// known (Simulator::statistics).
[[nodiscard]] std::vector<std::string> model_warnings(
    const CostModels& models, const Task& task, std::span<const TableStatistics> statistics = {});
/// Those of the computation model alone.
[[nodiscard]] std::vector<std::string> model_warnings(
    const ComputeCostModel& model, const Task& task,
    std::span<const TableStatistics> statistics = {});

/// What was chosen for the user that the user may want to choose, a line each: a default model, of
/// a CPU, for devices that look like GPUs, with the models of GPUs that there are.
[[nodiscard]] std::vector<std::string> model_notes(const CostModels& models,
                                                   const Topology& topology);

/// What of plans with these cuts the communication model prices without having learned it, a line
/// each: the all-reduce of copies by the links' rates, the partial sums of slices by the memory's.
/// Nothing for an estimate, which has learned nothing and is called so.
[[nodiscard]] std::vector<std::string> unlearned_costs(const CommunicationCostModel& model,
                                                       const Cuts& cuts);
/// Likewise of the cuts that this plan has.
[[nodiscard]] std::vector<std::string> unlearned_costs(const CommunicationCostModel& model,
                                                       const ShardingPlan& plan);

struct ModelsOfPlan {
  CostModels models{};
  /// A line each, as of changed_models; empty if models were asked for.
  std::vector<std::string> changes{};
  std::vector<std::string> notes{};  ///< likewise, as of model_notes
};

/// The models by which a plan is priced or evaluated, as load_models_of_plan finds them, with what
/// is to be said about them.
[[nodiscard]] ModelsOfPlan models_of_plan(const PlanDocument& document,
                                          const std::vector<std::string>& names,
                                          const std::string& file);

}  // namespace neuroshard
