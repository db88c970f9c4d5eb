// The interface of communication cost models: what the all-to-alls of a plan cost each device.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "neuroshard/core/task.h"

namespace neuroshard {

struct Interconnect;

/// All spans have one element per device, `topology.world_size` in all; times in milliseconds.
/// `columns[d]` is the sum of columns on device d: it sends its share of columns[d] for every
/// sample of the other devices, as fp32, and receives the other devices' columns for its own
/// share of the batch.
class CommunicationCostModel {
 public:
  virtual ~CommunicationCostModel() = default;

  [[nodiscard]] virtual std::string name() const = 0;

  /// True for a model that is computed from data sheets, not measured or learned from measurements.
  [[nodiscard]] virtual bool is_estimate() const { return false; }
  /// True for a model that was learned from a simulation of the cluster.
  [[nodiscard]] virtual bool is_simulated() const { return false; }

  /// Forward all-to-all. Device d enters it `start_ms[d]` after the earliest (so the smallest is
  /// 0); forward_ms[d] is from its own entry to its own end, waiting included.
  virtual void forward(const Topology& topology, std::int64_t batch_size,
                       std::span<const double> columns, std::span<const double> start_ms,
                       std::span<double> forward_ms) const = 0;

  /// Backward all-to-all; every device starts at the same time.
  virtual void backward(const Topology& topology, std::int64_t batch_size,
                        std::span<const double> columns, std::span<double> backward_ms) const = 0;

  /// All-reduce of `bytes` on each device, which all enter at the same time [ms]: the gradients of
  /// replicated tables.
  [[nodiscard]] virtual double all_reduce_ms(const Topology& topology, double bytes) const = 0;

  /// Adding up partial sums, for which each device reads and writes `bytes` [ms].
  /// Unless a model knows better, by what a host's memory moves (kHostMemoryGbPerS).
  [[nodiscard]] virtual double partial_sums_ms(double bytes) const;

  /// Whether all-reduces, or additions of partial sums, are priced as they were measured or
  /// simulated; if not, by the rates of the links, or of the memory, alone.
  [[nodiscard]] virtual bool knows_all_reduces() const { return false; }
  [[nodiscard]] virtual bool knows_partial_sums() const { return false; }

  /// Lower bound on the cost of forward and backward together of a device with `columns` columns
  /// [ms], whatever the others hold and whenever they start: convex in `columns` and never falling.
  /// 0 if the model gives no such bound.
  [[nodiscard]] virtual double floor_ms(const Topology& topology, std::int64_t batch_size,
                                        double columns) const {
    (void)topology, (void)batch_size, (void)columns;
    return 0.0;
  }

  /// Lower bound, up to rounding, on the cost of a plan's slowest device, computation and both
  /// all-to-alls together [ms]. It takes less time than the cost itself, so that a search need not
  /// price plans that cannot be the best. Here of the devices one by one, by `floor_ms`.
  [[nodiscard]] virtual double least_cost_ms(const Topology& topology, std::int64_t batch_size,
                                             std::span<const double> compute_ms,
                                             std::span<const double> columns) const;

  /// The links that the model is of, if it knows them: for the time of messages that are no part of
  /// an iteration. nullptr: unknown.
  [[nodiscard]] virtual const Interconnect* links() const { return nullptr; }

  /// Why predictions for this task are extrapolations; empty if they are not.
  [[nodiscard]] virtual std::vector<std::string> outside_range(const Task& task) const = 0;
};

}  // namespace neuroshard
