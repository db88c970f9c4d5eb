// Bytes over the milliseconds that the models predict.
#include "neuroshard/baselines/torchrec/fitted_constants.h"

#include <algorithm>
#include <cstddef>
#include <limits>
#include <numeric>
#include <vector>

namespace neuroshard::torchrec {

namespace {

constexpr double kAllReduceBytes = 25.0 * 1024 * 1024;

double rate(double bytes, double ms) {
  return ms > 0.0 ? bytes / ms : std::numeric_limits<double>::infinity();
}

/// What the computation model says of the tables, dealt out to the devices one by one [ms].
double computation_ms(const Simulator& simulator, const StopClock& clock) {
  const ComputeCostModel& model = simulator.compute();
  const std::size_t world_size = simulator.task().topology.world_size;
  const std::size_t state_size = model.state_size();
  std::vector<double> states(world_size * state_size, 0.0);
  std::vector<double> contribution(state_size);
  const std::vector<Table>& tables = simulator.task().tables;
  PatientClock patient(clock);
  for (std::size_t t = 0; t < tables.size(); ++t) {
    patient.check();
    simulator.encode(static_cast<int>(t), tables[t].embedding_dim, contribution);
    double* state = states.data() + t % world_size * state_size;
    for (std::size_t i = 0; i < state_size; ++i) state[i] += contribution[i];
  }
  std::vector<double> costs(world_size);
  model.costs_with(states, {}, costs);
  return std::accumulate(costs.begin(), costs.end(), 0.0);
}

double device_rate(const Simulator& simulator, const StopClock& clock) {
  const Task& task = simulator.task();
  MachineConstants unit;
  unit.device = 1.0;  // an estimate is a number of bytes then
  const PerfEstimate estimate(task, unit);
  double bytes = 0.0;
  for (const Table& table : task.tables) {
    const Perf perf = estimate(ShardingType::table_wise, table, table.embedding_dim);
    bytes += perf.fwd_compute + perf.bwd_compute;
  }
  return rate(bytes, computation_ms(simulator, clock));
}

/// Of an all-to-all of all devices of the topology, which hold as many columns as the task's do in
/// the mean.
double all_to_all_rate(const Simulator& simulator, const Topology& topology) {
  const Task& task = simulator.task();
  double columns = 0.0;
  for (const Table& table : task.tables) {
    columns += static_cast<double>(pooled_columns(table, table.embedding_dim));
  }
  columns /= task.topology.world_size;
  const std::size_t world_size = topology.world_size;
  const std::vector<double> equal(world_size, columns);
  const std::vector<double> together(world_size, 0.0);
  std::vector<double> backward(world_size);
  std::vector<double> forward(world_size);
  const CommunicationCostModel& model = simulator.communication();
  model.backward(topology, task.batch_size, equal, backward);
  model.forward(topology, task.batch_size, equal, together, forward);
  const double bytes = 2.0 * 4.0 * static_cast<double>(task.batch_size) * columns;
  return rate(bytes, *std::max_element(backward.begin(), backward.end()) +
                         *std::max_element(forward.begin(), forward.end()));
}

/// The rate that TorchRec's formula for all-reduces needs.
double all_reduce_rate(const Simulator& simulator) {
  const Topology& topology = simulator.task().topology;
  const double hosts =
      std::min(static_cast<double>(topology.world_size) / topology.local_world_size, 2.0);
  const double rounds = topology.world_size > 2 * topology.local_world_size ? 2.0 : 1.0;
  return rate(kAllReduceBytes * rounds * (2.0 * hosts - 1.0) / hosts,
              simulator.communication().all_reduce_ms(topology, kAllReduceBytes));
}

}  // namespace

MachineConstants fitted_constants(const Simulator& simulator, const StopClock& clock) {
  const Topology& topology = simulator.task().topology;
  Topology host = topology;
  host.world_size = topology.local_world_size;
  host.memory_bytes.resize(host.world_size);
  MachineConstants constants;
  constants.device = device_rate(simulator, clock);
  constants.intra_host = all_to_all_rate(simulator, host);
  constants.inter_host = all_to_all_rate(simulator, topology);
  constants.all_reduce = all_reduce_rate(simulator);
  return constants;
}

}  // namespace neuroshard::torchrec
