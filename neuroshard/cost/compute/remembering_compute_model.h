// A computation cost model that encodes equal pieces once: for searches that meet the same pieces
// again and again.
#pragma once

#include <array>
#include <cstddef>
#include <memory>
#include <mutex>
#include <unordered_map>
#include <utility>
#include <vector>

#include "neuroshard/cost/compute/compute_cost_model.h"

namespace neuroshard {

/// Predicts what the given model predicts, bit for bit. Threads may share it.
class RememberingComputeModel final : public ComputeCostModel {
 public:
  /// Encodings that are kept: some 2 KiB each.
  static constexpr std::size_t kMostKept = 50'000;

  explicit RememberingComputeModel(std::shared_ptr<const ComputeCostModel> model)
      : model_(std::move(model)) {}

  [[nodiscard]] std::string name() const override { return model_->name(); }
  [[nodiscard]] bool is_estimate() const override { return model_->is_estimate(); }
  [[nodiscard]] std::size_t state_size() const override { return model_->state_size(); }
  void encode(const TableStatistics& table, std::int64_t num_columns,
              const OperatorSettings& settings, std::span<double> contribution) const override;
  [[nodiscard]] double largest_element(const TableStatistics& table, std::int64_t num_columns,
                                       const OperatorSettings& settings) const override;
  void costs_with(std::span<const double> states, std::span<const double> piece,
                  std::span<double> costs) const override {
    model_->costs_with(states, piece, costs);
  }
  double add_and_cost(std::span<double> state, std::span<const double> piece) const override {
    return model_->add_and_cost(state, piece);
  }
  [[nodiscard]] int num_members() const override { return model_->num_members(); }
  void member_costs(std::span<const double> states, std::span<const double> piece,
                    std::span<double> costs) const override {
    model_->member_costs(states, piece, costs);
  }
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
  [[nodiscard]] double least_rise_ms(std::span<const double> piece) const override {
    return model_->least_rise_ms(piece);
  }
  [[nodiscard]] std::string hardware() const override { return model_->hardware(); }
  [[nodiscard]] std::string operator_info() const override { return model_->operator_info(); }
  [[nodiscard]] const TrainedRange* trained_range() const override {
    return model_->trained_range();
  }
  [[nodiscard]] double scatter() const override { return model_->scatter(); }

 private:
  /// All that an encoding depends on, as bits.
  using Key = std::array<std::uint64_t, kReuseBins + 10>;
  struct Hash {
    std::size_t operator()(const Key& key) const;
  };
  static Key key_of(const TableStatistics& table, std::int64_t num_columns,
                    const OperatorSettings& settings);

  std::shared_ptr<const ComputeCostModel> model_;
  mutable std::mutex mutex_;
  mutable std::unordered_map<Key, std::vector<double>, Hash> contributions_;
  mutable std::unordered_map<Key, double, Hash> largest_;
};

}  // namespace neuroshard
