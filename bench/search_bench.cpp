// How long a plan takes: the paper's search and the improvement, by tables and devices, with the
// shipped model.
#include <benchmark/benchmark.h>
#include <sys/resource.h>

#include "bench/search_task.h"
#include "neuroshard/search/bound/lower_bound.h"
#include "neuroshard/search/first_plan.h"
#include "neuroshard/search/neuroshard_planner.h"

namespace neuroshard {
namespace {

/// The most memory that this process has had so far, all earlier cases included.
double peak_mib() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  return static_cast<double>(usage.ru_maxrss) / 1024.0;
}

void count(const Simulator& simulator, const PlanningResult& result, const Cuts& cuts,
           benchmark::State& state) {
  const double cost_ms = result.predicted.cost_ms;
  state.counters["cost_ms"] = cost_ms;
  state.counters["of_bound"] = cost_ms / lower_bound_ms(simulator, cuts, cost_ms);
  state.counters["heads"] = static_cast<double>(result.stats.head_evaluations);
  state.counters["plans"] = static_cast<double>(result.stats.plans_priced);
  state.counters["peak_MiB"] = peak_mib();
}

void plan(benchmark::State& state, const Planner& planner, int num_tables, int num_devices,
          int num_threads) {
  const auto simulator = bench::make_simulator(num_tables, num_devices);
  PlannerOptions options;
  options.num_threads = num_threads;
  PlanningResult result;
  for (auto _ : state) result = planner.plan(*simulator, options);
  count(*simulator, result, planner.cuts(options), state);
}

void plan(benchmark::State& state, const Planner& planner) {
  plan(state, planner, static_cast<int>(state.range(0)), static_cast<int>(state.range(1)),
       static_cast<int>(state.range(2)));
}

/// Longest time that a beam search of this number of tables may take
/// (docs/experiments/search_speed.md) [ms].
double at_most_ms(std::int64_t num_tables) {
  return num_tables == 60 ? 10.0 : num_tables == 120 ? 40.0 : num_tables == 1000 ? 2e3 : 60e3;
}

void beam_search(benchmark::State& state) {
  plan(state, BeamSearchPlanner());
  state.counters["at_most_ms"] = at_most_ms(state.range(0));
}
void improved_search(benchmark::State& state) { plan(state, NeuroShardPlanner()); }

/// Likewise with rows and copies.
double at_most_with_all_cuts_ms(std::int64_t num_tables) {
  return num_tables == 60 ? 15.0 : num_tables == 120 ? 60.0 : num_tables == 1000 ? 1e3 : 12e3;
}

/// The plan that the improvement starts from, with all cuts.
void search_with_all_cuts(benchmark::State& state) {
  const auto simulator =
      bench::make_simulator(static_cast<int>(state.range(0)), static_cast<int>(state.range(1)));
  PlannerOptions options;
  options.num_threads = static_cast<int>(state.range(2));
  options.cuts = {};
  PlanningResult result;
  for (auto _ : state) result = first_plan(*simulator, {}, options).best;
  count(*simulator, result, options.cuts, state);
  state.counters["at_most_ms"] = at_most_with_all_cuts_ms(state.range(0));
}

/// The sizes that have a limit, with the paper's settings.
void sizes(benchmark::internal::Benchmark* bench) {
  bench->ArgNames({"tables", "devices", "threads"})
      ->Args({60, 4, 1})
      ->Args({120, 8, 1})
      ->Args({1000, 128, 2})
      ->Args({5000, 1024, 2})
      ->Unit(benchmark::kMillisecond)
      ->UseRealTime();
}

BENCHMARK(beam_search)->Apply(sizes);
BENCHMARK(improved_search)->Apply(sizes);
BENCHMARK(search_with_all_cuts)->Apply(sizes);

/// How the search's time grows with each of tables, devices, N, K, L and M, one at a time.
void growth_tables(benchmark::State& state) {
  plan(state, BeamSearchPlanner(), static_cast<int>(state.range(0)), 8, 1);
}
BENCHMARK(growth_tables)->RangeMultiplier(2)->Range(60, 960)->Unit(benchmark::kMillisecond);

void growth_devices(benchmark::State& state) {
  plan(state, BeamSearchPlanner(), 480, static_cast<int>(state.range(0)), 1);
}
BENCHMARK(growth_devices)->RangeMultiplier(2)->Range(4, 128)->Unit(benchmark::kMillisecond);

void growth(benchmark::State& state, int BeamSearchOptions::*setting) {
  BeamSearchOptions options;
  options.*setting = static_cast<int>(state.range(0));
  plan(state, BeamSearchPlanner(options), 120, 8, 1);
}
BENCHMARK_CAPTURE(growth, N_candidates, &BeamSearchOptions::num_candidates)
    ->RangeMultiplier(2)
    ->Range(5, 40)
    ->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(growth, K_beam_width, &BeamSearchOptions::beam_width)
    ->RangeMultiplier(2)
    ->Range(1, 8)
    ->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(growth, L_levels, &BeamSearchOptions::num_levels)
    ->RangeMultiplier(2)
    ->Range(5, 40)
    ->Unit(benchmark::kMillisecond);

void growth_M_limits(benchmark::State& state) {
  BeamSearchOptions options;
  options.greedy.num_limits = static_cast<int>(state.range(0));
  plan(state, BeamSearchPlanner(options), 120, 8, 1);
}
BENCHMARK(growth_M_limits)
    ->Arg(1)
    ->Arg(5)
    ->Arg(11)
    ->Arg(21)
    ->Arg(41)
    ->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace neuroshard
