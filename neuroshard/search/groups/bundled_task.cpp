// Groups of tables as one table each, and back.
#include "neuroshard/search/groups/bundled_task.h"

#include <algorithm>
#include <cstdint>

#include "neuroshard/core/numbers/byte_sum.h"
#include "neuroshard/core/table_pins.h"

namespace neuroshard {

namespace {

/// More than any device has, and less than what overflows when a device's memory is added.
constexpr std::int64_t kTooManyBytes = std::int64_t{1} << 61;

/// One column, looked up by as many features as the group's pooled outputs have columns; what the
/// rows of that column do not take of the group's memory is beyond its rows.
Table bundle_of(const Task& task, const TableGroup& group) {
  Table bundle;
  bundle.name = task.tables[group.tables.front()].name;
  bundle.embedding_dim = 1;
  bundle.num_features = 0;
  std::int64_t bytes = 0;
  for (const int t : group.tables) {
    const Table& table = task.tables[t];
    // As many rows as all have, since the report of memory counts the optimizer's state by row.
    bundle.num_embeddings = std::min(bundle.num_embeddings + table.num_embeddings, kMaxEmbeddings);
    bundle.pooling_factor += table.pooling_factor;
    if (table.data_type == DataType::fp16) bundle.data_type = DataType::fp16;
    bundle.num_features += pooled_columns(table, table.embedding_dim);
    bytes = add_saturated(bytes, shard_bytes(table, table.embedding_dim, task.optimizer));
    // Of all devices, where they are named: there may be more of them in another topology.
    if (!table.devices.empty()) bundle.devices = table.devices;
  }
  if (!group.devices.empty()) bundle.devices = group.devices;
  bundle.extra_bytes_per_shard =
      std::min(bytes, kTooManyBytes) - shard_bytes(bundle, bundle.embedding_dim, task.optimizer);
  bundle.allow = {false, false, false};
  return bundle;
}

}  // namespace

BundledTask::BundledTask(const Task& task) : original_(task), bundled_(task) {
  const TablePins pins(task);
  bundled_.tables.clear();
  for (std::size_t t = 0; t < task.tables.size(); ++t) {
    const auto number = static_cast<int>(t);
    const TableGroup* group = pins.group_of(number);
    if (group == nullptr) {
      bundled_.tables.push_back(task.tables[t]);
      members_.push_back({number});
    } else if (group->tables.front() == number) {
      bundled_.tables.push_back(bundle_of(task, *group));
      members_.push_back(group->tables);
    }
  }
}

ShardingPlan BundledTask::original(const ShardingPlan& plan) const {
  ShardingPlan result;
  for (const Shard& shard : plan.shards) {
    const std::vector<int>& members = members_[shard.table];
    for (const int member : members) {
      Shard of_member = shard;
      of_member.table = member;
      if (members.size() > 1) of_member.num_columns = original_.tables[member].embedding_dim;
      result.shards.push_back(of_member);
    }
  }
  for (const int table : plan.replicated_tables) {
    result.replicated_tables.push_back(members_[table].front());
  }
  sort_shards(result);
  return result;
}

}  // namespace neuroshard
