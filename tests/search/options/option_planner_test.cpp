// Choices among listed options: against all choices of small tasks, and what is refused.
#include "neuroshard/search/options/option_planner.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <limits>
#include <numeric>
#include <string>
#include <vector>

#include "neuroshard/core/error.h"
#include "neuroshard/core/numbers/random.h"
#include "neuroshard/core/units.h"
#include "neuroshard/io/file.h"
#include "neuroshard/search/options/option_assignment.h"
#include "neuroshard/search/options/option_bound.h"
#include "neuroshard/search/options/option_json.h"
#include "neuroshard/search/options/option_places.h"

namespace neuroshard {
namespace {

constexpr double kRounding = 1e-9;

/// A shard of some cost and bytes of two kinds of memory.
OptionShard any_shard(Random& random) {
  return {random.uniform(0.0, 3.0), {random.integer(0, 40), random.integer(0, 20)}};
}

ShardingChoice any_option(Random& random, const OptionTask& task) {
  ShardingChoice option;
  option.placement = static_cast<ShardPlacement>(random.below(kNumShardPlacements));
  int shards = 0;
  switch (option.placement) {
    case ShardPlacement::all_devices:
      shards = task.world_size;
      break;
    case ShardPlacement::whole_hosts:
      shards = task.local_world_size * static_cast<int>(random.integer(1, 2));
      break;
    case ShardPlacement::distinct_devices:
      shards = static_cast<int>(random.integer(1, std::min(2, task.world_size)));
      break;
    default:
      shards = static_cast<int>(random.integer(1, 2));
      break;
  }
  // Mostly equal shards, as TorchRec's are.
  const OptionShard first = any_shard(random);
  for (int i = 0; i < shards; ++i) {
    option.shards.push_back(random.uniform() < 0.7 ? first : any_shard(random));
  }
  return option;
}

/// A few tables on one or two hosts, memory from scarce to ample.
OptionTask any_task(std::uint64_t seed) {
  Random random(seed);
  OptionTask task;
  task.local_world_size = static_cast<int>(random.integer(1, 2));
  task.world_size = task.local_world_size * static_cast<int>(random.integer(1, 2));
  const std::int64_t most = random.integer(10, 150);
  for (const char* name : {"hbm", "ddr"}) {
    MemoryKind memory{name, {}};
    for (int d = 0; d < task.world_size; ++d) memory.bytes.push_back(random.integer(10, most));
    task.memories.push_back(std::move(memory));
  }
  if (random.uniform() < 0.3) {
    for (int d = 0; d < task.world_size; ++d) task.load_ms.push_back(random.uniform(0.0, 2.0));
  }
  const auto tables = static_cast<int>(random.integer(1, 3));
  for (int t = 0; t < tables; ++t) {
    OptionTable table{"t" + std::to_string(t), {}};
    const auto options = static_cast<int>(random.integer(1, 3));
    for (int o = 0; o < options; ++o) table.options.push_back(any_option(random, task));
    task.tables.push_back(std::move(table));
  }
  return task;
}

/// The least cost of all choices that fit; infinite if none does.
class AllChoices {
 public:
  explicit AllChoices(const OptionTask& task) : task_(task), chosen_(task.tables.size()) {}

  double least() {
    visit(0);
    return least_;
  }

 private:
  void visit(std::size_t table) {
    if (table == chosen_.size()) {
      if (!first_violation(task_, chosen_).empty()) return;
      const auto costs = device_costs_ms(task_, chosen_);
      least_ = std::min(least_, *std::max_element(costs.begin(), costs.end()));
      return;
    }
    for (std::size_t o = 0; o < task_.tables[table].options.size(); ++o) {
      chosen_[table].option = static_cast<int>(o);
      chosen_[table].devices.assign(task_.tables[table].options[o].shards.size(), 0);
      devices(table, 0);
    }
  }

  void devices(std::size_t table, std::size_t shard) {
    const ShardingChoice& option = task_.tables[table].options[chosen_[table].option];
    if (shard == option.shards.size()) {
      visit(table + 1);
      return;
    }
    const auto local = static_cast<std::size_t>(task_.local_world_size);
    for (int device = 0; device < task_.world_size; ++device) {
      const bool is_all = option.placement == ShardPlacement::all_devices;
      if (is_all && device != static_cast<int>(shard)) continue;
      const bool is_group = option.placement == ShardPlacement::whole_hosts;
      if (is_group && device % local != shard % local) continue;
      chosen_[table].devices[shard] = device;
      devices(table, shard + 1);
    }
  }

  const OptionTask& task_;
  std::vector<ChosenOption> chosen_;
  double least_ = std::numeric_limits<double>::infinity();
};

RC_GTEST_PROP(OptionPlannerProperty, IsValidAndNearTheBestOfSmallTasks, (std::uint64_t seed)) {
  const OptionTask task = any_task(seed);
  const double least = AllChoices(task).least();
  try {
    const OptionPlan plan = plan_options(task, {20'000, 1, 1});
    RC_ASSERT(first_violation(task, plan.chosen) == "");
    const auto costs = device_costs_ms(task, plan.chosen);
    RC_ASSERT(plan.cost_ms == *std::max_element(costs.begin(), costs.end()));
    RC_ASSERT(plan.lower_bound_ms <= least * (1.0 + kRounding));
    RC_ASSERT(plan.cost_ms <= least * 1.5);
  } catch (const InfeasibleError&) {
    RC_ASSERT(least == std::numeric_limits<double>::infinity());
  }
}

TEST(OptionPlanner, FindsTheOnlyChoiceThatFits) {
  // Constructions and chains alone do not find it.
  const OptionTask task = any_task(26085);
  const double least = AllChoices(task).least();
  ASSERT_LT(least, std::numeric_limits<double>::infinity());
  EXPECT_LE(plan_options(task, {20'000, 1, 1}).cost_ms, 1.5 * least);
}

TEST(OptionPlanner, FindsTheBestOfNearlyAllSmallTasks) {
  int best = 0;
  constexpr int kTasks = 200;
  for (int seed = 0; seed < kTasks; ++seed) {
    const OptionTask task = any_task(static_cast<std::uint64_t>(seed));
    const double least = AllChoices(task).least();
    try {
      if (plan_options(task, {20'000, 1, 1}).cost_ms <= least * (1.0 + kRounding)) ++best;
    } catch (const InfeasibleError&) {
      if (least == std::numeric_limits<double>::infinity()) ++best;
    }
  }
  EXPECT_GE(best, kTasks - 2);
}

/// Many tables of one host, most of whose memory is needed.
OptionTask large_task() {
  Random random(7);
  OptionTask task;
  task.world_size = 16;
  task.local_world_size = 8;
  std::int64_t bytes = 0;
  for (int t = 0; t < 120; ++t) {
    const std::int64_t size = random.integer(1'000, 100'000);
    bytes += size;
    const double cost = random.uniform(0.1, 2.0);
    OptionTable table{"t" + std::to_string(t), {}};
    table.options.push_back({ShardPlacement::any_device, {{cost, {size}}}});
    table.options.push_back({ShardPlacement::any_device, {2, {0.6 * cost, {size / 2}}}});
    table.options.push_back({ShardPlacement::whole_hosts, {8, {0.2 * cost, {size / 8}}}});
    table.options.push_back({ShardPlacement::all_devices, {16, {0.09 * cost, {size / 16}}}});
    task.tables.push_back(std::move(table));
  }
  task.memories.push_back({"hbm", std::vector<std::int64_t>(16, bytes / 15)});
  return task;
}

TEST(OptionPlanner, ComesCloseToTheBound) {
  const OptionTask task = large_task();
  const OptionPlan plan = plan_options(task);
  EXPECT_EQ(first_violation(task, plan.chosen), "");
  EXPECT_LE(plan.cost_ms, 1.02 * plan.lower_bound_ms);
}

TEST(OptionPlanner, DoesNotDependOnThreads) {
  const OptionTask task = large_task();
  const OptionPlan one = plan_options(task, {8'000, 3, 1});
  const OptionPlan four = plan_options(task, {8'000, 3, 4});
  EXPECT_EQ(one.chosen, four.chosen);
  EXPECT_EQ(one.accepted, four.accepted);
}

/// Whole tables of these bytes on two devices.
std::string refusal_of(const std::vector<std::int64_t>& sizes, std::int64_t capacity = 10) {
  OptionTask task;
  task.world_size = 2;
  task.memories = {{"hbm", {capacity, capacity}}};
  for (const std::int64_t bytes : sizes) {
    task.tables.push_back({"a", {{ShardPlacement::any_device, {{1.0, {bytes}}}}}});
  }
  try {
    (void)plan_options(task);
  } catch (const InfeasibleError& error) {
    return error.what();
  }
  return "";
}

TEST(OptionPlanner, SaysWhatIsMissing) {
  EXPECT_EQ(refusal_of({8, 8}), "");
  EXPECT_EQ(refusal_of({11}),
            "no choice of options fits into memory (no option of table \"a\" has room on devices "
            "that have nothing else)");
  EXPECT_EQ(refusal_of({8, 8, 8}),
            "no choice of options fits into memory (hbm: the tables' smallest options have 24 B in "
            "all, the devices 20 B)");
  EXPECT_EQ(refusal_of({8, 8, 4}),
            "no choice of options fits into memory (hbm: the tables' smallest options have 20 B in "
            "all, the devices 20 B)");
  // A byte is left over on each device, but there are too many choices to try them all.
  EXPECT_EQ(refusal_of(std::vector<std::int64_t>(61, 2), 61),
            "no choice of options was found that fits into memory (hbm: the tables' smallest "
            "options have 122 B in all, the devices 122 B)");
}

TEST(OptionPlanner, TablesThatAreTooLargeForOneAnotherTakeTurns) {
  // Costs ask for both whole tables on device 1, which has room for one.
  OptionTask task;
  task.world_size = 2;
  task.memories = {{"hbm", {10, 10}}};
  task.load_ms = {5.0, 0.0};
  task.tables.assign(2, {"a", {{ShardPlacement::any_device, {{1.0, {8}}}}}});
  const OptionPlan plan = plan_options(task);
  EXPECT_EQ(first_violation(task, plan.chosen), "");
  EXPECT_DOUBLE_EQ(plan.cost_ms, 6.0);
}

/// Two tables of this cost, next to as much that one of two devices has already.
OptionTask task_of_cost(double cost_ms, double load_ms) {
  OptionTask task;
  task.world_size = 2;
  task.memories = {{"hbm", {10, 10}}};
  task.load_ms = {load_ms, 0.0};
  task.tables.assign(2, {"a", {{ShardPlacement::any_device, {{cost_ms, {1}}}}}});
  return task;
}

TEST(OptionPlanner, TimesAtBothEndsOfTheirRangeAddUp) {
  for (const double ms : {kLeastTimeMs, kMostTimeMs}) {
    EXPECT_DOUBLE_EQ(plan_options(task_of_cost(ms, ms)).cost_ms, 2.0 * ms);
  }
}

TEST(OptionPlanner, RefusesTimesBeyondTheirRange) {
  for (const double ms : {-1.0, 1e-320, 1e308, std::numeric_limits<double>::infinity(),
                          std::numeric_limits<double>::quiet_NaN()}) {
    EXPECT_THROW((void)plan_options(task_of_cost(ms, 1.0)), InputError) << ms;
    EXPECT_THROW((void)plan_options(task_of_cost(1.0, ms)), InputError) << ms;
  }
}

TEST(OptionPlanner, MemoryMayBeAnyNumberBelowZero) {
  OptionTask task = task_of_cost(1.0, 0.0);
  task.memories.front().bytes.front() = std::numeric_limits<std::int64_t>::min();
  const OptionSpace space(task);
  OptionAssignment assignment(space);
  assignment.place(0, 0, {0});
  EXPECT_GE(device_energy(assignment, 0, 1'000), 0x1p126);
}

TEST(OptionPlanner, NoTables) {
  OptionTask task;
  task.world_size = 3;
  task.load_ms = {1.0, 2.0, 0.5};
  EXPECT_DOUBLE_EQ(plan_options(task).cost_ms, 2.0);
}

RC_GTEST_PROP(OptionAssignmentProperty, WhatIsTakenBackLeavesNothing, (std::uint64_t seed)) {
  const OptionTask task = any_task(seed);
  const OptionSpace space(task);
  if (space.table_without_room() >= 0) return;
  OptionAssignment assignment(space);
  const OptionAssignment empty = assignment;
  std::vector<int> order(task.tables.size());
  std::iota(order.begin(), order.end(), 0);
  Random random(seed);
  for (const int table : order) {
    const auto option = static_cast<int>(random.below(space.tables()[table].size()));
    assignment.place(table, option,
                     best_places(assignment, space.tables()[table][option], {1'000, false}));
  }
  random.shuffle(order);
  for (const int table : order) (void)assignment.remove(table);
  RC_ASSERT(assignment.load() == empty.load());
  for (int device = 0; device < task.world_size; ++device) {
    for (std::size_t k = 0; k < space.num_memories(); ++k) {
      RC_ASSERT(assignment.used(k, device) == 0);
    }
    RC_ASSERT(assignment.on_device(device).empty());
  }
  RC_ASSERT(assignment.everywhere().empty());
}

std::string refusal_of_options(const std::string& text) {
  try {
    (void)parse_option_task(text, "options.json");
  } catch (const InputError& error) {
    return error.what();
  }
  return "";
}

/// A task of one table with this option.
std::string with_option(const std::string& option) {
  return R"({"format": "neuroshard/option-task/1", "world_size": 2, "local_world_size": 2,
"memories": [{"name": "hbm", "bytes": [10, 20]}], "tables": [{"name": "a", "options": [)" +
         option + "]}]}";
}

TEST(OptionJson, ReadsWhatItSays) {
  const OptionTask task = parse_option_task(
      with_option(R"({"placement": "any_device", "shards": [[2, 0.5, 3], [1, 0.25, 1]]})"), "x");
  EXPECT_EQ(task.world_size, 2);
  ASSERT_EQ(task.tables.size(), 1U);
  const ShardingChoice& option = task.tables[0].options[0];
  ASSERT_EQ(option.shards.size(), 3U);
  EXPECT_DOUBLE_EQ(option.shards[1].cost_ms, 0.5);
  EXPECT_EQ(option.shards[2].bytes[0], 1);
  EXPECT_EQ(task.memories[0].bytes[1], 20);
}

TEST(OptionJson, ReadsTheDocumentsExample) {
  const std::string text = read_file(NEUROSHARD_SOURCE_DIR "/docs/formats.md");
  const std::size_t begin = text.find(R"({"format": "neuroshard/option-task/1")");
  ASSERT_NE(begin, std::string::npos);
  const OptionTask task =
      parse_option_task(text.substr(begin, text.find("```", begin) - begin), "x");
  const OptionPlan plan = plan_options(task);
  EXPECT_EQ(first_violation(task, plan.chosen), "");
  EXPECT_DOUBLE_EQ(plan.cost_ms, 1.4);
}

TEST(OptionJson, Refusals) {
  EXPECT_EQ(
      refusal_of_options(with_option(R"({"placement": "somewhere", "shards": [[1, 1.0, 1]]})")),
      "options.json: tables[0].options[0].placement: expected any_device, distinct_devices, "
      "devices_of_one_host, whole_hosts or all_devices, got \"somewhere\"");
  EXPECT_EQ(
      refusal_of_options(with_option(R"({"placement": "all_devices", "shards": [[3, 1.0, 1]]})")),
      "options.json: tables[0].options[0].shards: expected a shard for each of 2 devices, "
      "got 3");
  EXPECT_EQ(
      refusal_of_options(with_option(R"({"placement": "whole_hosts", "shards": [[3, 1.0, 1]]})")),
      "options.json: tables[0].options[0].shards: expected a multiple of 2 shards, got 3");
  EXPECT_EQ(
      refusal_of_options(with_option(R"({"placement": "any_device", "shards": [[1, -1.0, 1]]})")),
      "options.json: tables[0].options[0].shards[0][1]: expected milliseconds of at least 0, got "
      "-1.0");
  EXPECT_EQ(refusal_of_options(with_option(R"({"placement": "any_device", "shards": [[1, 1.0]]})"))
                .substr(0, 96),
            "options.json: tables[0].options[0].shards[0]: expected a number of shards, a cost and "
            "bytes for ");
  EXPECT_EQ(refusal_of_options(with_option("")),
            "options.json: tables[0].options: expected at least one option, got none");
}

TEST(OptionJson, TimesAreZeroOrWithinTheirLimits) {
  const auto is_read = [](const std::string& cost, const std::string& load) {
    std::string text =
        with_option(R"({"placement": "any_device", "shards": [[1, )" + cost + ", 1]]}");
    text.insert(text.find("\"tables\""), "\"load_ms\": [" + load + ", 0], ");
    return refusal_of_options(text).empty();
  };
  for (const char* ms : {"0", "1e-30", "1e30"}) {
    EXPECT_TRUE(is_read(ms, "1.0")) << ms;
    EXPECT_TRUE(is_read("1.0", ms)) << ms;
  }
  for (const char* ms : {"-1", "9e-31", "1e-320", "2e30", "1e308"}) {
    EXPECT_FALSE(is_read(ms, "1.0")) << ms;
    EXPECT_FALSE(is_read("1.0", ms)) << ms;
  }
}

TEST(OptionJson, WritesTheAnswer) {
  OptionPlan plan;
  plan.chosen = {{1, {0, 1}}};
  plan.cost_ms = 0.5;
  plan.lower_bound_ms = 0.25;
  EXPECT_EQ(to_line(to_json(plan)),
            R"({"format": "neuroshard/option-plan/1", "cost_ms": 0.5, "lower_bound_ms": 0.25, )"
            R"("choices": [{"option": 1, "devices": [0, 1]}], )"
            R"("statistics": {"steps": 0, "accepted": 0}})");
}

}  // namespace
}  // namespace neuroshard
