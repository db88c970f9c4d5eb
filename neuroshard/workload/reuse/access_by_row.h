// How the accesses to a table are spread over the order of its rows.
#pragma once

#include <cstdint>
#include <mutex>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "neuroshard/core/table.h"
#include "neuroshard/workload/reuse/index_distribution.h"
#include "neuroshard/workload/reuse/rate_class.h"

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
    std::vector<RateClass> rows{};  ///< falling rates, `num_rows` rows in all
  };

  /// Rising by row, of all rows.
  [[nodiscard]] std::span<const Segment> segments() const { return segments_; }

  /// Rows [first, first + count) by the hits that a batch is expected to have, falling rates.
  [[nodiscard]] std::vector<RateClass> rows(std::int64_t first, std::int64_t count) const;

  /// The accesses to rows [first, first + count).
  [[nodiscard]] RangeAccess range(std::int64_t first, std::int64_t count) const;

  /// Where to cut the rows into slices with shares of the accesses as equal as whole rows permit:
  /// `num_slices` + 1 rows, the first 0, the last the number of rows; slices have at least
  /// `min_rows` >= 1 rows, which there must be. From row 0 on, every slice takes as nearly as it
  /// can the mean of what is left: a row with more than its slice's part has a slice (nearly) of
  /// its own, and the others share the rest.
  [[nodiscard]] std::vector<std::int64_t> equal_access_ends(int num_slices,
                                                            std::int64_t min_rows) const;

 private:
  /// Share of the accesses to the rows before `row`.
  [[nodiscard]] double share_before(double row) const;
  /// The least row such that those before it have this share.
  [[nodiscard]] double row_of_share(double share) const;

  std::int64_t num_embeddings_;
  double hits_ = 0.0;  ///< of all rows
  std::vector<Segment> segments_;
  std::vector<double> hits_before_;  ///< of the segments before each
};

/// The same, found out when it is first asked for, by whichever thread: it takes a tenth of a
/// millisecond, of a histogram some milliseconds, and only slices of rows need it.
class LazyAccessByRow {
 public:
  LazyAccessByRow(Table table, std::int64_t batch_size)
      : table_(std::move(table)), batch_size_(batch_size) {}

  [[nodiscard]] const AccessByRow& get() const {
    std::call_once(once_, [this] { accesses_.emplace(table_, batch_size_); });
    return *accesses_;
  }

 private:
  Table table_;
  std::int64_t batch_size_;
  mutable std::once_flag once_;
  mutable std::optional<AccessByRow> accesses_;
};

/// A table's rows of equal use, by the hits of a batch, falling rates; those that are never used
/// too. Of a power law, rows whose rates differ by up to a factor of `fall` > 1 are one class.
[[nodiscard]] std::vector<RateClass> rows_by_popularity(const Table& table, std::int64_t batch_size,
                                                        double fall);

}  // namespace neuroshard
