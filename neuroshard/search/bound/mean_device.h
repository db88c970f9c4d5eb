// The cheapest mean device: a convex relaxation of all plans of a task, whose optimum is a lower
// bound.
#pragma once

#include <cstdint>
#include <limits>
#include <span>
#include <vector>

#include "neuroshard/core/stop_clock.h"
#include "neuroshard/cost/simulator.h"

namespace neuroshard {

/// What the tables of a task may be cut into, or copied; for a computation model that is convex and
/// increasing.
///
/// A plan's mean device is a mean of combinations of such choices, one for each table, and its
/// cost, a convex function of what they add up to, is no more than the slowest device's. So take a
/// linear function that is nowhere above that cost: at each table's choice where it is least, it
/// adds up to no more than any plan costs. Frank and Wolfe's algorithm finds one that is nearly as
/// high as the cheapest mean device: its steps are such functions, tangents at a mean device that
/// moves towards the last step's choices.
class MeanDevice {
 public:
  /// Keeps a reference.
  explicit MeanDevice(const Simulator& simulator);

  /// What a piece or a copy has, apart from its contribution to a device's state.
  struct Extras {
    double columns = 0.0;         ///< pooled
    double bytes = 0.0;           ///< of memory
    double partial_bytes = 0.0;   ///< that every device reads and writes for partial sums
    double gradient_bytes = 0.0;  ///< of the all-reduce
  };

  /// Begins a table whose columns are cut into pieces of this many quanta in all.
  void add_table(std::int64_t num_quanta);
  /// The table may be cut into pieces of `num_quanta` quanta and this share of the rows. At least
  /// one kind of pieces must divide it.
  void add_piece(std::int64_t num_quanta, double row_share, std::span<const double> contribution,
                 const Extras& extras);
  /// Adds a table that adds at least this, however it is cut.
  void add_table_of_least(std::span<const double> contribution, const Extras& extras);
  /// The table may be on every device instead.
  void add_copy(std::span<const double> contribution, const Extras& extras);

  /// The cost of every plan of these choices that has a piece on some device is no less than this
  /// [ms], or than `known_ms`; 0 where no plan fits and none is known. It takes a few milliseconds
  /// for a thousand pieces. Throws TimeIsOver.
  [[nodiscard]] double bound_ms(double known_ms, const StopClock& clock) const;

  /// Of all tables.
  [[nodiscard]] std::size_t num_pieces() const { return pieces_.size(); }

 private:
  class Relaxation;

  struct Piece {
    std::int64_t num_quanta = 0;
    double alone_ms = 0.0;  ///< what a device with it costs at least
    /// Over its share of the rows, as the contribution: of whole rows. Sums over all devices, as
    /// those of columns and memory are: partial sums count on each.
    Extras extras;
  };
  struct OfTable {
    std::size_t first_piece = 0;
    std::size_t end_piece = 0;
    std::int64_t num_quanta = 0;
    int copy = -1;  ///< its place in `copies_`; negative: none
  };

  [[nodiscard]] std::span<const double> contribution(std::size_t piece) const {
    return std::span(contributions_).subspan(piece * state_size_, state_size_);
  }
  [[nodiscard]] std::span<const double> copied(int copy) const {
    return std::span(copied_).subspan(static_cast<std::size_t>(copy) * state_size_, state_size_);
  }

  const Simulator& simulator_;
  std::size_t state_size_;
  std::vector<OfTable> tables_;
  std::vector<Piece> pieces_;
  std::vector<double> contributions_;  ///< [piece][state]
  std::vector<Extras> copies_;
  std::vector<double> copied_;  ///< contributions: [copy][state]
};

}  // namespace neuroshard
