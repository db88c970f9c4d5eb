// The statistics of tables and of slices of them, the grid that a task's sums are exact on, and a
// property of every computation cost model: adding and pricing a piece in one call gives the same
// as adding it and then pricing.
#include "neuroshard/cost/compute/compute_cost_model.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <bit>
#include <cmath>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "neuroshard/cost/compute/analytic_compute.h"
#include "neuroshard/cost/compute/pessimistic_compute_model.h"
#include "neuroshard/cost/model_catalog.h"
#include "neuroshard/workload/reuse/index_distribution.h"
#include "neuroshard/workload/reuse/row_slice.h"
#include "tests/cost/arbitrary_network.h"
#include "tests/cost/arbitrary_task.h"
#include "tests/cost/frontier_tables.h"

namespace neuroshard {
namespace {

using testing_networks::NetworkSizes;
using testing_networks::random_model;
using testing_tasks::make_topology;
using Model = std::shared_ptr<const ComputeCostModel>;

constexpr OperatorSettings kSettings{4096, Optimizer::sgd};

/// One of each kind; the neural ones have 1 to 3 members, and heads of any size.
std::vector<Model> arbitrary_models() {
  static const Model shipped = load_cost_models({}, make_topology(2, 2)).compute;
  const auto seed = *rc::gen::arbitrary<std::uint64_t>();
  const NetworkSizes sizes{.head = *rc::gen::inRange(1, 40)};
  const double pessimism = *rc::gen::element(0.0, 0.25, 1.0);
  std::vector<Model> models{
      std::make_shared<AnalyticComputeModel>(find_compute_hardware("h100-sxm")), shipped,
      random_model(ComputeArchitecture::bounded_loads, seed, sizes),
      random_model(ComputeArchitecture::published, seed, sizes)};
  for (std::size_t i = 0; i < 4; ++i) {
    models.push_back(std::make_shared<PessimisticComputeModel>(models[i], pessimism));
  }
  return models;
}

/// Pieces of tables as they may be.
struct ArbitraryPiece {
  TableStatistics table;
  std::int64_t columns = 0;
};

std::vector<ArbitraryPiece> arbitrary_pieces() {
  std::vector<ArbitraryPiece> pieces;
  for (int i = *rc::gen::inRange(1, 12); i > 0; --i) {
    const Table table = *testing_tasks::arbitrary_table();
    pieces.push_back({{table.num_embeddings, table.pooling_factor, table.data_type,
                       reuse_histogram(table, kSettings.batch_size)},
                      4 * *rc::gen::inRange<std::int64_t>(1, 33)});
  }
  return pieces;
}

Table table_of(std::optional<IndexDistribution> distribution) {
  Table table = testing_tasks::make_table("t", 100'000, 64, 5.0);
  table.index_distribution = std::move(distribution);
  return table;
}

IndexDistribution zipf(double exponent) {
  return {.zipf_exponent = exponent, .access_classes = {}};
}

IndexDistribution classes(std::vector<AccessClass> access_classes) {
  return {.zipf_exponent = 0.0, .access_classes = std::move(access_classes)};
}

TableStatistics statistics_for(const Table& table) {
  return testing_frontier::statistics_of(table, kSettings.batch_size);
}

/// 1,024 lookups in as many rows: one of each in the mean, so that k hit a row with probability
/// 1 / (e k!).
TEST(TableStatistics, AreThoseOfTheBatch) {
  Table table = testing_tasks::make_table("t", 1024, 64, 0.5);
  table.data_type = DataType::fp16;
  table.num_features = 3;
  const TableStatistics statistics = table_statistics(table, 2048);
  EXPECT_EQ(statistics.num_embeddings, 1024);
  EXPECT_EQ(statistics.pooling_factor, 0.5);
  EXPECT_EQ(statistics.data_type, DataType::fp16);
  EXPECT_EQ(statistics.num_features, 3);
  EXPECT_NEAR(statistics.distinct_rows, 647.29145, 1e-3);  // all but 1/e
  // Of 1 - 1/e: hit once, twice, three or four times, five to eight times.
  EXPECT_NEAR(statistics.reuse_histogram[0], 0.5819767, 1e-6);
  EXPECT_NEAR(statistics.reuse_histogram[1], 0.2909884, 1e-6);
  EXPECT_NEAR(statistics.reuse_histogram[2], 0.1212451, 1e-6);
  EXPECT_NEAR(statistics.reuse_histogram[3], 0.0057880, 1e-6);
  EXPECT_DOUBLE_EQ(statistics.hottest_row_share, 1.0 / 1024);
}

/// 11 lookups in three rows, of 6, 3 and 2 in the mean.
TEST(TableStatistics, OfAPowerLawAreThoseOfItsRows) {
  Table table = testing_tasks::make_table("t", 3, 64);
  table.index_distribution = zipf(1.0);
  const TableStatistics statistics = table_statistics(table, 11);
  EXPECT_NEAR(statistics.distinct_rows, 2.8123989, 1e-6);  // 3 - e^-6 - e^-3 - e^-2
  // 6 e^-6 + 3 e^-3 + 2 e^-2 of them are hit once.
  EXPECT_NEAR(statistics.reuse_histogram[0], 0.4349043 / 2.8123989, 1e-6);
  EXPECT_DOUBLE_EQ(statistics.hottest_row_share, 6.0 / 11.0);
}

/// Rows that are hit three or four times are hit 3.36 times in the mean (histogram_reuse.h).
TEST(TableStatistics, OfAHistogramAreThoseOfItsBins) {
  Table table = testing_tasks::make_table("t", 100'000, 64);
  table.reuse_histogram = ReuseHistogram{0.0, 0.0, 1.0};
  const TableStatistics statistics = table_statistics(table, 336);
  EXPECT_EQ(statistics.reuse_histogram, *table.reuse_histogram);
  EXPECT_NEAR(statistics.distinct_rows, 100.0, 1e-9);
  EXPECT_NEAR(statistics.hottest_row_share, 0.01, 1e-9);
}

/// Its rows are each hit once, of which there would have to be 20,480.
TEST(TableStatistics, NoTableHasMoreDistinctRowsThanRows) {
  Table table = table_of(zipf(1.1));
  table.num_embeddings = 10;
  table.index_distribution.reset();
  table.reuse_histogram = ReuseHistogram{1.0};
  EXPECT_EQ(statistics_for(table).distinct_rows, 10.0);
}

TEST(TableStatistics, TheWholeTableAsASliceIsItself) {
  const TableStatistics whole = statistics_for(table_of(zipf(1.1)));
  const TableStatistics slice = whole.slice(1.0, kSettings.batch_size);
  EXPECT_EQ(slice.num_embeddings, whole.num_embeddings);
  EXPECT_EQ(slice.distinct_rows, whole.distinct_rows);
  EXPECT_EQ(slice.hottest_row_share, whole.hottest_row_share);
}

/// A slice is trained on as it was measured: as the table that a backend is given for it.
TEST(TableStatistics, ASliceIsLikeTheTableThatIsMeasuredForIt) {
  for (const Table& table :
       {table_of({}), table_of(zipf(0.8)), table_of(classes({{2'000, 0.5}, {90'000, 0.5}})),
        table_of(classes({{1, 0.4}, {90'000, 0.6}}))}) {
    for (const double share : {0.5, 0.25, 0.1}) {
      const TableStatistics slice = statistics_for(table).slice(share, kSettings.batch_size);
      const TableStatistics measured =
          statistics_for(row_slice(table, kSettings.batch_size, share));
      EXPECT_EQ(slice.num_embeddings, measured.num_embeddings);
      EXPECT_DOUBLE_EQ(slice.pooling_factor, measured.pooling_factor);
      EXPECT_NEAR(slice.distinct_rows / measured.distinct_rows, 1.0, 0.1);
      // A power law's slice has a histogram only, whose bins are a factor of 2 wide.
      EXPECT_LT(std::abs(std::log2(slice.hottest_row_share / measured.hottest_row_share)), 1.1)
          << share << ", " << measured.hottest_row_share;
    }
  }
}

/// Likewise of a range of rows, where the order is known.
TEST(TableStatistics, ARangeIsLikeTheTableThatIsMeasuredForIt) {
  Table ordered = table_of(zipf(1.2));
  ordered.row_order = RowOrder::by_frequency;
  Table hot = table_of(classes({{90'000, 0.6}, {1, 0.4}}));
  hot.row_order = RowOrder::by_frequency;
  Table measured = table_of(zipf(0.8));
  measured.row_access = {{0.01, 0.3}, {0.6, 0.8}, {1.0, 1.0}};
  for (const Table& table : {ordered, hot, measured}) {
    const AccessByRow accesses(table, kSettings.batch_size);
    const TableStatistics whole = statistics_for(table);
    double pooling = 0.0;
    double distinct = 0.0;
    for (const auto& [first, count] :
         {std::pair<std::int64_t, std::int64_t>{0, 100}, {100, 9'900}, {10'000, 90'000}}) {
      SCOPED_TRACE(first);
      const TableStatistics slice = whole.slice(accesses.range(first, count));
      const TableStatistics own = statistics_for(row_slice(table, accesses, first, count));
      EXPECT_EQ(slice.num_embeddings, count);
      EXPECT_EQ(own.num_embeddings, count);
      EXPECT_DOUBLE_EQ(slice.pooling_factor, own.pooling_factor);
      EXPECT_NEAR(slice.distinct_rows / own.distinct_rows, 1.0, 0.01);
      EXPECT_NEAR(slice.hottest_row_share / own.hottest_row_share, 1.0, 0.01);
      for (int bin = 0; bin < kReuseBins; ++bin) {
        EXPECT_NEAR(slice.reuse_histogram[bin], own.reuse_histogram[bin], 0.01) << bin;
      }
      pooling += slice.pooling_factor;
      distinct += slice.distinct_rows;
    }
    EXPECT_NEAR(pooling, whole.pooling_factor, 1e-9);
    EXPECT_NEAR(distinct / whole.distinct_rows, 1.0, 0.01);
  }
}

TEST(TableStatistics, ARangeThatIsNeverUsed) {
  Table table = table_of({});
  table.row_access = {{0.5, 1.0}, {1.0, 1.0}};
  const TableStatistics slice =
      statistics_for(table).slice(AccessByRow(table, kSettings.batch_size).range(50'000, 50'000));
  EXPECT_GT(slice.pooling_factor, 0.0);
  EXPECT_LT(slice.pooling_factor, 1e-5);
  EXPECT_EQ(slice.reuse_histogram[0], 1.0);
}

/// Rows as hot as each other, or of a power law, cross the bins of a histogram as batches grow.
TEST(TableStatistics, ASlicesHottestRowHasMoreLookupsInALargerBatch) {
  for (const Table& table :
       {table_of(classes({{10, 0.5}, {90'000, 0.5}})), table_of(zipf(0.5)), table_of(zipf(1.1))}) {
    for (const double share : {0.5, 0.1, 0.01}) {
      double before = 0.0;
      for (std::int64_t batch_size = 64; batch_size < 100'000; batch_size += batch_size / 64) {
        const TableStatistics slice = table_statistics(table, batch_size).slice(share, batch_size);
        const double hits =
            slice.hottest_row_share * slice.pooling_factor * static_cast<double>(batch_size);
        EXPECT_GE(hits, before * (1.0 - 1e-9)) << share << ", " << batch_size;
        before = hits;
      }
    }
  }
}

TEST(TableStatistics, NoRowOfASliceHasMoreThanAllLookups) {
  for (const double hot : {0.05, 0.5, 0.9}) {
    const TableStatistics whole =
        statistics_for(table_of(classes({{1, hot}, {99'999, 1.0 - hot}})));
    for (const double share : {0.5, 0.1, 1e-3, 1e-6}) {
      const double hottest = whole.slice(share, kSettings.batch_size).hottest_row_share;
      EXPECT_TRUE(hottest > 0.0 && hottest <= 1.0) << hottest;
    }
  }
}

/// A task of one table on one device.
Task one_table(const Table& table, std::int64_t batch_size) {
  Task task;
  task.batch_size = batch_size;
  task.tables = {table};
  task.topology = make_topology(1, 1);
  return task;
}

TEST(OperatorSettings, TheGridIsTheUsualOneUnlessATaskIsAstronomic) {
  const auto model = random_model(ComputeArchitecture::bounded_loads, 3);
  const Task usual = one_table(table_of({}), 65'536);
  const OperatorSettings settings = operator_settings(usual, *model, table_statistics(usual));
  EXPECT_EQ(settings.batch_size, 65'536);
  EXPECT_EQ(settings.optimizer, usual.optimizer);
  EXPECT_EQ(settings.grid, kStateGrid);
  Table widest =
      testing_tasks::make_table("t", kMaxEmbeddings, kMaxEmbeddingDim, kMaxPoolingFactor);
  const Task largest = one_table(widest, kMaxBatchSize);
  const double grid = operator_settings(largest, *model, table_statistics(largest)).grid;
  EXPECT_GT(grid, kStateGrid);
  EXPECT_EQ(std::exp2(std::round(std::log2(grid))), grid);
}

RC_GTEST_PROP(ComputeCostModelProperty, AddingAndPricingInOneGoIsTheSame, ()) {
  const std::vector<ArbitraryPiece> pieces = arbitrary_pieces();
  for (const Model& model : arbitrary_models()) {
    std::vector<double> state(model->state_size(), 0.0);
    std::vector<double> expected = state;
    std::vector<double> contribution(state.size());
    for (const ArbitraryPiece& piece : pieces) {
      model->encode(piece.table, piece.columns, kSettings, contribution);
      for (std::size_t i = 0; i < state.size(); ++i) expected[i] += contribution[i];
      const double cost = model->add_and_cost(state, contribution);
      RC_ASSERT(state == expected);
      RC_ASSERT(std::bit_cast<std::uint64_t>(cost) ==
                std::bit_cast<std::uint64_t>(model->cost(expected)));
    }
  }
}

}  // namespace
}  // namespace neuroshard
