// The coverage workload: valid tables over the whole space, every kind of use among them, and no
// two seeds alike.
#include "neuroshard/workload/generate/coverage_workload.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <set>
#include <string>

#include "neuroshard/workload/reuse/index_distribution.h"

namespace neuroshard {
namespace {

constexpr std::uint64_t kSeeds[] = {0, 1, 42, ~std::uint64_t{0}};

std::string kind_of_use(const Table& table) {
  if (table.reuse_histogram) return "one bin";
  if (!table.index_distribution) return "uniform";
  if (table.index_distribution->zipf_exponent > 0.0) return "power law";
  const auto& classes = table.index_distribution->access_classes;
  return classes.size() == 2 && classes[0].num_embeddings == 1 ? "one hot row" : "classes";
}

TEST(CoverageWorkload, HasValidTablesOfDifferentNames) {
  for (const std::uint64_t seed : kSeeds) {
    const Workload workload = coverage_workload(seed);
    EXPECT_EQ(workload.name, kCoverage);
    EXPECT_EQ(workload.tables.size(), 384u);
    std::set<std::string> names;
    for (const Table& table : workload.tables) {
      validate(table, table.name);
      EXPECT_TRUE(names.insert(table.name).second);
    }
  }
}

TEST(CoverageWorkload, ReachesTheEndsOfItsRanges) {
  for (const std::uint64_t seed : kSeeds) {
    SCOPED_TRACE(seed);
    std::vector<std::int64_t> rows;
    std::vector<double> pooling;
    for (const Table& table : coverage_workload(seed).tables) {
      rows.push_back(table.num_embeddings);
      pooling.push_back(table.pooling_factor);
    }
    std::sort(rows.begin(), rows.end());
    std::sort(pooling.begin(), pooling.end());
    EXPECT_LE(rows.front(), 2);
    EXPECT_GT(rows.back(), 500'000'000);
    EXPECT_LE(rows.back(), 1'000'000'000);
    EXPECT_GE(pooling.front(), 0.01);
    EXPECT_LT(pooling.front(), 0.012);
    EXPECT_GT(pooling.back(), 400.0);
    EXPECT_LE(pooling.back(), 500.0);
    // In the middle of the logarithmic scale.
    EXPECT_NEAR(std::log10(static_cast<double>(rows[192])), 4.5, 0.2);
    EXPECT_NEAR(std::log10(pooling[192]), std::log10(std::sqrt(5.0)), 0.1);
  }
}

TEST(CoverageWorkload, HasEveryKindOfUseAndType) {
  for (const std::uint64_t seed : kSeeds) {
    SCOPED_TRACE(seed);
    std::map<std::string, int> kinds;
    int fp16 = 0;
    std::map<bool, int> whole;
    for (const Table& table : coverage_workload(seed).tables) {
      ++kinds[kind_of_use(table)];
      fp16 += table.data_type == DataType::fp16 ? 1 : 0;
      if (table.pooling_factor >= 1.0) {
        ++whole[table.pooling_factor == std::round(table.pooling_factor)];
      }
    }
    EXPECT_NEAR(kinds["uniform"], 0.3 * 384, 30);
    EXPECT_NEAR(kinds["power law"], 0.3 * 384, 30);
    EXPECT_NEAR(kinds["classes"], 0.2 * 384, 30);
    EXPECT_NEAR(kinds["one hot row"], 0.1 * 384, 20);
    EXPECT_NEAR(kinds["one bin"], 0.1 * 384, 15);
    EXPECT_NEAR(fp16, 96, 10);
    EXPECT_NEAR(whole[true], whole[false], 60);
  }
}

TEST(CoverageWorkload, UseIsSpreadToo) {
  std::set<std::int64_t> bins;
  std::vector<double> exponents;
  std::vector<double> hot;
  for (const Table& table : coverage_workload(3).tables) {
    const std::string kind = kind_of_use(table);
    if (kind == "one bin") {
      bins.insert(std::find(table.reuse_histogram->begin(), table.reuse_histogram->end(), 1.0) -
                  table.reuse_histogram->begin());
    } else if (kind == "power law") {
      exponents.push_back(table.index_distribution->zipf_exponent);
    } else if (kind == "one hot row") {
      hot.push_back(table.index_distribution->access_classes[0].access_share);
    }
  }
  EXPECT_GT(bins.size(), 5u);
  const auto [least, most] = std::minmax_element(exponents.begin(), exponents.end());
  EXPECT_GE(*least, 0.3);
  EXPECT_LT(*least, 0.4);
  EXPECT_GT(*most, 1.5);
  EXPECT_LE(*most, 1.6);
  const auto [coolest, hottest] = std::minmax_element(hot.begin(), hot.end());
  EXPECT_LT(*coolest, 0.2);
  EXPECT_GT(*hottest, 0.75);
}

/// Rows hit 2^k times need that many lookups, also with the smallest batch.
TEST(CoverageWorkload, TablesOfOneBinMakeSenseAtTheSmallestBatch) {
  for (const std::uint64_t seed : kSeeds) {
    for (const Table& table : coverage_workload(seed).tables) {
      if (!table.reuse_histogram) continue;
      const auto bin =
          std::find(table.reuse_histogram->begin(), table.reuse_histogram->end(), 1.0) -
          table.reuse_histogram->begin();
      EXPECT_LE(std::exp2(bin - 1), std::max(64.0 * table.pooling_factor, 1.0)) << table.name;
    }
  }
}

TEST(CoverageWorkload, IsDecidedByTheSeed) {
  const Workload first = coverage_workload(3);
  const Workload same = coverage_workload(3);
  const Workload other = coverage_workload(4);
  int equal_to_other = 0;
  for (std::size_t t = 0; t < first.tables.size(); ++t) {
    EXPECT_EQ(first.tables[t].num_embeddings, same.tables[t].num_embeddings);
    EXPECT_EQ(first.tables[t].pooling_factor, same.tables[t].pooling_factor);
    EXPECT_EQ(reuse_histogram(first.tables[t], 64), reuse_histogram(same.tables[t], 64));
    equal_to_other += first.tables[t].pooling_factor == other.tables[t].pooling_factor ? 1 : 0;
  }
  EXPECT_LT(equal_to_other, 60);  // whole numbers may repeat
}

}  // namespace
}  // namespace neuroshard
