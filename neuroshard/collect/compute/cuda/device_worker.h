// A GPU as a measuring device: its arena, and sets of pieces made ready on it.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "neuroshard/collect/compute/compute_backend.h"
#include "neuroshard/collect/compute/cuda/batch_draw.h"
#include "neuroshard/collect/compute/cuda/cuda_backend.h"
#include "neuroshard/collect/compute/cuda/cuda_operator.h"
#include "neuroshard/collect/compute/cuda/device.h"
#include "neuroshard/collect/compute/cuda/distribution_store.h"

namespace neuroshard::cuda {

/// Pieces lie one after the other from a random place of the arena on, and go on at its start; a
/// piece larger than the arena wraps around it (row r lies where row r mod m would, m rows
/// fitting).
class DeviceWorker final : public MeasuringDevice {
 public:
  DeviceWorker(int device, const CudaBackendOptions& options);

  /// Access distributions stay on the device until then, known by the address of their table.
  void forget_tables() override { distributions_.forget(); }
  /// The operator, and what it works in, are those of the latest set.
  [[nodiscard]] std::unique_ptr<PreparedSet> prepare(const PieceSet& set) override;
  [[nodiscard]] std::int64_t bytes_between_passes() const override {
    return static_cast<std::int64_t>(disturbance_.size());
  }
  std::int64_t disturb_caches(std::int64_t bytes) override;
  [[nodiscard]] RepetitionOptions repetitions() const override { return options_.repetitions; }

 private:
  class Prepared;
  void try_to_prepare(const PieceSet& set);
  void free_working_memory();
  std::vector<OperatorTable> place(const PieceSet& set, Random& random) const;
  std::vector<DeviceLookups> draw(const PieceSet& set, const std::vector<OperatorTable>& tables,
                                  Random& random);

  int device_;
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
  DistributionStore distributions_;
  std::unique_ptr<CudaEmbeddingOperator> operator_;
};

}  // namespace neuroshard::cuda
