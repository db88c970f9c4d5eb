// What single pieces cost on devices that they share with others: parts whose sum is near the cost
// of the device, for planners that add costs up.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "neuroshard/cost/simulator.h"

namespace neuroshard {

/// What a piece adds to the cost of its device [ms], each at least 0.
struct CostShare {
  double compute_ms = 0.0;  ///< forward and backward pass
  /// All-to-all and, of a slice of rows, the addition of partial sums.
  double forward_comm_ms = 0.0;
  /// All-to-all or, of a copy of a table, the all-reduce of its gradients.
  double backward_comm_ms = 0.0;

  [[nodiscard]] double total_ms() const { return compute_ms + forward_comm_ms + backward_comm_ms; }
};

/// The cost of a device is one of all its pieces together (cost/simulator.h), and not a sum: they
/// share an operator and its all-to-alls. A piece's share is what it adds to a typical device,
/// which has 1/D of the work of all the task's tables, D being the number of devices, or of tables
/// where they are fewer:
///
///   compute = s * (cost(rest + piece) - cost(rest)),
///
/// where `rest` is the typical device's state, scaled down by the share that the piece alone has of
/// the typical device's cost (a piece as dear as a whole device has no rest, and costs what it does
/// alone), and s is such that the shares of all whole tables add up to D typical devices.
/// Communication is the all-to-alls of typical devices alone, by columns. Tables that are copied to
/// all devices are an operator of their own: there, the typical device has copies of all tables.
///
/// Exact for devices that are all typical; how near it is otherwise depends on the plan.
class CostShares {
 public:
  /// Keeps a reference to the simulator. Throws InputError, which names the model, where a model's
  /// prediction is no cost.
  explicit CostShares(const Simulator& simulator);

  /// Of a piece of a table whose rows are in `num_slices` slices (1: it is not cut by rows). The
  /// piece's columns may be any number.
  [[nodiscard]] CostShare of(const Piece& piece, std::int64_t num_slices) const;

  /// Of a table that is copied to every device, on each of them. The latency of the all-reduce,
  /// which all copies share, is in no share.
  [[nodiscard]] CostShare of_copy(int table) const;

 private:
  /// What runs in one operator with a piece.
  struct Crowd {
    std::vector<double> state;
    double cost_ms = 0.0;
    double scale = 1.0;
  };

  /// The crowd of these contributions, one of each table, of which a device has `share`.
  [[nodiscard]] Crowd crowd_of(const std::vector<std::vector<double>>& contributions,
                               double share) const;
  /// What the piece of this contribution adds to the crowd's cost.
  [[nodiscard]] double rise_ms(const Crowd& crowd, std::span<const double> contribution) const;

  const Simulator& simulator_;
  Crowd pieces_;
  Crowd copies_;
  double forward_ms_per_column_ = 0.0;
  double backward_ms_per_column_ = 0.0;
};

}  // namespace neuroshard
