// Tables that go home, the best exchange of bytes for cost first.
#include "neuroshard/search/replan/plan_path.h"

#include <algorithm>
#include <limits>
#include <map>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "neuroshard/core/numbers/byte_sum.h"
#include "neuroshard/cost/compute/remembering_compute_model.h"

namespace neuroshard {

namespace {

/// Tables that are priced before each goes home: those that free most bytes. Of more tables than
/// that in all, only the first is looked at, without its price.
constexpr std::size_t kMostPriced = 16;
constexpr std::size_t kMostTablesPriced = 1000;

/// Where one table lies: shards, or copies on every device.
struct Layout {
  std::vector<Shard> shards{};
  bool is_replicated = false;

  friend bool operator==(const Layout&, const Layout&) = default;
};

std::vector<Layout> layouts_of(const ShardingPlan& plan, std::size_t num_tables) {
  std::vector<Layout> layouts(num_tables);
  for (const Shard& shard : plan.shards) layouts[shard.table].shards.push_back(shard);
  for (const int table : plan.replicated_tables) layouts[table].is_replicated = true;
  return layouts;
}

ShardingPlan plan_of(const std::vector<Layout>& layouts) {
  ShardingPlan plan;
  for (std::size_t t = 0; t < layouts.size(); ++t) {
    plan.shards.insert(plan.shards.end(), layouts[t].shards.begin(), layouts[t].shards.end());
    if (layouts[t].is_replicated) plan.replicated_tables.push_back(static_cast<int>(t));
  }
  sort_shards(plan);
  return plan;
}

/// A table, and what its way home frees.
struct Candidate {
  std::size_t table = 0;
  std::int64_t freed = 0;
};

}  // namespace

ShardingPlan way_home(const Simulator& given, const ShardingPlan& from, const ShardingPlan& home,
                      const std::function<std::int64_t(const ShardingPlan&)>& moved_bytes,
                      std::int64_t limit_bytes, const StopClock& clock) {
  // Hardly any piece changes from one plan to the next.
  const Simulator simulator(given,
                            std::make_shared<RememberingComputeModel>(given.shared_compute()));
  const Task& task = simulator.task();
  std::vector<Layout> layouts = layouts_of(from, task.tables.size());
  const std::vector<Layout> at_home = layouts_of(home, task.tables.size());
  const auto moved_of = [&](const Layout& layout, std::size_t table) {
    return moved_bytes({layout.shards, layout.is_replicated
                                           ? std::vector<int>{static_cast<int>(table)}
                                           : std::vector<int>{}});
  };
  std::vector<Candidate> away;
  WideBytes moved = 0;
  for (std::size_t t = 0; t < layouts.size(); ++t) {
    const std::int64_t now = moved_of(layouts[t], t);
    moved += now;
    const bool has_home = std::none_of(at_home[t].shards.begin(), at_home[t].shards.end(),
                                       [](const Shard& shard) { return shard.device < 0; });
    if (!has_home || layouts[t] == at_home[t]) continue;
    const std::int64_t freed = now - moved_of(at_home[t], t);
    if (freed > 0) away.push_back({t, freed});
  }
  std::stable_sort(away.begin(), away.end(),
                   [](const Candidate& a, const Candidate& b) { return a.freed > b.freed; });
  std::vector<std::int64_t> bytes = device_memory(task, from);
  // What the devices hold more, or less, with the table at home: those that the table touches.
  const auto changes_with = [&](std::size_t table) {
    std::map<int, std::int64_t> changes;
    const Table& of = task.tables[table];
    const auto add = [&](const Layout& layout, std::int64_t sign) {
      for (const Shard& shard : layout.shards) {
        changes[shard.device] +=
            sign * shard_bytes(of, shard.num_columns, task.optimizer, shard.rows_of(of));
      }
      if (!layout.is_replicated) return;
      const std::int64_t copy = sign * shard_bytes(of, of.embedding_dim, task.optimizer);
      for (int device = 0; device < task.topology.world_size; ++device) changes[device] += copy;
    };
    add(layouts[table], -1);
    add(at_home[table], 1);
    return changes;
  };
  const auto has_room_at_home = [&](std::size_t table) {
    return std::ranges::all_of(changes_with(table), [&](const auto& change) {
      return bytes[change.first] + change.second <= task.topology.memory_bytes[change.first];
    });
  };
  const bool is_priced = task.tables.size() <= kMostTablesPriced;
  double now_ms = is_priced ? simulator.cost(from).cost_ms : 0.0;
  while (moved > limit_bytes) {
    std::optional<std::size_t> best;
    double best_ms = 0.0;
    double least_rise = std::numeric_limits<double>::infinity();
    std::size_t num_tried = 0;
    for (std::size_t i = 0; i < away.size() && num_tried < (is_priced ? kMostPriced : 1); ++i) {
      if (clock.is_over()) return plan_of(layouts);
      const Candidate& candidate = away[i];
      if (!has_room_at_home(candidate.table)) continue;
      ++num_tried;
      double ms = 0.0;
      if (is_priced) {
        Layout kept = std::exchange(layouts[candidate.table], at_home[candidate.table]);
        ms = simulator.cost(plan_of(layouts)).cost_ms;
        layouts[candidate.table] = std::move(kept);
      }
      const double rise = (ms - now_ms) / static_cast<double>(candidate.freed);
      if (rise >= least_rise) continue;
      least_rise = rise;
      best_ms = ms;
      best = i;
    }
    if (!best) break;
    const Candidate gone = away[*best];
    for (const auto& [device, change] : changes_with(gone.table)) bytes[device] += change;
    now_ms = best_ms;
    moved -= gone.freed;
    layouts[gone.table] = at_home[gone.table];
    away.erase(away.begin() + static_cast<std::ptrdiff_t>(*best));
  }
  return plan_of(layouts);
}

}  // namespace neuroshard
