// Which tables are copied: the cheapest plan that the comparison met is the one that is kept.
#include "neuroshard/search/replicas/replica_choice.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <numeric>
#include <string>
#include <vector>

#include "neuroshard/core/error.h"
#include "neuroshard/search/search_json.h"
#include "tests/search/arbitrary_simulator.h"
#include "tests/search/few_large_tables.h"

namespace neuroshard {
namespace {

using testing_tasks::arbitrary_compute;
using testing_tasks::make_simulator;
using testing_tasks::make_table;
using testing_tasks::task_with_few_large_tables;

BeamSearchOptions all_cuts() {
  BeamSearchOptions beam;
  beam.rows = true;
  beam.patience = 3;
  return beam;
}

TEST(ReplicaChoice, NoSetOfCopiesThatIsComparedIsCheaper) {
  int with_copies = 0;
  for (std::uint64_t seed = 0; seed < 12; ++seed) {
    const Simulator simulator = make_simulator(task_with_few_large_tables(seed, 4));
    const Task& task = simulator.task();
    const BeamSearchOptions beam = all_cuts();
    const PlannerOptions options;
    const PlanningResult chosen = plan_with_replicas(simulator, beam, options);
    with_copies += chosen.plan.replicated_tables.empty() ? 0 : 1;
    EXPECT_THAT(violations(task, chosen.plan), testing::IsEmpty());
    EXPECT_EQ(chosen.predicted.cost_ms, simulator.cost(chosen.plan).cost_ms);
    // What a plan records must be numbers.
    EXPECT_NO_THROW((void)to_line(to_json(chosen.stats)));
    std::vector<int> tables(task.tables.size());
    std::iota(tables.begin(), tables.end(), 0);
    std::stable_sort(tables.begin(), tables.end(), [&](int a, int b) {
      return task.tables[a].num_embeddings < task.tables[b].num_embeddings;
    });
    for (double most = 256.0; most <= 262'144.0; most *= 4.0) {
      std::vector<int> copied;
      for (const int table : tables) {
        if (static_cast<double>(task.tables[table].num_embeddings) <= most) copied.push_back(table);
      }
      const PlanningResult one = plan_with_replicas_of(simulator, copied, beam, options);
      EXPECT_LE(chosen.predicted.cost_ms, simulator.cost(one.plan).cost_ms * (1.0 + 1e-9))
          << "seed " << seed << ", " << copied.size() << " copies";
    }
  }
  EXPECT_GT(with_copies, 3);
}

RC_GTEST_PROP(ReplicaChoice, IsNoDearerThanWithoutCopies, ()) {
  // Of the one kind hardly any plan has copies, of the other every third.
  const Task task = *rc::gen::arbitrary<bool>()
                        ? testing_tasks::task_of_any_tightness()
                        : task_with_few_large_tables(*rc::gen::arbitrary<std::uint64_t>(),
                                                     *rc::gen::element(2, 4, 7));
  const Simulator simulator = make_simulator(task, arbitrary_compute());
  const BeamSearchOptions beam = all_cuts();
  PlanningResult without;
  try {
    without = beam_search(simulator, beam, 1);
  } catch (const InfeasibleError&) {
    RC_CLASSIFY(true, "does not fit");
    return;
  }
  const PlanningResult chosen = plan_with_replicas(simulator, beam, {});
  RC_ASSERT(violations(simulator.task(), chosen.plan).empty());
  RC_ASSERT(chosen.predicted.cost_ms <= simulator.cost(without.plan).cost_ms * (1.0 + 1e-9));
  RC_CLASSIFY(!chosen.plan.replicated_tables.empty(), "copies");
}

/// Where cuts take long, copies are compared without: what matters comes after them.
TEST(ReplicaChoice, OnManyDevicesTheComparisonIsBrief) {
  const auto expanded = [](int num_devices) {
    const Simulator simulator = make_simulator(task_with_few_large_tables(3, num_devices));
    return plan_with_replicas(simulator, all_cuts(), {}).stats.states_expanded;
  };
  EXPECT_LT(3 * expanded(17), expanded(16));
}

TEST(BeamSearch, SaysNothingOfWhatWouldDoUnlessItIsAsked) {
  const Task task = testing_tasks::one_host_task({make_table("a", 1'000'000, 64)}, 2, 1 << 20);
  const Simulator simulator = make_simulator(task);
  BeamSearchOptions beam;
  const auto message = [&] {
    try {
      (void)beam_search(simulator, beam, 1);
    } catch (const InfeasibleError& error) {
      return std::string(error.what());
    }
    return std::string();
  };
  EXPECT_GT(message().size(), 60U);
  beam.explains_infeasible = false;
  EXPECT_EQ(message(), "no plan was found that fits");
}

}  // namespace
}  // namespace neuroshard
