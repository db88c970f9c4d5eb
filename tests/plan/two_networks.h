// A computation model of two networks that disagree about large tables.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "neuroshard/cost/compute/compute_cost_model.h"

namespace neuroshard::testing_plan {

/// Two networks that give a piece a millisecond a column, and to one with more than `known` rows
/// the second one `factor` times as much.
class TwoNetworks final : public ComputeCostModel {
 public:
  TwoNetworks(std::int64_t known, double factor) : known_(known), factor_(factor) {}
  [[nodiscard]] std::string name() const override { return "two"; }
  [[nodiscard]] std::size_t state_size() const override { return 3; }
  void encode(const TableStatistics& table, std::int64_t num_columns, const OperatorSettings&,
              std::span<double> contribution) const override {
    const auto ms = static_cast<double>(num_columns);
    contribution[0] = 1.0;
    contribution[1] = ms;
    contribution[2] = table.num_embeddings > known_ ? factor_ * ms : ms;
  }
  void costs_with(std::span<const double> states, std::span<const double> piece,
                  std::span<double> costs) const override {
    std::vector<double> members(2 * costs.size());
    member_costs(states, piece, members);
    for (std::size_t i = 0; i < costs.size(); ++i) {
      costs[i] = 0.5 * (members[2 * i] + members[2 * i + 1]);
    }
  }
  [[nodiscard]] int num_members() const override { return 2; }
  void member_costs(std::span<const double> states, std::span<const double> piece,
                    std::span<double> costs) const override {
    for (std::size_t i = 0; i < costs.size(); ++i) {
      const std::size_t member = i % 2;
      costs[i] = states[i / 2 * 3 + 1 + member] + (piece.empty() ? 0.0 : piece[1 + member]);
    }
  }

 private:
  std::int64_t known_;
  double factor_;
};

}  // namespace neuroshard::testing_plan
