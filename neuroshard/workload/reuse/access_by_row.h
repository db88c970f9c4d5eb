// How the accesses to a table are spread over the order of its rows.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "neuroshard/core/table.h"
#include "neuroshard/workload/reuse/index_distribution.h"
#include "neuroshard/workload/reuse/rate_class.h"
#include "neuroshard/workload/reuse/row_weights.h"

namespace neuroshard {

/// The accesses of one batch to a range of a table's rows, in expectation.
struct RangeAccess {
  std::int64_t num_rows = 0;
  double share = 0.0;  ///< of the table's lookups
  ReuseStatistics reuse{};
  double hottest_row_hits = 0.0;
};

/// A table's rows in their order, in segments within which rows of different use are mixed; what a
/// range of rows is used for follows. Ordered by frequency, all rows of a segment are equally or
/// (of a power law) nearly equally used. With measured accesses (`row_access`), the segments are
/// those between the points, and the table's rows are distributed over them so that each has its
/// share of the accesses: docs/method.md.
class AccessByRow {
 public:
  /// Of a table with a row order (`has_row_order`), at this batch size.
  AccessByRow(const Table& table, std::int64_t batch_size);

  struct Segment {
    double first_row = 0.0;
    double num_rows = 0.0;
    double hits = 0.0;              ///< of a batch, expected
    std::vector<RateClass> rows{};  ///< falling rates, `num_rows` rows in all, at least one class
    ReuseStatistics reuse{};        ///< of all its rows
  };

  /// Rising by row, of all rows.
  [[nodiscard]] std::span<const Segment> segments() const { return segments_; }

  /// Rows [first, first + count) by the hits that a batch is expected to have, falling rates.
  [[nodiscard]] std::vector<RateClass> rows(std::int64_t first, std::int64_t count) const;

  /// The accesses to rows [first, first + count).
  [[nodiscard]] RangeAccess range(std::int64_t first, std::int64_t count) const;

  /// The hits of the rows, to cut slices with equal shares of them.
  [[nodiscard]] const RowWeights& hits() const { return hits_; }

 private:
  /// A segment that a range of rows has a part of.
  struct Overlap {
    const Segment* segment = nullptr;
    double part = 0.0;
  };
  [[nodiscard]] std::vector<Overlap> overlaps_of(std::int64_t first, std::int64_t count) const;
  /// Hits of the hottest row.
  [[nodiscard]] static double hottest_hits(const std::vector<Overlap>& overlaps);

  std::int64_t num_embeddings_;
  std::vector<Segment> segments_;
  RowWeights hits_;
};

/// A table's rows of equal use, by the hits of a batch, falling rates; those that are never used
/// too. Of a power law, rows whose rates differ by up to a factor of `fall` > 1 are one class.
[[nodiscard]] std::vector<RateClass> rows_by_popularity(const Table& table, std::int64_t batch_size,
                                                        double fall);

}  // namespace neuroshard
