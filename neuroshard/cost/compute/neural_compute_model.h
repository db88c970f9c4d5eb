// The pre-trained computation cost model: an ensemble of networks with what they were trained on.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "neuroshard/core/machine/aligned_vector.h"
#include "neuroshard/cost/compute/compute_cost_model.h"
#include "neuroshard/cost/compute/compute_network.h"
#include "neuroshard/cost/compute/trained_range.h"

namespace neuroshard {

/// By how much devices scatter (ComputeCostModel::scatter), among a model's metrics.
inline constexpr const char* kScatterMetric = "devices.scatter";

/// Everything about a model but its weights; kept in the model file's metadata.
struct ComputeModelInfo {
  std::string name;
  std::string hardware;       ///< JSON object, as recorded with the measurements
  std::string operator_info;  ///< JSON object, likewise
  std::string data_sha256;    ///< of the training data files, in order
  std::string model_sha256;   ///< of the model file; empty before it is written
  TrainedRange range;
  /// Test metrics and training facts by name, e.g. "unseen_combinations.mape".
  std::map<std::string, double> metrics;
  /// What reference sets, by name, took at the speed that the costs are of [ms]; empty: samples had
  /// none.
  std::map<std::string, double> reference_ms{};
};

/// Its cost is the mean over its networks, which were trained on the same samples from different
/// initial weights: where samples are dense they agree, elsewhere their errors differ.
class NeuralComputeModel final : public ComputeCostModel {
 public:
  /// At least one network; all of one architecture and feature schema.
  NeuralComputeModel(std::vector<ComputeNetwork> members, ComputeModelInfo info);
  NeuralComputeModel(ComputeNetwork network, ComputeModelInfo info);
  ~NeuralComputeModel() override;

  [[nodiscard]] std::string name() const override { return info_.name; }
  [[nodiscard]] std::string hardware() const override { return info_.hardware; }
  [[nodiscard]] std::string operator_info() const override { return info_.operator_info; }
  [[nodiscard]] bool is_convex_increasing() const override {
    return architecture() == ComputeArchitecture::bounded_loads;
  }
  /// Where costs depend on the widest piece: as if each piece's loads were multiplied by the factor
  /// of its own width, which is not above that of its set's widest piece.
  [[nodiscard]] double bound(std::span<const double> state) const override;
  [[nodiscard]] double tangent(std::span<const double> state, double smoothing,
                               std::span<double> slopes) const override;
  /// Its part of the linear term; of `bound`, where that is not the cost.
  [[nodiscard]] double least_rise_ms(std::span<const double> piece) const override {
    if (!is_convex_increasing()) return 0.0;
    return piece[has_widest_factors() ? plain_size() : 1];
  }
  [[nodiscard]] int num_members() const override { return static_cast<int>(members_.size()); }
  [[nodiscard]] std::size_t state_size() const override;
  void encode(const TableStatistics& table, std::int64_t num_columns,
              const OperatorSettings& settings, std::span<double> contribution) const override;
  [[nodiscard]] double largest_element(const TableStatistics& table, std::int64_t num_columns,
                                       const OperatorSettings& settings) const override;
  void costs_with(std::span<const double> states, std::span<const double> piece,
                  std::span<double> costs) const override;
  double add_and_cost(std::span<double> state, std::span<const double> piece) const override;
  void member_costs(std::span<const double> states, std::span<const double> piece,
                    std::span<double> costs) const override;
  [[nodiscard]] const TrainedRange* trained_range() const override { return &info_.range; }
  /// As its training found it (kScatterMetric), if it did.
  [[nodiscard]] double scatter() const override;

  [[nodiscard]] ComputeArchitecture architecture() const { return members_.front().architecture; }
  [[nodiscard]] const std::vector<ComputeNetwork>& members() const { return members_; }
  [[nodiscard]] const ComputeModelInfo& info() const { return info_; }

  /// Whether costs depend on a set's widest piece (ComputeNetwork::widest_factors).
  [[nodiscard]] bool has_widest_factors() const { return !members_.front().widest_factors.empty(); }
  /// Means over the networks, one for each class; empty without such factors.
  [[nodiscard]] std::vector<double> mean_widest_factors() const;
  /// Whether running anything at all has a cost of its own with row-wise Adagrad
  /// (ComputeNetwork::rowwise_adagrad_offset).
  [[nodiscard]] bool has_optimizer_offsets() const {
    return members_.front().rowwise_adagrad_offset.has_value();
  }
  /// That cost with each optimizer, the mean over the networks [ms].
  [[nodiscard]] double mean_offset_ms(Optimizer optimizer) const {
    return mean_offset_ + (optimizer == Optimizer::rowwise_adagrad ? mean_adagrad_rise_ : 0.0);
  }

 private:
  // A state: the number of pieces, the mean of the members' linear parts, the hidden units of all
  // members; of an ensemble also each member's linear part. With widest factors, then all but the
  // number again, each piece's multiplied by the factors of its own width, and the numbers of
  // pieces of each class of widths but the narrowest. With offsets of the optimizers, at last the
  // number of pieces whose optimizer is row-wise Adagrad: those of a device have one optimizer.
  [[nodiscard]] std::size_t plain_size() const;
  /// The elements of a contribution that follow the plain ones.
  void add_bound(std::int64_t num_columns, double grid, std::span<double> contribution) const;
  /// plain[0 ...] = those elements of the state, and of the piece if any, by the factors of the
  /// widest piece among them.
  void write_scaled(const double* state, const double* piece, std::span<double> plain) const;
  /// Multiplies all but the number of pieces by the members' factors of a class.
  void scale(std::size_t width_class, std::span<double> plain) const;
  /// Costs without what row-wise Adagrad has more of an offset; states lie `stride` apart.
  void plain_costs_with(std::span<const double> states, std::size_t stride,
                        std::span<const double> piece, std::span<double> costs) const;
  void plain_member_costs(std::span<const double> states, std::size_t stride,
                          std::span<const double> piece, std::span<double> costs) const;
  /// Whether the state's pieces, or the piece if any, have row-wise Adagrad and an offset for it.
  [[nodiscard]] bool has_adagrad_offset(const double* state, std::span<const double> piece) const;
  std::vector<ComputeNetwork> members_;
  ComputeModelInfo info_;
  std::vector<std::size_t> hidden_;    ///< units of each member's head
  AlignedVector<double> head_bias_;    ///< of all members, one after the other
  AlignedVector<double> head_output_;  ///< likewise
  AlignedVector<double> mean_output_;  ///< head_output_ over the number of members
  double mean_offset_ = 0.0;
  /// By how much the offset is higher with row-wise Adagrad: of each member, and the mean.
  std::vector<double> adagrad_rise_;
  double mean_adagrad_rise_ = 0.0;
  double largest_weight_ = 0.0;  ///< of the heads' inputs to a hidden unit or to the cost, summed
};

}  // namespace neuroshard
