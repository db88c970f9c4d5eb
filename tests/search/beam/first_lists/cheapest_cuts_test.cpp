// Lists of cheapest cuts: each table once in every list, small pieces where they are asked for, and
// plans where cut after cut would not lead.
#include "neuroshard/search/beam/first_lists/cheapest_cuts.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <cstdint>
#include <limits>
#include <set>
#include <utility>
#include <vector>

#include "neuroshard/search/beam/beam_search.h"
#include "tests/search/arbitrary_simulator.h"
#include "tests/search/beam/piece_list_checks.h"

namespace neuroshard {
namespace {

using testing::IsEmpty;
using testing::SizeIs;
using testing_tasks::arbitrary_compute;
using testing_tasks::has_each_table_once;
using testing_tasks::make_simulator;
using testing_tasks::make_table;
using testing_tasks::one_host_task;
using testing_tasks::task_of_any_tightness;
using testing_tasks::with_row_orders;

constexpr std::int64_t kMostPieces = std::numeric_limits<std::int64_t>::max();

RC_GTEST_PROP(CheapestCutsProperty, EveryListHasEachTableOnce, ()) {
  Task task = task_of_any_tightness();
  if (*rc::gen::arbitrary<bool>()) task = with_row_orders(std::move(task));
  const Simulator simulator = make_simulator(task, arbitrary_compute());
  PieceCatalog catalog(simulator);
  const bool rows = *rc::gen::arbitrary<bool>();
  const auto lists = cheapest_lists(simulator, catalog, rows, kMostPieces, {});
  RC_ASSERT(lists.empty() == !simulator.compute().is_convex_increasing());
  for (const PieceList& pieces : lists) {
    RC_ASSERT(has_each_table_once(simulator, catalog, pieces, rows));
  }
}

/// Numbers of pieces of the first table, in all lists.
std::set<std::int64_t> pieces_of_first_table(const Simulator& simulator) {
  PieceCatalog catalog(simulator);
  std::set<std::int64_t> numbers;
  for (const PieceList& pieces : cheapest_lists(simulator, catalog, true, kMostPieces, {})) {
    numbers.insert(std::count_if(pieces.begin(), pieces.end(),
                                 [&](PieceType piece) { return catalog.table(piece) == 0; }));
  }
  return numbers;
}

TEST(CheapestCuts, ATableOfAllTheWorkIsCutForEveryDevice) {
  std::vector<Table> tables{make_table("hot", 10'000'000, 4, 100.0)};
  for (int t = 0; t < 4; ++t) tables.push_back(make_table("t" + std::to_string(t), 100, 4));
  const Simulator simulator = make_simulator(one_host_task(tables, 8, std::int64_t{1} << 34));
  // Of eight devices: one that has all of it takes as long as eight mean ones.
  EXPECT_EQ(pieces_of_first_table(simulator), (std::set<std::int64_t>{8}));
}

TEST(CheapestCuts, AsManyListsAsThereArePiecesFor) {
  const Simulator simulator = make_simulator(
      one_host_task({make_table("a", 100'000, 128, 10.0)}, 16, std::int64_t{1} << 34));
  PieceCatalog catalog(simulator);
  const auto all = cheapest_lists(simulator, catalog, true, kMostPieces, {});
  ASSERT_GT(all.size(), 2U);
  const auto most = static_cast<std::int64_t>(all[0].size() + all[1].size());
  EXPECT_THAT(cheapest_lists(simulator, catalog, true, most, {}), SizeIs(2));
  EXPECT_THAT(cheapest_lists(simulator, catalog, true, 0, {}), SizeIs(1));
}

TEST(CheapestCuts, TablesStayWholeWhereTheyAreSmall) {
  std::vector<Table> tables(64, make_table("", 100'000, 64, 10.0));
  for (std::size_t t = 0; t < tables.size(); ++t) tables[t].name = "t" + std::to_string(t);
  const Simulator simulator =
      make_simulator(one_host_task(std::move(tables), 4, std::int64_t{1} << 34));
  PieceCatalog catalog(simulator);
  const auto lists = cheapest_lists(simulator, catalog, true, kMostPieces, {});
  ASSERT_FALSE(lists.empty());
  EXPECT_EQ(lists.front().size(), 64U);
}

TEST(CheapestCuts, TightMemoryAsksForPiecesOfFewBytes) {
  std::vector<Table> tables;
  for (int t = 0; t < 3; ++t) {
    tables.push_back(make_table("t" + std::to_string(t), 1'000'000, 64, 1.0));
  }
  // Three tables on two devices that have room for one and a half each, and hardly more.
  const std::int64_t bytes = shard_bytes(tables[0], 64, Optimizer::sgd);
  const Simulator simulator = make_simulator(one_host_task(tables, 2, bytes * 3 / 2 + 1000));
  PieceCatalog catalog(simulator);
  bool halves = false;
  for (const PieceList& pieces : cheapest_lists(simulator, catalog, true, kMostPieces, {})) {
    halves = halves || std::all_of(pieces.begin(), pieces.end(), [&](PieceType piece) {
               return 2 * catalog.bytes(piece) <= bytes;
             });
  }
  EXPECT_TRUE(halves);
}

TEST(CheapestCuts, TheBeamSearchBeginsWithThem) {
  // Every device needs its slice before anything is gained.
  std::vector<Table> tables{make_table("hot", 10'000'000, 4, 100.0)};
  const Simulator simulator = make_simulator(one_host_task(tables, 8, std::int64_t{1} << 34));
  BeamSearchOptions options;
  options.rows = true;
  options.cheapest_cuts = true;
  options.num_levels = 0;
  const PlanningResult found = beam_search(simulator, options, 1);
  EXPECT_EQ(found.plan.num_row_slices(), 8);
  EXPECT_THAT(violations(simulator.task(), found.plan), IsEmpty());
}

}  // namespace
}  // namespace neuroshard
