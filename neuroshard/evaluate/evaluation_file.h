// Evaluations read back from the files that `neuroshard evaluate -o` writes.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "neuroshard/core/sharding_plan.h"
#include "neuroshard/io/json/json.h"
#include "neuroshard/io/plan_io.h"

namespace neuroshard {

/// What was measured or simulated of a plan.
enum class EvaluationKind {
  computation,  ///< "neuroshard/evaluation/1": computation measured, communication predicted for it
  simulated,    ///< "neuroshard/simulated-iteration/1": communication simulated
  iterations    ///< "neuroshard/measured-iterations/1": whole iterations measured
};

/// An evaluation and its prediction; one element per device. A computation that was only
/// predicted is `actual` as predicted. Memory and columns are 0 where the file does not have them.
struct EvaluationRecord {
  EvaluationKind kind = EvaluationKind::computation;
  std::string plan_sha256{};  ///< as plan_sha256() of the plan; empty: not recorded
  PlanCost predicted{};
  PlanCost actual{};
  /// Relative half-width of the 95 % interval of the measured computation; empty for other kinds.
  std::vector<double> interval{};
  /// What made the prediction, as PlanDocument::model; an object without entries: not recorded.
  Json model = Json::Object{};
  /// Reasons to trust prediction or measurement less, a sentence each.
  std::vector<std::string> warnings{};
};

/// The evaluation with the hash of its plan, by which the plan is known again, the models of its
/// prediction (models_json) and what there is to warn of.
[[nodiscard]] Json of_plan(Json evaluation, const PlanDocument& plan, const Json& model,
                           const std::vector<std::string>& warnings);

/// Throws InputError "file: place: expected ..., got ..." for a file that is not an evaluation of
/// one of the three kinds.
[[nodiscard]] EvaluationRecord read_evaluation(const std::string& path);

/// As `read_evaluation`; `file` names the text in errors.
[[nodiscard]] EvaluationRecord parse_evaluation(std::string_view text, const std::string& file);

/// Whether it is an evaluation of this plan: by the plan's hash, and of a file without one by the
/// number of devices and, where both have them, memory and columns of each.
[[nodiscard]] bool is_evaluation_of(const EvaluationRecord& evaluation, const PlanDocument& plan);

}  // namespace neuroshard
