// Rounds of chains.
#include "neuroshard/search/improve/local_search.h"

#include <algorithm>
#include <memory>
#include <utility>
#include <vector>

#include "neuroshard/search/improve/annealing.h"
#include "neuroshard/search/improve/improvement_chain.h"
#include "neuroshard/search/improve/large_neighbourhood.h"

namespace neuroshard {

namespace {

using Clock = std::chrono::steady_clock;

/// Of the chains of a round.
bool is_annealing(ImprovementMethod method, std::size_t chain) {
  return method == ImprovementMethod::both ? chain % 2 == 0
                                           : method == ImprovementMethod::annealing;
}

void add_round(SearchStats& stats, ImprovementRoundStats round) {
  for (const ChainStats& chain : round.chains) {
    stats.plans_priced += chain.plans_priced;
    stats.head_evaluations += chain.head_evaluations;
    stats.pieces_encoded += chain.pieces_encoded;
  }
  stats.rounds.push_back(std::move(round));
}

/// One round's best chain, and what all of them did.
void run_round(const Simulator& simulator, const LocalSearchOptions& options, std::int64_t round,
               ThreadPool& pool, PlanningResult& result) {
  std::vector<std::unique_ptr<ImprovementChain>> chains(std::max(options.num_chains, 1));
  pool.for_each(chains.size(), [&](std::size_t i, int) {
    const auto stream = static_cast<std::uint64_t>(round) * chains.size() + i;
    const auto make = is_annealing(options.method, i) ? make_annealing : make_large_neighbourhood;
    chains[i] = make(simulator, result.plan, options, stream);
    chains[i]->run();
  });
  ImprovementRoundStats stats;
  stats.cost_before_ms = stats.cost_after_ms = result.predicted.cost_ms;
  for (std::size_t i = 0; i < chains.size(); ++i) {
    stats.chains.push_back(chains[i]->stats());
    if (chains[i]->best_cost() >= stats.cost_after_ms) continue;
    stats.best_chain = i;
    stats.cost_after_ms = chains[i]->best_cost();
  }
  if (stats.best_chain) {
    result.plan = chains[*stats.best_chain]->assignment().plan();
    result.predicted = simulator.cost(result.plan);
  }
  add_round(result.stats, std::move(stats));
}

}  // namespace

LocalSearchOptions brief_local_search() {
  LocalSearchOptions options;
  options.method = ImprovementMethod::annealing;
  options.num_rounds = 8;
  options.num_steps = 15'000;
  options.round_ms = 15.625;
  options.first_temperature = 3e-2;
  return options;
}

PlanningResult improve_plan(const Simulator& simulator, const ShardingPlan& plan,
                            const LocalSearchOptions& options, ThreadPool& pool) {
  PlanningResult result;
  result.plan = plan;
  result.predicted = simulator.cost(plan);
  if (simulator.task().topology.world_size == 1) return result;  // nowhere to take anything
  std::int64_t rounds_without_gain = 0;
  for (std::int64_t round = 0; round < options.num_rounds; ++round) {
    if (options.deadline && Clock::now() >= *options.deadline) break;
    const double before = result.predicted.cost_ms;
    run_round(simulator, options, round, pool, result);
    const bool gained = result.predicted.cost_ms < before * (1.0 - options.least_gain);
    rounds_without_gain = gained ? 0 : rounds_without_gain + 1;
    if (rounds_without_gain >= options.patience) break;
  }
  return result;
}

}  // namespace neuroshard
