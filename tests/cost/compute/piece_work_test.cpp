// The work of a piece: written out by hand, never less for more columns or lookups, and finite for
// every table of the task format.
#include "neuroshard/cost/compute/piece_work.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <set>
#include <string>
#include <string_view>

#include "tests/cost/arbitrary_network.h"
#include "tests/cost/frontier_tables.h"

namespace neuroshard {
namespace {

using testing_frontier::describe;
using testing_frontier::LargestFall;
using testing_frontier::random_table;
using testing_frontier::RowUse;
using testing_frontier::spread;
using testing_frontier::spread_integer;
using testing_frontier::statistics_of;

/// 512 distinct rows, half of them hit 5 to 8 times by a batch of 4,096 samples, half 17 to 32.
TableStatistics small_table() {
  TableStatistics table{.num_embeddings = 1000, .pooling_factor = 2.0};
  table.reuse_histogram[3] = 0.5;
  table.reuse_histogram[5] = 0.5;
  table.distinct_rows = 512.0;
  table.hottest_row_share = 1.0 / 256.0;
  return table;
}

constexpr OperatorSettings kSmallBatch{4096, Optimizer::sgd};

std::map<std::string, double, std::less<>> terms_of(const TableStatistics& table,
                                                    std::int64_t columns,
                                                    const OperatorSettings& settings) {
  std::vector<double> values(work_terms().size(), std::nan(""));
  write_work_terms(piece_work(table, columns, settings), table, settings, values);
  std::map<std::string, double, std::less<>> terms;
  for (std::size_t i = 0; i < values.size(); ++i) {
    terms.emplace(std::string(work_terms()[i]), values[i]);
  }
  return terms;
}

TEST(PieceWork, WrittenOutForOnePiece) {
  const PieceWork work = piece_work(small_table(), 20, kSmallBatch);
  EXPECT_EQ(work.batch_size, 4096.0);
  EXPECT_EQ(work.lookups, 8192.0);
  EXPECT_EQ(work.distinct_rows, 512.0);
  EXPECT_EQ(work.hottest_row_hits, 32.0);
  EXPECT_EQ(work.rows_hit[0], 512.0);
  EXPECT_EQ(work.rows_hit[3], 512.0);  // hit more than 4 times
  EXPECT_EQ(work.rows_hit[4], 256.0);  // more than 8
  EXPECT_EQ(work.rows_hit[5], 256.0);
  EXPECT_EQ(work.rows_hit[6], 0.0);
  EXPECT_EQ(work.row_bytes, 80.0);
  EXPECT_EQ(work.row_lines, 2.0);          // rows begin at a multiple of 16 bytes in a line
  EXPECT_EQ(work.vector_operations, 2.0);  // 16 columns and 4
  EXPECT_EQ(work.output_bytes, 4096.0 * 80.0);
  EXPECT_EQ(work.table_bytes, 80'000.0);
  // 256 rows of two lines fill 32 KiB. Of the other 256 each is hit at least 4 times, the fifth to
  // eighth hit is counted with the mean of those hit more than 4 and more than 8 times.
  EXPECT_EQ(work.uncached_lookups[0], 256.0 * (1.0 + 1.0 + 2.0) + 4.0 * 128.0);
  EXPECT_EQ(work.uncached_lookups[1], 0.0);
  // A tenth of the gradient fits into 32 KiB, eight tenths into 256 KiB.
  EXPECT_DOUBLE_EQ(work.uncached_gradient_lines[0], 0.9 * 8192.0 * 2.0);
  EXPECT_NEAR(work.uncached_gradient_lines[1], 0.2 * 8192.0 * 2.0, 1e-9);
  EXPECT_EQ(work.uncached_gradient_lines[2], 0.0);
}

TEST(PieceWork, WithoutKnownRowsTheHistogramTells) {
  TableStatistics table{.num_embeddings = 2048, .pooling_factor = 1.0};
  table.reuse_histogram[2] = 1.0;  // rows hit 3 or 4 times: 3.36 on average
  const PieceWork work = piece_work(table, 16, kSmallBatch);
  EXPECT_NEAR(work.distinct_rows, 4096.0 / 3.36, 1.0);
  EXPECT_NEAR(work.hottest_row_hits, 3.36, 0.01);
  table.num_embeddings = 8;
  EXPECT_EQ(piece_work(table, 16, kSmallBatch).distinct_rows, 8.0);  // no more than there are
  table.distinct_rows = 1e300;                                       // of a file that says so
  EXPECT_EQ(piece_work(table, 16, kSmallBatch).distinct_rows, 8.0);
}

TEST(PieceWork, RowsThatStraddleLinesTouchMore) {
  EXPECT_EQ(mean_row_lines(16), 1.0);
  EXPECT_EQ(mean_row_lines(40), 1.5);  // half of them end in the next line
  EXPECT_EQ(mean_row_lines(64), 1.0);
  EXPECT_EQ(mean_row_lines(80), 2.0);
  EXPECT_EQ(mean_row_lines(112), 2.5);
  EXPECT_EQ(mean_row_lines(160), 3.0);
  EXPECT_EQ(mean_row_lines(512), 8.0);
}

TEST(WorkTerms, HaveDistinctNamesAndBeginWithThePiece) {
  const std::vector<std::string_view>& terms = work_terms();
  EXPECT_EQ(std::set<std::string_view>(terms.begin(), terms.end()).size(), terms.size());
  EXPECT_EQ(terms.front(), "pieces");
  EXPECT_EQ(terms_of(small_table(), 20, kSmallBatch).at("pieces"), 1.0);
}

TEST(WorkTerms, WrittenOutForOnePiece) {
  const auto terms = terms_of(small_table(), 20, kSmallBatch);
  EXPECT_EQ(terms.at("samples"), 4096.0);
  EXPECT_EQ(terms.at("lookups"), 8192.0);
  EXPECT_EQ(terms.at("vector_operations"), 2.0 * 8192.0);
  EXPECT_EQ(terms.at("row_lines"), 2.0 * 8192.0);
  EXPECT_EQ(terms.at("gradient_lines"), 80.0 / 64.0 * 8192.0);
  EXPECT_EQ(terms.at("distinct_rows"), 512.0);
  EXPECT_EQ(terms.at("distinct_lines"), 1024.0);
  EXPECT_EQ(terms.at("hottest_row_vector_operations"), 64.0);
  EXPECT_EQ(terms.at("uncached_lines_32KiB"), 2.0 * 1536.0);
}

TEST(WorkTerms, OfOneOptimizerAndDataTypeAreNothingToOthers) {
  const char* const adagrad[] = {"adagrad_distinct_rows", "adagrad_vector_operations"};
  const char* const fp16[] = {"fp16_vector_operations", "fp16_distinct_vector_operations"};
  const auto others =
      std::count_if(work_terms().begin(), work_terms().end(), [](std::string_view name) {
        return name.starts_with("adagrad") || name.starts_with("fp16");
      });
  EXPECT_EQ(others, 4) << "named below";
  TableStatistics table = small_table();
  for (const bool has_adagrad : {false, true}) {
    for (const bool has_fp16 : {false, true}) {
      table.data_type = has_fp16 ? DataType::fp16 : DataType::fp32;
      const auto optimizer = has_adagrad ? Optimizer::rowwise_adagrad : Optimizer::sgd;
      const auto terms = terms_of(table, 20, {4096, optimizer});
      for (const char* name : adagrad) EXPECT_EQ(terms.at(name) > 0.0, has_adagrad) << name;
      for (const char* name : fp16) EXPECT_EQ(terms.at(name) > 0.0, has_fp16) << name;
    }
  }
}

/// A lookup reads the gradient of the feature that it is of, however many features there are.
TEST(WorkTerms, ALookupReadsOneFeaturesGradient) {
  TableStatistics table = small_table();
  const auto one = terms_of(table, 20, kSmallBatch);
  table.num_features = 5;
  const auto five = terms_of(table, 20, kSmallBatch);
  EXPECT_EQ(five.at("gradient_lines"), one.at("gradient_lines"));
  EXPECT_EQ(five.at("output_bytes"), 5.0 * one.at("output_bytes"));
}

/// Everything that must not fall where the work grows.
std::vector<double> quantities(const PieceWork& work) {
  std::vector<double> values{work.batch_size,        work.lookups,      work.distinct_rows,
                             work.hottest_row_hits,  work.row_bytes,    work.row_lines,
                             work.vector_operations, work.output_bytes, work.table_bytes};
  values.insert(values.end(), work.rows_hit.begin(), work.rows_hit.end());
  values.insert(values.end(), work.uncached_lookups.begin(), work.uncached_lookups.end());
  values.insert(values.end(), work.uncached_gradient_lines.begin(),
                work.uncached_gradient_lines.end());
  return values;
}

/// The piece's quantities, work terms and growing features.
struct Counted {
  std::vector<double> work;
  std::vector<double> terms;
  std::vector<float> features;
};

Counted count(const Table& table, std::int64_t columns, const OperatorSettings& settings,
              const PhysicalEstimate& estimate) {
  const TableStatistics statistics = statistics_of(table, settings.batch_size);
  const PieceWork work = piece_work(statistics, columns, settings);
  Counted counted;
  counted.work = quantities(work);
  counted.terms.resize(work_terms().size());
  write_work_terms(work, statistics, settings, counted.terms);
  counted.features.resize(feature_names(FeatureSchema::work).size());
  shard_features(FeatureSchema::work, statistics, columns, settings, estimate, counted.features);
  return counted;
}

class PieceWorkOfAnyTable : public testing::TestWithParam<RowUse> {
 protected:
  static void expect_finite(const Counted& counted, const std::string& place) {
    for (const double value : counted.work) ASSERT_TRUE(std::isfinite(value)) << place;
    for (const double value : counted.terms) {
      ASSERT_TRUE(std::isfinite(value) && value >= 0.0) << place;
    }
    for (const float value : counted.features) {
      // Logarithms of what fits into 64 bits squared.
      ASSERT_TRUE(std::isfinite(value) && std::abs(value) < 140.0F) << place;
    }
  }

  /// Compares what must not fall, in each of three kinds. A millionth of a row or a lookup, or of
  /// the rounding of a table's rows, is none.
  void compare(const Table& table, const Counted& less, const Counted& more, const auto& where) {
    const double slack = 1e-6 + 1e-15 * static_cast<double>(table.num_embeddings);
    for (std::size_t i = 0; i < less.work.size(); ++i) {
      work_.add(less.work[i], more.work[i], slack,
                [&] { return fmt::format("quantity {}, {}", i, where()); });
    }
    for (std::size_t i = 0; i < less.terms.size(); ++i) {
      terms_.add(less.terms[i], more.terms[i], slack,
                 [&] { return fmt::format("{}, {}", work_terms()[i], where()); });
    }
    for (std::size_t i = 0; i < num_growing_features(FeatureSchema::work); ++i) {
      // Of logarithms, differences count.
      const double fall = static_cast<double>(less.features[i] - more.features[i]);
      features_.add(1.0, 1.0 - fall, 1.5 * slack, [&] {
        return fmt::format("{} at {}, {}", feature_names(FeatureSchema::work)[i], less.features[i],
                           where());
      });
    }
  }

  LargestFall work_;
  LargestFall terms_;
  LargestFall features_;
};

TEST_P(PieceWorkOfAnyTable, IsFiniteAndGrows) {
  Random random(71 + static_cast<std::uint64_t>(GetParam()));
  const int tables = GetParam() == RowUse::zipf ? 4'000 : 20'000;
  for (int i = 0; i < tables; ++i) {
    const Table table = random_table(GetParam(), random);
    const OperatorSettings settings{
        spread_integer(1, kMaxBatchSize, random),
        random.below(2) == 0 ? Optimizer::sgd : Optimizer::rowwise_adagrad};
    const PhysicalEstimate estimate = testing_networks::random_estimate(random());
    const std::int64_t columns = table.embedding_dim;
    const auto where = [&] { return describe(table, settings.batch_size, columns); };
    const Counted base = count(table, columns, settings, estimate);
    ASSERT_NO_FATAL_FAILURE(expect_finite(base, where()));
    for (const std::int64_t wider : {columns + 16, 2 * columns}) {
      compare(table, base, count(table, wider, settings, estimate),
              [&] { return fmt::format("to {} columns: {}", wider, where()); });
    }
    Table busier = table;
    busier.pooling_factor =
        std::min(table.pooling_factor * (1.0 + spread(1e-4, 100.0, random)), kMaxPoolingFactor);
    compare(table, base, count(busier, columns, settings, estimate),
            [&] { return fmt::format("to pooling {}: {}", busier.pooling_factor, where()); });
    OperatorSettings larger = settings;
    larger.batch_size = std::min<std::int64_t>(
        settings.batch_size + spread_integer(1, 100 * settings.batch_size, random), kMaxBatchSize);
    compare(table, base, count(table, columns, larger, estimate),
            [&] { return fmt::format("to batch {}: {}", larger.batch_size, where()); });
  }
  RecordProperty("largest_fall", fmt::format("{} {}", work_.fall(), work_.where()));
  EXPECT_LT(work_.fall(), 1e-6) << work_.where();
  EXPECT_LT(terms_.fall(), 1e-6) << terms_.where();
  EXPECT_LT(features_.fall(), 4e-6) << features_.where();  // a step of an fp32 near 40
}

std::string name_of(const testing::TestParamInfo<RowUse>& info) {
  constexpr std::array<const char*, testing_frontier::kRowUses> kNames{"Uniform", "Zipf", "Classes",
                                                                       "OneBin", "Histogram"};
  return kNames.at(static_cast<std::size_t>(info.param));
}

INSTANTIATE_TEST_SUITE_P(Uses, PieceWorkOfAnyTable,
                         testing::Values(RowUse::uniform, RowUse::zipf, RowUse::classes,
                                         RowUse::one_bin, RowUse::histogram),
                         name_of);

}  // namespace
}  // namespace neuroshard
