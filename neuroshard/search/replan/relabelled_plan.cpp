// Two levels of the assignment problem.
#include "neuroshard/search/replan/relabelled_plan.h"

#include <algorithm>
#include <limits>
#include <numeric>
#include <utility>
#include <vector>

#include "neuroshard/core/table_pins.h"

namespace neuroshard {

namespace {

constexpr int kMostPerHost = 256;
constexpr int kMostHosts = 512;
/// Pairs of devices, of each of which a number is kept: half a gigabyte.
constexpr std::int64_t kMostPairsOfDevices = std::int64_t{1} << 26;
/// What the assignments within all pairs of hosts may take: some ten seconds, if every device held
/// some of all that every other one has now.
constexpr std::int64_t kMostAssignmentSteps = 10'000'000'000;
/// What assigning a device to one of other memory costs: more than all that could be kept [bytes].
constexpr double kForbidden = 1e30;

struct Assignment {
  std::vector<int> column_of;  ///< by row
  double gain = 0.0;
};

/// The assignment of rows to columns of largest total gain; `gains` is square, row by row. The
/// Hungarian method in O(n^3), by shortest augmenting paths. Throws TimeIsOver.
Assignment best_assignment(const std::vector<double>& gains, int n, const StopClock& clock) {
  constexpr double kInfinite = std::numeric_limits<double>::infinity();
  std::vector<double> row_price(n + 1, 0.0);
  std::vector<double> column_price(n + 1, 0.0);
  std::vector<int> row_of(n + 1, 0);  // by column, both from 1; column 0 is where a path begins
  std::vector<int> way(n + 1, 0);
  for (int row = 1; row <= n; ++row) {
    clock.check();
    row_of[0] = row;
    int column = 0;
    std::vector<double> least(n + 1, kInfinite);
    std::vector<bool> is_used(n + 1, false);
    do {
      is_used[column] = true;
      const int at = row_of[column];
      double delta = kInfinite;
      int next = 0;
      for (int j = 1; j <= n; ++j) {
        if (is_used[j]) continue;
        const double cost = -gains[static_cast<std::size_t>(at - 1) * n + (j - 1)] - row_price[at] -
                            column_price[j];
        if (cost < least[j]) {
          least[j] = cost;
          way[j] = column;
        }
        if (least[j] < delta) {
          delta = least[j];
          next = j;
        }
      }
      for (int j = 0; j <= n; ++j) {
        if (is_used[j]) {
          row_price[row_of[j]] += delta;
          column_price[j] -= delta;
        } else {
          least[j] -= delta;
        }
      }
      column = next;
    } while (row_of[column] != 0);
    while (column != 0) {
      const int before = way[column];
      row_of[column] = row_of[before];
      column = before;
    }
  }
  Assignment result;
  result.column_of.resize(n);
  for (int j = 1; j <= n; ++j) {
    result.column_of[row_of[j] - 1] = j - 1;
    result.gain += gains[static_cast<std::size_t>(row_of[j] - 1) * n + (j - 1)];
  }
  return result;
}

/// Elements that device `to` held of what the plan has on `from`, [from][to]. Throws TimeIsOver.
std::vector<double> kept_elements(const Task& task, const PlacedBefore& before,
                                  const ShardingPlan& plan, const StopClock& clock) {
  const int devices = task.topology.world_size;
  std::vector<double> kept(static_cast<std::size_t>(devices) * devices, 0.0);
  PatientClock patient(clock);
  for (const Shard& shard : plan.shards) {
    patient.check();
    const Table& table = task.tables[shard.table];
    const std::int64_t row_end = shard.row_offset + shard.rows_of(table);
    for (const HeldPart& held : before.held(shard.table)) {
      if (held.device >= devices) continue;
      const std::int64_t rows =
          std::min(row_end, held.row_end) - std::max(shard.row_offset, held.row_begin);
      const std::int64_t columns =
          std::min(shard.column_offset + shard.num_columns, held.column_end) -
          std::max(shard.column_offset, held.column_begin);
      if (rows <= 0 || columns <= 0) continue;
      kept[static_cast<std::size_t>(shard.device) * devices + held.device] +=
          static_cast<double>(rows * columns * element_bytes(table.data_type));
    }
  }
  return kept;
}

bool is_small_enough(const Topology& topology) {
  const std::int64_t devices = topology.world_size;
  const int hosts = topology.world_size / topology.local_world_size;
  return topology.local_world_size <= kMostPerHost && hosts <= kMostHosts &&
         devices * devices <= kMostPairsOfDevices &&
         devices * devices * topology.local_world_size <= kMostAssignmentSteps;
}

/// Of a task that is small enough. Throws TimeIsOver.
ShardingPlan exchanged_plan(const Task& task, const PlacedBefore& before, const ShardingPlan& plan,
                            const StopClock& clock) {
  const Topology& topology = task.topology;
  const int per_host = topology.local_world_size;
  const int hosts = topology.world_size / per_host;
  const std::vector<double> kept = kept_elements(task, before, plan, clock);
  const auto kept_of = [&](int from, int to) {
    const bool alike = topology.memory_bytes[from] == topology.memory_bytes[to];
    return alike ? kept[static_cast<std::size_t>(from) * topology.world_size + to] : -kForbidden;
  };
  std::vector<Assignment> within(static_cast<std::size_t>(hosts) * hosts);
  std::vector<double> of_hosts(within.size());
  std::vector<double> gains(static_cast<std::size_t>(per_host) * per_host);
  for (int a = 0; a < hosts; ++a) {
    for (int b = 0; b < hosts; ++b) {
      for (int i = 0; i < per_host; ++i) {
        for (int j = 0; j < per_host; ++j) {
          gains[static_cast<std::size_t>(i) * per_host + j] =
              kept_of(a * per_host + i, b * per_host + j);
        }
      }
      const std::size_t pair = static_cast<std::size_t>(a) * hosts + b;
      within[pair] = best_assignment(gains, per_host, clock);
      of_hosts[pair] = within[pair].gain;
    }
  }
  const Assignment host_of = best_assignment(of_hosts, hosts, clock);
  if (host_of.gain < 0.0) return plan;
  ShardingPlan result = plan;
  for (Shard& shard : result.shards) {
    const int from = shard.device / per_host;
    const int to = host_of.column_of[from];
    const Assignment& devices = within[static_cast<std::size_t>(from) * hosts + to];
    shard.device = to * per_host + devices.column_of[shard.device % per_host];
  }
  return result;
}

}  // namespace

ShardingPlan relabelled_plan(const Task& task, const PlacedBefore& before, const ShardingPlan& plan,
                             const StopClock& clock) {
  if (!is_small_enough(task.topology) || TablePins(task).restricts_devices()) return plan;
  try {
    return exchanged_plan(task, before, plan, clock);
  } catch (const TimeIsOver&) {
    return plan;
  }
}

}  // namespace neuroshard
