// One device at work: its arena, and sets of pieces prepared and timed on it.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <vector>

#include "neuroshard/collect/compute/cuda/batch_draw.h"
#include "neuroshard/collect/compute/cuda/cuda_backend.h"
#include "neuroshard/collect/compute/cuda/cuda_operator.h"
#include "neuroshard/collect/compute/cuda/device.h"

namespace neuroshard::cuda {

/// Pieces lie one after the other from a random place of the arena on, and go on at its start; a
/// piece larger than the arena wraps around it (row r lies where row r mod m would, m rows
/// fitting). Used by one thread, the one that made it.
class DeviceWorker {
 public:
  DeviceWorker(int device, const CudaBackendOptions& options);

  /// Draws the set's batch on the device and gets everything ready. The operator, and what it works
  /// in, are those of the latest set. Of larger tables no more than `most_rows` rows are there, and
  /// lookups wrap around them as they do around the arena. Throws OutOfDeviceMemory.
  void prepare(const PieceSet& set, std::int64_t batch_size, Optimizer optimizer,
               std::int64_t most_rows = kMaxEmbeddings);
  void forward() { operator_->forward(activations_.as<float>()); }
  void backward() { operator_->backward(activations_.as<float>()); }
  void synchronize() const { stream_.synchronize(); }

  /// Times the prepared set.
  [[nodiscard]] ComputeMeasurement time_passes();

  /// Access distributions stay on the device until then, known by the address of their table.
  void forget_tables() { distributions_.clear(); }

 private:
  /// A table's access distribution in device memory.
  struct DeviceDistribution {
    DeviceBuffer pieces;
    DeviceBuffer slots;
    RowDistribution rows;
  };
  struct Round {
    Event start_forward, end_forward, start_backward, end_backward;
  };

  void try_to_prepare(const PieceSet& set, std::int64_t batch_size, Optimizer optimizer,
                      std::int64_t most_rows);
  void free_working_memory();
  const RowDistribution& distribution_of(const Table& table, std::int64_t batch_size);
  std::vector<OperatorTable> place(const PieceSet& set, std::int64_t most_rows,
                                   Random& random) const;
  std::vector<DeviceLookups> draw(const PieceSet& set, const std::vector<OperatorTable>& tables,
                                  std::int64_t batch_size, Random& random);
  void enqueue(Round& round);
  void disturb();

  CudaBackendOptions options_;
  DeviceInfo info_;
  Stream stream_;
  DeviceBuffer arena_;
  DeviceBuffer disturbance_;
  DeviceBuffer sink_;
  DeviceBuffer batch_;  ///< indices and offsets
  DeviceBuffer draw_plans_;
  DeviceBuffer activations_;  ///< pooled output, and in the backward pass the gradients
  CudaWorkspace workspace_;
  std::map<const Table*, DeviceDistribution> distributions_;
  std::unique_ptr<CudaEmbeddingOperator> operator_;
  std::vector<std::unique_ptr<Round>> rounds_;
};

}  // namespace neuroshard::cuda
