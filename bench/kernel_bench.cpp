// The kernels in which the search spends its time, with the shipped models, and the machine's
// ceiling for the innermost.
#include <benchmark/benchmark.h>

#include <algorithm>
#include <memory>
#include <span>
#include <vector>

#include "bench/head_ceiling.h"
#include "bench/search_task.h"
#include "neuroshard/cost/compute/head_kernel.h"
#include "neuroshard/cost/compute/pessimistic_compute_model.h"
#include "neuroshard/search/beam/greedy_grid_search.h"
#include "neuroshard/search/bound/lower_bound.h"
#include "neuroshard/search/improve/column_assignment.h"
#include "neuroshard/search/memory/memory_fit.h"
#include "neuroshard/search/neuroshard_planner.h"
#include "neuroshard/search/state_rows.h"

namespace neuroshard {
namespace {

/// This number of states stays in the first-level cache.
constexpr int kStates = 32;

/// A state for each of 32 devices, of one piece each, as the search keeps them.
StateRows make_states(const Simulator& simulator) {
  StateRows states(simulator.compute().state_size(), kStates);
  for (int i = 0; i < kStates; ++i) simulator.encode(i % 60, 4, states[i]);
  return states;
}

/// The same states one after the other.
std::vector<double> in_a_row(const StateRows& states) {
  std::vector<double> all;
  for (int i = 0; i < kStates; ++i) all.insert(all.end(), states[i].begin(), states[i].end());
  return all;
}

/// Bytes: the state is read once, as are bias and output weights, which are not counted.
void count_heads(benchmark::State& state, const ComputeCostModel& model) {
  state.SetItemsProcessed(state.iterations() * kStates);
  state.SetBytesProcessed(state.iterations() * kStates *
                          static_cast<std::int64_t>(model.state_size() * sizeof(double)));
}

/// One head for each of 32 devices in one call, as where a piece is tried on all of them.
void head(benchmark::State& state) {
  const auto simulator = bench::make_simulator(60, 4);
  const ComputeCostModel& model = simulator->compute();
  const std::vector<double> states = in_a_row(make_states(*simulator));
  std::vector<double> costs(kStates);
  for (auto _ : state) {
    model.costs_with(states, {}, costs);
    benchmark::DoNotOptimize(costs.data());
  }
  count_heads(state, model);
}
BENCHMARK(head);

/// One call for each state, as the improvement makes them.
void heads_one_by_one(benchmark::State& state, const Simulator& simulator,
                      const ComputeCostModel& model) {
  const StateRows states = make_states(simulator);
  for (auto _ : state) {
    for (int i = 0; i < kStates; ++i) benchmark::DoNotOptimize(model.cost(states[i]));
  }
  count_heads(state, model);
}

void head_alone(benchmark::State& state) {
  const auto simulator = bench::make_simulator(60, 4);
  heads_one_by_one(state, *simulator, simulator->compute());
}
BENCHMARK(head_alone);

/// The same for the pessimistic model, which evaluates every member of the ensemble.
void head_pessimist(benchmark::State& state) {
  const auto simulator = bench::make_simulator(60, 4);
  heads_one_by_one(state, *simulator, PessimisticComputeModel(simulator->shared_compute(), 0.5));
}
BENCHMARK(head_pessimist);

/// The same loads and operations as of `head` without a cost for each state: the machine's ceiling.
void head_ceiling(benchmark::State& state) {
  const auto simulator = bench::make_simulator(60, 4);
  const ComputeCostModel& model = simulator->compute();
  const std::vector<double> states = in_a_row(make_states(*simulator));
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

/// State and piece are read, the state is written.
std::int64_t bytes_of_update(const ComputeCostModel& model) {
  return 3 * static_cast<std::int64_t>(model.state_size() * sizeof(double));
}

/// A piece added to a state and taken from it: two reads and a write of each element.
void state_update(benchmark::State& state) {
  const auto simulator = bench::make_simulator(60, 4);
  StateRows states = make_states(*simulator);
  const std::size_t size = states.state_size();
  for (auto _ : state) {
    kernels::add(states[0].data(), states[1].data(), size);
    benchmark::ClobberMemory();
    kernels::subtract(states[0].data(), states[1].data(), size);
    benchmark::ClobberMemory();
  }
  state.SetItemsProcessed(state.iterations() * 2);
  state.SetBytesProcessed(state.iterations() * 2 * bytes_of_update(simulator->compute()));
}
BENCHMARK(state_update);

/// A piece added to a state and the head of the result, as the greedy algorithm does for every
/// piece.
void add_and_cost(benchmark::State& state) {
  const auto simulator = bench::make_simulator(60, 4);
  const ComputeCostModel& model = simulator->compute();
  const StateRows states = make_states(*simulator);
  StateRows sum(states.state_size(), 1);
  for (auto _ : state) {
    for (int i = 0; i < kStates; ++i) {
      benchmark::DoNotOptimize(model.add_and_cost(sum[0], states[i]));
    }
    sum.set_to_zero();  // as small as real ones
    benchmark::ClobberMemory();
  }
  state.SetItemsProcessed(state.iterations() * kStates);
  state.SetBytesProcessed(state.iterations() * kStates * bytes_of_update(model));
}
BENCHMARK(add_and_cost);

void encode(benchmark::State& state) {
  const auto simulator = bench::make_simulator(60, 4);
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
  const auto simulator = bench::make_simulator(15 * devices, devices);
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

/// A transfer that is judged without its all-to-alls, and undone: most steps of the improvement.
void neighbour(benchmark::State& state) {
  const auto devices = static_cast<int>(state.range(0));
  const auto simulator = bench::make_simulator(15 * devices, devices);
  PieceCatalog catalog(*simulator);
  ColumnAssignment assignment(*simulator, catalog, fit_memory(simulator->task()).plan);
  (void)assignment.cost();
  const auto held = assignment.holdings(0).front();
  const Transfer there{held.table, held.num_columns, 0, 1};
  for (auto _ : state) {
    assignment.remember(0, 1);
    assignment.apply(there);
    benchmark::DoNotOptimize(assignment.floor().cost_ms);
    assignment.roll_back();
  }
  state.SetItemsProcessed(state.iterations());
}
BENCHMARK(neighbour)->Arg(4)->Arg(8)->Arg(128);

/// Both all-to-alls of a plan.
void all_to_alls(benchmark::State& state) {
  const auto devices = static_cast<int>(state.range(0));
  const auto simulator = bench::make_simulator(15 * devices, devices);
  std::vector<double> compute_ms(devices);
  std::vector<double> columns(devices);
  for (int d = 0; d < devices; ++d) {
    compute_ms[d] = 10.0 + 0.1 * (d % 7);
    columns[d] = 640.0 + 8.0 * (d % 5);
  }
  for (auto _ : state) {
    benchmark::DoNotOptimize(simulator->combine(compute_ms, columns).cost_ms);
  }
  state.SetItemsProcessed(state.iterations());
}
BENCHMARK(all_to_alls)->Arg(4)->Arg(8)->Arg(128);

/// One list of pieces placed under all limits on columns.
void grid(benchmark::State& state) {
  const auto devices = static_cast<int>(state.range(0));
  const auto simulator = bench::make_simulator(15 * devices, devices);
  for (auto _ : state) {
    PieceCatalog catalog(*simulator);
    std::vector<PieceType> pieces;
    for (std::size_t t = 0; t < simulator->task().tables.size(); ++t) {
      pieces.push_back(catalog.add(static_cast<int>(t), simulator->task().tables[t].embedding_dim));
    }
    std::sort(pieces.begin(), pieces.end(),
              [&](PieceType a, PieceType b) { return catalog.goes_first(a, b); });
    benchmark::DoNotOptimize(GreedyGridSearch(*simulator, catalog, {}).search(pieces).cost_ms);
  }
}
BENCHMARK(grid)->Arg(4)->Arg(8)->Arg(128)->Unit(benchmark::kMicrosecond);

void memory_fit(benchmark::State& state) {
  const auto devices = static_cast<int>(state.range(0));
  const auto simulator = bench::make_simulator(15 * devices, devices);
  for (auto _ : state) benchmark::DoNotOptimize(fit_memory(simulator->task()).feasible);
}
BENCHMARK(memory_fit)->Arg(4)->Arg(8)->Arg(128)->Unit(benchmark::kMicrosecond);

void bound(benchmark::State& state) {
  const auto simulator = bench::make_simulator(static_cast<int>(state.range(0)), 4);
  for (auto _ : state) benchmark::DoNotOptimize(lower_bound_ms(*simulator, kColumnsAlone));
}
BENCHMARK(bound)->Arg(60)->Arg(1000)->Unit(benchmark::kMillisecond);

/// Of all cuts, below a plan that was found.
void bound_of_all_cuts(benchmark::State& state) {
  const auto devices = static_cast<int>(state.range(1));
  const auto simulator = bench::make_simulator(static_cast<int>(state.range(0)), devices);
  PlannerOptions options;
  options.steps = 1000;
  const double cost_ms = NeuroShardPlanner().plan(*simulator, options).predicted.cost_ms;
  double bound_ms = 0.0;
  for (auto _ : state) bound_ms = lower_bound_ms(*simulator, {}, cost_ms);
  state.counters["of_bound"] = cost_ms / bound_ms;
}
BENCHMARK(bound_of_all_cuts)
    ->Args({60, 4})
    ->Args({120, 8})
    ->Args({1000, 128})
    ->Args({5000, 1024})
    ->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace neuroshard
