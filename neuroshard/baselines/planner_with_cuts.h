// A planner with cuts of its own, whatever the options of a comparison allow.
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "neuroshard/search/planner.h"

namespace neuroshard {

/// Another planner, whose plans may have `cuts` instead of PlannerOptions::cuts:
/// "neuroshard:columns+rows".
class PlannerWithCuts final : public Planner {
 public:
  /// Throws InputError for a planner that does not choose among cuts.
  PlannerWithCuts(std::unique_ptr<Planner> planner, const Cuts& cuts);

  /// The other's name, a colon, and the cuts.
  [[nodiscard]] std::string_view name() const override { return name_; }
  [[nodiscard]] Cuts cuts(const PlannerOptions& options) const override;
  [[nodiscard]] PlanningResult plan(const Simulator& simulator,
                                    const PlannerOptions& options) const override;

 private:
  [[nodiscard]] PlannerOptions with_cuts(PlannerOptions options) const;

  std::unique_ptr<Planner> planner_;
  Cuts cuts_;
  std::string name_;
};

}  // namespace neuroshard
