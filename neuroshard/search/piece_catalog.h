// The distinct pieces (table, columns, slices of rows) that a search meets, each encoded once.
#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <tuple>
#include <utility>
#include <vector>

#include "neuroshard/core/stop_clock.h"
#include "neuroshard/core/table_pins.h"
#include "neuroshard/cost/simulator.h"
#include "neuroshard/search/state_rows.h"

namespace neuroshard {

/// A distinct (table, columns, slices); many placed pieces may share it.
using PieceType = int;

/// Grows as cuts are made; references into it are by PieceType. Growing is not thread-safe, reading
/// between growths is.
class PieceCatalog {
 public:
  /// With a clock, it is looked at for each slice of a table with a row order, which takes some
  /// microseconds each.
  explicit PieceCatalog(const Simulator& simulator, const StopClock& clock = {});

  /// The piece's type, encoded now if it is new: one of `num_slices` slices of the rows that cost
  /// the same (`Simulator::slice_ends`). Where ids are hashes, they are all alike,
  /// and of one type; those of a table with a row order are of one type each, and this is the
  /// first's. `num_columns` is a multiple of 4 or the whole table's. Throws InputError, which names
  /// model and table, if the model gives no finite cost, and TimeIsOver, after which the catalog is
  /// as it was.
  PieceType add(int table, std::int64_t num_columns, int num_slices = 1);

  [[nodiscard]] int table(PieceType type) const { return facts_[type].table; }
  [[nodiscard]] std::int64_t num_columns(PieceType type) const { return facts_[type].num_columns; }
  /// Slices that the rows of its columns are cut into, of which it is one.
  [[nodiscard]] int num_slices(PieceType type) const { return facts_[type].num_slices; }
  /// True if all these slices are of its type.
  [[nodiscard]] bool has_equal_slices(PieceType type) const {
    return facts_[type].num_slices == 1 || !has_row_order(simulator_.task().tables[table(type)]);
  }
  /// Which of the slices it is; 0 of equal ones.
  [[nodiscard]] int slice(PieceType type) const { return facts_[type].slice; }
  /// The type of the first of these slices.
  [[nodiscard]] PieceType first_slice(PieceType type) const { return type - slice(type); }
  /// Of the largest of these slices.
  [[nodiscard]] std::int64_t largest_bytes(PieceType type) const;
  /// Of its pooled output.
  [[nodiscard]] std::int64_t pooled_columns(PieceType type) const {
    return facts_[type].pooled_columns;
  }
  [[nodiscard]] std::int64_t bytes(PieceType type) const { return facts_[type].bytes; }
  /// Its part of what every device reads and writes to add up partial sums.
  [[nodiscard]] double partial_bytes(PieceType type) const { return facts_[type].partial_bytes; }
  /// Where pieces of the tables may lie. The task's tables stay with none (bundled_task.h).
  [[nodiscard]] const TablePins& pins() const { return pins_; }
  /// Predicted cost of a device with this piece alone [ms].
  [[nodiscard]] double single_cost(PieceType type) const { return facts_[type].single_cost; }
  /// What it adds to the predicted computation cost of any device, at least [ms].
  [[nodiscard]] double least_rise_ms(PieceType type) const { return facts_[type].least_rise_ms; }
  /// Its contribution to its device's state; state_size() elements.
  [[nodiscard]] std::span<const double> contribution(PieceType type) const {
    return contributions_[static_cast<std::size_t>(type)];
  }
  [[nodiscard]] std::size_t state_size() const { return contributions_.state_size(); }
  [[nodiscard]] std::size_t size() const { return facts_.size(); }

  /// True if the piece can be halved into two pieces as wide as the table's must be.
  [[nodiscard]] bool can_halve(PieceType type) const;
  /// The wider and the narrower half (equal if the columns allow), added if new.
  std::pair<PieceType, PieceType> halves(PieceType type);

  /// True if a table's rows may be cut into this number of slices.
  [[nodiscard]] bool can_slice(int table, int num_slices) const;
  /// True if there may be twice as many slices as the piece is one of.
  [[nodiscard]] bool can_halve_rows(PieceType type) const;
  /// A slice of half its rows, added if new.
  PieceType row_half(PieceType type);

  /// Falling single-piece cost, then the order of the task's tables.
  [[nodiscard]] bool costs_more(PieceType a, PieceType b) const {
    const double of_a = facts_[a].single_cost;
    const double of_b = facts_[b].single_cost;
    return of_a != of_b ? of_a > of_b : goes_first_of_equal_cost(a, b);
  }
  /// Order of placement: pieces with the fewest devices to lie on, as they have least choice, then
  /// the costliest.
  [[nodiscard]] bool goes_first(PieceType a, PieceType b) const {
    if (pins_.restricts_devices()) {
      const std::size_t choice_a = num_devices(a);
      const std::size_t choice_b = num_devices(b);
      if (choice_a != choice_b) return choice_a < choice_b;
    }
    return costs_more(a, b);
  }

 private:
  /// The order of pieces that cost the same.
  [[nodiscard]] bool goes_first_of_equal_cost(PieceType a, PieceType b) const;
  /// On which pieces of its table may lie.
  [[nodiscard]] std::size_t num_devices(PieceType type) const;
  /// Where the type of a piece is kept: a negative one if there is none yet.
  PieceType& place_of(int table, std::int64_t num_columns, int num_slices);
  /// Of the type that is added next; zeros, or what was there.
  [[nodiscard]] std::span<double> next_contribution();
  /// A type whose contribution is written already. Throws InputError as `add`.
  void add_slice(int table, std::int64_t num_columns, int num_slices, int slice,
                 std::int64_t num_rows);
  /// Of all slices of a table with a row order, in their order.
  const std::vector<TableStatistics>& slices_of(int table, int num_slices);

  struct Facts {
    int table;
    int num_slices;
    int slice;
    std::int64_t num_columns;
    std::int64_t pooled_columns;
    std::int64_t bytes;
    double partial_bytes;
    double single_cost;
    double least_rise_ms;
  };

  const Simulator& simulator_;
  StopClock clock_;
  TablePins pins_;
  std::vector<Facts> facts_;
  StateRows contributions_;  ///< by type
  /// [table][columns in units of 4, rounded up]: only a whole table is no multiple of 4 columns.
  std::vector<std::vector<PieceType>> types_;
  /// Of slices: by table, columns and number of slices.
  std::map<std::tuple<int, std::int64_t, int>, PieceType> slice_types_;
  /// By table and number of slices.
  std::map<std::pair<int, int>, std::vector<TableStatistics>> slices_;
};

}  // namespace neuroshard
