// Tasks that were made with a plan that fills every device to the last byte get a plan, but for a
// few.
#include "neuroshard/search/memory/full_devices.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <numeric>

#include "neuroshard/core/numbers/random.h"
#include "neuroshard/search/memory/memory_fit.h"
#include "tests/search/arbitrary_simulator.h"

namespace neuroshard {
namespace {

using testing_tasks::make_table;
using testing_tasks::one_host_task;
using testing_tasks::task_of_any_tightness;

/// Of 1 to 128 columns. With conditions, some cannot be cut, some not into narrow pieces, and some
/// pieces take memory beyond their rows.
Table random_table(int number, bool conditions, Random& random) {
  const auto rows = static_cast<std::int64_t>(std::exp(random.uniform(4.6, 13.8)));
  Table table = make_table(fmt::format("t{}", number), rows, 4 * random.integer(1, 32));
  if (random.below(2) == 0) table.data_type = DataType::fp16;
  if (random.below(10) == 0) table.embedding_dim = random.integer(1, 31);
  if (!conditions) return table;
  if (random.below(4) == 0) table.min_shard_columns = 4 * random.integer(1, 4);
  if (random.below(4) == 0) table.extra_bytes_per_shard = random.integer(1, 100'000);
  if (random.below(4) == 0) table.extra_bytes_per_column = random.integer(1, 10'000);
  return table;
}

/// Columns of the pieces that a table is cut into, at most this number.
std::vector<std::int64_t> random_widths(const Table& table, int most_pieces, Random& random) {
  if (!can_cut(table, table.embedding_dim)) return {table.embedding_dim};
  const std::int64_t least = narrowest_cut(table);
  const std::int64_t pieces =
      random.integer(1, std::min<std::int64_t>(most_pieces, table.embedding_dim / least));
  const std::int64_t free = (table.embedding_dim - pieces * least) / kColumnGranularity;
  std::vector<std::int64_t> ends;
  for (std::int64_t piece = 1; piece < pieces; ++piece) ends.push_back(random.integer(0, free));
  std::sort(ends.begin(), ends.end());
  ends.push_back(free);
  std::adjacent_difference(ends.begin(), ends.end(), ends.begin());
  for (std::int64_t& width : ends) width = least + width * kColumnGranularity;
  return ends;
}

/// 2 to 12 tables on 2 to 6 devices, which have the memory that pieces placed at random take.
/// Pinned tables may lie where their pieces were placed and on one device more.
Task planted_task(bool conditions, bool pins, Random& random) {
  const int num_devices = static_cast<int>(random.integer(2, 6));
  const int num_tables = static_cast<int>(random.integer(2, 12));
  Task task = one_host_task({}, num_devices, 0,
                            random.below(2) == 0 ? Optimizer::sgd : Optimizer::rowwise_adagrad);
  std::vector<int> devices(num_devices);
  std::iota(devices.begin(), devices.end(), 0);
  for (int t = 0; t < num_tables; ++t) {
    Table table = random_table(t, conditions, random);
    // Some tables are alike.
    if (t > 0 && random.below(8) == 0) table = task.tables[t - 1];
    table.name = fmt::format("t{}", t);
    table.devices.clear();
    random.shuffle(devices);
    const std::vector<std::int64_t> widths = random_widths(table, num_devices, random);
    for (std::size_t i = 0; i < widths.size(); ++i) {
      task.topology.memory_bytes[devices[i]] += shard_bytes(table, widths[i], task.optimizer);
    }
    const auto permitted = static_cast<std::ptrdiff_t>(widths.size()) + 1;
    if (pins && permitted < num_devices && random.below(3) == 0) {
      table.devices.assign(devices.begin(), devices.begin() + permitted);
    }
    task.tables.push_back(std::move(table));
  }
  // A device without a piece cannot have no memory.
  for (std::int64_t& bytes : task.topology.memory_bytes) bytes = std::max<std::int64_t>(bytes, 1);
  return task;
}

/// Whether it gets a plan; all plans must be valid.
bool gets_a_plan(const Task& task, bool rows) {
  const MemoryFit fit = fit_memory(task, rows);
  EXPECT_TRUE(!fit.feasible || violations(task, fit.plan).empty());
  return fit.feasible;
}

TEST(FullDevices, PlantedTasksHardlyEverLackAPlan) {
  constexpr int kTasks = 400;
  int missed = 0;
  for (std::uint64_t seed = 0; seed < kTasks; ++seed) {
    Random random(seed);
    const bool conditions = random.below(2) == 0;
    const bool pins = random.below(4) == 0;
    const Task task = planted_task(conditions, pins, random);
    missed += gets_a_plan(task, false) ? 0 : 1;
    missed += gets_a_plan(task, true) ? 0 : 1;
  }
  EXPECT_LE(missed, kTasks / 50);
}

RC_GTEST_PROP(FullDevicesProperty, AnswersAreThoseOfAnotherSearch, ()) {
  const Task task = task_of_any_tightness();
  const ExactFit exact = fit_exactly(task, 20'000);
  const ExactFit full = fit_full_devices(task);
  RC_CLASSIFY(exact.answer == FitAnswer::does_not_fit && full.answer == FitAnswer::does_not_fit,
              "both know that there is none");
  if (full.answer == FitAnswer::fits) RC_ASSERT(violations(task, {full.shards}).empty());
  if (exact.answer != FitAnswer::unknown && full.answer != FitAnswer::unknown) {
    RC_ASSERT(exact.answer == full.answer);
  }
}

TEST(FullDevices, FindsPlansThatNothingElseFinds) {
  int missed_without = 0;
  int found = 0;
  for (std::uint64_t seed = 0; seed < 400; ++seed) {
    Random random(seed);
    const Task task = planted_task(false, false, random);
    if (fit_exactly(task, 100'000).answer == FitAnswer::fits) continue;
    ++missed_without;
    const ExactFit fit = fit_full_devices(task);
    EXPECT_NE(fit.answer, FitAnswer::does_not_fit) << "seed " << seed;
    EXPECT_EQ(fit_full_devices(task).shards, fit.shards) << "seed " << seed;
    if (fit.answer != FitAnswer::fits) continue;
    ++found;
    EXPECT_TRUE(violations(task, {fit.shards}).empty()) << "seed " << seed;
  }
  EXPECT_GT(missed_without, 0);
  EXPECT_GE(found, missed_without * 9 / 10);
}

TEST(FullDevices, KnowsThatThereIsNone) {
  // As many bytes as there are, but in pieces that fill no device.
  const Task odd = one_host_task({make_table("a", 100, 12), make_table("b", 70, 24)}, 2, 5760);
  EXPECT_EQ(fit_full_devices(odd).answer, FitAnswer::does_not_fit);
}

TEST(FullDevices, HasNoAnswerForManyDevices) {
  std::vector<Table> tables;
  for (int t = 0; t < 70; ++t) tables.push_back(make_table(fmt::format("t{}", t), 10, 4));
  EXPECT_EQ(fit_full_devices(one_host_task(tables, 70, 160)).answer, FitAnswer::unknown);
  tables.resize(32);
  EXPECT_EQ(fit_full_devices(one_host_task(tables, 32, 160)).answer, FitAnswer::fits);
}

TEST(FullDevices, TablesThatStayTogetherDo) {
  std::vector<Table> tables;
  for (int t = 0; t < 4; ++t) tables.push_back(make_table(fmt::format("t{}", t), 10, 3));
  tables[3].same_device_as = "t0";
  const Task task = one_host_task(tables, 2, 240);
  const ExactFit fit = fit_full_devices(task);
  ASSERT_EQ(fit.answer, FitAnswer::fits);
  EXPECT_TRUE(violations(task, {fit.shards}).empty());
}

TEST(FullDevices, ObeysTheClock) {
  const StopClock over{StopClock::Clock::now() - std::chrono::seconds(1)};
  const Task task = one_host_task({make_table("a", 100, 12), make_table("b", 70, 24)}, 3, 3840);
  EXPECT_EQ(fit_full_devices(task).answer, FitAnswer::fits);
  EXPECT_THROW((void)fit_full_devices(task, over), TimeIsOver);
}

}  // namespace
}  // namespace neuroshard
