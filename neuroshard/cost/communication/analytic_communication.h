// An estimate of the all-to-alls from data sheets: the link schedule with a preset's rates.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "neuroshard/core/interconnect.h"
#include "neuroshard/cost/communication/communication_cost_model.h"

namespace neuroshard {

/// Always an estimate. Columns are fp32; with `end` as LinkSchedule has it,
///
///   forward_ms[d]  = end_d(start_ms) - start_ms[d]
///   backward_ms[d] = end_d(0)
///
/// One device alone costs 0. Immutable; threads may share it.
class AnalyticCommunicationModel : public CommunicationCostModel {
 public:
  /// Throws InputError unless the interconnect is valid.
  explicit AnalyticCommunicationModel(Interconnect interconnect);

  /// "analytic-<interconnect>".
  [[nodiscard]] std::string name() const override { return name_; }
  [[nodiscard]] bool is_estimate() const override { return true; }
  void forward(const Topology& topology, std::int64_t batch_size, std::span<const double> columns,
               std::span<const double> start_ms, std::span<double> forward_ms) const override;
  void backward(const Topology& topology, std::int64_t batch_size, std::span<const double> columns,
                std::span<double> backward_ms) const override;
  [[nodiscard]] double all_reduce_ms(const Topology& topology, double bytes) const override;
  [[nodiscard]] double partial_sums_ms(double bytes) const override;
  /// Twice the time that the device's own messages take on its links.
  [[nodiscard]] double floor_ms(const Topology& topology, std::int64_t batch_size,
                                double columns) const override;
  [[nodiscard]] const Interconnect* links() const override { return &interconnect_; }
  /// A line if the hosts have more devices than the interconnect's.
  [[nodiscard]] std::vector<std::string> outside_range(const Task& task) const override;

  [[nodiscard]] const Interconnect& interconnect() const { return interconnect_; }

 private:
  Interconnect interconnect_;
  std::string name_;
};

}  // namespace neuroshard
