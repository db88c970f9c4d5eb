// Greedy balancing of one quantity of whole tables: the heuristics of Zha et al. (MLSys 2023).
#pragma once

#include <functional>
#include <string>

#include "neuroshard/search/planner.h"

namespace neuroshard {

/// Takes whole tables by falling quantity and puts each on the device with the lowest sum of it
/// among those that have room. Throws InfeasibleError if none has: it does not backtrack.
class GreedyBaseline : public Planner {
 public:
  using Quantity = std::function<double(const Table& table, Optimizer optimizer)>;

  GreedyBaseline(std::string name, Quantity quantity);

  [[nodiscard]] std::string_view name() const override { return name_; }
  [[nodiscard]] Cuts cuts(const PlannerOptions& /*options*/) const override {
    return {.columns = false, .rows = false, .replicas = false};
  }
  [[nodiscard]] PlanningResult plan(const Simulator& simulator,
                                    const PlannerOptions& options) const override;

 private:
  std::string name_;
  Quantity quantity_;
};

/// "greedy-size": bytes, optimizer state included.
[[nodiscard]] GreedyBaseline greedy_size();
/// "greedy-dim": embedding dimension.
[[nodiscard]] GreedyBaseline greedy_dim();
/// "greedy-lookup": embedding dimension * pooling factor.
[[nodiscard]] GreedyBaseline greedy_lookup();
/// "greedy-lookup-size": embedding dimension * pooling factor * log10(rows).
[[nodiscard]] GreedyBaseline greedy_lookup_size();

}  // namespace neuroshard
