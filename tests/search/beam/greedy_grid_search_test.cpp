// The greedy grid search against one that tries every limit from scratch.
#include "neuroshard/search/beam/greedy_grid_search.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "neuroshard/core/numbers/random.h"
#include "neuroshard/search/beam/piece_list.h"
#include "neuroshard/search/beam/plan_of_pieces.h"
#include "tests/search/arbitrary_simulator.h"
#include "tests/search/beam/naive_grid_search.h"

namespace neuroshard {
namespace {

using testing::ElementsAre;
using testing_search::NaiveGridSearch;
using testing_tasks::arbitrary_compute;
using testing_tasks::arbitrary_task;
using testing_tasks::make_simulator;
using testing_tasks::make_table;
using testing_tasks::one_host_task;
using testing_tasks::task_of_any_tightness;

constexpr double kInfinity = std::numeric_limits<double>::infinity();

/// Whole tables, some of them halved in columns or, if `rows`, in rows, in the order of placement.
std::vector<PieceType> random_pieces(const Simulator& simulator, PieceCatalog& catalog,
                                     Random& random, bool rows = true) {
  std::vector<PieceType> pieces;
  for (std::size_t t = 0; t < simulator.task().tables.size(); ++t) {
    const std::int64_t dim = simulator.task().tables[t].embedding_dim;
    const PieceType whole = catalog.add(static_cast<int>(t), dim);
    if (catalog.can_halve(whole) && random.below(2) == 0) {
      const auto [wide, narrow] = catalog.halves(whole);
      pieces.insert(pieces.end(), {wide, narrow});
    } else if (rows && catalog.can_halve_rows(whole) && random.below(3) == 0) {
      add_slices(catalog, catalog.row_half(whole), pieces);
    } else {
      pieces.push_back(whole);
    }
  }
  std::sort(pieces.begin(), pieces.end(),
            [&](PieceType a, PieceType b) { return catalog.goes_first(a, b); });
  return pieces;
}

std::int64_t columns_of(const PieceCatalog& catalog, const std::vector<PieceType>& pieces) {
  std::int64_t columns = 0;
  for (const PieceType piece : pieces) columns += catalog.pooled_columns(piece);
  return columns;
}

/// What the search of other pieces, with this result, tells of these, which have no fewer columns.
KnownPlaces known_from(const PieceCatalog& catalog, const std::vector<PieceType>& others,
                       const Placement& result, const std::vector<PieceType>& pieces) {
  const auto common = static_cast<std::size_t>(
      std::mismatch(pieces.begin(), pieces.end(), others.begin(), others.end()).first -
      pieces.begin());
  const bool same_columns = columns_of(catalog, others) == columns_of(catalog, pieces);
  const std::size_t found = same_columns ? result.under_largest_limit.size() : result.free_of_limit;
  return {result, std::min(common, found)};
}

void expect_same_placements(const Placement& actual, const Placement& expected) {
  RC_ASSERT(actual.feasible() == expected.feasible());
  if (expected.feasible()) {
    RC_ASSERT(actual.cost_ms == expected.cost_ms);
    RC_ASSERT(actual.devices == expected.devices);
  } else {
    RC_ASSERT(actual.unplaced_bytes == expected.unplaced_bytes);
  }
}

RC_GTEST_PROP(GreedyGridSearchProperty, PassingOverLimitsChangesNothing, ()) {
  // In tight memory, limits that fail are followed by ones that do not.
  const Task task = *rc::gen::arbitrary<bool>()
                        ? task_of_any_tightness()
                        : *arbitrary_task(*rc::gen::element(0.67, 0.8, 0.9));
  const Simulator simulator = make_simulator(task, arbitrary_compute());
  PieceCatalog catalog(simulator);
  const GreedyGridSearchOptions options{*rc::gen::element(1, 2, 11, 40),
                                        *rc::gen::element(1.0, 1.1, 1.5, 3.0),
                                        *rc::gen::arbitrary<bool>()};
  GreedyGridSearch search(simulator, catalog, options);
  NaiveGridSearch naive(simulator, catalog, options);
  Random random(*rc::gen::arbitrary<std::uint64_t>());
  std::vector<PieceType> last_pieces;
  Placement last;
  for (int repeat = 0; repeat < 60; ++repeat) {  // nothing is left over from the search before
    std::vector<PieceType> pieces = random_pieces(simulator, catalog, random);
    const Placement expected = naive.search(pieces);
    expect_same_placements(search.search(pieces), expected);
    // Nor does it matter if the beginning is reused from another search.
    if (columns_of(catalog, last_pieces) <= columns_of(catalog, pieces)) {
      last = search.search(pieces, known_from(catalog, last_pieces, last, pieces));
    } else {
      last = search.search(pieces);
    }
    expect_same_placements(last, expected);
    last_pieces = std::move(pieces);
  }
}

RC_GTEST_PROP(GreedyGridSearchProperty, WhatIsNotWorthItsPriceIsNotPricedAndNothingElseChanges,
              ()) {
  const Simulator simulator = make_simulator(task_of_any_tightness(), arbitrary_compute());
  PieceCatalog catalog(simulator);
  GreedyGridSearch search(simulator, catalog, {});
  Random random(*rc::gen::arbitrary<std::uint64_t>());
  for (int repeat = 0; repeat < 10; ++repeat) {
    const std::vector<PieceType> pieces = random_pieces(simulator, catalog, random);
    const Placement best = search.search(pieces);
    const std::vector<int>& known = best.under_largest_limit;
    const double cost = best.feasible() ? best.cost_ms : 1.0;
    // Costs are never negative: below 0 no plan at all is worth it.
    for (const double worth_ms : {-1.0, cost * random.uniform(), cost, cost * 1.01, kInfinity}) {
      const std::int64_t priced = search.stats().plans_priced;
      const Placement found =
          search.search(pieces, {best, random.below(known.size() + 1)}, {.worth_ms = worth_ms});
      RC_ASSERT(found.under_largest_limit == best.under_largest_limit);
      RC_ASSERT(found.unplaced_bytes == best.unplaced_bytes);
      if (!best.feasible() || worth_ms >= cost) {
        RC_ASSERT(found.devices == best.devices);
        RC_ASSERT(found.cost_ms == best.cost_ms);
      } else if (found.cost_ms == kInfinity) {
        RC_ASSERT(found.devices.empty());
        RC_ASSERT(search.stats().plans_priced == priced);
      } else {
        // The bound on its cost did not tell that it is not worth it.
        RC_ASSERT(worth_ms >= 0.0);
        RC_ASSERT(found.cost_ms >= best.cost_ms);
        RC_ASSERT(found.devices.size() == pieces.size());
      }
    }
  }
}

RC_GTEST_PROP(GreedyGridSearchProperty, WhatIsBeatenIsGivenUpAndNothingElseChanges, ()) {
  const Task task = *rc::gen::arbitrary<bool>()
                        ? task_of_any_tightness()
                        : *arbitrary_task(*rc::gen::element(0.67, 0.8, 0.9));
  const Simulator simulator = make_simulator(task, arbitrary_compute());
  PieceCatalog catalog(simulator);
  const GreedyGridSearchOptions options{*rc::gen::element(1, 2, 11), *rc::gen::element(1.0, 1.5),
                                        *rc::gen::arbitrary<bool>()};
  GreedyGridSearch search(simulator, catalog, options);
  Random random(*rc::gen::arbitrary<std::uint64_t>());
  for (int repeat = 0; repeat < 20; ++repeat) {
    const std::vector<PieceType> pieces = random_pieces(simulator, catalog, random);
    const std::int64_t before = search.stats().head_evaluations;
    const Placement best = search.search(pieces);
    const std::int64_t heads = search.stats().head_evaluations - before;
    const double cost = best.feasible() ? best.cost_ms : 1.0;
    for (const double beaten_ms :
         {0.0, cost * random.uniform(), std::nextafter(cost, 0.0), cost, cost * 1.01}) {
      const std::int64_t then = search.stats().head_evaluations;
      // Of the whole cost, or all but partial sums.
      const CostLimits limits = random.below(2) == 0
                                    ? CostLimits{.kept_ms = beaten_ms}
                                    : CostLimits{.worth_ms = beaten_ms, .beaten_ms = beaten_ms};
      const Placement found = search.search(pieces, {}, limits);
      RC_ASSERT(search.stats().head_evaluations - then <= heads);
      const auto [end, of_best] =
          std::mismatch(found.under_largest_limit.begin(), found.under_largest_limit.end(),
                        best.under_largest_limit.begin(), best.under_largest_limit.end());
      RC_ASSERT(end == found.under_largest_limit.end());  // the same, as far as it goes
      if (best.feasible() && beaten_ms >= cost) {
        expect_same_placements(found, best);
      } else if (found.feasible()) {
        RC_ASSERT(found.cost_ms == kInfinity || found.cost_ms > beaten_ms);
        RC_ASSERT(found.devices.empty() == (found.cost_ms == kInfinity));
      } else {
        RC_ASSERT(found.unplaced_bytes == best.unplaced_bytes);
      }
    }
  }
}

RC_GTEST_PROP(GreedyGridSearchProperty, EveryPieceAddsItsLeastRise, ()) {
  // By this, a try is given up before all pieces are placed.
  const Simulator simulator = make_simulator(task_of_any_tightness(), arbitrary_compute());
  PieceCatalog catalog(simulator);
  Random random(*rc::gen::arbitrary<std::uint64_t>());
  std::vector<double> state(catalog.state_size(), 0.0);
  double before = 0.0;
  for (const PieceType piece : random_pieces(simulator, catalog, random)) {
    const double after = simulator.compute().add_and_cost(state, catalog.contribution(piece));
    if (simulator.compute().is_convex_increasing()) {
      RC_ASSERT(catalog.least_rise_ms(piece) >= 0.0);
      RC_ASSERT(after >= (before + catalog.least_rise_ms(piece)) * (1.0 - 1e-12));
    }
    before = after;
  }
}

RC_GTEST_PROP(GreedyGridSearchProperty, PlacementsKeepMemoryAndCostWhatTheySay, ()) {
  const Simulator simulator = make_simulator(task_of_any_tightness(), arbitrary_compute());
  PieceCatalog catalog(simulator);
  Random random(*rc::gen::arbitrary<std::uint64_t>());
  // Slices of one device that are neighbours would be one shard of the plan.
  const std::vector<PieceType> pieces = random_pieces(simulator, catalog, random, false);
  const Placement placement = GreedyGridSearch(simulator, catalog, {}).search(pieces);
  if (!placement.feasible()) return;
  const ShardingPlan plan = plan_of(simulator, catalog, pieces, placement.devices);
  RC_ASSERT(violations(simulator.task(), plan).empty());
  RC_ASSERT(simulator.cost(plan).cost_ms == placement.cost_ms);
}

TEST(GreedyGridSearch, AWiderTableThanAnyLimitStillHasAPlan) {
  // The mean is 33 columns, the largest limit 50, and one table has 128.
  const Simulator simulator = make_simulator(
      one_host_task({make_table("wide", 10, 128), make_table("narrow", 10, 4)}, 4, 1 << 20));
  PieceCatalog catalog(simulator);
  const std::vector<PieceType> pieces{catalog.add(0, 128), catalog.add(1, 4)};
  const Placement placement = GreedyGridSearch(simulator, catalog, {}).search(pieces);
  ASSERT_TRUE(placement.feasible());
  EXPECT_THAT(placement.devices, ElementsAre(0, 1));
}

TEST(GreedyGridSearch, SaysHowMuchHadNoRoom) {
  const Simulator simulator = make_simulator(one_host_task(
      {make_table("a", 100, 4), make_table("b", 100, 4), make_table("c", 50, 4)}, 2, 2000));
  PieceCatalog catalog(simulator);
  const std::vector<PieceType> pieces{catalog.add(0, 4), catalog.add(1, 4), catalog.add(2, 4)};
  GreedyGridSearch search(simulator, catalog, {});
  const Placement placement = search.search(pieces);
  EXPECT_FALSE(placement.feasible());
  EXPECT_EQ(placement.unplaced_bytes, 800);  // 50 rows of 16 bytes
  EXPECT_EQ(search.stats().plans_priced, 0);
  EXPECT_EQ(search.search(pieces, {}, {.worth_ms = 0.0}).unplaced_bytes,
            800);  // whatever a plan is worth
}

TEST(GreedyGridSearch, APlanThatIsNotWorthItIsFeasibleAndNotPriced) {
  const Simulator simulator = make_simulator(
      one_host_task({make_table("a", 1000, 64), make_table("b", 1000, 32)}, 2, 1 << 20));
  PieceCatalog catalog(simulator);
  const std::vector<PieceType> pieces{catalog.add(0, 64), catalog.add(1, 32)};
  const double cost = GreedyGridSearch(simulator, catalog, {}).search(pieces).cost_ms;
  GreedyGridSearch search(simulator, catalog, {});
  const Placement placement = search.search(pieces, {}, {.worth_ms = 0.5 * cost});
  EXPECT_TRUE(placement.feasible());
  EXPECT_EQ(placement.unplaced_bytes, 0);
  EXPECT_EQ(placement.cost_ms, kInfinity);
  EXPECT_THAT(placement.devices, testing::IsEmpty());
  EXPECT_THAT(placement.under_largest_limit, ElementsAre(0, 1));
  EXPECT_EQ(search.stats().plans_priced, 0);
  EXPECT_EQ(search.search(pieces, {}, {.worth_ms = cost}).cost_ms,
            cost);  // nothing is left over from before
}

/// Two slices of a table, whose partial sums every device adds up.
TEST(GreedyGridSearch, WhatIsKeptCountsThePartialSums) {
  const Simulator simulator =
      make_simulator(one_host_task({make_table("a", 100'000, 64, 5.0)}, 2, 1 << 30));
  PieceCatalog catalog(simulator);
  const PieceType half = catalog.row_half(catalog.add(0, 64));
  const std::vector<PieceType> pieces{half, half};
  GreedyGridSearch search(simulator, catalog, {});
  const double cost = search.search(pieces).cost_ms;
  const double partial_sums_ms = simulator.partial_sums_ms(2.0 * catalog.partial_bytes(half));
  ASSERT_GT(partial_sums_ms, 1e-6 * cost);
  const double between_ms = cost - 0.5 * partial_sums_ms;
  EXPECT_EQ(search.search(pieces, {}, {.worth_ms = between_ms}).cost_ms, cost);
  EXPECT_EQ(search.search(pieces, {}, {.kept_ms = between_ms}).cost_ms, kInfinity);
  EXPECT_EQ(search.search(pieces, {}, {.kept_ms = cost}).cost_ms, cost);
}

TEST(GreedyGridSearch, DoesTheWorkOfFewLimits) {
  std::vector<Table> tables;
  for (int t = 0; t < 64; ++t) tables.push_back(make_table(fmt::format("t{}", t), 1000, 16));
  const Simulator simulator = make_simulator(one_host_task(tables, 4, 1 << 30));
  PieceCatalog catalog(simulator);
  std::vector<PieceType> pieces;
  for (int t = 0; t < 64; ++t) pieces.push_back(catalog.add(t, 16));
  GreedyGridSearch search(simulator, catalog, {});
  ASSERT_TRUE(search.search(pieces).feasible());
  // Equal tables are spread evenly under any limit: one try is all of them.
  EXPECT_EQ(search.stats().plans_priced, 1);
  EXPECT_LE(search.stats().head_evaluations, 4 * 64);
}

}  // namespace
}  // namespace neuroshard
