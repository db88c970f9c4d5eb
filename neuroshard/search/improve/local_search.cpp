// Rounds of chains.
#include "neuroshard/search/improve/local_search.h"

#include <algorithm>
#include <cmath>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "neuroshard/search/improve/annealing.h"
#include "neuroshard/search/improve/improvement_chain.h"
#include "neuroshard/search/improve/large_neighbourhood.h"
#include "neuroshard/search/improve/way_chances.h"

namespace neuroshard {

namespace {

using Clock = std::chrono::steady_clock;

/// Up to this number of devices, rounds are as long as the options say.
constexpr int kDevicesOfFullLength = 8;

/// All rounds of full length that the steps allow.
Rounds rounds_of_steps(std::int64_t round_steps, std::int64_t steps) {
  Rounds rounds;
  rounds.steps = std::min(round_steps, steps);
  rounds.count = steps / rounds.steps;
  rounds.patience = rounds.count;
  return rounds;
}

/// The whole budget in rounds of equal length, at least one.
Rounds rounds_of_time(double full_ms, double budget_of_chain_ms) {
  Rounds rounds;
  if (budget_of_chain_ms <= 0.0) return rounds;
  const double count = std::max(std::floor(budget_of_chain_ms / full_ms), 1.0);
  rounds.count = static_cast<std::int64_t>(count);
  rounds.nominal_ms = budget_of_chain_ms / count;
  rounds.patience = (rounds.count + 1) / 2;
  return rounds;
}

void add_round(SearchStats& stats, ImprovementRoundStats round) {
  for (const ChainStats& chain : round.chains) {
    stats.plans_priced += chain.plans_priced;
    stats.head_evaluations += chain.head_evaluations;
    stats.pieces_encoded += chain.pieces_encoded;
  }
  stats.rounds.push_back(std::move(round));
}

/// One round's best chain, and what all of them did. False if none began before the deadline.
bool run_round(const Simulator& simulator, const ChainSettings& settings, std::int64_t round,
               ThreadPool& pool, PlanningResult& result) {
  const std::vector<ChainKind>& kinds = settings.options.chains;
  std::vector<std::unique_ptr<ImprovementChain>> chains(kinds.size());
  pool.for_each(chains.size(), [&](std::size_t i, int) {
    const auto stream = static_cast<std::uint64_t>(round) * chains.size() + i;
    const auto make = kinds[i] == ChainKind::annealing ? make_annealing : make_large_neighbourhood;
    try {
      chains[i] = make(simulator, result.plan, settings, stream);
    } catch (const TimeIsOver&) {
      return;  // it has not begun: what the others found counts without it
    }
    chains[i]->run();
  });
  ImprovementRoundStats stats;
  stats.cost_before_ms = stats.cost_after_ms = result.predicted.cost_ms;
  const ImprovementChain* best = nullptr;
  for (const std::unique_ptr<ImprovementChain>& chain : chains) {
    if (chain == nullptr) continue;
    stats.chains.push_back(chain->stats());
    if (chain->best_cost() >= stats.cost_after_ms) continue;
    stats.best_chain = stats.chains.size() - 1;
    stats.cost_after_ms = chain->best_cost();
    best = chain.get();
  }
  if (stats.chains.empty()) return false;
  if (best != nullptr) {
    result.plan = best->assignment().plan();
    result.predicted = simulator.cost(result.plan);
  }
  add_round(result.stats, std::move(stats));
  return true;
}

}  // namespace

LocalSearchOptions local_search_options(ImprovementSchedule schedule) {
  LocalSearchOptions options;
  if (schedule == ImprovementSchedule::thorough) return options;
  options.chains = {ChainKind::annealing, ChainKind::annealing};
  options.chains_of_slicings = options.chains;
  options.round_steps = 15'000;
  options.round_ms = 15.625;
  options.first_temperature = 3e-2;
  return options;
}

Rounds rounds_of(const LocalSearchOptions& options, const LocalSearchBudget& budget,
                 int world_size) {
  if (budget.steps > 0) return rounds_of_steps(options.round_steps, budget.steps);
  const auto num_chains = static_cast<double>(std::max<std::size_t>(options.chains.size(), 1));
  const double full_ms =
      options.round_ms * std::max(world_size, kDevicesOfFullLength) / kDevicesOfFullLength;
  return rounds_of_time(full_ms, budget.nominal_ms / num_chains);
}

PlanningResult improve_plan(const Simulator& simulator, const ShardingPlan& plan,
                            const LocalSearchOptions& options, const LocalSearchBudget& budget,
                            ThreadPool& pool, const Slicings& slicings,
                            const MoveLimit* move_limit) {
  PlanningResult result;
  result.plan = plan;
  result.predicted = simulator.cost(plan);
  const int world_size = simulator.task().topology.world_size;
  if (world_size == 1) return result;  // nowhere to take anything
  LocalSearchOptions used = options;
  // With a limit on what moves, columns must also go home, which is the work of annealing.
  if (!slicings.empty() && move_limit == nullptr) used.chains = options.chains_of_slicings;
  std::optional<WayChances> chances;
  if (!slicings.empty() &&
      std::count(used.chains.begin(), used.chains.end(), ChainKind::large_neighbourhood) > 0) {
    chances.emplace(simulator, plan, slicings, StopClock(budget.deadline));
    result.stats.pieces_encoded += chances->pieces_encoded();
  }
  const Rounds rounds = rounds_of(used, budget, world_size);
  const ChainSettings settings{.options = used,
                               .steps = rounds.steps,
                               .nominal_ms = rounds.nominal_ms,
                               .seed = budget.seed,
                               .deadline = budget.deadline,
                               .slicings = slicings,
                               .chances = chances ? &*chances : nullptr,
                               .move_limit = move_limit};
  const auto tell_of = [&](std::int64_t done) {
    tell(budget.observer,
         {PlanningStage::improvement, done, rounds.count, result.predicted.cost_ms});
  };
  std::int64_t rounds_without_gain = 0;
  tell_of(0);
  for (std::int64_t round = 0; round < rounds.count; ++round) {
    if (budget.deadline && Clock::now() >= *budget.deadline) break;
    const double before = result.predicted.cost_ms;
    if (!run_round(simulator, settings, round, pool, result)) break;
    tell_of(round + 1);
    const bool gained = result.predicted.cost_ms < before * (1.0 - options.least_round_gain);
    rounds_without_gain = gained ? 0 : rounds_without_gain + 1;
    if (rounds_without_gain >= rounds.patience) break;
  }
  return result;
}

}  // namespace neuroshard
