// A plan as the search changes it: how many columns of every table each device holds.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <vector>

#include "neuroshard/core/piece.h"
#include "neuroshard/cost/simulator.h"
#include "neuroshard/search/piece_catalog.h"

namespace neuroshard {

/// Columns of one table that go from one device to another.
struct Transfer {
  int table = 0;
  std::int64_t num_columns = 0;
  int from = 0;
  int to = 0;

  [[nodiscard]] Transfer reversed() const { return {table, num_columns, to, from}; }
};

/// Pieces of one table on one device are one piece: it costs less than two and needs less memory.
/// States, memory and columns of the devices are kept up to date; as states are exact sums, a
/// transfer and its reverse leave everything bit for bit as it was.
class ColumnAssignment {
 public:
  /// Keeps references to the simulator and to the catalog, which grows with the pieces met.
  /// Throws TimeIsOver.
  ColumnAssignment(const Simulator& simulator, PieceCatalog& catalog, const ShardingPlan& plan,
                   const StopClock& clock = {});

  [[nodiscard]] int num_devices() const { return static_cast<int>(devices_.size()); }
  /// One per table, by rising number of the table.
  [[nodiscard]] std::span<const Piece> holdings(int device) const {
    return devices_[device].holdings;
  }
  [[nodiscard]] std::int64_t bytes(int device) const { return devices_[device].bytes; }
  /// Memory left; negative if the device holds more than it may.
  [[nodiscard]] std::int64_t free_bytes(int device) const;

  /// How many columns of a table a device holds.
  [[nodiscard]] std::int64_t columns_of(int table, int device) const;

  /// By how much a device's memory grows if it gets `num_columns` more columns of a table (or, if
  /// negative, loses that many, which it must hold).
  [[nodiscard]] std::int64_t memory_change(int table, std::int64_t num_columns, int device) const;

  /// `from` must hold `num_columns` columns of the table. Until the next transfer memory may be
  /// exceeded.
  void apply(const Transfer& transfer);

  /// Gives a device `num_columns` more columns of a table, or takes them away if negative. Until
  /// every table has all its columns again there is no valid plan, and `cost` must not be called.
  void add(int table, std::int64_t num_columns, int device);

  /// Lower bound on the cost of a device with `num_columns` more columns of a table [ms].
  [[nodiscard]] double floor_with(int table, std::int64_t num_columns, int device);

  /// Saves the state of two devices and the cost, for roll_back().
  void remember(int one, int other);
  /// Undoes all changes since `remember`, which must have concerned these two devices only.
  void roll_back();

  /// Predicted cost of the plan; only what changed is computed anew.
  const PlanCost& cost();

  /// A lower bound on the cost of every plan with these computation costs and columns, and the sum
  /// of the computation costs. Takes a fraction of the time of cost().
  struct Floor {
    double cost_ms = 0.0;
    double compute_sum_ms = 0.0;
  };
  [[nodiscard]] Floor floor();

  /// In canonical order; each table's columns lie on its devices by rising number.
  [[nodiscard]] ShardingPlan plan() const;

  [[nodiscard]] std::int64_t head_evaluations() const { return head_evaluations_; }

 private:
  struct Device {
    std::vector<Piece> holdings;  ///< by table
    std::int64_t bytes = 0;
    double columns = 0.0;
    double floor_ms = 0.0;  ///< of its communication
    bool changed = true;    ///< compute_ms_ and floor_ms are out of date
  };

  /// A device as it was.
  struct Remembered {
    int number = 0;
    Device device;
    std::vector<double> state;
    double compute_ms = 0.0;
  };

  /// Adds a piece to the device's sums, or takes it from them.
  void count_piece(int table, std::int64_t num_columns, int device, int sign);
  /// Prices the devices that changed.
  void refresh();
  /// Prices a device.
  void refresh(int device);
  [[nodiscard]] double floor_ms(double columns) const;
  [[nodiscard]] std::span<double> state(int device) {
    return states_[static_cast<std::size_t>(device)];
  }

  const Simulator& simulator_;
  PieceCatalog& catalog_;
  std::vector<Device> devices_;
  StateRows states_;  ///< by device
  std::vector<double> compute_ms_;
  double partial_bytes_ = 0.0;  ///< that each device reads and writes to add up partial sums
  PlanCost cost_;
  bool cost_known_ = false;
  std::array<Remembered, 2> remembered_;
  double remembered_partial_bytes_ = 0.0;
  PlanCost remembered_cost_;
  bool remembered_cost_known_ = false;
  std::vector<double> columns_;  ///< scratch of cost()
  std::int64_t head_evaluations_ = 0;
};

}  // namespace neuroshard
