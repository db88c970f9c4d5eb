// How long a plan takes: the paper's search and the improvement, by tables and devices, with the
// shipped model; and the kernels that they spend their time in.
#include <benchmark/benchmark.h>
#include <sys/resource.h>

#include <memory>
#include <span>
#include <vector>

#include "bench/head_ceiling.h"
#include "neuroshard/cost/model_catalog.h"
#include "neuroshard/search/column_assignment.h"
#include "neuroshard/search/lower_bound.h"
#include "neuroshard/search/memory_fit.h"
#include "neuroshard/search/neuroshard_planner.h"
#include "neuroshard/workload/workload_catalog.h"

namespace neuroshard {
namespace {

/// A task of `num_tables` tables of dlrm-2021, taken round and round, with the dimensions of the
/// paper's tasks in turn, on devices that have half as much memory again as they need.
Task make_task(int num_tables, int num_devices) {
  static const Workload workload = find_workload("dlrm-2021", 0);
  constexpr std::int64_t kDims[] = {4, 8, 16, 32, 64, 128};
  Task task;
  task.batch_size = 4096;
  task.optimizer = Optimizer::rowwise_adagrad;
  std::int64_t bytes = 0;
  for (int t = 0; t < num_tables; ++t) {
    Table table = workload.tables[t % workload.tables.size()];
    table.name.append("-").append(std::to_string(t));
    table.embedding_dim = kDims[t % 6];
    bytes += shard_bytes(table, table.embedding_dim, task.optimizer);
    task.tables.push_back(table);
  }
  task.topology.world_size = num_devices;
  task.topology.local_world_size = 1;
  task.topology.memory_bytes.assign(num_devices, bytes / num_devices * 3 / 2 + (1 << 20));
  return task;
}

std::unique_ptr<Simulator> make_simulator(int num_tables, int num_devices) {
  const Task task = make_task(num_tables, num_devices);
  const CostModels models = load_cost_models({"cpu-xeon-2core", "ethernet-25g"}, task.topology);
  return std::make_unique<Simulator>(task, models.compute, models.communication);
}

/// The most memory that this process has had so far, all earlier cases included.
double peak_mib() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  return static_cast<double>(usage.ru_maxrss) / 1024.0;
}

void plan(benchmark::State& state, const Planner& planner, int num_tables, int num_devices,
          int num_threads) {
  const auto simulator = make_simulator(num_tables, num_devices);
  PlannerOptions options;
  options.num_threads = num_threads;
  PlanningResult result;
  for (auto _ : state) result = planner.plan(*simulator, options);
  state.counters["cost_ms"] = result.predicted.cost_ms;
  state.counters["of_bound"] = result.predicted.cost_ms / lower_bound_ms(*simulator);
  state.counters["heads"] = static_cast<double>(result.stats.head_evaluations);
  state.counters["plans"] = static_cast<double>(result.stats.plans_priced);
  state.counters["peak_MiB"] = peak_mib();
}

void plan(benchmark::State& state, const Planner& planner) {
  plan(state, planner, static_cast<int>(state.range(0)), static_cast<int>(state.range(1)),
       static_cast<int>(state.range(2)));
}

void beam_search(benchmark::State& state) { plan(state, BeamSearchPlanner()); }
void improved_search(benchmark::State& state) { plan(state, NeuroShardPlanner()); }

/// The sizes that have a limit (docs/results.md), with the paper's settings.
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

constexpr int kStates = 64;

/// A state for each of 64 devices, of one piece each.
std::vector<double> make_states(const Simulator& simulator) {
  const std::size_t size = simulator.compute().state_size();
  std::vector<double> states(size * kStates);
  for (int i = 0; i < kStates; ++i) {
    simulator.encode(i % 60, 4, std::span(states).subspan(i * size, size));
  }
  return states;
}

/// Bytes: the state is read once; bias and output weights stay in the first-level cache.
void count_heads(benchmark::State& state, const ComputeCostModel& model) {
  state.SetItemsProcessed(state.iterations() * kStates);
  state.SetBytesProcessed(state.iterations() * kStates *
                          static_cast<std::int64_t>(model.state_size() * sizeof(double)));
}

/// One head for each of 64 devices.
void head(benchmark::State& state) {
  const auto simulator = make_simulator(60, 4);
  const ComputeCostModel& model = simulator->compute();
  const std::vector<double> states = make_states(*simulator);
  std::vector<double> costs(kStates);
  for (auto _ : state) {
    model.costs_with(states, {}, costs);
    benchmark::DoNotOptimize(costs.data());
  }
  count_heads(state, model);
}
BENCHMARK(head);

/// The same loads and operations without a cost for each state: the machine's ceiling.
void head_ceiling(benchmark::State& state) {
  const auto simulator = make_simulator(60, 4);
  const ComputeCostModel& model = simulator->compute();
  const std::vector<double> states = make_states(*simulator);
  // A state is two words, the hidden units and a word for each member of the ensemble.
  const std::size_t hidden = model.state_size() - 2 - static_cast<std::size_t>(model.num_members());
  const std::vector<double> bias(hidden, 0.1);
  const std::vector<double> output(hidden, 0.01);
  for (auto _ : state) {
    benchmark::DoNotOptimize(bench::head_ceiling(states.data() + 2, kStates, model.state_size(),
                                                 hidden, bias.data(), output.data()));
  }
  count_heads(state, model);
}
BENCHMARK(head_ceiling);

void encode(benchmark::State& state) {
  const auto simulator = make_simulator(60, 4);
  std::vector<double> contribution(simulator->compute().state_size());
  int table = 0;
  for (auto _ : state) {
    simulator->encode(table, 4, contribution);
    benchmark::DoNotOptimize(contribution.data());
    table = (table + 1) % 60;
  }
  state.SetItemsProcessed(state.iterations());
}
BENCHMARK(encode);

/// A transfer there and back, each with the plan's cost.
void transfer(benchmark::State& state) {
  const auto devices = static_cast<int>(state.range(0));
  const auto simulator = make_simulator(15 * devices, devices);
  PieceCatalog catalog(*simulator);
  ColumnAssignment assignment(*simulator, catalog, fit_memory(simulator->task()).plan);
  const auto held = assignment.holdings(0).front();
  const Transfer there{held.table, held.num_columns, 0, 1};
  for (auto _ : state) {
    assignment.apply(there);
    benchmark::DoNotOptimize(assignment.cost().cost_ms);
    assignment.apply(there.reversed());
    benchmark::DoNotOptimize(assignment.cost().cost_ms);
  }
  state.SetItemsProcessed(state.iterations() * 2);
}
BENCHMARK(transfer)->Arg(4)->Arg(8)->Arg(128);

void bound(benchmark::State& state) {
  const auto simulator = make_simulator(static_cast<int>(state.range(0)), 4);
  for (auto _ : state) benchmark::DoNotOptimize(lower_bound_ms(*simulator));
}
BENCHMARK(bound)->Arg(60)->Arg(1000)->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace neuroshard
