// The beam search's rules (N, K, L, the largest *and* the costliest) against a naive reference.
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <set>
#include <tuple>
#include <vector>

#include "neuroshard/search/beam/beam_search.h"
#include "neuroshard/search/memory/memory_fit.h"
#include "tests/search/arbitrary_simulator.h"
#include "tests/search/beam/naive_grid_search.h"

namespace neuroshard {
namespace {

using testing_tasks::arbitrary_compute;
using testing_tasks::make_simulator;
using testing_tasks::make_table;
using testing_tasks::one_host_task;

/// The beam search as the paper tells it, without any of the shortcuts: every list of pieces is
/// placed from nothing, by a grid search of its own, and priced, and lists that were met are kept
/// whole. Memory is fitted by the library, whose plan says whether there is one, and adds a list
/// where no other one has room.
class NaiveBeamSearch {
 public:
  NaiveBeamSearch(const Simulator& simulator, const BeamSearchOptions& options,
                  const ShardingPlan& fitting)
      : simulator_(simulator), options_(options), fitting_(fitting), catalog_(simulator) {}

  struct State {
    std::vector<PieceType> pieces;
    Placement placement;
    [[nodiscard]] auto rank() const { return std::tuple(placement.unplaced_bytes, cost()); }
    [[nodiscard]] double cost() const { return placement.cost_ms; }
  };

  State run() {
    std::vector<State> beam = first_states();
    keep(beam);
    State best = beam.front();
    for (int level = 0; level < options_.num_levels;) {
      std::vector<State> children;
      for (const State& state : beam) {
        for (const PieceType piece : to_halve(state.pieces)) {
          add_if_new(halved(state.pieces, piece), children);
        }
      }
      if (children.empty()) break;
      keep(children);
      if (children.front().rank() < best.rank()) best = children.front();
      beam = std::move(children);
      // Cuts that memory demands are no levels.
      if (beam.front().placement.feasible()) ++level;
    }
    return best;
  }

  [[nodiscard]] std::int64_t states_tried() const { return states_tried_; }

  /// (table, columns, device) of each piece, in any order.
  [[nodiscard]] std::multiset<std::tuple<int, std::int64_t, int>> placed(const State& state) const {
    std::multiset<std::tuple<int, std::int64_t, int>> pieces;
    for (std::size_t i = 0; i < state.pieces.size(); ++i) {
      pieces.emplace(catalog_.table(state.pieces[i]), catalog_.num_columns(state.pieces[i]),
                     state.placement.devices[i]);
    }
    return pieces;
  }

 private:
  /// The tables whole but for what no device has memory for. Where the grid search finds no room
  /// for these, also in pieces of at most a half, a quarter, ... of a device, and as they fit.
  std::vector<State> first_states() {
    const std::vector<std::int64_t>& memory = simulator_.task().topology.memory_bytes;
    const std::int64_t largest = *std::max_element(memory.begin(), memory.end());
    std::vector<State> states;
    add_if_new(pieces_within(largest), states);
    if (states.front().placement.feasible()) return states;
    for (const int parts : {2, 4, 8, 16}) add_if_new(pieces_within(largest / parts), states);
    std::vector<PieceType> fitting;
    for (const Shard& shard : fitting_.shards) {
      fitting.push_back(catalog_.add(shard.table, shard.num_columns));
    }
    add_if_new(std::move(fitting), states);
    return states;
  }

  std::vector<PieceType> pieces_within(std::int64_t most_bytes) {
    std::vector<PieceType> pieces;
    const std::vector<Table>& tables = simulator_.task().tables;
    for (std::size_t t = 0; t < tables.size(); ++t) {
      std::vector<PieceType> waiting{catalog_.add(static_cast<int>(t), tables[t].embedding_dim)};
      while (!waiting.empty()) {
        const PieceType piece = waiting.back();
        waiting.pop_back();
        if (catalog_.bytes(piece) > most_bytes && catalog_.can_halve(piece)) {
          const auto [wide, narrow] = catalog_.halves(piece);
          waiting.insert(waiting.end(), {narrow, wide});
        } else {
          pieces.push_back(piece);
        }
      }
    }
    return pieces;
  }

  /// The K first of them, states that lack least memory before others.
  void keep(std::vector<State>& states) const {
    std::stable_sort(states.begin(), states.end(),
                     [](const State& a, const State& b) { return a.rank() < b.rank(); });
    states.resize(std::min(states.size(), static_cast<std::size_t>(options_.beam_width)));
  }

  void add_if_new(std::vector<PieceType> pieces, std::vector<State>& states) {
    std::sort(pieces.begin(), pieces.end(),
              [&](PieceType a, PieceType b) { return catalog_.goes_first(a, b); });
    if (!met_.emplace(pieces.begin(), pieces.end()).second) return;
    ++states_tried_;
    Placement placement =
        testing_search::NaiveGridSearch(simulator_, catalog_, options_.greedy).search(pieces);
    states.push_back({std::move(pieces), std::move(placement)});
  }

  /// The pieces that fewer than N others are dearer than, or fewer than N others are larger than;
  /// of equal pieces one.
  std::vector<PieceType> to_halve(const std::vector<PieceType>& pieces) const {
    std::vector<PieceType> distinct;
    for (const PieceType piece : pieces) {
      const bool is_known = std::find(distinct.begin(), distinct.end(), piece) != distinct.end();
      if (!is_known && catalog_.can_halve(piece)) distinct.push_back(piece);
    }
    const auto is_larger = [&](PieceType a, PieceType b) {
      return catalog_.bytes(a) > catalog_.bytes(b) ||
             (catalog_.bytes(a) == catalog_.bytes(b) && catalog_.goes_first(a, b));
    };
    std::vector<PieceType> chosen;
    for (const PieceType piece : distinct) {
      const auto dearer = std::count_if(distinct.begin(), distinct.end(), [&](PieceType other) {
        return catalog_.goes_first(other, piece);
      });
      const auto larger = std::count_if(distinct.begin(), distinct.end(),
                                        [&](PieceType other) { return is_larger(other, piece); });
      if (std::min(dearer, larger) < options_.num_candidates) chosen.push_back(piece);
    }
    return chosen;
  }

  std::vector<PieceType> halved(std::vector<PieceType> pieces, PieceType piece) {
    pieces.erase(std::find(pieces.begin(), pieces.end(), piece));
    const auto [wide, narrow] = catalog_.halves(piece);
    pieces.insert(pieces.end(), {wide, narrow});
    return pieces;
  }

  const Simulator& simulator_;
  const BeamSearchOptions options_;
  const ShardingPlan& fitting_;
  PieceCatalog catalog_;
  std::set<std::multiset<PieceType>> met_;
  std::int64_t states_tried_ = 0;
};

std::multiset<std::tuple<int, std::int64_t, int>> placed(const ShardingPlan& plan) {
  std::multiset<std::tuple<int, std::int64_t, int>> pieces;
  for (const Shard& shard : plan.shards)
    pieces.emplace(shard.table, shard.num_columns, shard.device);
  return pieces;
}

/// What is different, or nothing.
std::string difference(const Simulator& simulator, const BeamSearchOptions& options) {
  const MemoryFit fit = fit_memory(simulator.task());
  PlannerOptions one_thread;
  one_thread.num_threads = 1;
  PlanningResult result;
  try {
    result = BeamSearchPlanner(options).plan(simulator, one_thread);
  } catch (const InfeasibleError&) {
    return fit.feasible ? "no plan" : "";
  }
  if (!fit.feasible) return "a plan, where none fits";
  NaiveBeamSearch naive(simulator, options, fit.plan);
  const NaiveBeamSearch::State expected = naive.run();
  if (result.stats.states_expanded != naive.states_tried()) {
    return fmt::format("{} states, expected {}", result.stats.states_expanded,
                       naive.states_tried());
  }
  // The plan of the memory's fit counts, too.
  const double fitting = simulator.cost(fit.plan).cost_ms;
  if (result.predicted.cost_ms != std::min(expected.cost(), fitting)) {
    return fmt::format("cost {}, expected {} or {}", result.predicted.cost_ms, expected.cost(),
                       fitting);
  }
  if (expected.cost() <= fitting && placed(result.plan) != naive.placed(expected)) {
    return "another plan of the same cost";
  }
  return "";
}

BeamSearchOptions rules(int num_candidates, int beam_width, int num_levels) {
  BeamSearchOptions options;
  options.num_candidates = num_candidates;
  options.beam_width = beam_width;
  options.num_levels = num_levels;
  return options;
}

Simulator with_ample_memory(Task task, const std::shared_ptr<const ComputeCostModel>& compute) {
  std::fill(task.topology.memory_bytes.begin(), task.topology.memory_bytes.end(),
            std::int64_t{1} << 60);
  return make_simulator(task, compute);
}

RC_GTEST_PROP(BeamRulesProperty, AreThoseOfTheNaiveSearch, ()) {
  const Simulator simulator =
      with_ample_memory(testing_tasks::task_of_any_tightness(), arbitrary_compute());
  const BeamSearchOptions options =
      rules(*rc::gen::inRange(1, 5), *rc::gen::inRange(1, 5), *rc::gen::inRange(0, 7));
  RC_ASSERT(difference(simulator, options) == "");
}

RC_GTEST_PROP(BeamRulesProperty, AreThoseOfTheNaiveSearchWhereMemoryIsTight, ()) {
  const Simulator simulator =
      make_simulator(testing_tasks::task_of_any_tightness(), arbitrary_compute());
  const BeamSearchOptions options =
      rules(*rc::gen::inRange(1, 4), *rc::gen::inRange(1, 4), *rc::gen::inRange(0, 5));
  RC_ASSERT(difference(simulator, options) == "");
}

/// Rows fall as lookups rise, so that the largest tables are not the costliest.
Simulator large_or_costly() {
  std::vector<Table> tables;
  for (int t = 0; t < 8; ++t) {
    tables.push_back(make_table(fmt::format("t{}", t), 2'000'000 >> t, 64, 1.0 + 6.0 * t));
  }
  return with_ample_memory(one_host_task(tables, 3, 1), nullptr);
}

TEST(BeamRules, HalvesTheLargestAndTheCostliest) {
  const Simulator simulator = large_or_costly();
  for (const int n : {1, 2, 3, 5}) {
    EXPECT_EQ(difference(simulator, rules(n, 2, 3)), "") << n;
    PlannerOptions options;
    options.num_threads = 1;
    const SearchStats stats = BeamSearchPlanner(rules(n, 1, 1)).plan(simulator, options).stats;
    EXPECT_EQ(stats.levels.at(1).states_tried, std::min(2 * n, 8)) << n << " of either kind";
  }
}

TEST(BeamRules, WidthAndLevels) {
  const Simulator simulator = large_or_costly();
  for (const int width : {1, 2, 3, 8}) {
    for (const int levels : {0, 1, 4}) {
      EXPECT_EQ(difference(simulator, rules(2, width, levels)), "") << width << ", " << levels;
    }
  }
}

/// A set's hash that cancels equal pieces takes four quarters for two halves or for nothing.
TEST(BeamRules, ListsThatDifferInEqualPiecesAloneAreDifferent) {
  const Simulator one =
      with_ample_memory(one_host_task({make_table("a", 1'000'000, 64, 20.0)}, 8, 1), nullptr);
  EXPECT_EQ(difference(one, rules(10, 3, 12)), "");
  const Simulator two = with_ample_memory(
      one_host_task({make_table("a", 1'000'000, 64, 20.0), make_table("b", 900'000, 64, 19.0)}, 8,
                    1),
      nullptr);
  EXPECT_EQ(difference(two, rules(10, 3, 12)), "");
}

}  // namespace
}  // namespace neuroshard
