// The options of a task as the search sees them.
#include "neuroshard/search/options/option_space.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "neuroshard/core/error.h"
#include "neuroshard/core/numbers/byte_sum.h"

namespace neuroshard {

namespace {

constexpr int kCostBits = 60;
constexpr int kByteBits = 62;

/// The sum of the largest that each table could add.
double most_cost_ms(const OptionTask& task) {
  double most = 0.0;
  for (const double load : task.load_ms) most += load;
  for (const OptionTable& table : task.tables) {
    double of_table = 0.0;
    for (const ShardingChoice& option : table.options) {
      double sum = 0.0;
      for (const OptionShard& shard : option.shards) sum += shard.cost_ms;
      of_table = std::max(of_table, sum);
    }
    most += of_table;
  }
  return most;
}

void require_sums_of_bytes(const OptionTask& task) {
  WideBytes most = 0;
  for (const OptionTable& table : task.tables) {
    WideBytes of_table = 0;
    for (const ShardingChoice& option : table.options) {
      WideBytes sum = 0;
      for (const OptionShard& shard : option.shards) {
        for (const std::int64_t bytes : shard.bytes) sum += bytes;
      }
      of_table = std::max(of_table, sum);
    }
    most += of_table;
  }
  if (most >> kByteBits != 0) {
    throw InputError("tables", "less than 2^62 bytes in all", "more");
  }
}

ScaledOption scaled(const ShardingChoice& option, int number, double unit_ms) {
  ScaledOption result;
  result.number = number;
  result.placement = option.placement;
  for (const OptionShard& shard : option.shards) {
    ScaledShard one;
    one.cost = std::llround(shard.cost_ms / unit_ms);
    one.bytes = shard.bytes;
    result.sum.cost += one.cost;
    for (std::size_t k = 0; k < kMaxMemoryKinds; ++k) result.sum.bytes[k] += one.bytes[k];
    result.largest_cost = std::max(result.largest_cost, one.cost);
    result.shards.push_back(one);
  }
  return result;
}

/// Whether shards of the first placement may lie wherever those of the second may.
bool is_as_free(ShardPlacement first, ShardPlacement second) {
  return first == second || first == ShardPlacement::any_device;
}

bool is_at_most(const ScaledShard& a, const ScaledShard& b) {
  if (a.cost > b.cost) return false;
  for (std::size_t k = 0; k < kMaxMemoryKinds; ++k) {
    if (a.bytes[k] > b.bytes[k]) return false;
  }
  return true;
}

/// Whether any place of the second option would do for the first one, at no more cost.
bool replaces(const ScaledOption& first, const ScaledOption& second) {
  if (first.shards.size() > second.shards.size() ||
      !is_as_free(first.placement, second.placement)) {
    return false;
  }
  if (first.shards.size() < second.shards.size() && first.placement != ShardPlacement::any_device) {
    return false;
  }
  return std::equal(first.shards.begin(), first.shards.end(), second.shards.begin(), is_at_most);
}

/// The options but for those that an earlier or better one replaces.
std::vector<ScaledOption> worth_having(std::vector<ScaledOption> options) {
  std::stable_sort(options.begin(), options.end(),
                   [](const auto& a, const auto& b) { return a.sum.cost < b.sum.cost; });
  std::vector<ScaledOption> kept;
  for (std::size_t i = 0; i < options.size(); ++i) {
    bool is_replaced = false;
    for (std::size_t j = 0; j < options.size() && !is_replaced; ++j) {
      if (i == j || !replaces(options[j], options[i])) continue;
      is_replaced = j < i || !replaces(options[i], options[j]);
    }
    if (!is_replaced) kept.push_back(options[i]);
  }
  return kept;
}

}  // namespace

OptionSpace::OptionSpace(const OptionTask& task)
    : world_size_(task.world_size), local_world_size_(task.local_world_size) {
  require_sums_of_bytes(task);
  const double most = most_cost_ms(task);
  if (most > 0.0) unit_ms_ = std::ldexp(1.0, std::ilogb(most) + 1 - kCostBits);
  for (const MemoryKind& memory : task.memories) capacity_.push_back(memory.bytes);
  load_.assign(static_cast<std::size_t>(world_size_), 0);
  for (std::size_t d = 0; d < task.load_ms.size(); ++d) {
    load_[d] = std::llround(task.load_ms[d] / unit_ms_);
  }
  for (const OptionTable& table : task.tables) {
    std::vector<ScaledOption> options;
    for (std::size_t o = 0; o < table.options.size(); ++o) {
      ScaledOption option = scaled(table.options[o], static_cast<int>(o), unit_ms_);
      if (has_room(option)) options.push_back(std::move(option));
    }
    if (options.empty() && table_without_room_ < 0) {
      table_without_room_ = static_cast<int>(tables_.size());
    }
    tables_.push_back(worth_having(std::move(options)));
  }
}

bool OptionSpace::has_room(const ScaledShard& shard, int device) const {
  for (std::size_t k = 0; k < capacity_.size(); ++k) {
    if (shard.bytes[k] > capacity_[k][device]) return false;
  }
  return true;
}

bool OptionSpace::has_room(const ScaledOption& option) const {
  const auto count = static_cast<int>(option.shards.size());
  for (int i = 0; i < count; ++i) {
    // Devices at equal distances from the first one on are where the shard may lie.
    const bool is_all = option.placement == ShardPlacement::all_devices;
    const bool is_group = option.placement == ShardPlacement::whole_hosts;
    const int first = is_all ? i : is_group ? i % local_world_size_ : 0;
    const int step = is_all ? world_size_ : is_group ? local_world_size_ : 1;
    bool has_place = false;
    for (int device = first; device < world_size_ && !has_place; device += step) {
      has_place = has_room(option.shards[i], device);
    }
    if (!has_place) return false;
  }
  return true;
}

}  // namespace neuroshard
