// The fused embedding operator on the CPU: many table pieces in one call, sum pooling, backward
// fused with the optimizer. Computation costs are measured on this operator.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "neuroshard/collect/compute/cpu/embedding_kernels.h"
#include "neuroshard/collect/compute/cpu/lookup_sort.h"
#include "neuroshard/core/machine/parallel.h"
#include "neuroshard/core/table.h"
#include "neuroshard/workload/reuse/index_batch.h"

namespace neuroshard {

/// Recorded with every cost. The version rises with each change of the operator's times: costs of
/// two versions are costs of two operators.
inline constexpr const char* kOperatorName = "neuroshard-cpu";
inline constexpr int kOperatorVersion = 3;

/// A table piece in memory that the caller owns.
struct OperatorTable {
  void* weights = nullptr;           ///< num_embeddings x num_columns, row-major, of `data_type`
  float* optimizer_state = nullptr;  ///< num_embeddings elements for row-wise Adagrad, else null
  std::int64_t num_embeddings = 0;
  std::int64_t num_columns = 0;
  DataType data_type = DataType::fp32;
};

struct OperatorOptions {
  Optimizer optimizer = Optimizer::sgd;
  float learning_rate = 0.01F;
  float epsilon = 1e-8F;  ///< added to the square root in row-wise Adagrad
};

/// Memory that a timed call works in, kept between calls so that none of them allocates. Operators
/// that are not called at the same time may share one.
struct OperatorWorkspace {
  std::vector<kernels::LookupKey> keys;
  std::vector<std::vector<kernels::LookupKey>> sort_scratch;  ///< per worker
};

/// Results do not depend on the number of threads: each bag and each row belongs to one thread,
/// and sums run in the order of the batch.
class EmbeddingOperator {
 public:
  /// Keeps a reference to the pool. Without a workspace it makes its own.
  EmbeddingOperator(std::vector<OperatorTable> tables, OperatorOptions options, ThreadPool& pool,
                    std::shared_ptr<OperatorWorkspace> workspace = nullptr);

  [[nodiscard]] std::int64_t total_columns() const { return total_columns_; }

  /// output[b * total_columns() + c]: the pooled rows of all pieces side by side, fp32.
  /// `batches` has one element per table, all of `batch_size` bags.
  void forward(std::span<const IndexBatch> batches, std::int64_t batch_size,
               std::span<float> output);

  /// Exact backward: each distinct row's gradient is summed over the batch and applied once.
  /// `gradient` is laid out like forward's output.
  void backward(std::span<const IndexBatch> batches, std::int64_t batch_size,
                std::span<const float> gradient);

 private:
  struct BagRange {
    std::size_t table;
    std::int64_t first_bag, last_bag;
  };
  /// A share of a table's rows, by the high bits of the row, whose lookups one thread handles.
  struct RowPart {
    std::size_t table;
    std::size_t first_key, last_key;  ///< in the workspace
    bool packed;                      ///< false: the part is the whole table, keys not yet written
  };
  /// A table whose lookups are dealt out to several row parts.
  struct Partition {
    std::size_t table;
    int part_bits;
    std::vector<BagRange> chunks;
    std::vector<std::uint32_t> positions;  ///< [chunk][part]: counts, then where to write next
  };

  void split_bags(std::span<const IndexBatch> batches, std::int64_t batch_size);
  void plan_parts(std::span<const IndexBatch> batches, std::int64_t batch_size);
  void partition_large_tables(std::span<const IndexBatch> batches);
  void count_rows(Partition& partition, std::size_t chunk, const IndexBatch& batch) const;
  void scatter_keys(Partition& partition, std::size_t chunk, const IndexBatch& batch);
  void place_parts(Partition& partition);
  void update_part(const RowPart& part, int worker, std::span<const IndexBatch> batches,
                   std::int64_t batch_size, const float* gradient);

  std::vector<OperatorTable> tables_;
  std::vector<std::int64_t> column_start_;
  std::vector<KeyLayout> layouts_;
  std::int64_t total_columns_ = 0;
  OperatorOptions options_;
  ThreadPool& pool_;

  // Kept between calls, as the workspace is.
  std::vector<BagRange> bag_ranges_;
  std::vector<RowPart> parts_;
  std::vector<Partition> partitions_;
  std::vector<std::size_t> first_key_;  ///< of each table, in the workspace
  std::shared_ptr<OperatorWorkspace> workspace_;
  std::vector<std::vector<float>> row_gradient_;  ///< per worker
};

}  // namespace neuroshard
