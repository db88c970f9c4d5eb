// The kernels on a GPU against the double-precision reference and the CPU's operator; skipped where
// there is none.
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "neuroshard/collect/compute/cuda/measuring_kernels.h"
#include "neuroshard/workload/reuse/index_batch.h"
#include "tests/cuda/adversarial_fixture.h"
#include "tests/cuda/device_operator.h"

namespace neuroshard::cuda {
namespace {

using namespace testing_operator;

void expect_close(double actual, double expected, double tolerance, double relative) {
  ASSERT_NEAR(actual, expected, tolerance + relative * std::abs(expected));
}

void expect_forward(Fixture& fixture, double tolerance = 1e-5) {
  const std::vector<double> expected = reference_forward(fixture);
  const std::vector<float> output = DeviceFixture(fixture).forward();
  for (std::size_t i = 0; i < output.size(); ++i) {
    ASSERT_NO_FATAL_FAILURE(expect_close(output[i], expected[i], tolerance, 2e-5)) << i;
  }
}

void expect_backward(Fixture& fixture, Optimizer optimizer, Random& random,
                     double fp32_tolerance = 2e-5) {
  const OperatorOptions options{optimizer, 0.1F, 1e-8F};
  const std::vector<float> gradient = random_gradient(fixture, random);
  const auto expected = reference_backward(fixture, gradient, options);
  DeviceFixture(fixture).backward(gradient, options);
  for (std::size_t t = 0; t < expected.size(); ++t) {
    const bool half = fixture.types[t] == DataType::fp16;
    for (std::size_t i = 0; i < expected[t].size(); ++i) {
      ASSERT_NO_FATAL_FAILURE(expect_close(fixture.weight(t, i), expected[t][i],
                                           half ? 2e-3 : fp32_tolerance, half ? 5e-4 : 2e-5))
          << "table " << t << ": " << i;
    }
  }
}

TEST(DeviceOperator, RandomTablesMatchTheReference) {
  SKIP_WITHOUT_DEVICE();
  for (std::uint64_t seed = 0; seed < 60; ++seed) {
    SCOPED_TRACE(seed);
    Random random(seed);
    Fixture fixture = random_fixture(random);
    ASSERT_NO_FATAL_FAILURE(expect_forward(fixture));
    for (const Optimizer optimizer : {Optimizer::sgd, Optimizer::rowwise_adagrad}) {
      ASSERT_NO_FATAL_FAILURE(expect_backward(fixture, optimizer, random));
    }
  }
}

TEST(DeviceOperator, AdversarialBatchesMatchTheReference) {
  SKIP_WITHOUT_DEVICE();
  for (const DataType type : {DataType::fp32, DataType::fp16}) {
    for (const int columns : {4, 5, 8, 12, 40, 64, 128, 132, 256, 260, 512, 1024}) {
      SCOPED_TRACE(columns);
      Random random(5);
      Fixture fixture = adversarial_fixture(type, columns, random);
      ASSERT_NO_FATAL_FAILURE(expect_forward(fixture, 2e-3));
      for (const Optimizer optimizer : {Optimizer::sgd, Optimizer::rowwise_adagrad}) {
        ASSERT_NO_FATAL_FAILURE(expect_backward(fixture, optimizer, random, 2e-3));
      }
    }
  }
}

/// Tables of the real size's order: all multiprocessors at work, all levels of the reduction.
Fixture large_fixture() {
  Random random(3);
  Fixture fixture;
  fixture.batch_size = 16'384;
  for (const std::int64_t columns : {4, 20, 64, 128}) {
    for (const DataType type : {DataType::fp32, DataType::fp16}) {
      fixture.add_table(20'000, columns, type, random);
      fixture.add_batch(30, random);
    }
  }
  return fixture;
}

TEST(DeviceOperator, LargeBatchesMatchTheCpusOperatorAndRepeatBitForBit) {
  SKIP_WITHOUT_DEVICE();
  Fixture first = large_fixture();
  Fixture second = large_fixture();
  Fixture on_cpu = large_fixture();
  Random random(4);
  const std::vector<float> gradient = random_gradient(first, random);
  // Half of the lookups hit three rows, some 40,000 times each: fp32 sums differ by their order.
  const OperatorOptions options{Optimizer::rowwise_adagrad, 0.01F, 1e-8F};
  std::vector<float> expected(gradient.size());
  ThreadPool pool;
  EmbeddingOperator reference(on_cpu.tables(), options, pool);
  reference.forward(on_cpu.batches, on_cpu.batch_size, expected);
  reference.backward(on_cpu.batches, on_cpu.batch_size, gradient);
  const std::vector<float> output = DeviceFixture(first).forward();
  for (std::size_t i = 0; i < output.size(); ++i) {
    ASSERT_NO_FATAL_FAILURE(expect_close(output[i], expected[i], 1e-5, 2e-5)) << i;
  }
  EXPECT_EQ(output, DeviceFixture(second).forward());
  DeviceFixture(first).backward(gradient, options);
  DeviceFixture(second).backward(gradient, options);
  for (std::size_t t = 0; t < first.rows.size(); ++t) {
    EXPECT_TRUE(first.weights[t] == second.weights[t]) << t;
    EXPECT_TRUE(first.states[t] == second.states[t]) << t;
    for (std::size_t i = 0; i < first.weights[t].size(); ++i) {
      ASSERT_NO_FATAL_FAILURE(expect_close(first.weight(t, i), on_cpu.weight(t, i), 2e-3, 1e-3))
          << "table " << t << ": " << i;
    }
  }
}

TEST(DeviceOperator, TablesBeyond32BitsOfElements) {
  SKIP_WITHOUT_DEVICE();
  constexpr std::int64_t kRows = (std::int64_t{1} << 25) + 3;
  constexpr std::int64_t kColumns = 128;  // 2^32 elements and more
  constexpr std::int64_t kBatch = 64;
  DeviceBuffer weights;
  try {
    weights.allocate(static_cast<std::size_t>(kRows * kColumns) * sizeof(Half));
  } catch (const OutOfDeviceMemory& error) {
    GTEST_SKIP() << error.what();
  }
  const Stream stream;
  launch_fill(weights.as<>(), weights.size(), true, stream.get());
  stream.synchronize();  // reading rows does not wait for this stream
  // Rows up to the very last one; what they hold is read back.
  std::vector<std::int64_t> indices;
  std::vector<std::int64_t> offsets{0};
  for (std::int64_t bag = 0; bag < kBatch; ++bag) {
    indices.push_back(kRows - 1 - bag * (kRows / kBatch));
    offsets.push_back(bag + 1);
  }
  const auto read_row = [&](std::int64_t row) {
    std::vector<Eigen::half> values(kColumns);
    check(cudaMemcpy(values.data(), weights.as<Half>() + row * kColumns, kColumns * sizeof(Half),
                     cudaMemcpyDeviceToHost),
          "test");
    return values;
  };
  std::vector<std::vector<Eigen::half>> before;
  for (const std::int64_t row : indices) before.push_back(read_row(row));
  const DeviceBuffer device_indices = to_device(indices);
  const DeviceBuffer device_offsets = to_device(offsets);
  const std::vector<OperatorTable> tables{
      {weights.as<>(), nullptr, kRows, kColumns, DataType::fp16}};
  const std::vector<DeviceLookups> lookups{
      {device_indices.as<std::int64_t>(), device_offsets.as<std::int64_t>(), kBatch, 1}};
  CudaWorkspace workspace;
  CudaEmbeddingOperator embedding(tables, lookups, kBatch, {Optimizer::sgd, 1.0F, 0.0F},
                                  device_info(0).resident_threads, workspace, stream);
  std::vector<float> output(kBatch * kColumns);
  DeviceBuffer activations = to_device(output);
  poison(activations);
  embedding.forward(activations.as<float>());
  stream.synchronize();
  from_device(activations, output);
  for (std::int64_t bag = 0; bag < kBatch; ++bag) {
    for (std::int64_t c = 0; c < kColumns; ++c) {
      ASSERT_EQ(output[bag * kColumns + c], static_cast<float>(before[bag][c])) << bag;
    }
  }
  // The gradient is the output, the rate 1: every row that was looked up becomes 0.
  embedding.backward(activations.as<float>());
  stream.synchronize();
  for (const std::int64_t row : indices) {
    for (const Eigen::half value : read_row(row)) ASSERT_EQ(static_cast<float>(value), 0.0F) << row;
  }
}

TEST(DeviceBatches, AreTheOnesThatTheHostDraws) {
  SKIP_WITHOUT_DEVICE();
  constexpr std::int64_t kBatch = 4096;
  Table table{"t", 1'000'000, 8, 3.4, DataType::fp32, std::nullopt, std::nullopt};
  table.index_distribution = IndexDistribution{1.1, {}};
  const IndexSampler sampler(table, kBatch);
  RowDistribution rows = sampler.rows();
  const BagLengths lengths = bag_lengths(table.pooling_factor, 0x123456789abcdefULL);
  const std::int64_t count = lengths.offset(kBatch);
  DrawPlan plan{rows, lengths, 42, table.num_embeddings, count, 0, nullptr, nullptr};
  std::vector<std::int64_t> expected;
  for (std::int64_t i = 0; i < count; ++i) expected.push_back(draw_lookup(plan, i));
  const DeviceBuffer pieces =
      to_device(std::vector<RankPiece>(rows.pieces, rows.pieces + rows.num_pieces));
  const DeviceBuffer slots =
      to_device(std::vector<AliasTable::Slot>(rows.slots, rows.slots + rows.num_pieces));
  plan.rows.pieces = pieces.as<RankPiece>();
  plan.rows.slots = slots.as<AliasTable::Slot>();
  std::vector<std::int64_t> indices(count, -1);
  std::vector<std::int64_t> offsets(kBatch + 1, -1);
  const DeviceBuffer device_indices = to_device(indices);
  const DeviceBuffer device_offsets = to_device(offsets);
  plan.indices = device_indices.as<std::int64_t>();
  plan.offsets = device_offsets.as<std::int64_t>();
  const DeviceBuffer plans = to_device(std::vector<DrawPlan>{plan});
  const Stream stream;
  launch_draw(plans.as<DrawPlan>(), 1, (count + kDrawsPerBlock - 1) / kDrawsPerBlock, kBatch,
              stream.get());
  stream.synchronize();
  from_device(device_indices, indices);
  from_device(device_offsets, offsets);
  EXPECT_EQ(indices, expected);
  for (std::int64_t bag = 0; bag <= kBatch; ++bag) ASSERT_EQ(offsets[bag], lengths.offset(bag));
}

}  // namespace
}  // namespace neuroshard::cuda
