// A pessimistic view of an ensemble: a cost between the mean and the highest of its members.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <vector>

#include "neuroshard/cost/compute/compute_cost_model.h"

namespace neuroshard {

/// cost = (1 - pessimism) * mean + pessimism * highest of the members' costs: equal to the model's
/// where its members agree, higher where they do not, so that a search gains nothing from the
/// errors of a single member. It has the guarantees of the model: the highest of increasing or
/// convex costs is increasing or convex. Never below the model's cost, so lower bounds hold for it
/// too.
class PessimisticComputeModel final : public ComputeCostModel {
 public:
  /// `pessimism` in [0, 1].
  PessimisticComputeModel(std::shared_ptr<const ComputeCostModel> model, double pessimism);

  [[nodiscard]] std::string name() const override { return model_->name(); }
  [[nodiscard]] std::size_t state_size() const override { return model_->state_size(); }
  void encode(const TableStatistics& table, std::int64_t num_columns,
              const OperatorSettings& settings, std::span<double> contribution) const override;
  void costs_with(std::span<const double> states, std::span<const double> piece,
                  std::span<double> costs) const override;
  // largest_element is that of the contributions: a model's own bound of it is another number, and
  // would put tasks whose pieces cost days on another grid. add_and_cost and least_rise_ms of the
  // model are of the mean; the highest member may rise by less.
  [[nodiscard]] bool is_convex_increasing() const override {
    return model_->is_convex_increasing();
  }
  [[nodiscard]] double bound(std::span<const double> state) const override {
    return model_->bound(state);
  }
  [[nodiscard]] double tangent(std::span<const double> state, double smoothing,
                               std::span<double> slopes) const override {
    return model_->tangent(state, smoothing, slopes);
  }
  [[nodiscard]] bool is_estimate() const override { return model_->is_estimate(); }
  [[nodiscard]] std::string hardware() const override { return model_->hardware(); }
  [[nodiscard]] std::string operator_info() const override { return model_->operator_info(); }
  [[nodiscard]] const TrainedRange* trained_range() const override {
    return model_->trained_range();
  }
  [[nodiscard]] double scatter() const override { return model_->scatter(); }

 private:
  std::shared_ptr<const ComputeCostModel> model_;
  double pessimism_;
};

}  // namespace neuroshard
