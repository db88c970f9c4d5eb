// Measuring sets of pieces in turns: every set once, as it is drawn, whatever is in flight.
#include "neuroshard/collect/compute/cpu/compute_benchmark.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>

#include "tests/collect/tiny_collection.h"

namespace neuroshard {
namespace {

using testing_collection::tiny_benchmark;
using testing_collection::tiny_sampling;

/// Measures `count` sets, set i of i % 3 + 1 tables, and returns their results by id.
std::map<std::int64_t, PieceSetResult> measure(const std::vector<Table>& tables, int count,
                                               int in_flight, ComputeBenchmarkOptions options,
                                               std::size_t* most_waiting = nullptr) {
  ComputeBenchmark benchmark(options);
  std::map<std::int64_t, PieceSetResult> results;
  std::int64_t begun = 0;
  const auto next = [&]() -> std::optional<PieceSet> {
    if (begun == count) return std::nullopt;
    PieceSet set{begun, {}, Random(static_cast<std::uint64_t>(begun))};
    for (std::int64_t i = 0; i <= begun % 3; ++i) set.pieces.push_back({&tables[i], 8});
    ++begun;
    if (most_waiting != nullptr) {
      *most_waiting = std::max(*most_waiting, static_cast<std::size_t>(begun) - results.size());
    }
    return set;
  };
  benchmark.measure(next, in_flight, 32, Optimizer::rowwise_adagrad,
                    [&](const PieceSetResult& result) {
                      EXPECT_TRUE(results.emplace(result.id, result).second);
                    });
  return results;
}

TEST(ComputeBenchmark, MeasuresEverySetOnce) {
  const std::vector<Table> tables = tiny_sampling(3).tables;
  ComputeBenchmarkOptions options = tiny_benchmark();
  options.repetitions = {
      .target_interval = 0.0, .warm_ups = 1, .min_repetitions = 1, .max_repetitions = 5};
  for (const int in_flight : {0, 1, 3, 50}) {
    std::size_t most_waiting = 0;
    const auto results = measure(tables, 10, in_flight, options, &most_waiting);
    ASSERT_EQ(results.size(), 10u);
    EXPECT_EQ(most_waiting, static_cast<std::size_t>(std::clamp(in_flight, 1, 10)));
    for (const auto& [id, result] : results) {
      ASSERT_TRUE(result.measurement.has_value()) << result.failure;
      EXPECT_EQ(result.measurement->repetitions, 5);
      EXPECT_GT(result.measurement->forward_ms, 0.0);
      EXPECT_GT(result.measurement->backward_ms, 0.0);
    }
  }
}

TEST(ComputeBenchmark, ASetWithoutRoomFailsAlone) {
  std::vector<Table> tables = tiny_sampling(3).tables;
  ComputeBenchmarkOptions options = tiny_benchmark();
  ComputeBenchmark benchmark(options);
  int begun = 0;
  std::map<std::int64_t, PieceSetResult> results;
  benchmark.measure(
      [&]() -> std::optional<PieceSet> {
        if (begun == 3) return std::nullopt;
        // A row of set 1 alone is larger than the arena.
        const std::int64_t columns = begun == 1 ? std::int64_t{1} << 20 : 4;
        return PieceSet{begun++, {{tables.data(), columns}}, Random(1)};
      },
      2, 32, Optimizer::sgd,
      [&](const PieceSetResult& result) { results.emplace(result.id, result); });
  ASSERT_EQ(results.size(), 3u);
  EXPECT_TRUE(results.at(0).measurement.has_value());
  EXPECT_FALSE(results.at(1).measurement.has_value());
  EXPECT_THAT(results.at(1).failure, testing::HasSubstr("arena"));
  EXPECT_TRUE(results.at(2).measurement.has_value());
}

TEST(ComputeBenchmark, AnExceptionOfTheCallerPassesThrough) {
  const std::vector<Table> tables = tiny_sampling(1).tables;
  ComputeBenchmark benchmark(tiny_benchmark());
  const auto next = [&]() -> std::optional<PieceSet> {
    return PieceSet{0, {{tables.data(), 4}}, Random(1)};
  };
  EXPECT_THROW(benchmark.measure(next, 4, 32, Optimizer::sgd,
                                 [](const PieceSetResult&) { throw std::runtime_error("full"); }),
               std::runtime_error);
}

}  // namespace
}  // namespace neuroshard
