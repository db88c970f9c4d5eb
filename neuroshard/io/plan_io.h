// Sharding plans as JSON files, format "neuroshard/plan/1" (docs/formats.md).
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "neuroshard/core/device_transfer.h"
#include "neuroshard/core/sharding_plan.h"
#include "neuroshard/io/json/json.h"

namespace neuroshard {

inline constexpr std::string_view kPlanFormat = "neuroshard/plan/1";

/// What has to be sent from device to device before a plan that was made from an older one can be
/// used. Devices beyond the task's world size are those of the older plan that are gone.
struct PlanMoves {
  std::string older_plan_sha256{};  ///< plan_sha256 of the older plan; empty: not recorded
  double max_move = 0.0;            ///< that was allowed, as a share of `placed_bytes`
  std::int64_t placed_bytes = 0;    ///< by the older plan, of what the task still has
  std::int64_t moved_bytes = 0;
  std::optional<double> ms{};  ///< until all has arrived; nothing: the links are not known
  struct Pair {
    DeviceTransfer transfer{};
    std::optional<double> ms{};  ///< of this pair alone

    friend bool operator==(const Pair&, const Pair&) = default;
  };
  std::vector<Pair> pairs{};  ///< by sender, then by receiver

  friend bool operator==(const PlanMoves&, const PlanMoves&) = default;
};

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
  std::optional<PlanMoves> moves{};  ///< of a plan that was made from an older one
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

/// SHA-256, in hexadecimal, of what the plan is: its task, shards and replicated tables as its file
/// has them, whatever predicted its cost. What was measured of a plan names it by this.
[[nodiscard]] std::string plan_sha256(const PlanDocument& document);

}  // namespace neuroshard
