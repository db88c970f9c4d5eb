// Batches of indices drawn from the tables' access distributions.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "neuroshard/core/numbers/random.h"
#include "neuroshard/core/table.h"
#include "neuroshard/workload/reuse/row_draw.h"

namespace neuroshard {

/// The lookups of one batch in one table: bag b holds indices[offsets[b] .. offsets[b + 1]).
struct IndexBatch {
  std::vector<std::int64_t> indices;  ///< rows, each in [0, num_embeddings)
  std::vector<std::int64_t> offsets;  ///< batch_size + 1 elements, first 0, non-decreasing
};

/// Rows [first, first + count) of a table.
struct RowRange {
  std::int64_t first = 0;
  std::int64_t count = 0;
};

/// Makes it the batch of a slice of rows: drops the lookups of other rows, so that bags may be
/// empty, and counts rows from the slice's first.
void keep_rows(RowRange rows, IndexBatch& batch);

/// Draws rows of one table; set up once, then cheap per index (about 10 ns).
/// Rows of similar popularity are scattered over the table by a fixed bijection, as hashed ids are;
/// where the hottest lies, the table's name decides, so that those of a model's tables are not all
/// in the same slice. Of a table ordered by frequency the hottest come first, and of one with
/// measured accesses they are scattered within the segments of AccessByRow.
class IndexSampler {
 public:
  IndexSampler(const Table& table, std::int64_t batch_size);
  ~IndexSampler();
  IndexSampler(IndexSampler&&) noexcept;
  IndexSampler& operator=(IndexSampler&&) noexcept;

  /// A batch: a bag's length is the pooling factor, rounded down or up at random so that its mean
  /// is the pooling factor. Reuses the vectors' memory.
  void draw(std::int64_t batch_size, Random& random, IndexBatch& batch) const;

  /// The distribution that rows are drawn from; valid as long as the sampler.
  [[nodiscard]] RowDistribution rows() const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace neuroshard
