// Planning with listed options.
#include "neuroshard/search/options/option_planner.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "neuroshard/core/error.h"
#include "neuroshard/core/machine/parallel.h"
#include "neuroshard/core/numbers/byte_sum.h"
#include "neuroshard/core/numbers/random.h"
#include "neuroshard/core/text/printable.h"
#include "neuroshard/core/units.h"
#include "neuroshard/search/options/option_annealing.h"
#include "neuroshard/search/options/option_bound.h"
#include "neuroshard/search/options/option_construction.h"
#include "neuroshard/search/options/option_fit.h"

namespace neuroshard {

namespace {

/// Chains of a round: of the first one from different constructions, then from the best choice of
/// all rounds before.
constexpr std::size_t kChains = 4;
/// Cold chains improve, warm ones leave what cannot be improved.
constexpr double kFirstTemperatures[kChains] = {0.01, 1.0, 0.01, 0.1};
constexpr int kRounds = 4;
/// Steps of each chain, of all rounds, without the user's: for each table, and at least.
constexpr std::int64_t kStepsPerTable = 400;
constexpr std::int64_t kLeastSteps = 60'000;
/// Looks at a device, for a choice that fits where no chain has met one: well under a second.
constexpr std::int64_t kFitWork = 20'000'000;
/// Where the cost is this near to the bound, more is not worth the time.
constexpr double kCloseEnough = 1e-4;

[[noreturn]] void throw_infeasible(const OptionTask& task, bool is_proven) {
  std::string needs;
  for (std::size_t k = 0; k < task.memories.size(); ++k) {
    WideBytes least = 0;
    WideBytes room = 0;
    for (const OptionTable& table : task.tables) {
      std::optional<WideBytes> of_table;
      for (const ShardingChoice& option : table.options) {
        WideBytes sum = 0;
        for (const OptionShard& shard : option.shards) sum += shard.bytes[k];
        if (!of_table || sum < *of_table) of_table = sum;
      }
      least += *of_table;
    }
    for (const std::int64_t bytes : task.memories[k].bytes)
      room += std::max<std::int64_t>(bytes, 0);
    if (least == 0) continue;
    needs += fmt::format("{}{}: the tables' smallest options have {} in all, the devices {}",
                         needs.empty() ? "" : "; ", task.memories[k].name,
                         format_bytes(static_cast<double>(least)),
                         format_bytes(static_cast<double>(room)));
  }
  throw InfeasibleError(fmt::format("{} ({})",
                                    is_proven
                                        ? "no choice of options fits into memory"
                                        : "no choice of options was found that fits into memory",
                                    needs));
}

OptionPlan answer(const OptionTask& task, const OptionSpace& space, const OptionBound& bound,
                  const OptionAssignment& best) {
  OptionPlan plan;
  plan.chosen = best.chosen();
  const std::vector<double> costs = device_costs_ms(task, plan.chosen);
  plan.cost_ms = *std::max_element(costs.begin(), costs.end());
  plan.lower_bound_ms = std::min(plan.cost_ms, bound.cost * space.unit_ms());
  return plan;
}

bool is_close(const OptionAssignment& assignment, const OptionBound& bound) {
  return assignment.fits() &&
         static_cast<double>(assignment.slowest()) <= (1.0 + kCloseEnough) * bound.cost;
}

/// One round: the best of its chains and of what it begins with, which becomes `best`.
class Improvement {
 public:
  Improvement(const OptionBound& bound, const OptionPlannerOptions& options, std::int64_t steps)
      : bound_(bound), seed_(options.seed), steps_(steps), pool_(options.num_threads) {}

  /// Chains begin with the choices of `first`, those beyond with the best.
  void run_round(int round, std::span<const OptionAssignment> first, OptionAssignment& best) {
    std::vector<std::optional<OptionAssignment>> found(kChains);
    std::vector<OptionAnnealingStats> stats(kChains);
    pool_.for_each(kChains, [&](std::size_t chain, int) {
      OptionAnnealingSettings settings;
      settings.steps = std::max<std::int64_t>(1, steps_ / kRounds);
      settings.seed = Random::for_stream(seed_, round * kChains + chain)();
      settings.bound = bound_.cost;
      settings.first_temperature = kFirstTemperatures[chain];
      found[chain].emplace(
          anneal(chain < first.size() ? first[chain] : best, settings, stats[chain]));
    });
    // In the order of the chains, whichever thread ended first.
    for (std::size_t chain = 0; chain < kChains; ++chain) {
      total_.steps += stats[chain].steps;
      total_.accepted += stats[chain].accepted;
      const bool is_better =
          found[chain]->fits() && (!best.fits() || found[chain]->slowest() < best.slowest());
      if (is_better) best = *found[chain];
    }
  }

  [[nodiscard]] const OptionAnnealingStats& total() const { return total_; }

 private:
  const OptionBound& bound_;
  std::uint64_t seed_;
  std::int64_t steps_;
  ThreadPool pool_;
  OptionAnnealingStats total_;
};

}  // namespace

OptionPlan plan_options(const OptionTask& task, const OptionPlannerOptions& options) {
  require_valid(task);
  const OptionSpace space(task);
  if (space.table_without_room() >= 0) {
    throw InfeasibleError(
        fmt::format("no choice of options fits into memory (no option of table \"{}\" has room "
                    "on devices that have nothing else)",
                    printable(task.tables[space.table_without_room()].name)));
  }
  const OptionBound bound = option_bound(space);
  if (std::isinf(bound.cost)) throw_infeasible(task, true);
  const std::vector<OptionAssignment> first = best_constructions(space, bound, kChains);
  OptionAssignment best = first.front();
  const auto tables = static_cast<std::int64_t>(task.tables.size());
  const std::int64_t default_steps = std::max(kLeastSteps, kStepsPerTable * tables);
  Improvement improvement(bound, options, options.steps > 0 ? options.steps : default_steps);
  const auto improve = [&](int first_round) {
    for (int round = first_round; round < first_round + kRounds; ++round) {
      if (tables == 0 || is_close(best, bound)) return;
      const bool is_first = round == 0;
      improvement.run_round(
          round, is_first ? std::span(first) : std::span<const OptionAssignment>(), best);
    }
  };
  improve(0);
  if (!best.fits()) {
    OptionFit fit = find_option_fit(space, kFitWork);
    if (!fit.found) throw_infeasible(task, fit.is_decided);
    best = *std::move(fit.found);
    improve(kRounds);
  }
  OptionPlan plan = answer(task, space, bound, best);
  plan.steps = improvement.total().steps;
  plan.accepted = improvement.total().accepted;
  return plan;
}

}  // namespace neuroshard
