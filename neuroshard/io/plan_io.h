// Sharding plans as JSON files, format "neuroshard/plan/1" (docs/formats.md).
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "neuroshard/core/sharding_plan.h"
#include "neuroshard/io/json/json.h"

namespace neuroshard {

inline constexpr std::string_view kPlanFormat = "neuroshard/plan/1";

/// A plan with everything needed to trust it.
struct PlanDocument {
  Task task{};
  ShardingPlan plan{};
  std::optional<PlanCost> predicted{};  ///< if given, one element per device
  /// Which models predicted, e.g. {"compute": {"name": ..., "sha256": ...}, "communication": ...}.
  /// An object of any content.
  Json model = Json::Object{};
  /// How the plan was found: algorithm, seed, options, statistics, lower bound. An object of any
  /// content.
  Json search = Json::Object{};
  /// Reasons to trust the prediction less, a sentence each.
  std::vector<std::string> warnings{};
};

/// One entry of PlanDocument::model: enough to find the model again, and to know it.
struct ModelReference {
  std::string name{};
  std::string sha256{};       ///< of the model's file; empty for a model without one
  std::string file{};         ///< path of a model that was asked for by its path; empty for others
  bool is_simulated = false;  ///< learned from a simulation
};
[[nodiscard]] Json to_json(const ModelReference& model);

/// The entry "compute" or "communication" of such an object; nothing if it has none. Fields that
/// are not of their type count as empty: the object may have any content.
[[nodiscard]] std::optional<ModelReference> model_reference(const Json& models,
                                                            std::string_view kind);

/// Throws InputError "file: place: expected ..., got ..." for a file that is not a plan. Whether
/// the plan is valid for its task is another question: core's `violations`.
[[nodiscard]] PlanDocument read_plan(const std::string& path);

/// As `read_plan`; `file` names the text in errors.
[[nodiscard]] PlanDocument parse_plan(std::string_view text, const std::string& file);

/// Writes the plan so that it reads back bit for bit. The task must be valid and every shard's
/// table one of its tables (else InputError); the plan need not be valid.
void write_plan(const PlanDocument& document, const std::string& path);
[[nodiscard]] std::string plan_text(const PlanDocument& document);

}  // namespace neuroshard
