// How one batch's work is dealt out to the blocks of each launch: planned on the host, read by the
// kernels. Blocks belong to one table each; a table's blocks follow each other.
#pragma once

#include <cstdint>
#include <span>
#include <type_traits>
#include <vector>

#include "neuroshard/collect/compute/cpu/embedding_operator.h"
#include "neuroshard/collect/compute/cuda/group_code.h"
#include "neuroshard/core/table.h"

namespace neuroshard::cuda {

inline constexpr int kThreadsPerBlock = 256;
inline constexpr int kMostLanes = 32;
/// Lookups whose keys one block writes.
inline constexpr std::int64_t kKeysPerBlock = 4096;

/// The lookups of one batch in one table, in device memory: bag b holds
/// indices[offsets[b] .. offsets[b + 1]). Counts are known to the host.
struct DeviceLookups {
  const std::int64_t* indices = nullptr;  ///< rows, each in [0, num_embeddings)
  const std::int64_t* offsets = nullptr;  ///< batch_size + 1 elements, the first 0
  std::int64_t num_lookups = 0;
  std::int64_t longest_bag = 0;
};

/// Rows by the vectors in which threads load them. The kernels that do most of the work exist once
/// for each kind: with all of them in one, a thread would hold registers for the neediest, and too
/// few threads would be at work to keep the memory busy.
enum class VectorKind {
  fp32,   ///< four columns of fp32
  fp16,   ///< eight of fp16
  other,  ///< four of fp16, or one of either
};

/// The fields of a table piece that every kernel needs.
struct TableLayout {
  void* weights = nullptr;
  float* optimizer_state = nullptr;
  const std::int64_t* indices = nullptr;
  const std::int64_t* offsets = nullptr;
  std::int64_t num_columns = 0;
  std::int64_t column_start = 0;  ///< in the pooled output
  std::int64_t num_lookups = 0;
  std::int64_t first_lookup = 0;  ///< among the lookups of all tables, and so among the sorted keys
  std::int64_t first_row = 0;     ///< the rows of all tables numbered one after the other
  DataType data_type = DataType::fp32;
  int vector_elements = 1;  ///< columns per thread and access: 16 bytes where alignment allows

  [[nodiscard]] NEUROSHARD_HOST_DEVICE std::int64_t num_vectors() const {
    return num_columns / vector_elements;
  }
  [[nodiscard]] NEUROSHARD_HOST_DEVICE VectorKind kind() const {
    if (data_type == DataType::fp32 && vector_elements == 4) return VectorKind::fp32;
    if (data_type == DataType::fp16 && vector_elements == 8) return VectorKind::fp16;
    return VectorKind::other;
  }
};

/// Calls `body` with the kind as a constant.
template <class Body>
void with_kind(VectorKind kind, const Body& body) {
  switch (kind) {
    case VectorKind::fp32:
      return body(std::integral_constant<VectorKind, VectorKind::fp32>{});
    case VectorKind::fp16:
      return body(std::integral_constant<VectorKind, VectorKind::fp16>{});
    case VectorKind::other:
      return body(std::integral_constant<VectorKind, VectorKind::other>{});
  }
}

/// Tables of one kind, which follow each other in a plan.
struct KindTables {
  VectorKind kind = VectorKind::other;
  int first = 0;
  int count = 0;
};

/// The writing of one table's keys, kKeysPerBlock to a block.
struct KeyPlan {
  std::int64_t first_block = 0;
};

/// The forward pass of one table. A task is a range of bags, or of bags and lookups, and a tile of
/// the columns; it is done by one group of threads.
struct PoolingPlan {
  std::int64_t first_block = 0;
  std::int64_t num_ranges = 0;
  /// Bags in a range; or bags plus lookups where `splits_bags`, so that a range has as much to do
  /// as any other, however long its bags are (Merrill and Garland, "Merge-based parallel sparse
  /// matrix-vector multiplication", 2016).
  std::int64_t range_length = 0;
  bool splits_bags = false;
  std::int64_t first_partial = 0;  ///< floats: where the sums of bags cut by ranges begin
  int num_tiles = 0;
  int lanes = 0;  ///< threads in a group
};

/// One level of the reduction of one table's gradients. Items of a row follow each other; a segment
/// of items is reduced by one group of threads, which updates the rows that begin and end in it and
/// leaves two partial sums at most, of the row that came in and of the one that goes on, as items
/// of the next level. The items of the first level are the sorted lookups.
struct ReductionPlan {
  std::int64_t first_block = 0;
  std::int64_t num_items = 0;
  std::int64_t items_per_segment = 0;
  std::int64_t num_segments = 0;
  std::int64_t first_item = 0;   ///< of the level's items of all tables
  std::int64_t first_value = 0;  ///< floats: of the level's partial sums (not of the first level)
  int lanes = 0;                 ///< threads in a group, a power of two
};

struct ReductionLevel {
  std::vector<ReductionPlan> tables;
  std::int64_t num_blocks = 0;
  std::int64_t num_items = 0;   ///< of all tables
  std::int64_t num_values = 0;  ///< floats of partial sums
};

/// A lookup as one word: the row among those of all tables, above the bag.
struct KeyBits {
  int row_bits = 0;
  int bag_bits = 0;
};

struct LaunchPlan {
  /// By kind, and in the order given within one; `column_start` is by the order given.
  std::vector<TableLayout> tables;
  std::vector<KindTables> kinds;  ///< those that the tables have
  std::vector<PoolingPlan> pooling;
  std::int64_t pooling_blocks = 0;
  std::int64_t pooling_partials = 0;  ///< floats; 0: no bag is cut, and one launch is all
  std::vector<KeyPlan> keys;
  std::int64_t key_blocks = 0;
  KeyBits key_bits;
  std::vector<ReductionLevel> levels;  ///< the last leaves nothing
  std::int64_t batch_size = 0;
  std::int64_t total_columns = 0;
  std::int64_t total_lookups = 0;
};

/// Throws InputError if a row of all tables and a bag do not fit into 64 bits together.
/// `resident_threads`: those that the device runs at once; the plan gives each of them several
/// tasks where there is enough work.
[[nodiscard]] LaunchPlan plan_launches(std::span<const OperatorTable> tables,
                                       std::span<const DeviceLookups> lookups,
                                       std::int64_t batch_size, std::int64_t resident_threads);

/// The blocks of a launch that belong to tables of one kind.
struct BlockRange {
  std::int64_t first = 0;
  std::int64_t count = 0;
};

/// `plans` of all tables, `num_blocks` of all of them.
template <class Plan>
[[nodiscard]] BlockRange blocks_of_kind(const std::vector<Plan>& plans, std::int64_t num_blocks,
                                        const KindTables& tables) {
  const std::span<const Plan> later = std::span(plans).subspan(tables.first);
  const std::int64_t first = later.front().first_block;
  const bool is_last = later.size() == static_cast<std::size_t>(tables.count);
  return {first, (is_last ? num_blocks : later[tables.count].first_block) - first};
}

/// The table that a block belongs to: the last whose first block is not above it.
template <class Plan>
NEUROSHARD_HOST_DEVICE int table_of_block(const Plan* plans, int num_tables, std::int64_t block) {
  int low = 0;
  int high = num_tables;  // the answer is in [low, high)
  while (high - low > 1) {
    const int middle = (low + high) / 2;
    (plans[middle].first_block <= block ? low : high) = middle;
  }
  return low;
}

/// The work of group number `group` of a block; the last block of a table may have spare groups.
template <class Plan>
NEUROSHARD_HOST_DEVICE std::int64_t task_of_group(const Plan& plan, std::int64_t block, int group) {
  return (block - plan.first_block) * (kThreadsPerBlock / plan.lanes) + group;
}

}  // namespace neuroshard::cuda
