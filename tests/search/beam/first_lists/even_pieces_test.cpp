// Lists of even pieces: each table once in every list, and no list where whole tables are small.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <cstdint>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "neuroshard/search/beam/first_lists/even_pieces.h"
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

constexpr std::int64_t kMost = std::numeric_limits<std::int64_t>::max();

RC_GTEST_PROP(EvenPiecesProperty, EveryListHasEachTableOnce, ()) {
  Task task = task_of_any_tightness();
  if (*rc::gen::arbitrary<bool>()) task = with_row_orders(std::move(task));
  const Simulator simulator = make_simulator(task, arbitrary_compute());
  PieceCatalog catalog(simulator);
  const bool rows = *rc::gen::arbitrary<bool>();
  const auto lists = even_lists(simulator, catalog, rows, kMost, kMost, {});
  RC_CLASSIFY(!lists.empty(), "has lists");
  for (const PieceList& pieces : lists) {
    RC_ASSERT(has_each_table_once(simulator, catalog, pieces, rows));
  }
}

TEST(EvenPieces, AsManyListsAsThereArePiecesFor) {
  const Simulator simulator = make_simulator(
      one_host_task({make_table("a", 100'000, 128, 10.0)}, 16, std::int64_t{1} << 34));
  PieceCatalog catalog(simulator);
  const auto all = even_lists(simulator, catalog, true, kMost, kMost, {});
  ASSERT_GT(all.size(), 2U);
  const auto most = static_cast<std::int64_t>(all[0].size() + all[1].size());
  EXPECT_THAT(even_lists(simulator, catalog, true, kMost, most, {}), SizeIs(2));
}

TEST(EvenPieces, CutsAreThoseOfTablesThatTakeLongerThanAMeanDevice) {
  std::vector<Table> tables;
  for (int t = 0; t < 20; ++t) {
    tables.push_back(make_table("t" + std::to_string(t), 1'000'000, 128, 10.0));
  }
  Task task = one_host_task(std::move(tables), 40, std::int64_t{1} << 34);
  task.batch_size = 65'536;
  // Two devices for each table: one cut, or a few more as an operator of its own has an overhead.
  const std::int64_t cuts = cuts_to_even_pieces(make_simulator(task), {});
  EXPECT_GE(cuts, 20);
  EXPECT_LE(cuts, 40);
}

TEST(EvenPieces, NoneWhereDevicesHaveManySmallTables) {
  std::vector<Table> tables(64, make_table("", 100'000, 64, 10.0));
  for (std::size_t t = 0; t < tables.size(); ++t) tables[t].name = "t" + std::to_string(t);
  const Simulator simulator =
      make_simulator(one_host_task(std::move(tables), 4, std::int64_t{1} << 34));
  PieceCatalog catalog(simulator);
  EXPECT_THAT(even_lists(simulator, catalog, true, kMost, kMost, {}), IsEmpty());
  EXPECT_EQ(cuts_to_even_pieces(simulator, {}), 0);
}

}  // namespace
}  // namespace neuroshard
