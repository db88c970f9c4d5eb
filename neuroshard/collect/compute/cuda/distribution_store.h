// The access distributions of tables, in device memory for as long as the tables are known.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <span>
#include <vector>

#include "neuroshard/collect/compute/cuda/device.h"
#include "neuroshard/core/table.h"
#include "neuroshard/workload/reuse/row_draw.h"

namespace neuroshard::cuda {

/// Tables are known by their addresses. Memory is taken in blocks and kept: sets that bring tables
/// of their own come by the thousand, and taking and freeing memory of the device for each array
/// would take longer than measuring the set.
class DistributionStore {
 public:
  /// Forgets all tables; the memory is used again.
  void forget();
  /// Brings the distributions of those tables that are not known yet, for batches of `batch_size`,
  /// in one copy. Throws OutOfDeviceMemory.
  void add(std::span<const Table* const> tables, std::int64_t batch_size, const Stream& stream);
  /// With arrays in device memory; the table must be known.
  [[nodiscard]] const RowDistribution& of(const Table& table) const {
    return distributions_.at(&table);
  }

 private:
  std::byte* take(std::size_t bytes);

  std::map<const Table*, RowDistribution> distributions_;
  std::vector<DeviceBuffer> blocks_;
  std::size_t block_ = 0;       ///< that is being filled
  std::size_t used_bytes_ = 0;  ///< of it
};

}  // namespace neuroshard::cuda
