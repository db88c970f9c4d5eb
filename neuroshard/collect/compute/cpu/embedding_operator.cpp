// The fused embedding operator on the CPU: how its work is split over threads.
#include "neuroshard/collect/compute/cpu/embedding_operator.h"

#include <fmt/format.h>

#include <algorithm>
#include <cassert>

#include "neuroshard/core/error.h"

namespace neuroshard {

namespace {

/// Least number of work items per thread, where the size of the work allows, so that threads end
/// together: then a set's cost is close to the sum of its tables' costs, whether one table
/// dominates or not.
constexpr std::int64_t kPiecesPerThread = 8;
/// A forward block has at least enough bytes to hide the cost of dealing it out.
constexpr std::int64_t kSmallestForwardBlock = 32 * 1024;
constexpr std::int64_t kLargestForwardBlock = 512 * 1024;
/// Lookups per row part, at least and at the most: the largest parts' keys and scratch (16 B each)
/// stay within a 1 MiB second-level cache.
constexpr std::int64_t kFewestLookupsPerPart = 2 * 1024;
constexpr std::int64_t kMostLookupsPerPart = 32 * 1024;
/// Lookups per chunk of a table whose keys are dealt out to parts.
constexpr std::int64_t kLookupsPerChunk = 8 * 1024;
/// Parts of a table at the most: the scatter writes to as many streams at once.
constexpr int kMaxPartBits = 8;

/// Bytes that a lookup of the forward pass moves; a row takes a cache line at least.
std::int64_t forward_bytes(const OperatorTable& table, std::int64_t lookups,
                           std::int64_t batch_size) {
  return (lookups + batch_size) * std::max<std::int64_t>(table.num_columns * 4, 64);
}

/// Work of `lookups` lookups of the backward pass, in columns: sorting a key counts as 16.
std::int64_t backward_work(const OperatorTable& table, std::int64_t lookups) {
  return lookups * (table.num_columns + 16);
}

}  // namespace

EmbeddingOperator::EmbeddingOperator(std::vector<OperatorTable> tables, OperatorOptions options,
                                     ThreadPool& pool, std::shared_ptr<OperatorWorkspace> workspace)
    : tables_(std::move(tables)),
      options_(options),
      pool_(pool),
      workspace_(workspace ? std::move(workspace) : std::make_shared<OperatorWorkspace>()) {
  std::int64_t widest = 0;
  for (const OperatorTable& table : tables_) {
    assert(table.weights != nullptr && table.num_embeddings > 0 && table.num_columns > 0);
    assert(options.optimizer == Optimizer::sgd || table.optimizer_state != nullptr);
    column_start_.push_back(total_columns_);
    total_columns_ += table.num_columns;
    widest = std::max(widest, table.num_columns);
  }
  auto& scratch = workspace_->sort_scratch;
  if (static_cast<int>(scratch.size()) < pool.num_threads()) scratch.resize(pool.num_threads());
  row_gradient_.assign(pool.num_threads(), std::vector<float>(widest));
}

void EmbeddingOperator::split_bags(std::span<const IndexBatch> batches, std::int64_t batch_size) {
  bag_ranges_.clear();
  const auto bytes_of = [&](std::size_t t) {
    return forward_bytes(tables_[t], std::ssize(batches[t].indices), batch_size);
  };
  std::int64_t all_bytes = 0;
  for (std::size_t t = 0; t < tables_.size(); ++t) all_bytes += bytes_of(t);
  const std::int64_t block_bytes = std::clamp(all_bytes / (pool_.num_threads() * kPiecesPerThread),
                                              kSmallestForwardBlock, kLargestForwardBlock);
  for (std::size_t t = 0; t < tables_.size(); ++t) {
    const std::int64_t blocks =
        std::clamp<std::int64_t>((bytes_of(t) + block_bytes - 1) / block_bytes, 1, batch_size);
    for (std::int64_t block = 0; block < blocks; ++block) {
      bag_ranges_.push_back({t, batch_size * block / blocks, batch_size * (block + 1) / blocks});
    }
  }
}

void EmbeddingOperator::forward(std::span<const IndexBatch> batches, std::int64_t batch_size,
                                std::span<float> output) {
  assert(batches.size() == tables_.size());
  assert(output.size() == static_cast<std::size_t>(batch_size * total_columns_));
  split_bags(batches, batch_size);
  pool_.for_each(bag_ranges_.size(), [&](std::size_t i, int) {
    const BagRange& range = bag_ranges_[i];
    const OperatorTable& table = tables_[range.table];
    kernels::forward({.weights = table.weights,
                      .data_type = table.data_type,
                      .num_columns = table.num_columns,
                      .indices = batches[range.table].indices.data(),
                      .offsets = batches[range.table].offsets.data(),
                      .first_bag = range.first_bag,
                      .last_bag = range.last_bag,
                      .output = output.data() + column_start_[range.table],
                      .output_stride = total_columns_});
  });
}

void EmbeddingOperator::plan_parts(std::span<const IndexBatch> batches, std::int64_t batch_size) {
  parts_.clear();
  partitions_.clear();
  first_key_.clear();
  layouts_.clear();
  std::int64_t all_work = 0;
  for (std::size_t t = 0; t < tables_.size(); ++t) {
    all_work += backward_work(tables_[t], std::ssize(batches[t].indices));
  }
  const std::int64_t most_work = all_work / (pool_.num_threads() * kPiecesPerThread);
  std::size_t num_keys = 0;
  for (std::size_t t = 0; t < tables_.size(); ++t) {
    const std::int64_t lookups = std::ssize(batches[t].indices);
    layouts_.push_back(key_layout(tables_[t].num_embeddings, batch_size));
    first_key_.push_back(num_keys);
    const auto too_large = [&](std::int64_t part) {
      return part > kMostLookupsPerPart ||
             (part > kFewestLookupsPerPart && backward_work(tables_[t], part) > most_work);
    };
    int part_bits = 0;
    while (part_bits < std::min(kMaxPartBits, layouts_[t].row_bits) &&
           too_large(lookups >> part_bits)) {
      ++part_bits;
    }
    if (part_bits == 0) {
      if (lookups > 0) parts_.push_back({t, num_keys, num_keys + lookups, false});
    } else {
      Partition partition{t, part_bits, {}, {}};
      const std::int64_t chunks =
          std::clamp<std::int64_t>(lookups / kLookupsPerChunk, 1, batch_size);
      for (std::int64_t chunk = 0; chunk < chunks; ++chunk) {
        partition.chunks.push_back(
            {t, batch_size * chunk / chunks, batch_size * (chunk + 1) / chunks});
      }
      partition.positions.assign(partition.chunks.size() << part_bits, 0);
      partitions_.push_back(std::move(partition));
    }
    num_keys += lookups;
  }
  if (workspace_->keys.size() < num_keys) workspace_->keys.resize(num_keys);
}

void EmbeddingOperator::count_rows(Partition& partition, std::size_t chunk,
                                   const IndexBatch& batch) const {
  const int shift = layouts_[partition.table].row_bits - partition.part_bits;
  std::uint32_t* counts = partition.positions.data() + (chunk << partition.part_bits);
  const BagRange& bags = partition.chunks[chunk];
  for (std::int64_t i = batch.offsets[bags.first_bag]; i < batch.offsets[bags.last_bag]; ++i) {
    ++counts[batch.indices[i] >> shift];
  }
}

void EmbeddingOperator::place_parts(Partition& partition) {
  const std::size_t num_parts = std::size_t{1} << partition.part_bits;
  const std::size_t start = first_key_[partition.table];
  std::uint32_t position = 0;  // relative to the table's first key
  for (std::size_t part = 0; part < num_parts; ++part) {
    const std::uint32_t first = position;
    for (std::size_t chunk = 0; chunk < partition.chunks.size(); ++chunk) {
      std::uint32_t& count = partition.positions[chunk * num_parts + part];
      position += std::exchange(count, position);
    }
    if (position > first) {
      parts_.push_back({partition.table, start + first, start + position, true});
    }
  }
}

void EmbeddingOperator::scatter_keys(Partition& partition, std::size_t chunk,
                                     const IndexBatch& batch) {
  const KeyLayout layout = layouts_[partition.table];
  const int shift = layout.row_bits - partition.part_bits;
  std::uint32_t* positions = partition.positions.data() + (chunk << partition.part_bits);
  kernels::LookupKey* keys = workspace_->keys.data() + first_key_[partition.table];
  const BagRange& bags = partition.chunks[chunk];
  for (std::int64_t bag = bags.first_bag; bag < bags.last_bag; ++bag) {
    for (std::int64_t i = batch.offsets[bag]; i < batch.offsets[bag + 1]; ++i) {
      const std::int64_t row = batch.indices[i];
      keys[positions[row >> shift]++] = (static_cast<kernels::LookupKey>(row) << layout.bag_bits) |
                                        static_cast<kernels::LookupKey>(bag);
    }
  }
}

void EmbeddingOperator::partition_large_tables(std::span<const IndexBatch> batches) {
  std::vector<std::pair<Partition*, std::size_t>> work;
  for (Partition& partition : partitions_) {
    for (std::size_t chunk = 0; chunk < partition.chunks.size(); ++chunk) {
      work.emplace_back(&partition, chunk);
    }
  }
  pool_.for_each(work.size(), [&](std::size_t i, int) {
    count_rows(*work[i].first, work[i].second, batches[work[i].first->table]);
  });
  for (Partition& partition : partitions_) place_parts(partition);
  pool_.for_each(work.size(), [&](std::size_t i, int) {
    scatter_keys(*work[i].first, work[i].second, batches[work[i].first->table]);
  });
}

void EmbeddingOperator::update_part(const RowPart& part, int worker,
                                    std::span<const IndexBatch> batches, std::int64_t batch_size,
                                    const float* gradient) {
  const OperatorTable& table = tables_[part.table];
  const KeyLayout layout = layouts_[part.table];
  const std::span<kernels::LookupKey> keys(workspace_->keys.data() + part.first_key,
                                           part.last_key - part.first_key);
  int part_bits = 0;
  if (part.packed) {
    part_bits = std::find_if(partitions_.begin(), partitions_.end(), [&](const Partition& p) {
                  return p.table == part.table;
                })->part_bits;
  } else {
    pack_keys(batches[part.table].indices.data(), batches[part.table].offsets.data(), 0, batch_size,
              layout.bag_bits, keys.data());
  }
  std::vector<kernels::LookupKey>& scratch = workspace_->sort_scratch[worker];
  if (scratch.size() < keys.size()) scratch.resize(keys.size());
  kernels::backward({.weights = table.weights,
                     .optimizer_state = table.optimizer_state,
                     .data_type = table.data_type,
                     .optimizer = options_.optimizer,
                     .num_columns = table.num_columns,
                     .sorted_keys = sort_by_row(keys, std::span(scratch).first(keys.size()),
                                                layout.row_bits - part_bits, layout.bag_bits),
                     .bag_bits = layout.bag_bits,
                     .gradient = gradient + column_start_[part.table],
                     .gradient_stride = total_columns_,
                     .learning_rate = options_.learning_rate,
                     .epsilon = options_.epsilon,
                     .row_gradient = row_gradient_[worker].data()});
}

void EmbeddingOperator::backward(std::span<const IndexBatch> batches, std::int64_t batch_size,
                                 std::span<const float> gradient) {
  assert(batches.size() == tables_.size());
  assert(gradient.size() == static_cast<std::size_t>(batch_size * total_columns_));
  plan_parts(batches, batch_size);
  partition_large_tables(batches);
  // The largest parts first, so that no thread is left with a large one at the end.
  std::stable_sort(parts_.begin(), parts_.end(), [&](const RowPart& a, const RowPart& b) {
    const auto work = [&](const RowPart& part) {
      return backward_work(tables_[part.table],
                           static_cast<std::int64_t>(part.last_key - part.first_key));
    };
    return work(a) > work(b);
  });
  pool_.for_each(parts_.size(), [&](std::size_t i, int worker) {
    update_part(parts_[i], worker, batches, batch_size, gradient.data());
  });
}

}  // namespace neuroshard
