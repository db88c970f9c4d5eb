// Measuring on GPUs: sets without room fail alone; without a device, the message names what is
// missing.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "neuroshard/collect/compute/cuda/cuda_backend.h"
#include "neuroshard/collect/compute/measure_sets.h"
#include "neuroshard/core/error.h"
#include "tests/cuda/device_operator.h"

namespace neuroshard::cuda {
namespace {

std::vector<Table> some_tables() {
  std::vector<Table> tables;
  for (const double pooling : {0.5, 1.0, 30.0}) {
    Table table{"t", 500'000, 8, pooling, DataType::fp32, std::nullopt, std::nullopt};
    table.index_distribution = IndexDistribution{1.05, {}};
    tables.push_back(table);
  }
  return tables;
}

TEST(DeviceBackend, MeasuresEverySetAndSkipsThoseWithoutRoom) {
  SKIP_WITHOUT_DEVICE();
  const std::vector<Table> tables = some_tables();
  const ComputeBackendFactory factory = cuda_backend({.arena_bytes = std::int64_t{1} << 30});
  const std::unique_ptr<ComputeBackend> backend = factory.make();
  std::int64_t next_id = 0;
  std::vector<int> outcomes(6, -1);
  measure_sets(
      *backend, 1,
      [&]() -> std::optional<PieceSet> {
        if (next_id == 6) return std::nullopt;
        PieceSet set{next_id, tables,
                     {},      Random(7 + static_cast<std::uint64_t>(next_id)),
                     65'536,  Optimizer::rowwise_adagrad};
        for (const int table : {0, 1, 2}) set.pieces.push_back({table, 64});
        // Pooled outputs of 65,536 x 64 Ki x 4 bytes in every third: 16 GiB per piece.
        if (next_id % 3 == 1) set.pieces.assign(64, {1, 65'536});
        ++next_id;
        return set;
      },
      [&](const PieceSetResult& result) {
        outcomes[result.id] = result.measurement ? 1 : 0;
        if (!result.measurement) {
          EXPECT_THAT(result.failure, testing::HasSubstr("memory"));
          return;
        }
        EXPECT_GT(result.measurement->forward_ms, 0.0);
        EXPECT_GT(result.measurement->backward_ms, result.measurement->forward_ms * 0.5);
        EXPECT_GE(result.measurement->repetitions, 6);
      });
  EXPECT_THAT(outcomes, testing::ElementsAre(1, 0, 1, 1, 0, 1));
  const std::unique_ptr<PreparedSet> set =
      backend->devices.front()->prepare({0, tables, {{2, 16}}, Random(1), 1024});
  EXPECT_GT(set->forward().get(), 0.0);
  EXPECT_GT(set->backward().get(), 0.0);
}

TEST(DeviceBackend, RefusesDevicesThatAreNotThere) {
  SKIP_WITHOUT_DEVICE();
  EXPECT_THROW((void)cuda_backend({.devices = {device_count()}}), InputError);
  EXPECT_THROW((void)cuda_backend({.devices = {0, 0}}), InputError);
  EXPECT_THROW((void)devices_of_process({0, 0}), InputError);
  EXPECT_THAT(devices_of_process({0}), testing::ElementsAre(0));
}

TEST(DeviceBackend, SaysWhatIsMissing) {
  const std::string reason = missing_device();
  if (reason.empty()) GTEST_SKIP() << "nothing is";
  EXPECT_THAT(reason, testing::StartsWith("cuda: expected "));
  try {
    (void)cuda_backend({});
    FAIL() << "found a device";
  } catch (const MachineError& error) {
    EXPECT_EQ(error.what(), reason);
    EXPECT_EQ(error.exit_code(), 3);
  }
}

}  // namespace
}  // namespace neuroshard::cuda
