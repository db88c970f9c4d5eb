// Features of a piece: their names and values, that growing ones grow, and that no table makes them
// undefined.
#include "neuroshard/cost/compute/shard_features.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <cmath>
#include <limits>
#include <map>
#include <numbers>
#include <set>

#include "neuroshard/cost/compute/piece_work.h"
#include "tests/io/io_test_util.h"

namespace neuroshard {
namespace {

using Features = std::map<std::string, float>;

ReuseHistogram single_bin(int bin) {
  ReuseHistogram histogram{};
  histogram[bin] = 1.0;
  return histogram;
}

TableStatistics statistics(std::int64_t rows, double pooling, int bin = 0) {
  return {rows, pooling, DataType::fp32, single_bin(bin)};
}

/// A quarter of a millisecond for each piece, nothing else.
PhysicalEstimate quarter_estimate() {
  PhysicalEstimate estimate{.offset_ms = 1.0, .weights_ms = {}};
  estimate.weights_ms.assign(work_terms().size(), 0.0);
  estimate.weights_ms.front() = 0.25;
  return estimate;
}

std::vector<float> values_of(const TableStatistics& table, std::int64_t columns,
                             const OperatorSettings& settings = {4096, Optimizer::sgd},
                             FeatureSchema schema = FeatureSchema::work) {
  std::vector<float> values(feature_names(schema).size(), std::numeric_limits<float>::quiet_NaN());
  shard_features(schema, table, columns, settings, quarter_estimate(), values);
  return values;
}

Features features_of(const TableStatistics& table, std::int64_t columns,
                     const OperatorSettings& settings = {4096, Optimizer::sgd},
                     FeatureSchema schema = FeatureSchema::work) {
  const std::vector<float> values = values_of(table, columns, settings, schema);
  Features features;
  for (std::size_t i = 0; i < values.size(); ++i) features[feature_names(schema)[i]] = values[i];
  return features;
}

TEST(ShardFeatures, NamesAreDistinct) {
  EXPECT_EQ(feature_names(FeatureSchema::published).size(), 23u);  // the paper's 20, batch size,
                                                                   // optimizer, data type
  for (const FeatureSchema schema : {FeatureSchema::published, FeatureSchema::work}) {
    const std::vector<std::string>& names = feature_names(schema);
    EXPECT_EQ(std::set<std::string>(names.begin(), names.end()).size(), names.size());
  }
}

TEST(ShardFeatures, WhatDoesNotGrowWithTheWorkComesLast) {
  const std::vector<std::string>& names = feature_names(FeatureSchema::work);
  const std::size_t growing = num_growing_features(FeatureSchema::work);
  ASSERT_LT(growing, names.size());
  for (const char* name : {"rowwise_adagrad", "fp16", "log2_num_embeddings"}) {
    EXPECT_THAT(
        std::vector<std::string>(names.begin() + static_cast<std::ptrdiff_t>(growing), names.end()),
        testing::Contains(name));
  }
  EXPECT_EQ(num_growing_features(FeatureSchema::published), 0u);
}

TEST(ShardFeatures, TheEstimateIsAmongThem) {
  EXPECT_NEAR(log_estimate(values_of(statistics(2048, 1.0, 2), 16)), std::log(0.25), 1e-6);
}

TEST(ShardFeatures, SchemasHaveNamesThatReadBack) {
  for (const FeatureSchema schema : {FeatureSchema::published, FeatureSchema::work}) {
    EXPECT_EQ(feature_schema_from_string(to_string(schema), "p"), schema);
  }
  EXPECT_EQ(input_error([] { (void)feature_schema_from_string("shard/2", "m: schema"); }),
            "m: schema: expected \"shard/published/1\" or \"shard/work/1\", got \"shard/2\"");
}

TEST(ShardFeatures, WrittenOutForOnePiece) {
  // 2,048 rows of 16 columns, each of the batch's 4,096 lookups hits another four times over.
  const Features f = features_of(statistics(2048, 1.0, 2), 16);
  EXPECT_EQ(f.at("log2_num_embeddings"), 11.0F);
  EXPECT_EQ(f.at("log2_num_columns"), 4.0F);
  EXPECT_EQ(f.at("log2_batch_size"), 12.0F);
  EXPECT_NEAR(f.at("log2_lookups"), std::log2(4097.0), 1e-5);
  EXPECT_EQ(f.at("log2_row_bytes"), 6.0F);
  EXPECT_EQ(f.at("log2_row_lines"), 0.0F);
  EXPECT_EQ(f.at("log2_table_bytes"), 17.0F);
  EXPECT_EQ(f.at("log2_output_bytes"), 18.0F);
  // Bin 2 is rows hit 3 or 4 times: 3.36 on average.
  EXPECT_NEAR(f.at("log2_distinct_rows"), std::log2(1.0 + 4096 / 3.36), 1e-3);
  EXPECT_EQ(f.at("rowwise_adagrad"), 0.0F);
  EXPECT_EQ(f.at("fp16"), 0.0F);
}

TEST(ShardFeatures, ThePublishedOnesAreThePapers) {
  const Features f =
      features_of(statistics(2048, 1.0, 2), 16, {4096, Optimizer::sgd}, FeatureSchema::published);
  EXPECT_EQ(f.at("log2_num_embeddings"), 11.0F);
  EXPECT_EQ(f.at("log2_num_columns"), 4.0F);
  EXPECT_EQ(f.at("log2_pooling_factor"), 0.0F);
  EXPECT_EQ(f.at("log2_batch_size"), 12.0F);
  EXPECT_EQ(f.at("reuse_2"), 1.0F);
  EXPECT_EQ(f.at("reuse_0"), 0.0F);
}

TEST(ShardFeatures, TellOptimizerAndDataTypeApart) {
  TableStatistics table = statistics(1000, 2.0);
  EXPECT_EQ(features_of(table, 8, {64, Optimizer::rowwise_adagrad}).at("rowwise_adagrad"), 1.0F);
  table.data_type = DataType::fp16;
  const Features f = features_of(table, 8);
  EXPECT_EQ(f.at("fp16"), 1.0F);
  EXPECT_EQ(f.at("log2_row_bytes"), 4.0F);
}

/// However few lookups a sample has, a larger batch must not look like less of them.
TEST(ShardFeatures, TheRarestLookupsGrowWithTheBatchToo) {
  const TableStatistics table = statistics(1000, 1e-12);
  const std::vector<float> one = values_of(table, 16, {1, Optimizer::sgd});
  const std::vector<float> most = values_of(table, 16, {kMaxBatchSize, Optimizer::sgd});
  for (std::size_t i = 0; i < num_growing_features(FeatureSchema::work); ++i) {
    EXPECT_GE(most[i], one[i]) << feature_names(FeatureSchema::work)[i];
  }
}

TableStatistics arbitrary_table_statistics() {
  TableStatistics table;
  table.num_embeddings = *rc::gen::element<std::int64_t>(1, 2, 1000, 40'000'000, kMaxEmbeddings);
  table.pooling_factor = *rc::gen::element(1e-9, 1e-3, 0.5, 1.0, 30.0, kMaxPoolingFactor);
  table.data_type = *rc::gen::element(DataType::fp32, DataType::fp16);
  if (*rc::gen::arbitrary<bool>()) {
    table.reuse_histogram = single_bin(*rc::gen::inRange(0, kReuseBins));
  } else {
    for (double& share : table.reuse_histogram) share = 1.0 / kReuseBins;
  }
  return table;
}

OperatorSettings arbitrary_settings() {
  return {*rc::gen::element<std::int64_t>(1, 64, 65'536, kMaxBatchSize),
          *rc::gen::element(Optimizer::sgd, Optimizer::rowwise_adagrad)};
}

RC_GTEST_PROP(ShardFeaturesProperty, AreFiniteForTheMostExtremeTables, ()) {
  const TableStatistics table = arbitrary_table_statistics();
  const OperatorSettings settings = arbitrary_settings();
  const auto columns = *rc::gen::element<std::int64_t>(1, 4, 128, kMaxEmbeddingDim);
  for (const FeatureSchema schema : {FeatureSchema::published, FeatureSchema::work}) {
    for (const auto& [name, value] : features_of(table, columns, settings, schema)) {
      RC_ASSERT(std::isfinite(value));
      RC_ASSERT(std::abs(value) < 140.0F);  // logarithms of what fits in 64 bits squared
      if (name.starts_with("reuse")) RC_ASSERT(value >= 0.0F && value <= 1.0F);
    }
  }
}

}  // namespace
}  // namespace neuroshard
