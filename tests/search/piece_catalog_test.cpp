// The catalog of pieces: each encoded once, halves that add up, and a strict order of placement.
#include "neuroshard/search/piece_catalog.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>

#include "tests/search/arbitrary_simulator.h"

namespace neuroshard {
namespace {

using testing_tasks::arbitrary_compute;
using testing_tasks::make_simulator;
using testing_tasks::make_table;
using testing_tasks::one_host_task;
using testing_tasks::task_of_any_tightness;

TEST(PieceCatalog, AddsAPieceOnce) {
  const Simulator simulator = make_simulator(
      one_host_task({make_table("a", 100, 16), make_table("b", 100, 16)}, 2, 1 << 20));
  PieceCatalog catalog(simulator);
  const PieceType first = catalog.add(0, 16);
  EXPECT_EQ(catalog.add(0, 16), first);
  EXPECT_NE(catalog.add(0, 8), first);
  EXPECT_NE(catalog.add(1, 16), first);
  EXPECT_EQ(catalog.size(), 3u);
  EXPECT_EQ(catalog.bytes(first), 100 * 16 * 4);
  EXPECT_EQ(catalog.table(first), 0);
  EXPECT_EQ(catalog.num_columns(first), 16);
}

TEST(PieceCatalog, HalvesAreMultiplesOfFour) {
  const std::vector<std::int64_t> whole{1, 3, 4, 6, 10, 126};
  std::vector<Table> tables{make_table("a", 100, 128)};
  for (const std::int64_t dim : whole) {
    tables.push_back(make_table(fmt::format("t{}", dim), 100, dim));
  }
  const Simulator simulator = make_simulator(one_host_task(tables, 2, 1 << 20));
  PieceCatalog catalog(simulator);
  const auto widths = [&](std::int64_t columns) {
    const auto [wide, narrow] = catalog.halves(catalog.add(0, columns));
    return std::pair(catalog.num_columns(wide), catalog.num_columns(narrow));
  };
  EXPECT_EQ(widths(128), std::pair(std::int64_t{64}, std::int64_t{64}));
  EXPECT_EQ(widths(12), std::pair(std::int64_t{8}, std::int64_t{4}));
  EXPECT_EQ(widths(8), std::pair(std::int64_t{4}, std::int64_t{4}));
  EXPECT_EQ(widths(100), std::pair(std::int64_t{52}, std::int64_t{48}));
  EXPECT_TRUE(catalog.can_halve(catalog.add(0, 8)));
  for (std::size_t i = 0; i < whole.size(); ++i) {
    EXPECT_FALSE(catalog.can_halve(catalog.add(static_cast<int>(i) + 1, whole[i]))) << whole[i];
  }
}

RC_GTEST_PROP(PieceCatalogProperty, HalvingEndsInPiecesThatCoverTheTable, ()) {
  const Simulator simulator = make_simulator(task_of_any_tightness(), arbitrary_compute());
  PieceCatalog catalog(simulator);
  for (std::size_t table = 0; table < simulator.task().tables.size(); ++table) {
    const Table& of = simulator.task().tables[table];
    std::vector<PieceType> waiting{catalog.add(static_cast<int>(table), of.embedding_dim)};
    std::int64_t columns = 0;
    while (!waiting.empty()) {
      const PieceType piece = waiting.back();
      waiting.pop_back();
      if (!catalog.can_halve(piece)) {
        columns += catalog.num_columns(piece);
        RC_ASSERT(catalog.num_columns(piece) == of.embedding_dim ||
                  catalog.num_columns(piece) == 4);
        continue;
      }
      const auto [wide, narrow] = catalog.halves(piece);
      const std::int64_t sides[] = {catalog.num_columns(wide), catalog.num_columns(narrow)};
      RC_ASSERT(sides[0] + sides[1] == catalog.num_columns(piece));
      RC_ASSERT(sides[0] - sides[1] == 0 || sides[0] - sides[1] == 4);
      RC_ASSERT(sides[1] >= 4 && sides[1] % 4 == 0);
      waiting.insert(waiting.end(), {wide, narrow});
    }
    RC_ASSERT(columns == of.embedding_dim);
  }
}

RC_GTEST_PROP(PieceCatalogProperty, FactsAreTheSimulators, ()) {
  const Simulator simulator = make_simulator(task_of_any_tightness(), arbitrary_compute());
  PieceCatalog catalog(simulator);
  std::vector<double> contribution(catalog.state_size());
  for (std::size_t t = 0; t < simulator.task().tables.size(); ++t) {
    const Table& table = simulator.task().tables[t];
    const PieceType piece = catalog.add(static_cast<int>(t), table.embedding_dim);
    simulator.encode(static_cast<int>(t), table.embedding_dim, contribution);
    RC_ASSERT(std::ranges::equal(catalog.contribution(piece), contribution));
    RC_ASSERT(catalog.single_cost(piece) == simulator.compute().cost(contribution));
    RC_ASSERT(catalog.bytes(piece) ==
              shard_bytes(table, table.embedding_dim, simulator.task().optimizer));
  }
}

TEST(PieceCatalog, SlicesOfHashedIdsAreOfOneType) {
  const Simulator simulator = make_simulator(one_host_task({make_table("a", 1'000, 16)}, 4, 1));
  PieceCatalog catalog(simulator);
  const PieceType slice = catalog.add(0, 16, 3);
  EXPECT_EQ(catalog.size(), 1u);
  EXPECT_TRUE(catalog.has_equal_slices(slice));
  EXPECT_EQ(catalog.first_slice(slice), slice);
  EXPECT_EQ(catalog.bytes(slice), 334 * 16 * 4);
  EXPECT_EQ(catalog.largest_bytes(slice), 334 * 16 * 4);
}

TEST(PieceCatalog, SlicesOfATableWithARowOrderAreOfATypeEach) {
  Table table = make_table("a", 100'000, 16, 20.0);
  table.index_distribution = IndexDistribution{.zipf_exponent = 1.1};
  table.row_order = RowOrder::by_frequency;
  const Simulator simulator = make_simulator(one_host_task({table}, 4, 1));
  PieceCatalog catalog(simulator);
  const PieceType first = catalog.add(0, 8, 4);
  EXPECT_EQ(catalog.size(), 4u);
  EXPECT_EQ(catalog.add(0, 8, 4), first);
  const std::vector<std::int64_t> ends = simulator.slice_ends(0, 4);
  std::vector<double> contribution(catalog.state_size());
  for (int slice = 0; slice < 4; ++slice) {
    const PieceType piece = first + slice;
    EXPECT_FALSE(catalog.has_equal_slices(piece));
    EXPECT_EQ(catalog.slice(piece), slice);
    EXPECT_EQ(catalog.first_slice(piece), first);
    EXPECT_EQ(catalog.num_slices(piece), 4);
    const std::int64_t rows = ends[slice + 1] - ends[slice];
    EXPECT_EQ(catalog.bytes(piece), rows * 8 * 4);
    EXPECT_EQ(catalog.largest_bytes(piece), (ends[4] - ends[3]) * 8 * 4);
    const Shard shard{0, 0, 8, 0, ends[slice], rows};
    simulator.encode(piece_of(simulator.task(), shard), contribution);
    EXPECT_TRUE(std::ranges::equal(catalog.contribution(piece), contribution));
  }
  // Cuts are of all slices together.
  const auto [wide, narrow] = catalog.halves(first + 2);
  EXPECT_EQ(wide, narrow);
  EXPECT_EQ(catalog.slice(wide), 0);
  EXPECT_EQ(catalog.size(), 8u);
}

TEST(PieceCatalog, TheClockStopsAmongSlicesAndLeavesItAsItWas) {
  Table table = make_table("a", 100'000, 16, 20.0);
  table.row_access = {{0.1, 0.9}, {1.0, 1.0}};
  const Simulator simulator = make_simulator(one_host_task({table}, 4, 1));
  PieceCatalog catalog(simulator, StopClock(StopClock::Clock::time_point{}));
  EXPECT_THROW((void)catalog.add(0, 16, 4), TimeIsOver);
  EXPECT_EQ(catalog.size(), 0u);
  EXPECT_THROW((void)catalog.add(0, 16, 4), TimeIsOver) << "not as if it were known";
  const PieceType whole = catalog.add(0, 16);
  EXPECT_EQ(whole, 0);
  std::vector<double> contribution(catalog.state_size());
  simulator.encode(Piece{0, 16, 1.0}, contribution);
  EXPECT_TRUE(std::ranges::equal(catalog.contribution(whole), contribution));
}

RC_GTEST_PROP(PieceCatalogProperty, TheOrderIsStrictAndFallsInCost, ()) {
  const Simulator simulator = make_simulator(task_of_any_tightness(), arbitrary_compute());
  PieceCatalog catalog(simulator);
  std::vector<PieceType> pieces;
  for (std::size_t t = 0; t < simulator.task().tables.size(); ++t) {
    const std::int64_t dim = simulator.task().tables[t].embedding_dim;
    pieces.push_back(catalog.add(static_cast<int>(t), dim));
    if (!catalog.can_halve(pieces.back())) continue;
    const auto [wide, narrow] = catalog.halves(pieces.back());
    pieces.insert(pieces.end(), {wide, narrow});
  }
  for (const PieceType a : pieces) {
    for (const PieceType b : pieces) {
      if (catalog.goes_first(a, b)) {
        RC_ASSERT(!catalog.goes_first(b, a));
        RC_ASSERT(catalog.single_cost(a) >= catalog.single_cost(b));
      } else if (!catalog.goes_first(b, a)) {
        RC_ASSERT(a == b);
      }
    }
  }
}

}  // namespace
}  // namespace neuroshard
