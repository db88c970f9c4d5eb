// Adding up the closed form over tables.
#include "neuroshard/workload/generate/aggregate_statistics.h"

namespace neuroshard {

AggregateStatistics aggregate_statistics(std::span<const Table> tables, std::int64_t batch_size) {
  AggregateStatistics sum;
  if (tables.empty()) return sum;
  sum.num_tables = static_cast<std::int64_t>(tables.size());
  for (const Table& table : tables) {
    const ReuseStatistics statistics = reuse_statistics(table, batch_size);
    sum.num_embeddings += table.num_embeddings;
    sum.weight_bytes += table.num_embeddings * table.embedding_dim * element_bytes(table.data_type);
    sum.mean_pooling_factor += table.pooling_factor / static_cast<double>(tables.size());
    sum.num_indices += statistics.num_indices;
    sum.distinct_rows += statistics.distinct_rows;
    for (int bin = 0; bin < kReuseBins; ++bin) {
      sum.share_of_rows[bin] += statistics.rows[bin];
      sum.share_of_indices[bin] += statistics.indices[bin];
    }
  }
  for (double& share : sum.share_of_rows) share /= sum.distinct_rows;
  for (double& share : sum.share_of_indices) share /= sum.num_indices;
  return sum;
}

}  // namespace neuroshard
