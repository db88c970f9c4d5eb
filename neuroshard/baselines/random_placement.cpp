// Random placement of whole tables.
#include "neuroshard/baselines/random_placement.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>

#include "neuroshard/baselines/placement.h"
#include "neuroshard/core/numbers/random.h"
#include "neuroshard/core/stop_clock.h"

namespace neuroshard {

namespace {

/// A device drawn from those with room for the table; -1 if there is none.
int draw_device(const DeviceRooms& rooms, int table, std::int64_t bytes, Random& random) {
  std::vector<int> devices;
  for (int d = 0; d < rooms.num_devices(); ++d) {
    if (rooms.has_room(table, bytes, d)) devices.push_back(d);
  }
  return devices.empty() ? -1 : devices[random.below(devices.size())];
}

struct Draw {
  ShardingPlan plan;
  int table_without_room = -1;
  std::int64_t most_room = 0;
};

/// Throws TimeIsOver.
Draw draw_plan(const Task& task, const std::vector<int>& order, const StopClock& clock,
               Random& random) {
  DeviceRooms rooms(task);
  Draw draw;
  for (const int table : order) {
    clock.check();  // for each table, as every device is looked at
    const std::int64_t bytes = table_bytes(task, table);
    const int device = draw_device(rooms, table, bytes, random);
    if (device < 0) {
      draw.table_without_room = table;
      draw.most_room = rooms.most_room(table);
      return draw;
    }
    rooms.take(table, bytes, device);
    draw.plan.shards.push_back(whole_table(task, table, device));
  }
  return draw;
}

}  // namespace

PlanningResult RandomBaseline::plan(const Simulator& simulator,
                                    const PlannerOptions& options) const {
  const auto start = std::chrono::steady_clock::now();
  const StopClock clock = stop_clock_of(options);
  const Task& task = simulator.task();
  std::vector<int> order(task.tables.size());
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(),
                   [&](int a, int b) { return table_bytes(task, a) > table_bytes(task, b); });

  Random random(options.seed);
  Draw draw;
  try {
    for (int i = 0; i < max_tries_; ++i) {
      draw = draw_plan(task, order, clock, random);
      if (draw.table_without_room < 0) return priced(simulator, std::move(draw.plan), start);
    }
  } catch (const TimeIsOver&) {
    throw no_plan_in_time(options);
  }
  throw no_room(fmt::format("random ({} tries)", max_tries_), task, draw.table_without_room,
                task.tables[draw.table_without_room].embedding_dim, draw.most_room);
}

}  // namespace neuroshard
