// What a list of pieces costs at least: by its mean device, whatever goes where.
#include "neuroshard/search/beam/mean_bound.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <cmath>
#include <memory>
#include <vector>

#include "neuroshard/core/numbers/random.h"
#include "neuroshard/search/beam/greedy_grid_search.h"
#include "neuroshard/search/slices/sliced_task.h"
#include "tests/cost/arbitrary_network.h"
#include "tests/search/arbitrary_simulator.h"

namespace neuroshard {
namespace {

using testing_tasks::make_simulator;
using testing_tasks::make_table;
using testing_tasks::one_host_task;

std::shared_ptr<const ComputeCostModel> bounded_model() {
  return testing_networks::random_model(ComputeArchitecture::bounded_loads,
                                        *rc::gen::arbitrary<std::uint64_t>());
}

PieceList uncut_pieces(const Task& task, PieceCatalog& catalog) {
  PieceList pieces;
  for (std::size_t t = 0; t < task.tables.size(); ++t) {
    pieces.push_back(catalog.add(static_cast<int>(t), task.tables[t].embedding_dim));
  }
  return pieces;
}

/// Cuts one of the pieces at random, if any may be, in the list and in its totals.
void cut_one(PieceCatalog& catalog, const MeanBound& bound, Random& random, PieceList& pieces,
             ListTotals& totals) {
  const PieceType piece = pieces[random.below(pieces.size())];
  PieceList by;
  if (catalog.can_halve_rows(piece) && random.below(2) == 0) {
    by = {catalog.row_half(piece)};
  } else if (catalog.can_halve(piece)) {
    const auto [wide, narrow] = catalog.halves(piece);
    by = {wide, narrow};
  } else {
    return;
  }
  const PieceType first = catalog.first_slice(piece);
  for (int slice = 0; slice < catalog.num_slices(piece); ++slice) {
    const PieceType removed = catalog.has_equal_slices(piece) ? piece : first + slice;
    pieces.erase(std::find(pieces.begin(), pieces.end(), removed));
  }
  bound.add_columns_of(piece, -1.0, totals);
  for (const PieceType other : by) {
    add_slices(catalog, other, pieces);
    bound.add_columns_of(other, 1.0, totals);
  }
}

/// What the pieces cost, each on a random device of the first `used` ones.
double placed_cost_ms(const Simulator& simulator, const PieceCatalog& catalog,
                      const PieceList& pieces, std::size_t used, Random& random) {
  const auto world_size = static_cast<std::size_t>(simulator.task().topology.world_size);
  std::vector<std::vector<double>> states(world_size,
                                          std::vector<double>(catalog.state_size(), 0.0));
  std::vector<double> columns(world_size, 0.0);
  double partial_bytes = 0.0;
  for (const PieceType piece : pieces) {
    const std::size_t device = random.below(used);
    for (std::size_t i = 0; i < catalog.state_size(); ++i) {
      states[device][i] += catalog.contribution(piece)[i];
    }
    columns[device] += static_cast<double>(catalog.pooled_columns(piece));
    partial_bytes += catalog.partial_bytes(piece);
  }
  std::vector<double> compute_ms;
  for (const auto& state : states) compute_ms.push_back(simulator.compute().cost(state));
  return simulator.combine(compute_ms, columns, 0.0, simulator.partial_sums_ms(partial_bytes))
      .cost_ms;
}

/// The task's tables, some of them copied to every device.
class WithCopies {
 public:
  explicit WithCopies(const Simulator& simulator) : sliced_(simulator, start(simulator.task())) {}
  [[nodiscard]] const Simulator& simulator() const { return sliced_.simulator(); }

 private:
  static ShardingPlan start(const Task& task) {
    ShardingPlan plan;
    for (std::size_t t = 0; t < task.tables.size(); ++t) {
      const int table = static_cast<int>(t);
      if (t > 0 && *rc::gen::inRange(0, 3) == 0) {
        plan.replicated_tables.push_back(table);
      } else {
        plan.shards.push_back({table, 0, task.tables[t].embedding_dim, 0});
      }
    }
    return plan;
  }

  SlicedTask sliced_;
};

RC_GTEST_PROP(MeanBoundProperty, NoPlacementCostsLess, ()) {
  Task task = testing_tasks::task_of_any_tightness();
  if (*rc::gen::arbitrary<bool>()) task = testing_tasks::with_conditions(std::move(task));
  if (*rc::gen::arbitrary<bool>()) task = testing_tasks::with_row_orders(std::move(task));
  std::fill(task.topology.memory_bytes.begin(), task.topology.memory_bytes.end(),
            std::int64_t{1} << 60);
  const Simulator whole = make_simulator(task, bounded_model());
  const WithCopies copies(whole);
  const Simulator& simulator = copies.simulator();
  PieceCatalog catalog(simulator);
  MeanBound bound(simulator, catalog);
  RC_ASSERT(bound.exists());
  Random random(*rc::gen::arbitrary<std::uint64_t>());
  PieceList pieces = uncut_pieces(simulator.task(), catalog);
  ListTotals totals = bound.totals(pieces);
  const auto world_size = static_cast<std::size_t>(simulator.task().topology.world_size);
  for (int cut = 0; cut < 12; ++cut) {
    const double least_ms = bound.least_ms(totals);
    for (std::size_t used = 1; used <= world_size; used += 1 + used / 4) {
      const double cost = placed_cost_ms(simulator, catalog, pieces, used, random);
      RC_ASSERT(least_ms <= cost * (1.0 + 1e-9));
    }
    std::sort(pieces.begin(), pieces.end(),
              [&](PieceType a, PieceType b) { return catalog.goes_first(a, b); });
    const Placement even = GreedyGridSearch(simulator, catalog, {}).search(pieces);
    RC_ASSERT(even.feasible());
    RC_ASSERT(least_ms <= even.cost_ms * (1.0 + 1e-9));
    cut_one(catalog, bound, random, pieces, totals);
    const ListTotals anew = bound.totals(pieces);
    RC_ASSERT(totals.columns == anew.columns);
    for (std::size_t i = 0; i < anew.state.size(); ++i) {
      RC_ASSERT(std::abs(totals.state[i] - anew.state[i]) <= 1e-9 * std::abs(anew.state[i]));
    }
    RC_ASSERT(std::abs(totals.partial_bytes - anew.partial_bytes) <=
              1e-9 * std::abs(anew.partial_bytes));
  }
}

RC_GTEST_PROP(MeanBoundProperty, OfOneDeviceItIsThatOfItsComputation, ()) {
  Task task = testing_tasks::task_of_any_tightness();
  task.topology = testing_tasks::make_topology(1, 1, std::int64_t{1} << 50);
  const Simulator simulator = make_simulator(task, bounded_model());
  PieceCatalog catalog(simulator);
  MeanBound bound(simulator, catalog);
  const PieceList pieces = uncut_pieces(task, catalog);
  std::vector<double> state(catalog.state_size(), 0.0);
  for (const PieceType piece : pieces) {
    for (std::size_t i = 0; i < state.size(); ++i) state[i] += catalog.contribution(piece)[i];
  }
  // Not always its cost: a model may know what the widest piece does, which is no sum.
  const double compute_ms = simulator.compute().bound(state);
  RC_ASSERT(std::abs(bound.least_ms(bound.totals(pieces)) - compute_ms) <= 1e-9 * compute_ms);
}

/// Four slices of a table, one on each of four devices, and a copied table on all of them.
TEST(MeanBound, EqualPiecesOnEveryDeviceCostIt) {
  const Simulator whole = make_simulator(
      one_host_task({make_table("a", 1'000'000, 64, 20.0), make_table("b", 2000, 32, 5.0)}, 4,
                    std::int64_t{1} << 40),
      testing_networks::random_model(ComputeArchitecture::bounded_loads, 3));
  ShardingPlan start;
  start.shards.push_back({0, 0, 64, 0});
  start.replicated_tables = {1};
  const SlicedTask without_copies(whole, start);
  const Simulator& simulator = without_copies.simulator();
  ASSERT_GT(simulator.replicas_ms(), 0.0);
  PieceCatalog catalog(simulator);
  MeanBound bound(simulator, catalog);
  PieceList quarters;
  add_slices(catalog, catalog.add(0, 64, 4), quarters);
  const ListTotals totals = bound.totals(quarters);
  ASSERT_GT(totals.partial_bytes, 0.0);
  const std::vector<double> compute_ms(4, catalog.single_cost(quarters.front()));
  const std::vector<double> columns(4, 64.0);
  const double cost =
      simulator.combine(compute_ms, columns, 0.0, simulator.partial_sums_ms(totals.partial_bytes))
          .cost_ms;
  EXPECT_NEAR(bound.least_ms(totals), cost, 1e-6 * cost);
}

TEST(MeanBound, ThereIsNoneWithoutStructure) {
  const Simulator simulator = make_simulator(
      one_host_task({make_table("a", 1'000'000, 64, 20.0)}, 4, std::int64_t{1} << 40),
      testing_networks::random_model(ComputeArchitecture::published, 3));
  const PieceCatalog catalog(simulator);
  EXPECT_FALSE(MeanBound(simulator, catalog).exists());
}

}  // namespace
}  // namespace neuroshard
