// The analytic computation model: its formula by hand, and its behaviour at the edges.
#include "neuroshard/cost/compute/analytic_compute.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <array>
#include <cmath>
#include <set>
#include <string_view>

#include "neuroshard/core/error.h"

namespace neuroshard {
namespace {

/// 1 GB/s of memory, 10 of cache, room for four rows of 32 bytes.
ComputeHardware small_device() {
  return {.name = "small",
          .memory_gb_per_s = 1.0,
          .cache_gb_per_s = 10.0,
          .cache_bytes = 128.0,
          .access_bytes = 32.0,
          .operator_overhead_ms = 0.5,
          .table_overhead_ms = 0.25,
          .source = "made up"};
}

/// 8 lookups in 4 samples of a table whose rows are hit as often as `bin` says.
TableStatistics table_with_bin(int bin) {
  TableStatistics table{.num_embeddings = 1000, .pooling_factor = 2.0};
  table.reuse_histogram[bin] = 1.0;
  return table;
}

constexpr OperatorSettings kSgd{.batch_size = 4, .optimizer = Optimizer::sgd};
constexpr OperatorSettings kAdagrad{.batch_size = 4, .optimizer = Optimizer::rowwise_adagrad};

// 8 columns of fp32: a row has 32 bytes. Indices 8 * 8, pooled output and gradients 4 * 32 each,
// 2 passes of sorting (1,000 rows: 10 bits) over 8 pairs, read and written: 2 * 2 * 8 * 12.
constexpr double kFixedBytes = 64.0 + 128.0 + 128.0 + 384.0;

TEST(AnalyticCompute, RowsHitOnceComeFromMemory) {
  const PieceTraffic traffic = piece_traffic(table_with_bin(0), 8, kSgd, small_device());
  EXPECT_DOUBLE_EQ(traffic.memory_bytes, kFixedBytes + 8 * 32 + 2 * 8 * 32);
  EXPECT_DOUBLE_EQ(traffic.cache_bytes, 4 * 32);  // second reads of the 4 samples' gradients
}

TEST(AnalyticCompute, RepeatedRowsComeFromTheCache) {
  // Hit twice each: 4 distinct rows, all kept, 4 repeated lookups.
  const PieceTraffic traffic = piece_traffic(table_with_bin(1), 8, kSgd, small_device());
  EXPECT_DOUBLE_EQ(traffic.memory_bytes, kFixedBytes + 4 * 32 + 2 * 4 * 32);
  EXPECT_DOUBLE_EQ(traffic.cache_bytes, 4 * 32 + 4 * 32);
}

TEST(AnalyticCompute, WhatTheCacheCannotKeepComesFromMemory) {
  ComputeHardware hardware = small_device();
  hardware.cache_bytes = 32.0;  // one row of four, one gradient of four
  const PieceTraffic traffic = piece_traffic(table_with_bin(1), 8, kSgd, hardware);
  EXPECT_DOUBLE_EQ(traffic.memory_bytes, kFixedBytes + (4 + 3) * 32 + 2 * 4 * 32 + 3 * 32);
  EXPECT_DOUBLE_EQ(traffic.cache_bytes, 1 * 32 + 1 * 32);
}

TEST(AnalyticCompute, TheHottestRowsAreKept) {
  // 8 lookups, as shares of distinct rows 1/2 hit once and 1/2 hit 3.5 times (bin 2: 3 to 4).
  TableStatistics table{.num_embeddings = 1000, .pooling_factor = 2.0};
  table.reuse_histogram[0] = 0.5;
  table.reuse_histogram[2] = 0.5;
  const double distinct = 8.0 / 2.25;
  const PieceTraffic traffic = piece_traffic(table, 8, kSgd, small_device());
  EXPECT_DOUBLE_EQ(traffic.cache_bytes, (8 - distinct) * 32 + 4 * 32);
}

TEST(AnalyticCompute, RowwiseAdagradReadsAndWritesItsState) {
  const double sgd = piece_traffic(table_with_bin(0), 8, kSgd, small_device()).memory_bytes;
  const double adagrad = piece_traffic(table_with_bin(0), 8, kAdagrad, small_device()).memory_bytes;
  EXPECT_DOUBLE_EQ(adagrad - sgd, 2 * 8 * 32);  // 4 bytes move as 32
}

TEST(AnalyticCompute, NarrowRowsMoveWholeSectors) {
  const double of_8 = piece_traffic(table_with_bin(0), 8, kSgd, small_device()).memory_bytes;
  const double of_4 = piece_traffic(table_with_bin(0), 4, kSgd, small_device()).memory_bytes;
  EXPECT_DOUBLE_EQ(of_8 - of_4, 64 + 64);  // only output and gradients are halved
}

TEST(AnalyticCompute, DistinctRowsAreAtMostTheTables) {
  TableStatistics table = table_with_bin(0);
  table.num_embeddings = 2;  // contradicts its histogram: 8 lookups cannot hit 8 rows once
  const PieceTraffic traffic = piece_traffic(table, 8, kSgd, small_device());
  const double sorting = 2 * 8 * 12;
  EXPECT_DOUBLE_EQ(traffic.memory_bytes, 64 + 128 + 128 + sorting + 8 * 32 + 2 * 2 * 32);
}

TEST(AnalyticCompute, CostIsOverheadPlusBytesOverEffectiveBandwidth) {
  const AnalyticComputeModel model(small_device(), 0.5);
  std::vector<double> piece(2);
  model.encode(table_with_bin(0), 8, kSgd, piece);
  EXPECT_EQ(piece[0], 1.0);
  const double expected = 0.25 + (kFixedBytes + 3 * 8 * 32 + 128 / 10.0) / 1e6 / 0.5;
  EXPECT_NEAR(piece[1], expected, kStateGrid);
  EXPECT_DOUBLE_EQ(model.cost(piece), 0.5 + piece[1]);
  EXPECT_EQ(model.cost(std::vector{0.0, 0.0}), 0.0);
  EXPECT_EQ(model.name(), "analytic-small");
  EXPECT_TRUE(model.is_estimate());
}

TEST(AnalyticCompute, CostsWithAPieceAreThoseOfTheSum) {
  const AnalyticComputeModel model(find_compute_hardware("h100-sxm"));
  std::vector<double> piece(2);
  model.encode(table_with_bin(3), 64, kAdagrad, piece);
  const std::vector<double> states{0.0, 0.0, 1.0, 0.5, 3.0, 2.25};
  std::vector<double> costs(3);
  model.costs_with(states, piece, costs);
  for (int i = 0; i < 3; ++i) {
    EXPECT_EQ(costs[i],
              model.cost(std::vector{states[2 * i] + piece[0], states[2 * i + 1] + piece[1]}));
  }
}

TEST(AnalyticCompute, AnUnknownDeviceIsRefusedWithTheKnownOnes) {
  try {
    (void)find_compute_hardware("gtx-480");
    FAIL();
  } catch (const InputError& error) {
    EXPECT_STREQ(error.what(),
                 "hardware: expected one of v100, a100-40gb, a100-80gb, h100-sxm, h200, mi300x, "
                 "cpu, got \"gtx-480\"");
  }
}

TEST(AnalyticCompute, RefusesImpossibleHardware) {
  ComputeHardware hardware = small_device();
  hardware.cache_gb_per_s = 0.0;
  try {
    const AnalyticComputeModel model(hardware);
    FAIL();
  } catch (const InputError& error) {
    EXPECT_STREQ(error.what(), "hardware small.cache_gb_per_s: expected a number above 0, got 0");
  }
  EXPECT_THROW(AnalyticComputeModel(small_device(), 1.5), InputError);
}

/// Two equal tables of 2^20 rows, 65,536 samples of two lookups, each row hit twice: 65,536 rows of
/// 128 bytes. For every row, memory moves 128 bytes of it, as many of output and of gradients, 256
/// to update it, 16 of indices and 3 * 48 of sorting; the cache 128 of it and 128 of gradients.
TEST(AnalyticCompute, ASetCostsWhatTheDataSheetsSay) {
  constexpr OperatorSettings kLarge{.batch_size = 65'536, .optimizer = Optimizer::sgd};
  TableStatistics table{.num_embeddings = 1 << 20, .pooling_factor = 2.0};
  table.reuse_histogram[1] = 1.0;
  const auto cost_of_two = [&](std::string_view hardware) {
    const AnalyticComputeModel model(find_compute_hardware(hardware));
    std::vector<double> state(2, 0.0);
    std::vector<double> piece(2);
    model.encode(table, 32, kLarge, piece);
    (void)model.add_and_cost(state, piece);
    return model.add_and_cost(state, piece);
  };
  // 52.4288 MB of memory and 16.777216 MB of the cache, at three quarters of the rates: 1,166.25
  // and 5,414.25 GB/s.
  EXPECT_NEAR(cost_of_two("a100-40gb"), 0.05 + 2 * (0.001 + 0.0449550 + 0.0030987), 1e-6);
  EXPECT_NEAR(cost_of_two("h200"), 0.05 + 2 * (0.001 + 0.0145636 + 0.0022065), 1e-6);
  EXPECT_NEAR(cost_of_two("mi300x"), 0.05 + 2 * (0.001 + 0.0131896 + 0.0013006), 1e-6);
  // 6 MB of cache keep 46,875 of the rows, and as much of the gradients: 2.388608 MB more of each
  // come from memory, and 12 MB from the cache.
  EXPECT_NEAR(cost_of_two("v100"), 0.05 + 2 * (0.001 + 0.0847496 + 0.0051069), 1e-6);
}

/// What was measured of a preset's memory, as docs/experiments/gpu_estimates.md cites it [1e9
/// bytes/s].
struct MeasuredMemory {
  std::string_view name;
  double memory_gb_per_s = 0.0;
};
constexpr std::array<MeasuredMemory, 6> kMeasured{{
    {.name = "v100", .memory_gb_per_s = 809.0},
    {.name = "a100-40gb", .memory_gb_per_s = 1382.0},
    {.name = "a100-80gb", .memory_gb_per_s = 1737.0},
    {.name = "h100-sxm", .memory_gb_per_s = 2536.0},
    {.name = "h200", .memory_gb_per_s = 3888.0},
    {.name = "mi300x", .memory_gb_per_s = 3997.0},
}};

TEST(AnalyticCompute, MemoryIsTakenToBeNoFasterThanItWasMeasured) {
  for (const MeasuredMemory& measured : kMeasured) {
    SCOPED_TRACE(measured.name);
    EXPECT_LE(kEffectiveMemoryShare * find_compute_hardware(measured.name).memory_gb_per_s,
              measured.memory_gb_per_s);
  }
}

TEST(AnalyticCompute, PresetsAreUsableAndNamedOnce) {
  std::set<std::string_view> names;
  for (const ComputeHardware& hardware : compute_hardware()) {
    EXPECT_NO_THROW(AnalyticComputeModel{hardware});
    EXPECT_FALSE(hardware.source.empty());
    EXPECT_TRUE(names.insert(hardware.name).second);
    EXPECT_EQ(&find_compute_hardware(hardware.name), &hardware);
    EXPECT_GT(hardware.cache_gb_per_s, hardware.memory_gb_per_s);
  }
}

RC_GTEST_PROP(AnalyticComputeProperty, WiderOrBusierPiecesCostMore, ()) {
  TableStatistics table;
  table.num_embeddings = *rc::gen::inRange<std::int64_t>(1, std::int64_t{1} << 30);
  table.pooling_factor = *rc::gen::inRange(1, 100);
  table.data_type = *rc::gen::element(DataType::fp32, DataType::fp16);
  const int bin = *rc::gen::inRange(0, kReuseBins);
  table.reuse_histogram[bin] += 0.5;
  table.reuse_histogram[*rc::gen::inRange(0, kReuseBins)] += 0.5;
  const std::int64_t columns = 4 * *rc::gen::inRange<std::int64_t>(1, 64);
  const OperatorSettings settings{.batch_size = *rc::gen::inRange<std::int64_t>(16, 1 << 17),
                                  .optimizer = Optimizer::sgd};
  const AnalyticComputeModel model(*rc::gen::elementOf(
      std::vector<ComputeHardware>(compute_hardware().begin(), compute_hardware().end())));

  std::vector<double> piece(2), wider(2), busier(2);
  model.encode(table, columns, settings, piece);
  model.encode(table, columns + 4, settings, wider);
  table.pooling_factor *= 2.0;
  model.encode(table, columns, settings, busier);
  RC_ASSERT(piece[1] < wider[1]);
  RC_ASSERT(piece[1] < busier[1]);
  RC_ASSERT(std::nearbyint(piece[1] / kStateGrid) == piece[1] / kStateGrid);
}

}  // namespace
}  // namespace neuroshard
