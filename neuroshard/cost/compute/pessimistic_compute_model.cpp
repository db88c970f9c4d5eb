// Costs between an ensemble's mean and its highest member.
#include "neuroshard/cost/compute/pessimistic_compute_model.h"

#include <algorithm>
#include <array>
#include <cassert>
#include <utility>

namespace neuroshard {

PessimisticComputeModel::PessimisticComputeModel(std::shared_ptr<const ComputeCostModel> model,
                                                 double pessimism)
    : model_(std::move(model)), pessimism_(pessimism) {
  assert(pessimism >= 0.0 && pessimism <= 1.0);
}

void PessimisticComputeModel::encode(const TableStatistics& table, std::int64_t num_columns,
                                     const OperatorSettings& settings,
                                     std::span<double> contribution) const {
  model_->encode(table, num_columns, settings, contribution);
}

void PessimisticComputeModel::costs_with(std::span<const double> states,
                                         std::span<const double> piece,
                                         std::span<double> costs) const {
  const auto members = static_cast<std::size_t>(model_->num_members());
  const std::size_t stride = state_size();
  // The search asks for one state at a time, with few members: those need no allocation.
  std::array<double, 16> few{};
  std::vector<double> many(members > few.size() ? members : 0);
  const std::span<double> each = many.empty() ? std::span(few).first(members) : std::span(many);
  for (std::size_t i = 0; i < costs.size(); ++i) {
    model_->member_costs(states.subspan(i * stride, stride), piece, each);
    double sum = 0.0;
    for (const double cost : each) sum += cost;
    costs[i] = (1.0 - pessimism_) * sum / static_cast<double>(members) +
               pessimism_ * *std::max_element(each.begin(), each.end());
  }
}

}  // namespace neuroshard
