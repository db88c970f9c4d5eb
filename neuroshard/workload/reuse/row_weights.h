// Where to cut the rows of a table so that slices have equal parts of what the rows weigh.
#pragma once

#include <cstdint>
#include <vector>

namespace neuroshard {

/// What the rows of a table weigh, by their order: their accesses or their costs, for example.
class RowWeights {
 public:
  /// A range of rows, all of which weigh the same, possibly nothing.
  struct Segment {
    double first_row = 0.0;
    double num_rows = 0.0;
    double weight = 0.0;  ///< of all its rows
  };

  /// Of all rows of a table, rising by row; weights are finite, and some are above 0.
  RowWeights(std::vector<Segment> segments, std::int64_t num_rows);

  [[nodiscard]] double total() const { return total_; }

  /// Where to cut the rows into slices with parts of the weight as equal as whole rows permit:
  /// `num_slices` + 1 rows, the first 0, the last the number of rows. Slices have at least
  /// `min_rows` >= 1 rows, which there must be, and at most `max_rows`, or where those are too few
  /// for all rows, as many as equal slices have. From row 0 on, every slice takes as nearly as it
  /// can the mean of what is left: a row with more than its slice's part has a slice (nearly) of
  /// its own, and the others share the rest. Where the rows at the end are too many for that, the
  /// last slices have `max_rows`, and those before them equal parts of the other rows.
  [[nodiscard]] std::vector<std::int64_t> equal_ends(int num_slices, std::int64_t min_rows,
                                                     std::int64_t max_rows) const;

 private:
  /// Share of the weight that the rows before `row` have.
  [[nodiscard]] double share_before(double row) const;
  /// The least row such that those before it have this share.
  [[nodiscard]] double row_of_share(double share) const;

  std::vector<Segment> segments_;
  std::vector<double> weight_before_;  ///< of the segments before each
  double total_ = 0.0;
  std::int64_t num_rows_;
};

}  // namespace neuroshard
