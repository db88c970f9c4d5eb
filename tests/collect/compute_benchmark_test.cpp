// The CPU as a measuring device: sets are measured as they are drawn, and fail alone.
#include "neuroshard/collect/compute/cpu/compute_benchmark.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/resource.h>

#include <map>

#include "neuroshard/collect/compute/measure_sets.h"
#include "neuroshard/core/error.h"
#include "neuroshard/core/machine/memory_limit.h"
#include "tests/collect/tiny_collection.h"

namespace neuroshard {
namespace {

using testing_collection::tiny_benchmark;
using testing_collection::tiny_sampling;

/// Measures the sets of pieces of `tables` together and returns their results by id.
std::map<std::int64_t, PieceSetResult> measure(const std::vector<Table>& tables,
                                               const std::vector<std::vector<Piece>>& sets,
                                               int in_flight,
                                               const ComputeBenchmarkOptions& options) {
  const auto backend = cpu_backend(options, in_flight).make();
  std::map<std::int64_t, PieceSetResult> results;
  std::int64_t begun = 0;
  const auto next = [&]() -> std::optional<PieceSet> {
    if (begun == static_cast<std::int64_t>(sets.size())) return std::nullopt;
    const std::int64_t id = begun++;
    return PieceSet{id,       tables,
                    sets[id], Random(static_cast<std::uint64_t>(id)),
                    32,       Optimizer::rowwise_adagrad};
  };
  measure_sets(*backend, in_flight, next, [&](const PieceSetResult& result) {
    EXPECT_TRUE(results.emplace(result.id, result).second);
  });
  return results;
}

TEST(ComputeBenchmark, MeasuresEverySet) {
  const std::vector<Table> tables = tiny_sampling(3).tables;
  ComputeBenchmarkOptions options = tiny_benchmark();
  options.repetitions = {
      .target_interval = 0.0, .warm_ups = 1, .min_repetitions = 1, .max_repetitions = 5};
  std::vector<std::vector<Piece>> sets;
  for (int i = 0; i < 10; ++i) {
    for (int table = 0; table <= i % 3; ++table) {
      if (table == 0) sets.emplace_back();
      sets.back().push_back({table, 8});
    }
  }
  for (const int in_flight : {1, 3, 50}) {
    const auto results = measure(tables, sets, in_flight, options);
    ASSERT_EQ(results.size(), 10u);
    for (const auto& [id, result] : results) {
      ASSERT_TRUE(result.measurement.has_value()) << result.failure;
      EXPECT_EQ(result.measurement->repetitions, 5);
      EXPECT_GT(result.measurement->forward_ms, 0.0);
      EXPECT_GT(result.measurement->backward_ms, 0.0);
    }
  }
}

TEST(ComputeBenchmark, APassTouchesItsRowsAndIndices) {
  const std::vector<Table> tables = tiny_sampling(1).tables;
  ComputeBenchmark device(tiny_benchmark());
  const auto set = device.prepare({0, tables, {{0, 16}}, Random(1), 32});
  // 32 samples with 1.5 lookups each, in 50 rows of one cache line.
  EXPECT_GT(set->bytes_touched(), 48 * 8);
  EXPECT_LE(set->bytes_touched(), 48 * 8 + 50 * 64);
}

TEST(ComputeBenchmark, BatchesOfReadySetsStayWithinTheirMemory) {
  const std::vector<Table> tables = tiny_sampling(1).tables;
  ComputeBenchmarkOptions options = tiny_benchmark();
  options.in_flight_bytes = 64 << 10;
  ComputeBenchmark device(options);
  const auto prepare = [&](std::int64_t batch_size) {
    return device.prepare({0, tables, {{0, 4}}, Random(1), batch_size});
  };
  EXPECT_TRUE(device.has_room());
  auto large = prepare(16 << 10);  // as many offsets alone, of 8 bytes
  EXPECT_FALSE(device.has_room());
  large.reset();
  EXPECT_TRUE(device.has_room());
  // Too large to be kept, so that small sets do not hold the memory of large ones.
  std::vector<std::unique_ptr<PreparedSet>> small;
  while (device.has_room()) small.push_back(prepare(64));
  EXPECT_GT(small.size(), 10u);
  EXPECT_LT(small.size(), 64u << 10 >> 9) << "65 offsets each";
}

TEST(ComputeBenchmark, ASetWithoutRoomForARowFailsAlone) {
  const std::vector<Table> tables = tiny_sampling(3).tables;
  // A row of set 1 alone is larger than the arena.
  const auto results =
      measure(tables, {{{0, 4}}, {{0, std::int64_t{1} << 20}}, {{0, 4}}}, 2, tiny_benchmark());
  ASSERT_EQ(results.size(), 3u);
  EXPECT_TRUE(results.at(0).measurement.has_value());
  EXPECT_FALSE(results.at(1).measurement.has_value());
  EXPECT_THAT(results.at(1).failure, testing::HasSubstr("arena"));
  EXPECT_TRUE(results.at(2).measurement.has_value());
}

TEST(ComputeBenchmark, ASetWithoutRoomForItsOutputLeavesTheOthersTheirs) {
  const std::vector<Table> tables = tiny_sampling(1).tables;
  // A pooled output of 0.8 TB, asked for while set 0 is in flight.
  const std::vector<Piece> huge(20'000, {0, std::int64_t{1} << 18});
  const auto results = measure(tables, {{{0, 4}}, huge, {{0, 4}}}, 3, tiny_benchmark());
  ASSERT_EQ(results.size(), 3u);
  EXPECT_TRUE(results.at(0).measurement.has_value());
  EXPECT_THAT(results.at(1).failure, testing::StartsWith("memory: expected "));
  EXPECT_TRUE(results.at(2).measurement.has_value());
}

/// While it lives, this process may take as many more addresses, and no more.
class RoomForAddresses {
 public:
  explicit RoomForAddresses(std::int64_t bytes) {
    getrlimit(RLIMIT_AS, &before_);
    rlimit limit = before_;
    limit.rlim_cur = static_cast<rlim_t>(address_space_bytes() + bytes);
    setrlimit(RLIMIT_AS, &limit);
  }
  ~RoomForAddresses() { setrlimit(RLIMIT_AS, &before_); }
  RoomForAddresses(const RoomForAddresses&) = delete;
  RoomForAddresses& operator=(const RoomForAddresses&) = delete;

 private:
  rlimit before_{};
};

/// A set of 32 samples with as many pieces, each of which has an output of 32 MiB.
std::unique_ptr<PreparedSet> prepare_wide(ComputeBenchmark& device,
                                          const std::vector<Table>& tables, std::size_t pieces) {
  return device.prepare(
      {0, tables, std::vector<Piece>(pieces, {0, std::int64_t{1} << 18}), Random(1), 32});
}

TEST(ComputeBenchmark, OutputsGetNoMoreThanTheyNeedWhereThereIsNoRoom) {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  GTEST_SKIP() << "sanitizers need all the addresses there are";
#endif
  const std::vector<Table> tables = tiny_sampling(1).tables;
  ComputeBenchmark device(tiny_benchmark());
  const auto small = device.prepare({0, tables, {{0, 4}}, Random(1), 32});
  // Of two wide pieces: a quarter more than 64 MiB for the outputs, after which there is room for
  // little more than 64 MiB for their gradients.
  const RoomForAddresses room(std::int64_t{152} << 20);
  const auto wide = prepare_wide(device, tables, 2);
  EXPECT_GT(wide->forward().get(), 0.0);
  EXPECT_GT(wide->backward().get(), 0.0);
  // A third piece has no room, and takes none from the others.
  EXPECT_THROW((void)prepare_wide(device, tables, 3), OutOfMemory);
  EXPECT_GT(wide->forward().get(), 0.0);
  EXPECT_GT(small->forward().get(), 0.0);
  EXPECT_GT(small->backward().get(), 0.0);
}

/// Where there is memory for a batch that large, too.
TEST(ComputeBenchmark, MoreLookupsThanTheOperatorCountsAreNoRoomForThem) {
  std::vector<Table> tables = tiny_sampling(1).tables;
  ComputeBenchmark device(tiny_benchmark());
  tables.front().pooling_factor = 1e6;
  EXPECT_THROW((void)device.prepare({0, tables, {{0, 4}}, Random(1), 4'001}), OutOfMemory);
}

TEST(ComputeBenchmark, MemoryKeptForOutputsIsNoneForIndices) {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  GTEST_SKIP() << "sanitizers need all the addresses there are";
#endif
  std::vector<Table> tables = tiny_sampling(1).tables;
  ComputeBenchmark device(tiny_benchmark());
  prepare_wide(device, tables, 2).reset();  // 160 MiB are kept
  tables.front().pooling_factor = 400'000.0;
  const RoomForAddresses room(std::int64_t{32} << 20);
  EXPECT_THROW((void)device.prepare({0, tables, {{0, 4}}, Random(1), 32}), OutOfMemory);
}

}  // namespace
}  // namespace neuroshard
