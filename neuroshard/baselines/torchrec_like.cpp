// Enumerate the tables' options, propose lists of them, partition each greedily, keep the best.
#include "neuroshard/baselines/torchrec_like.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <queue>
#include <utility>

#include "neuroshard/baselines/placement.h"

namespace neuroshard {

namespace {

/// A shard of an option: its place in the table and its rating.
struct RatedShard {
  std::int64_t column_offset = 0;
  std::int64_t num_columns = 0;
  std::int64_t bytes = 0;
  double rating_ms = 0.0;
};

/// The shards of a table cut into 2^level parts.
using Option = std::vector<RatedShard>;

class Rating {
 public:
  Rating(const Task& task, const ComputeHardware& hardware, const Interconnect& interconnect)
      : batch_(static_cast<double>(task.batch_size)), memory_gb_per_s_(hardware.memory_gb_per_s) {
    const Topology& topology = task.topology;
    const double bandwidth =
        topology.world_size > topology.local_world_size
            ? interconnect.card_gb_per_s /
                  std::min(topology.local_world_size, interconnect.devices_per_card)
            : interconnect.intra_host_gb_per_s;
    const double share_sent = (topology.world_size - 1.0) / topology.world_size;
    comm_ms_per_column_ = 2.0 * 4.0 * batch_ * share_sent / (bandwidth * 1e6);
  }

  [[nodiscard]] double operator()(const Table& table, std::int64_t num_columns) const {
    constexpr double kBackwardMultiplier = 2.0;
    const double lookups = batch_ * table.pooling_factor;
    const double columns = static_cast<double>(num_columns);
    const double pooled = static_cast<double>(pooled_columns(table, num_columns));
    const double row = columns * static_cast<double>(element_bytes(table.data_type));
    const double forward_ms =
        (8.0 * lookups + lookups * row + 4.0 * batch_ * pooled) / (memory_gb_per_s_ * 1e6);
    return (1.0 + kBackwardMultiplier) * forward_ms + pooled * comm_ms_per_column_;
  }

 private:
  double batch_;
  double memory_gb_per_s_;
  double comm_ms_per_column_ = 0.0;
};

/// All options of a table: whole, then in 2, 4, 8, ... shards of at least `min_columns` columns
/// (even to one grain of 4 columns).
std::vector<Option> options_of(const Task& task, const Table& table, std::int64_t min_columns,
                               const Rating& rating) {
  std::vector<Option> options;
  const auto shard = [&](std::int64_t offset, std::int64_t columns) {
    return RatedShard{offset, columns, shard_bytes(table, columns, task.optimizer),
                      rating(table, columns)};
  };
  options.push_back({shard(0, table.embedding_dim)});
  if (!can_cut(table, table.embedding_dim)) return options;
  const std::int64_t grains = table.embedding_dim / kColumnGranularity;
  const std::int64_t least = std::max(min_columns, narrowest_cut(table));
  for (std::int64_t parts = 2; grains / parts * kColumnGranularity >= least; parts *= 2) {
    Option option;
    for (std::int64_t i = 0; i < parts; ++i) {
      const std::int64_t from = i * grains / parts * kColumnGranularity;
      const std::int64_t to = (i + 1) * grains / parts * kColumnGranularity;
      option.push_back(shard(from, to - from));
    }
    options.push_back(std::move(option));
  }
  return options;
}

double slowest_shard(const Option& option) {
  double slowest = 0.0;
  for (const RatedShard& shard : option) slowest = std::max(slowest, shard.rating_ms);
  return slowest;
}

/// The sequence of proposals; a proposal is the index of every table's option.
class Proposer {
 public:
  explicit Proposer(const std::vector<std::vector<Option>>& options)
      : options_(options), proposal_(options.size(), 0) {
    for (std::size_t t = 0; t < options.size(); ++t) {
      num_uniform_ = std::max(num_uniform_, options[t].size());
      push(t);
    }
  }

  /// The next proposal, or nullptr after the last.
  const std::vector<std::size_t>* next() {
    if (next_uniform_ < num_uniform_) {
      make_uniform(next_uniform_++);
      return &proposal_;
    }
    if (next_uniform_ == num_uniform_) {
      make_uniform(0);
      ++next_uniform_;
    }
    if (slowest_.empty()) return nullptr;
    const std::size_t table = slowest_.top().second;
    slowest_.pop();
    ++proposal_[table];
    push(table);
    return &proposal_;
  }

 private:
  void make_uniform(std::size_t level) {
    for (std::size_t t = 0; t < proposal_.size(); ++t) {
      proposal_[t] = std::min(level, options_[t].size() - 1);
    }
  }

  /// Tables that have a next option wait for it, the one with the slowest shard first.
  void push(std::size_t table) {
    const std::size_t level = proposal_[table];
    if (level + 1 < options_[table].size()) {
      slowest_.emplace(slowest_shard(options_[table][level]), table);
    }
  }

  const std::vector<std::vector<Option>>& options_;
  std::vector<std::size_t> proposal_;
  std::priority_queue<std::pair<double, std::size_t>> slowest_;
  std::size_t num_uniform_ = 0;
  std::size_t next_uniform_ = 0;
};

struct Partition {
  ShardingPlan plan;
  double rating_ms = std::numeric_limits<double>::infinity();
  int table_without_room = -1;  ///< if not -1, there is no plan
  std::int64_t columns_without_room = 0;
  std::int64_t most_room = 0;
};

Partition partition(const Task& task, const std::vector<std::vector<Option>>& options,
                    const std::vector<std::size_t>& proposal) {
  std::vector<std::pair<const RatedShard*, int>> shards;
  for (std::size_t t = 0; t < proposal.size(); ++t) {
    for (const RatedShard& shard : options[t][proposal[t]]) {
      shards.emplace_back(&shard, static_cast<int>(t));
    }
  }
  std::stable_sort(shards.begin(), shards.end(), [](const auto& a, const auto& b) {
    return a.first->rating_ms > b.first->rating_ms;
  });

  LeastLoadedDevices devices(task);
  Partition result;
  for (const auto& [shard, table] : shards) {
    const int device = devices.place(table, shard->bytes, shard->rating_ms);
    if (device < 0) {
      result.table_without_room = table;
      result.columns_without_room = shard->num_columns;
      result.most_room = devices.most_room(table);
      return result;
    }
    result.plan.shards.push_back({table, shard->column_offset, shard->num_columns, device});
  }
  result.rating_ms = devices.largest_load();
  return result;
}

}  // namespace

TorchRecLikePlanner::TorchRecLikePlanner(const TorchRecLikeOptions& options)
    : options_(options),
      hardware_(find_compute_hardware(options.hardware)),
      interconnect_(find_interconnect(options.interconnect)) {}

PlanningResult TorchRecLikePlanner::plan(const Simulator& simulator,
                                         const PlannerOptions& options) const {
  const Simulator allowed = simulator.with_cuts(options.cuts);
  const std::vector<Table>& tables = allowed.task().tables;
  const bool columns_alone = std::none_of(tables.begin(), tables.end(), [](const Table& table) {
    return table.allow.rows || table.allow.replicas;
  });
  const StopClock clock = stop_clock_of(options);
  try {
    return columns_alone ? plan_columns(allowed, clock) : plan_types(allowed, clock);
  } catch (const TimeIsOver&) {
    throw no_plan_in_time(options);
  }
}

PlanningResult TorchRecLikePlanner::plan_types(const Simulator& simulator,
                                               const StopClock& clock) const {
  const auto start = std::chrono::steady_clock::now();
  torchrec::ShardingTypesOptions options;
  options.min_partition = options_.min_shard_columns;
  torchrec::ShardingTypesPlan found = torchrec::plan_sharding_types(simulator, options, clock);
  PlanningResult result = priced(simulator, std::move(found.plan), start);
  result.stats.states_expanded = found.num_proposals;
  result.stats.stopped_by_clock = found.stopped_by_clock;
  return result;
}

PlanningResult TorchRecLikePlanner::plan_columns(const Simulator& simulator,
                                                 const StopClock& clock) const {
  const auto start = std::chrono::steady_clock::now();
  const Task& task = simulator.task();
  const Rating rating(task, hardware_, interconnect_);
  std::vector<std::vector<Option>> options;
  for (const Table& table : task.tables) {
    options.push_back(options_of(task, table, options_.min_shard_columns, rating));
  }

  Proposer proposer(options);
  Partition best;
  Partition refused;
  int num_proposals = 0;
  int without_gain = 0;
  bool stopped = false;
  while (num_proposals < options_.max_proposals && without_gain < options_.patience) {
    const std::vector<std::size_t>* proposal = proposer.next();
    if (!proposal) break;
    stopped = clock.is_over();
    if (stopped) break;
    ++num_proposals;
    Partition candidate = partition(task, options, *proposal);
    if (candidate.table_without_room >= 0) {
      refused = std::move(candidate);
    } else if (candidate.rating_ms < best.rating_ms) {
      best = std::move(candidate);
      without_gain = -1;
    }
    if (!best.plan.shards.empty()) ++without_gain;
  }
  if (best.plan.shards.empty() && stopped) throw TimeIsOver();
  if (best.plan.shards.empty()) {
    throw no_room(fmt::format("torchrec-like ({} proposals)", num_proposals), task,
                  refused.table_without_room, refused.columns_without_room, refused.most_room);
  }
  PlanningResult result = priced(simulator, std::move(best.plan), start);
  result.stats.states_expanded = num_proposals;
  result.stats.stopped_by_clock = stopped;
  return result;
}

}  // namespace neuroshard
