// Sets of pieces as plans have them.
#include "neuroshard/refine/planned_sets.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "neuroshard/collect/compute/set_sampling.h"
#include "neuroshard/core/error.h"
#include "neuroshard/cost/model_catalog.h"
#include "neuroshard/workload/published_workloads.h"
#include "tests/io/io_test_util.h"

namespace neuroshard {
namespace {

std::shared_ptr<const ComputeCostModel> model() {
  return load_named_models({"analytic-cpu"}, {}).compute;
}

PlannedSetsOptions options_of(const std::string& workload, std::uint64_t seed) {
  return {.pools = {find_workload(workload, 0)}, .seed = seed, .num_threads = 1};
}

TEST(PlannedSets, DependOnTheSeedAndTheNumberAlone) {
  PlannedSets first(options_of("dlrm-2021", 3), model());
  PlannedSets second(options_of("dlrm-2021", 3), model());
  PlannedSetsOptions on_two_threads = options_of("dlrm-2021", 3);
  on_two_threads.num_threads = 2;
  PlannedSets third(on_two_threads, model());
  PlannedSets other(options_of("dlrm-2021", 4), model());
  const std::vector<Piece> set = first.set(9);
  EXPECT_EQ(second.set(0), first.set(0));
  EXPECT_EQ(second.set(9), set);
  EXPECT_EQ(third.set(9), set);
  EXPECT_NE(other.set(9), set);
}

TEST(PlannedSets, ArePiecesOfThePoolsTables) {
  const PlannedSetsOptions options = options_of("dlrm-2021", 1);
  PlannedSets sets(options, model());
  std::set<std::int64_t> widths;
  bool has_slices = false;
  for (int id = 0; id < 62; ++id) {
    const std::vector<Piece> set = sets.set(id);
    EXPECT_THAT(set, testing::Not(testing::IsEmpty()));
    EXPECT_TRUE(std::is_sorted(set.begin(), set.end()));
    for (const Piece& piece : set) {
      ASSERT_GE(piece.table, 0);
      ASSERT_LT(piece.table, static_cast<int>(options.pools.front().tables.size()));
      EXPECT_LE(piece.num_columns, options.max_dim);
      widths.insert(piece.num_columns);
      has_slices |= piece.row_share < 1.0;
    }
  }
  EXPECT_TRUE(has_slices);
  EXPECT_THAT(widths, testing::Contains(options.max_dim));
}

TEST(PlannedSets, TheFirstPlanHasOneDeviceWithWholeTables) {
  PlannedSets sets(options_of("dlrm-2021", 1), model());
  const std::vector<Piece> set = sets.set(0);
  std::set<int> tables;
  for (const Piece& piece : set) {
    EXPECT_EQ(piece.row_share, 1.0);
    tables.insert(piece.table);
  }
  EXPECT_EQ(tables.size(), set.size());
  EXPECT_GE(set.size(), 3u);
}

TEST(PlannedSets, DevicesWithEqualPiecesCountOnce) {
  // Of one table, cut evenly or not, the devices of a plan have few different pieces.
  PlannedSetsOptions one = options_of("dlrm-2021", 1);
  one.pools.front().tables.resize(1);
  PlannedSets sets(one, model());
  std::set<std::vector<Piece>> seen;
  int repeated_in_a_row = 0;
  for (int id = 1; id < 40; ++id) repeated_in_a_row += sets.set(id) == sets.set(id - 1);
  EXPECT_LE(repeated_in_a_row, 8);  // of different plans, with 1, 2, 4, 8 and 16 devices
}

TEST(PlannedSets, SomeAreTheCopiesOfAPlan) {
  // Tables of few rows, over a slow network: what each device keeps is whole, and is cut by no
  // plan of devices that look up all of the batch.
  PlannedSetsOptions options = options_of("criteo-kaggle", 1);
  options.batch_size = 16'384;
  PlannedSets sets(options, model());
  int of_whole_small_tables = 0;
  for (int id = 0; id < 60; ++id) {
    const std::vector<Piece> set = sets.set(id);
    of_whole_small_tables += std::all_of(set.begin(), set.end(), [&](const Piece& piece) {
      const Table& table = options.pools.front().tables[piece.table];
      return piece.row_share == 1.0 && table.num_embeddings <= 20'000;
    });
  }
  EXPECT_GE(of_whole_small_tables, 3);
  EXPECT_LE(of_whole_small_tables, 30);
}

TEST(PlannedSets, CopiesOfAPlanAreWholeTables) {
  Task task;
  task.topology.world_size = 2;
  for (const std::int64_t dim : {8, 16, 32}) {
    Table table;
    table.embedding_dim = dim;
    task.tables.push_back(table);
  }
  ShardingPlan plan;
  plan.replicated_tables = {0, 2};
  EXPECT_THAT(copies_of(task, plan), testing::ElementsAre(Piece{0, 8}, Piece{2, 32}));
  plan.replicated_tables.clear();
  EXPECT_THAT(copies_of(task, plan), testing::IsEmpty());
}

TEST(PlannedSets, OfSeveralPoolsEachPlanIsOfOneAtItsOwnWidths) {
  PlannedSetsOptions options = options_of("criteo-kaggle", 1);  // 16 columns, others have 64 or 128
  options.pools = published_pools();
  options.own_dims = true;
  options.max_tables_of_device = 60;
  options.max_sets_of_plan = 2;
  std::vector<std::pair<std::size_t, Table>> tables;  // and the pool's place
  for (std::size_t i = 0; i < options.pools.size(); ++i) {
    for (const Table& table : options.pools[i].tables) tables.emplace_back(i, table);
  }
  PlannedSets sets(options, model());
  std::vector<std::size_t> pools;
  std::size_t most_pieces = 0;
  for (int id = 0; id < 60; ++id) {
    const std::vector<Piece> set = sets.set(id);
    most_pieces = std::max(most_pieces, set.size());
    const std::size_t pool = tables.at(set.front().table).first;
    for (const Piece& piece : set) {
      const auto& [of_pool, table] = tables.at(piece.table);
      EXPECT_EQ(of_pool, pool);
      EXPECT_LE(piece.num_columns, table.embedding_dim);
    }
    pools.push_back(pool);
  }
  EXPECT_GT(most_pieces, 40u);
  EXPECT_EQ(std::set(pools.begin(), pools.end()).size(), options.pools.size());
  // Two sets of each plan at the most, between which and the next there may be another's copies.
  std::size_t in_a_row = 1;
  for (std::size_t id = 1; id < pools.size(); ++id) {
    in_a_row = pools[id] == pools[id - 1] ? in_a_row + 1 : 1;
    EXPECT_LE(in_a_row, 3u) << id;
  }
}

TEST(PlannedSets, WhatMovesTooMuchIsLeftOut) {
  PlannedSetsOptions options = options_of("hugectr-180table-70b-hotness80", 1);
  options.own_dims = true;
  options.batch_size = 4096;
  options.max_pass_bytes = 5e8;
  PlannedSets sets(options, model());
  double most = 0.0;
  for (int id = 0; id < 20; ++id) {
    double bytes = 0.0;
    for (const Piece& piece : sets.set(id)) {
      bytes += pass_bytes(options.pools.front().tables[piece.table], piece, options.batch_size);
    }
    EXPECT_LE(bytes, options.max_pass_bytes);
    most = std::max(most, bytes);
  }
  EXPECT_GT(most, 1e8);
  options.max_pass_bytes = 1e3;
  EXPECT_THROW((void)PlannedSets(options, model()).set(0), InfeasibleError);
}

TEST(PlannedSets, AreOfFewAndHugeTablesToo) {
  PlannedSets sets(options_of("hugectr-7table-470b-hotness20", 1), model());
  EXPECT_THAT(sets.set(20), testing::Not(testing::IsEmpty()));
  PlannedSetsOptions one = options_of("dlrm-2021", 1);
  one.pools.front().tables.resize(1);
  one.max_dim = 4;
  EXPECT_THAT(PlannedSets(one, model()).set(3), testing::SizeIs(1));
}

TEST(PlannedSets, TablesThatAreHeldOutAreNotPlanned) {
  ComputeSamplingOptions sampling;
  sampling.workload = "dlrm-2021";
  sampling.tables = find_workload("dlrm-2021", 0).tables;
  sampling.held_out_share = 0.25;
  sampling.dims = {4, 8, 100};
  const std::size_t all = sampling.tables.size();
  use_planned_sets(sampling, find_planning_model("analytic-cpu"), 1);
  EXPECT_LT(sampling.tables.size(), 0.9 * static_cast<double>(all));
  for (const Table& table : sampling.tables) EXPECT_FALSE(is_held_out(table.name, 0.25));
  EXPECT_EQ(sampling.given_max_dim, 64);
  validate(sampling);
  for (const Piece& piece : sample_pieces(sampling, 5)) EXPECT_LE(piece.num_columns, 64);
  sampling.given = nullptr;
  EXPECT_THAT(input_error([&] { validate(sampling); }),
              testing::HasSubstr("expected a sequence of sets"));
  sampling.given = [](std::int64_t) { return std::vector<Piece>{}; };
  sampling.candidates = 2;
  EXPECT_THAT(input_error([&] { validate(sampling); }), testing::HasSubstr("candidates"));
}

}  // namespace
}  // namespace neuroshard
