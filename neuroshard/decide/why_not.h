// Another choice for one table, with the rest of the plan made again around it.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "neuroshard/decide/explanation.h"

namespace neuroshard {

/// A choice that a plan did not make.
struct Choice {
  enum class Kind { rows, columns, replicated, device };

  std::string table{};
  Kind kind = Kind::device;
  int number = 0;  ///< slices of rows, pieces of columns, or the device
};

/// "TABLE:rows=4", "TABLE:columns=2", "TABLE:replicated", "TABLE:device=3"; the table is what
/// stands before the last colon. Throws InputError naming `place`.
[[nodiscard]] Choice parse_choice(std::string_view text, const std::string& place);

/// "in 4 slices of rows", "in 2 pieces of columns", "whole on every device", "on device 3".
[[nodiscard]] std::string choice_text(const Choice& choice);

/// What the choice leads to.
struct WhyNot {
  Choice choice{};
  bool is_met_already = false;  ///< by the plan, which is then among the plans with the choice
  double cost_ms = 0.0;         ///< of the plan
  double choice_ms = 0.0;       ///< of the best plan found with the choice
  /// Of the two plans, where the table lies, and each slowest device.
  std::vector<Shard> shards{};
  std::vector<Shard> choice_shards{};
  bool is_replicated = false;
  int slowest_device = 0;
  int choice_slowest_device = 0;
  DeviceCost slowest{};
  DeviceCost choice_slowest{};
  bool equally_slow = false;  ///< all devices, of which the slowest is then the first
  bool choice_equally_slow = false;
  CostModels models{};
  /// The plan's, then those of other reasons about the plan with the choice.
  std::vector<std::string> warnings{};
  std::vector<std::string> notes{};
};

/// Forces the choice and makes the rest of the plan again: everything else may go anywhere; but
/// next to a choice of rows or copies, rows stay cut, and copies on every device, as in the plan.
/// Throws InputError if the plan has no such table or the choice cannot be made (a device that does
/// not exist, more slices than rows), InfeasibleError if the task does not allow it or no plan with
/// it was found.
[[nodiscard]] WhyNot why_not(const PlanDocument& document, const Choice& choice,
                             const ExplainRequest& request, const std::string& file);

}  // namespace neuroshard
