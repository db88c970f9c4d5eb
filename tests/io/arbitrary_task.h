// Random valid tasks for properties, and bitwise equality of tasks and plans.
#pragma once

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <rapidcheck.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <string>
#include <vector>

#include "neuroshard/core/sharding_plan.h"

namespace neuroshard {

/// A double in (0, 1] with an arbitrary significand, so that it needs all its digits.
inline double arbitrary_share() {
  const auto bits = *rc::gen::inRange<std::uint64_t>(0, std::uint64_t{1} << 53);
  return static_cast<double>(bits + 1) * 0x1p-53;
}

inline ReuseHistogram arbitrary_histogram() {
  ReuseHistogram histogram{};
  double sum = 0.0;
  for (double& share : histogram) sum += share = arbitrary_share();
  for (double& share : histogram) share /= sum;
  return histogram;
}

inline IndexDistribution arbitrary_distribution(std::int64_t num_embeddings) {
  IndexDistribution distribution;
  if (*rc::gen::arbitrary<bool>() || num_embeddings < 2) {
    distribution.zipf_exponent = 10.0 * arbitrary_share();
    return distribution;
  }
  const double share = arbitrary_share();
  distribution.access_classes = {{1, share}, {num_embeddings - 1, 1.0 - share}};
  return distribution;
}

inline Cuts arbitrary_cuts() {
  return {*rc::gen::arbitrary<bool>(), *rc::gen::arbitrary<bool>(), *rc::gen::arbitrary<bool>()};
}

/// Points that rise to [1, 1], each share needing all its digits.
inline std::vector<RowAccessPoint> arbitrary_row_access() {
  std::vector<double> rows{1.0};
  std::vector<double> accesses{1.0};
  for (int i = *rc::gen::inRange(0, 5); i > 0; --i) {
    rows.push_back(arbitrary_share());
    accesses.push_back(arbitrary_share());
  }
  std::sort(rows.begin(), rows.end());
  std::sort(accesses.begin(), accesses.end());
  std::vector<RowAccessPoint> points;
  for (std::size_t i = 0; i < rows.size(); ++i) {
    const bool is_last_of_equals = i + 1 == rows.size() || rows[i] < rows[i + 1];
    if (is_last_of_equals) points.push_back({rows[i], accesses[i]});
  }
  return points;
}

inline Table arbitrary_table(std::string name) {
  Table table;
  table.name = std::move(name);
  table.num_embeddings = *rc::gen::inRange<std::int64_t>(1, kMaxEmbeddings + 1);
  table.embedding_dim = *rc::gen::inRange<std::int64_t>(1, kMaxEmbeddingDim + 1);
  table.pooling_factor = std::ldexp(arbitrary_share(), *rc::gen::inRange(-20, 20));
  table.data_type = *rc::gen::element(DataType::fp32, DataType::fp16);
  switch (*rc::gen::inRange(0, 3)) {
    case 0:
      table.reuse_histogram = arbitrary_histogram();
      break;
    case 1:
      table.index_distribution = arbitrary_distribution(table.num_embeddings);
      break;
    default:
      break;
  }
  switch (*rc::gen::inRange(0, 3)) {
    case 0:
      table.row_order = RowOrder::by_frequency;
      break;
    case 1:
      table.row_access = arbitrary_row_access();
      break;
    default:
      break;
  }
  if (*rc::gen::arbitrary<bool>()) {
    table.min_shard_columns = *rc::gen::inRange<std::int64_t>(0, kMaxEmbeddingDim + 1);
    table.min_shard_rows = *rc::gen::inRange<std::int64_t>(0, kMaxEmbeddings + 1);
    table.allow = arbitrary_cuts();
    table.extra_bytes_per_shard = *rc::gen::inRange<std::int64_t>(0, kMaxExtraBytes + 1);
    table.extra_bytes_per_column = *rc::gen::inRange<std::int64_t>(0, kMaxExtraBytes + 1);
    table.num_features = *rc::gen::inRange<std::int64_t>(1, kMaxFeatures + 1);
  }
  return table;
}

inline Topology arbitrary_topology() {
  Topology topology;
  topology.local_world_size = *rc::gen::inRange(1, 9);
  topology.world_size = topology.local_world_size * *rc::gen::inRange(1, 5);
  const auto capacity = rc::gen::inRange<std::int64_t>(1, (std::int64_t{1} << 60) + 1);
  topology.memory_bytes.assign(topology.world_size, *capacity);
  if (*rc::gen::arbitrary<bool>()) topology.memory_bytes.back() = *capacity;
  topology.interconnect = *rc::gen::element<std::string>("", "nvlink", "ethernet \"100\"");
  return topology;
}

/// Some to the last device and, in any order, some before it; some to the table before.
inline void pin_tables(Task& task) {
  for (std::size_t t = 0; t < task.tables.size(); ++t) {
    Table& table = task.tables[t];
    const int last = task.topology.world_size - 1;
    if (*rc::gen::arbitrary<bool>()) table.devices.push_back(last);
    for (int d = last - 1; d >= 0 && !table.devices.empty(); d -= 2) table.devices.push_back(d);
    if (t > 0 && *rc::gen::arbitrary<bool>()) table.same_device_as = task.tables[t - 1].name;
  }
}

inline Task arbitrary_task() {
  Task task;
  task.batch_size = *rc::gen::inRange<std::int64_t>(1, kMaxBatchSize + 1);
  task.optimizer = *rc::gen::element(Optimizer::sgd, Optimizer::rowwise_adagrad);
  const int num_tables = *rc::gen::inRange(1, 6);
  for (int i = 0; i < num_tables; ++i) {
    // Names are any text: quotes, control characters, any script.
    const auto suffix = *rc::gen::element<std::string>("", "\"", "\\", "\n\x01", "é漢🙂", " ");
    task.tables.push_back(arbitrary_table(fmt::format("t{}{}", i, suffix)));
  }
  task.topology = arbitrary_topology();
  if (*rc::gen::arbitrary<bool>()) task.allow = arbitrary_cuts();
  if (*rc::gen::arbitrary<bool>()) pin_tables(task);
  return task;
}

inline void expect_same_bits(double a, double b) {
  EXPECT_EQ(std::bit_cast<std::uint64_t>(a), std::bit_cast<std::uint64_t>(b)) << a << " " << b;
}

inline void expect_same(const IndexDistribution& a, const IndexDistribution& b) {
  expect_same_bits(a.zipf_exponent, b.zipf_exponent);
  ASSERT_EQ(a.access_classes.size(), b.access_classes.size());
  for (std::size_t i = 0; i < a.access_classes.size(); ++i) {
    EXPECT_EQ(a.access_classes[i].num_embeddings, b.access_classes[i].num_embeddings);
    expect_same_bits(a.access_classes[i].access_share, b.access_classes[i].access_share);
  }
}

inline void expect_same_bits(const ReuseHistogram& a, const ReuseHistogram& b) {
  for (std::size_t bin = 0; bin < a.size(); ++bin) expect_same_bits(a[bin], b[bin]);
}

inline void expect_same(const Table& a, const Table& b) {
  EXPECT_EQ(a.name, b.name);
  EXPECT_EQ(a.num_embeddings, b.num_embeddings);
  EXPECT_EQ(a.embedding_dim, b.embedding_dim);
  expect_same_bits(a.pooling_factor, b.pooling_factor);
  EXPECT_EQ(a.data_type, b.data_type);
  ASSERT_EQ(a.reuse_histogram.has_value(), b.reuse_histogram.has_value());
  if (a.reuse_histogram) expect_same_bits(*a.reuse_histogram, *b.reuse_histogram);
  ASSERT_EQ(a.index_distribution.has_value(), b.index_distribution.has_value());
  if (a.index_distribution) expect_same(*a.index_distribution, *b.index_distribution);
  EXPECT_EQ(a.row_order, b.row_order);
  ASSERT_EQ(a.row_access.size(), b.row_access.size());
  for (std::size_t i = 0; i < a.row_access.size(); ++i) {
    expect_same_bits(a.row_access[i].row_share, b.row_access[i].row_share);
    expect_same_bits(a.row_access[i].access_share, b.row_access[i].access_share);
  }
  EXPECT_EQ(a.min_shard_columns, b.min_shard_columns);
  EXPECT_EQ(a.min_shard_rows, b.min_shard_rows);
  EXPECT_EQ(a.allow, b.allow);
  EXPECT_EQ(a.extra_bytes_per_shard, b.extra_bytes_per_shard);
  EXPECT_EQ(a.extra_bytes_per_column, b.extra_bytes_per_column);
  EXPECT_EQ(a.num_features, b.num_features);
  EXPECT_EQ(a.devices, b.devices);
  EXPECT_EQ(a.same_device_as, b.same_device_as);
}

inline void expect_same(const Task& a, const Task& b) {
  EXPECT_EQ(a.batch_size, b.batch_size);
  EXPECT_EQ(a.optimizer, b.optimizer);
  ASSERT_EQ(a.tables.size(), b.tables.size());
  for (std::size_t i = 0; i < a.tables.size(); ++i) expect_same(a.tables[i], b.tables[i]);
  EXPECT_EQ(a.allow, b.allow);
  EXPECT_EQ(a.topology.world_size, b.topology.world_size);
  EXPECT_EQ(a.topology.local_world_size, b.topology.local_world_size);
  EXPECT_EQ(a.topology.memory_bytes, b.topology.memory_bytes);
  EXPECT_EQ(a.topology.interconnect, b.topology.interconnect);
}

inline void expect_same(const PlanCost& a, const PlanCost& b) {
  expect_same_bits(a.cost_ms, b.cost_ms);
  ASSERT_EQ(a.devices.size(), b.devices.size());
  for (std::size_t i = 0; i < a.devices.size(); ++i) {
    expect_same_bits(a.devices[i].compute_ms, b.devices[i].compute_ms);
    expect_same_bits(a.devices[i].all_reduce_ms, b.devices[i].all_reduce_ms);
    expect_same_bits(a.devices[i].forward_comm_ms, b.devices[i].forward_comm_ms);
    expect_same_bits(a.devices[i].backward_comm_ms, b.devices[i].backward_comm_ms);
    EXPECT_EQ(a.devices[i].memory_bytes, b.devices[i].memory_bytes);
    EXPECT_EQ(a.devices[i].num_columns, b.devices[i].num_columns);
  }
}

}  // namespace neuroshard
