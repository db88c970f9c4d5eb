// The interface of computation cost models: what one fused operator over a set of pieces costs.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "neuroshard/core/stop_clock.h"
#include "neuroshard/core/task.h"

namespace neuroshard {

struct RangeAccess;
struct TrainedRange;

/// The grid on which contributions lie unless a task's costs are astronomic: multiples of 2^-24
/// below 2^28 in sum are exact in a double.
inline constexpr double kStateGrid = 0x1p-24;
inline constexpr double kLargestExactSum = 0x1p28;

/// A table's statistics for a computation cost model, its histogram resolved for the batch size.
struct TableStatistics {
  std::int64_t num_embeddings = 0;
  double pooling_factor = 0.0;
  DataType data_type = DataType::fp32;
  ReuseHistogram reuse_histogram{};
  std::int64_t num_features = 1;  ///< pooled outputs per sample
  /// Expected distinct rows of a batch, and the share of the lookups that hit the hottest row; 0:
  /// not known, taken from the histogram.
  double distinct_rows = 0.0;
  double hottest_row_share = 0.0;

  /// Of a slice that has `share` of the rows and of the lookups of a batch of `batch_size` samples,
  /// where ids are hashes. Which slice has the hottest rows is not known: each has its share of
  /// every row, and its hottest is as hot as its parts of the hottest rows, put together.
  [[nodiscard]] TableStatistics slice(double share, std::int64_t batch_size) const;
  /// Of a slice with these rows of the table, where their accesses are known.
  [[nodiscard]] TableStatistics slice(const RangeAccess& range) const;
};

/// The part of the input that is the same for every piece of a task.
struct OperatorSettings {
  std::int64_t batch_size = 0;
  Optimizer optimizer = Optimizer::sgd;
  /// Contributions lie on multiples of this, a power of two (see ComputeCostModel).
  double grid = kStateGrid;
};

/// Statistics of a table, in closed form where a distribution is given. A reuse histogram is taken
/// as it is, whatever batch size it was measured for.
[[nodiscard]] TableStatistics table_statistics(const Table& table, std::int64_t batch_size);

/// Statistics of every table of the task. Throws TimeIsOver.
[[nodiscard]] std::vector<TableStatistics> table_statistics(const Task& task,
                                                            const StopClock& clock = {});

/// Every model is a function of a **sum**: each piece is encoded once into a contribution, a
/// device's state is the sum of its pieces' contributions, and a head turns a state into a cost.
/// So the search adds and subtracts contributions and evaluates heads, nothing else.
///
/// Contributions lie on a grid (OperatorSettings::grid), so that sums of doubles are exact: a state
/// does not depend on the order of its pieces, and subtracting a piece restores it bit for bit.
/// Element 0 of a contribution is 1, hence state[0] is the number of pieces; a device without
/// pieces costs 0.
class ComputeCostModel {
 public:
  virtual ~ComputeCostModel() = default;

  [[nodiscard]] virtual std::string name() const = 0;

  /// True for a model that is computed from data sheets, not measured or learned from measurements.
  [[nodiscard]] virtual bool is_estimate() const { return false; }
  [[nodiscard]] virtual std::size_t state_size() const = 0;

  /// Contribution of a piece of `num_columns` columns; `contribution` has state_size() elements.
  virtual void encode(const TableStatistics& table, std::int64_t num_columns,
                      const OperatorSettings& settings, std::span<double> contribution) const = 0;

  /// At least the absolute value of any element of the piece's contribution, and cheap: from this,
  /// a task's grid is chosen. By default the contribution is computed.
  [[nodiscard]] virtual double largest_element(const TableStatistics& table,
                                               std::int64_t num_columns,
                                               const OperatorSettings& settings) const;

  /// costs[i] = predicted forward + backward time [ms] of states[i * state_size() ...] + piece.
  /// `piece` is a contribution, or empty: the cost of the states as they are.
  virtual void costs_with(std::span<const double> states, std::span<const double> piece,
                          std::span<double> costs) const = 0;

  /// Adds the piece's contribution to the state; the cost of the state that results.
  virtual double add_and_cost(std::span<double> state, std::span<const double> piece) const;

  /// Number of models whose mean is the cost: their spread shows how certain an ensemble is.
  [[nodiscard]] virtual int num_members() const { return 1; }

  /// costs[i * num_members() + m] = member m's prediction for states[i * state_size() ...] + piece.
  virtual void member_costs(std::span<const double> states, std::span<const double> piece,
                            std::span<double> costs) const {
    costs_with(states, piece, costs);
  }

  /// True if `bound` of a device with pieces is a convex function of its state that does not fall
  /// when an element rises (except for element 0, the number of pieces). Lower bounds rely on this.
  [[nodiscard]] virtual bool is_convex_increasing() const { return false; }

  /// Never above the cost of the state [ms], and for most models the cost itself.
  [[nodiscard]] virtual double bound(std::span<const double> state) const { return cost(state); }

  /// A linear function that is nowhere above `bound` of a device with pieces of the same optimizer,
  /// near it at `state`:
  /// writes its slopes, none negative (0 for element 0), and returns its constant [ms]. With
  /// `smoothing` (0: none) it changes gradually with the state where `bound` has a kink, within
  /// about that share of the state. 0 for a model without structure. Lower bounds rely on this.
  [[nodiscard]] virtual double tangent(std::span<const double> state, double smoothing,
                                       std::span<double> slopes) const;

  /// What a piece adds to the cost of any device, empty or not, at least [ms]; linear in the
  /// contribution. Lower bounds rely on this too.
  [[nodiscard]] virtual double least_rise_ms(std::span<const double> /*piece*/) const {
    return 0.0;
  }

  /// The hardware that the model was measured on, a JSON object; empty for an estimate.
  [[nodiscard]] virtual std::string hardware() const { return ""; }

  /// The operator that was measured, a JSON object; empty for an estimate.
  [[nodiscard]] virtual std::string operator_info() const { return ""; }

  /// What the model was trained on, beyond which its predictions are extrapolations
  /// (reasons_outside); nullptr: an estimate knows no limits.
  [[nodiscard]] virtual const TrainedRange* trained_range() const { return nullptr; }

  /// Standard deviation of ln(measured / predicted cost) between devices that are planned alike,
  /// from 0 to 1; 0: not known. Of their costs, not of what all of a plan's have in common.
  [[nodiscard]] virtual double scatter() const { return 0.0; }

  /// The cost of one state [ms].
  [[nodiscard]] double cost(std::span<const double> state) const {
    double result = 0.0;
    costs_with(state, {}, {&result, 1});
    return result;
  }
};

/// Rounds each value to a multiple of `grid`, a power of two.
void round_to_grid(std::span<double> values, double grid);

/// The settings of the task's operator, with a grid on which the sum over every piece that its
/// tables can be cut into is exact: kStateGrid, or a coarser one for a task whose pieces cost days.
/// Throws TimeIsOver.
[[nodiscard]] OperatorSettings operator_settings(const Task& task, const ComputeCostModel& model,
                                                 std::span<const TableStatistics> statistics,
                                                 const StopClock& clock = {});

}  // namespace neuroshard
