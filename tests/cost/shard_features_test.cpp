// Features of a piece: their names, their monotonicity, and that no table makes them undefined.
#include "neuroshard/cost/compute/shard_features.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <cmath>
#include <limits>
#include <map>
#include <set>

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

Features features_of(const TableStatistics& table, std::int64_t columns,
                     const OperatorSettings& settings = {4096, Optimizer::sgd},
                     FeatureSchema schema = FeatureSchema::extended) {
  const std::vector<std::string>& names = feature_names(schema);
  std::vector<float> values(names.size(), std::numeric_limits<float>::quiet_NaN());
  shard_features(schema, table, columns, settings, values);
  Features features;
  for (std::size_t i = 0; i < names.size(); ++i) features[names[i]] = values[i];
  return features;
}

TEST(ShardFeatures, NamesAreDistinctAndBegunByThePublishedOnes) {
  const std::vector<std::string>& published = feature_names(FeatureSchema::published);
  const std::vector<std::string>& extended = feature_names(FeatureSchema::extended);
  EXPECT_EQ(published.size(), 23u);  // the paper's 20, batch size, optimizer, data type
  EXPECT_EQ(extended.size(), 38u);
  EXPECT_TRUE(std::equal(published.begin(), published.end(), extended.begin()));
  EXPECT_EQ(std::set<std::string>(extended.begin(), extended.end()).size(), extended.size());
}

TEST(ShardFeatures, SchemasHaveNamesThatReadBack) {
  for (const FeatureSchema schema : {FeatureSchema::published, FeatureSchema::extended}) {
    EXPECT_EQ(feature_schema_from_string(to_string(schema), "p"), schema);
  }
  EXPECT_EQ(input_error([] { (void)feature_schema_from_string("shard/2", "m: schema"); }),
            "m: schema: expected \"shard/published/1\" or \"shard/extended/2\", got \"shard/2\"");
}

TEST(ShardFeatures, WrittenOutForOnePiece) {
  // 2,048 rows of 16 columns, each of the batch's 4,096 lookups hits another four times over.
  const Features f = features_of(statistics(2048, 1.0, 2), 16);
  EXPECT_EQ(f.at("log2_num_embeddings"), 11.0F);
  EXPECT_EQ(f.at("log2_num_columns"), 4.0F);
  EXPECT_EQ(f.at("log2_pooling_factor"), 0.0F);
  EXPECT_EQ(f.at("log2_batch_size"), 12.0F);
  EXPECT_EQ(f.at("rowwise_adagrad"), 0.0F);
  EXPECT_EQ(f.at("fp16"), 0.0F);
  EXPECT_EQ(f.at("reuse_2"), 1.0F);
  EXPECT_EQ(f.at("reuse_0"), 0.0F);
  EXPECT_EQ(f.at("log2_lookups"), 12.0F);
  EXPECT_EQ(f.at("log2_row_bytes"), 6.0F);
  EXPECT_EQ(f.at("log2_piece_bytes"), 17.0F);
  EXPECT_EQ(f.at("log2_looked_up_bytes"), 18.0F);
  EXPECT_EQ(f.at("log2_output_bytes"), 18.0F);
  // Bin 2 is rows hit 3 or 4 times: 3.5 on average.
  EXPECT_NEAR(f.at("log2_hits_per_row"), std::log2(3.5), 1e-4);
  EXPECT_NEAR(f.at("log2_distinct_rows"), std::log2(4096 / 3.5), 1e-4);
  EXPECT_EQ(f.at("cached_32MiB"), 1.0F);  // 1,170 rows of 64 bytes
}

TEST(ShardFeatures, TellOptimizerAndDataTypeApart) {
  TableStatistics table = statistics(1000, 2.0);
  EXPECT_EQ(features_of(table, 8, {64, Optimizer::rowwise_adagrad}).at("rowwise_adagrad"), 1.0F);
  table.data_type = DataType::fp16;
  const Features f = features_of(table, 8);
  EXPECT_EQ(f.at("fp16"), 1.0F);
  EXPECT_EQ(f.at("log2_row_bytes"), 4.0F);
}

TEST(ShardFeatures, CountCacheLinesThatRowsStraddle) {
  const auto lines = [](std::int64_t columns) {
    return std::exp2(features_of(statistics(1000, 2.0), columns).at("log2_row_lines"));
  };
  EXPECT_NEAR(lines(4), 1.0, 1e-5);
  EXPECT_NEAR(lines(10), 1.5, 1e-5);  // half of the rows of 40 bytes end in the next line
  EXPECT_NEAR(lines(12), 1.5, 1e-5);
  EXPECT_NEAR(lines(16), 1.0, 1e-5);
  EXPECT_NEAR(lines(20), 2.0, 1e-5);
  EXPECT_NEAR(lines(28), 2.5, 1e-5);
  EXPECT_NEAR(lines(40), 3.0, 1e-5);
  EXPECT_NEAR(lines(128), 8.0, 1e-5);
  const Features f = features_of(statistics(1000, 2.0), 40);
  EXPECT_NEAR(f.at("log2_output_vectors"), std::log2(3.0), 1e-5);
  EXPECT_NEAR(f.at("log2_looked_up_lines"), f.at("log2_lookups") + std::log2(3.0), 1e-5);
}

TEST(ShardFeatures, DistinctRowsAreNoMoreThanTheTableHas) {
  const Features f = features_of(statistics(8, 100.0, 0), 4);
  EXPECT_EQ(f.at("log2_distinct_rows"), 3.0F);
}

TableStatistics arbitrary_statistics() {
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
  const TableStatistics table = arbitrary_statistics();
  const OperatorSettings settings = arbitrary_settings();
  const auto columns = *rc::gen::element<std::int64_t>(1, 4, 128, kMaxEmbeddingDim);
  for (const FeatureSchema schema : {FeatureSchema::published, FeatureSchema::extended}) {
    for (const auto& [name, value] : features_of(table, columns, settings, schema)) {
      RC_ASSERT(std::isfinite(value));
      RC_ASSERT(std::abs(value) < 130.0F);  // logarithms of what fits in 64 bits squared
      if (name.starts_with("cached") || name.starts_with("reuse")) {
        RC_ASSERT(value >= 0.0F && value <= 1.0F);
      }
    }
  }
}

void expect_none_falls(const Features& less, const Features& more) {
  for (const auto& [name, value] : less) {
    // A larger table or batch can only be cached worse and be reused differently.
    if (name.starts_with("cached") || name.starts_with("reuse")) continue;
    RC_ASSERT(more.at(name) >= value);
  }
}

RC_GTEST_PROP(ShardFeaturesProperty, WorkGrowsWithColumnsAndLookups, ()) {
  const TableStatistics table = arbitrary_statistics();
  const OperatorSettings settings = arbitrary_settings();
  const auto columns = *rc::gen::element<std::int64_t>(4, 8, 64);
  const Features base = features_of(table, columns, settings);

  const Features wider = features_of(table, 2 * columns, settings);
  expect_none_falls(base, wider);
  for (const char* cache : {"cached_256KiB", "cached_2MiB", "cached_32MiB"}) {
    RC_ASSERT(wider.at(cache) <= base.at(cache));
  }
  TableStatistics busier = table;
  busier.pooling_factor *= 2.0;
  expect_none_falls(base, features_of(busier, columns, settings));
}

RC_GTEST_PROP(ShardFeaturesProperty, LargerCachesHoldMore, ()) {
  const Features f = features_of(arbitrary_statistics(), 64, arbitrary_settings());
  RC_ASSERT(f.at("cached_256KiB") <= f.at("cached_2MiB"));
  RC_ASSERT(f.at("cached_2MiB") <= f.at("cached_32MiB"));
}

}  // namespace
}  // namespace neuroshard
