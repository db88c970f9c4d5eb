// Distributions packed on the host and copied at once.
#include "neuroshard/collect/compute/cuda/distribution_store.h"

#include <algorithm>
#include <utility>

#include "neuroshard/collect/compute/cuda/packing.h"
#include "neuroshard/workload/reuse/index_batch.h"

namespace neuroshard::cuda {

namespace {

/// Some hundred tables' distributions.
constexpr std::size_t kBlockBytes = std::size_t{8} << 20;

/// Where a table's arrays begin in the packing.
struct Places {
  RowDistribution rows;
  std::size_t pieces = 0;
  std::size_t slots = 0;
  std::size_t segments = 0;
};

}  // namespace

void DistributionStore::forget() {
  distributions_.clear();
  block_ = 0;
  used_bytes_ = 0;
}

std::byte* DistributionStore::take(std::size_t bytes) {
  while (block_ < blocks_.size() && used_bytes_ + bytes > blocks_[block_].size()) {
    ++block_;
    used_bytes_ = 0;
  }
  if (block_ == blocks_.size()) {
    DeviceBuffer block;
    block.allocate(std::max(bytes, kBlockBytes));
    blocks_.push_back(std::move(block));
  }
  return blocks_[block_].as<>() + std::exchange(used_bytes_, used_bytes_ + bytes);
}

void DistributionStore::add(std::span<const Table* const> tables, std::int64_t batch_size,
                            const Stream& stream) {
  Packing packing;
  std::map<const Table*, Places> added;
  for (const Table* table : tables) {
    if (distributions_.contains(table) || added.contains(table)) continue;
    const IndexSampler sampler(*table, batch_size);
    const RowDistribution rows = sampler.rows();
    added.emplace(table, Places{rows, packing.add(rows.pieces, rows.num_pieces),
                                packing.add(rows.slots, rows.num_pieces),
                                packing.add(rows.segments, rows.num_segments)});
  }
  if (added.empty()) return;
  std::byte* base = take(packing.bytes().size());
  check(cudaMemcpyAsync(base, packing.bytes().data(), packing.bytes().size(),
                        cudaMemcpyHostToDevice, stream.get()),
        "upload");
  stream.synchronize();  // before `packing` is gone
  for (auto& [table, places] : added) {
    RowDistribution& rows = places.rows;
    rows.pieces = reinterpret_cast<const RankPiece*>(base + places.pieces);
    rows.slots = reinterpret_cast<const AliasTable::Slot*>(base + places.slots);
    if (rows.num_segments > 0) {
      rows.segments = reinterpret_cast<const RowSegment*>(base + places.segments);
    }
    distributions_.emplace(table, rows);
  }
}

}  // namespace neuroshard::cuda
