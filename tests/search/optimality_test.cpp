// How far the search is from the best plan, on tasks small enough to try every plan.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdio>
#include <limits>
#include <optional>
#include <string>
#include <vector>

#include "neuroshard/core/error.h"
#include "neuroshard/core/numbers/random.h"
#include "neuroshard/search/beam/beam_search.h"
#include "neuroshard/search/bound/lower_bound.h"
#include "neuroshard/search/neuroshard_planner.h"
#include "tests/search/arbitrary_simulator.h"

namespace neuroshard {
namespace {

using testing_tasks::make_simulator;
using testing_tasks::make_table;
using testing_tasks::one_host_task;

/// Every way of cutting and placing, depth first, over incremental states.
class BruteForce {
 public:
  explicit BruteForce(const Simulator& simulator)
      : simulator_(simulator),
        world_size_(simulator.task().topology.world_size),
        states_(world_size_, std::vector<double>(simulator.compute().state_size(), 0.0)),
        bytes_(world_size_, 0),
        columns_(world_size_, 0.0) {
    const std::vector<Table>& tables = simulator.task().tables;
    for (std::size_t t = 0; t < tables.size(); ++t) {
      pieces_.emplace_back();
      for (std::int64_t width = 0; width <= tables[t].embedding_dim; width += kColumnGranularity) {
        pieces_[t].emplace_back(simulator.compute().state_size());
        simulator.encode(static_cast<int>(t), std::max<std::int64_t>(width, 1), pieces_[t].back());
      }
    }
  }

  /// Cost of the best plan; infinite if none fits.
  double run() {
    place_rest(0, simulator_.task().tables[0].embedding_dim);
    return best_;
  }

 private:
  /// Places the first `columns` columns of the table in one or more pieces, then all later tables.
  void place_rest(std::size_t table, std::int64_t columns) {
    if (columns == 0) {
      if (++table == simulator_.task().tables.size()) return price();
      return place_rest(table, simulator_.task().tables[table].embedding_dim);
    }
    for (std::int64_t width = kColumnGranularity; width <= columns; width += kColumnGranularity) {
      for (int device = 0; device < world_size_; ++device) try_piece(table, columns, width, device);
    }
  }

  void try_piece(std::size_t table, std::int64_t columns, std::int64_t width, int device) {
    const Task& task = simulator_.task();
    const std::int64_t bytes = shard_bytes(task.tables[table], width, task.optimizer);
    if (bytes_[device] + bytes > task.topology.memory_bytes[device]) return;
    const std::vector<double>& piece = pieces_[table][width / kColumnGranularity];
    const auto add = [&](double sign) {
      for (std::size_t i = 0; i < piece.size(); ++i) states_[device][i] += sign * piece[i];
      bytes_[device] += static_cast<std::int64_t>(sign) * bytes;
      columns_[device] += sign * static_cast<double>(width);
    };
    add(1.0);
    place_rest(table, columns - width);
    add(-1.0);
  }

  void price() {
    std::vector<double> compute_ms;
    for (const auto& state : states_) compute_ms.push_back(simulator_.compute().cost(state));
    best_ = std::min(best_, simulator_.combine(compute_ms, columns_).cost_ms);
  }

  const Simulator& simulator_;
  int world_size_;
  std::vector<std::vector<std::vector<double>>> pieces_;  ///< [table][columns / 4]
  std::vector<std::vector<double>> states_;
  std::vector<std::int64_t> bytes_;
  std::vector<double> columns_;
  double best_ = std::numeric_limits<double>::infinity();
};

/// Two or three tables on two or three devices, or four on two; memory from tight to ample.
Task enumerable_task(Random& random) {
  std::vector<Table> tables;
  const std::int64_t num_tables = random.integer(2, 4);
  std::int64_t bytes = 0;
  for (std::int64_t t = 0; t < num_tables; ++t) {
    tables.push_back(make_table(fmt::format("t{}", t), random.integer(1000, 1'000'000),
                                4 * random.integer(1, 3), random.uniform(1.0, 40.0)));
    bytes += shard_bytes(tables.back(), tables.back().embedding_dim, Optimizer::sgd);
  }
  const auto devices = static_cast<int>(num_tables == 4 ? 2 : random.integer(2, 3));
  const double slack = random.uniform(1.05, 2.5);
  return one_host_task(tables, devices,
                       static_cast<std::int64_t>(slack * static_cast<double>(bytes) / devices));
}

/// Cost of the planner's plan relative to the best; none if no plan fits.
std::optional<double> ratio_to_best_columns(const Planner& planner, Random& random) {
  const Task task = enumerable_task(random);
  std::shared_ptr<const ComputeCostModel> compute;
  if (random.below(2) == 0) {
    compute = testing_networks::random_model(ComputeArchitecture::bounded_loads, random());
  }
  const Simulator simulator = make_simulator(task, compute);
  const double best = BruteForce(simulator).run();
  PlannerOptions options;
  options.cuts = kColumnsAlone;
  if (!(best < std::numeric_limits<double>::infinity())) {
    EXPECT_THROW((void)planner.plan(simulator, options), InfeasibleError);
    return std::nullopt;
  }
  EXPECT_GE(best, lower_bound_ms(simulator, kColumnsAlone));
  try {
    const double found = planner.plan(simulator, options).predicted.cost_ms;
    EXPECT_GE(found, best * (1.0 - 1e-12));
    return found / best;
  } catch (const InfeasibleError&) {
    return std::numeric_limits<double>::infinity();  // a plan fits, but none was found
  }
}

/// Ratios of `count` tasks that have a plan, rising.
std::vector<double> ratios_to_best(const Planner& planner, std::size_t count) {
  Random random(2023);
  std::vector<double> ratios;
  while (ratios.size() < count) {
    if (const auto ratio = ratio_to_best_columns(planner, random)) ratios.push_back(*ratio);
  }
  std::sort(ratios.begin(), ratios.end());
  const auto optimal = static_cast<double>(
      std::count_if(ratios.begin(), ratios.end(), [](double r) { return r <= 1.0 + 1e-9; }));
  std::printf(
      "%s, cost relative to the best plan, %zu tasks: %.1f %% the best, 99 %% below %.4f, "
      "most %.4f\n",
      std::string(planner.name()).c_str(), count, 100.0 * optimal / static_cast<double>(count),
      ratios[count * 99 / 100], ratios.back());
  return ratios;
}

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr std::size_t kColumnTasks = 40;  // each takes ten times as long
#else
constexpr std::size_t kColumnTasks = 200;
#endif

TEST(Optimality, ThePapersSearchIsNearlyAsGoodAsCanBe) {
  const std::vector<double> ratios = ratios_to_best(BeamSearchPlanner(), kColumnTasks);
  EXPECT_LT(ratios[kColumnTasks / 2], 1.0001);
  EXPECT_LT(ratios[kColumnTasks * 9 / 10], 1.03);
  // Where memory leaves only one or two plans, the greedy algorithm finds any of them.
  EXPECT_LT(ratios.back(), 1.5);
}

TEST(Optimality, TheImprovedSearchFindsTheBestPlanOfNineteenTasksInTwenty) {
  const std::vector<double> ratios = ratios_to_best(NeuroShardPlanner(), kColumnTasks);
  EXPECT_LE(ratios[kColumnTasks * 95 / 100 - 1], 1.0 + 1e-9);
  EXPECT_LT(ratios.back(), 1.05);
}

}  // namespace
}  // namespace neuroshard
