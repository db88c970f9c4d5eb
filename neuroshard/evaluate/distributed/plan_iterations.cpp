// The iterations, timed phase by phase.
#include "neuroshard/evaluate/distributed/plan_iterations.h"

#include <fmt/format.h>
#include <sched.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <memory>
#include <vector>

#include "neuroshard/collect/communication/all_to_all_benchmark.h"
#include "neuroshard/core/error.h"

namespace neuroshard {

namespace {

constexpr std::size_t kPhases = 4;
using Phases = std::array<double, kPhases>;  // in the order of DeviceIteration

std::vector<std::int64_t> column_sums(const Task& task, const ShardingPlan& plan) {
  std::vector<std::int64_t> columns(task.topology.world_size, 0);
  for (const Shard& shard : plan.shards) columns[shard.device] += shard.num_columns;
  return columns;
}

std::vector<Piece> pieces_of(const ShardingPlan& plan, int device) {
  std::vector<Piece> pieces;
  for (const Shard& shard : plan.shards) {
    if (shard.device == device) pieces.push_back({shard.table, shard.num_columns});
  }
  return pieces;
}

/// This process's work in an iteration.
class Device {
 public:
  Device(const Task& task, const ShardingPlan& plan, ComputeBackend& backend, std::uint64_t seed,
         Transport& transport)
      : transport_(transport),
        bytes_(forward_bytes(column_sums(task, plan), task.batch_size, DataType::fp32,
                             transport.rank())) {
    const int rank = transport.rank();
    std::vector<Piece> pieces = pieces_of(plan, rank);
    if (pieces.empty()) return;
    const Random random = Random::for_stream(seed, static_cast<std::uint64_t>(rank));
    MeasuringDevice& device = *backend.devices.front();
    device.forget_tables();
    set_ = device.prepare(
        {rank, task.tables, std::move(pieces), random, task.batch_size, task.optimizer});
  }

  Phases iterate() {
    transport_.barrier();
    Phases phases{};
    double before = transport_.now_ms();
    const auto lap = [&](std::size_t phase) {
      const double now = transport_.now_ms();
      phases[phase] = now - before;
      before = now;
    };
    transport_.exchange(bytes_.received, bytes_.sent);
    lap(0);
    if (set_) (void)set_->backward().get();
    lap(1);
    if (set_) (void)set_->forward().get();
    lap(2);
    transport_.exchange(bytes_.sent, bytes_.received);
    lap(3);
    return phases;
  }

 private:
  Transport& transport_;
  std::unique_ptr<PreparedSet> set_;
  AllToAllBytes bytes_;
};

/// Of all iterations, in process 0: [phase][device][iteration].
using History = std::array<std::vector<std::vector<double>>, kPhases>;

DeviceIteration summarize(const History& history, std::size_t device, double quantile) {
  Phases phases{};
  for (std::size_t phase = 0; phase < kPhases; ++phase) {
    phases[phase] = estimate_quantile(history[phase][device], quantile).value;
  }
  return {phases[0], phases[1], phases[2], phases[3]};
}

}  // namespace

PlanIterations run_plan_iterations(const Task& task, const ShardingPlan& plan,
                                   ComputeBackend& backend, const RepetitionOptions& repetitions,
                                   std::uint64_t seed, Transport& transport,
                                   const std::function<void(int)>& on_iteration) {
  const int world_size = task.topology.world_size;
  if (transport.size() != world_size) {
    throw CollectiveInputError("mpi",
                               fmt::format("{} processes, one per device of the plan", world_size),
                               fmt::format("{}", transport.size()));
  }
  if (plan.has_row_slices() || !plan.replicated_tables.empty()) {
    throw CollectiveInputError(
        "plan", "a plan that cuts columns alone, as processes do not add partial sums",
        fmt::format("{} slices of rows and {} replicated tables", plan.num_row_slices(),
                    plan.replicated_tables.size()));
  }
  Device device(task, plan, backend, seed, transport);
  RepeatedTiming slowest(repetitions);
  History history;
  for (auto& phase : history) phase.resize(transport.rank() == 0 ? world_size : 0);
  for (bool again = true; again;) {
    const double begun = transport.now_ms();
    const Phases own = device.iterate();
    std::vector<double> totals(world_size, 0.0);
    const bool counts = !slowest.warming_up();
    for (std::size_t phase = 0; phase < kPhases; ++phase) {
      const std::vector<double> values = transport.gather(own[phase]);
      for (std::size_t d = 0; d < values.size(); ++d) {
        totals[d] += values[d];
        if (counts) history[phase][d].push_back(values[d]);
      }
    }
    if (transport.rank() == 0) {
      slowest.add(*std::max_element(totals.begin(), totals.end()),
                  (transport.now_ms() - begun) * 1e-3);
      if (on_iteration) on_iteration(static_cast<int>(slowest.values().size()));
      again = !slowest.done();
    }
    again = transport.broadcast(again);
  }
  PlanIterations result;
  if (transport.rank() != 0) return result;
  for (int d = 0; d < world_size; ++d) {
    result.devices.push_back(summarize(history, static_cast<std::size_t>(d), repetitions.quantile));
  }
  result.cost_ms = slowest.estimate().value;
  result.interval = slowest.estimate().interval;
  result.iterations = static_cast<int>(slowest.values().size());
  return result;
}

ProcessShare take_share_of_cores(MpiTransport& transport) {
  const std::string own = MpiTransport::host_name();
  const std::vector<std::string> hosts = transport.all_gather(own);
  const auto local = static_cast<int>(std::count(hosts.begin(), hosts.end(), own));
  const auto index =
      static_cast<int>(std::count(hosts.begin(), hosts.begin() + transport.rank(), own));
  const auto cores = static_cast<int>(std::max(1L, sysconf(_SC_NPROCESSORS_ONLN)));
  cpu_set_t allowed;
  CPU_ZERO(&allowed);
  const bool known = sched_getaffinity(0, sizeof(allowed), &allowed) == 0;
  ProcessShare share;
  if (known && CPU_COUNT(&allowed) < cores) {
    share.num_threads = CPU_COUNT(&allowed);
  } else {
    share.num_threads = std::max(1, cores / local);
    cpu_set_t mine;
    CPU_ZERO(&mine);
    for (int i = 0; i < share.num_threads; ++i) {
      CPU_SET((index * share.num_threads + i) % cores, &mine);
    }
    sched_setaffinity(0, sizeof(mine), &mine);  // a hint: without it the kernel places threads
  }
  const std::vector<std::string> crowded =
      transport.all_gather(local * share.num_threads > cores ? "1" : "0");
  share.oversubscribed = std::find(crowded.begin(), crowded.end(), "1") != crowded.end();
  return share;
}

}  // namespace neuroshard
