// Tasks on other devices, and properties of a task that cannot be changed.
#include "neuroshard/workload/task_settings.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>
#include <string>

#include "neuroshard/core/error.h"
#include "neuroshard/workload/workload.h"
#include "tests/io/io_test_util.h"

namespace neuroshard {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

constexpr std::int64_t kGiB = std::int64_t{1} << 30;

Task make_task(int devices, int local_devices) {
  return task_of(find_workload("mlperf-dlrm-dcnv2", 0),
                 {.devices = devices, .local_devices = local_devices, .memory_bytes = kGiB});
}

TEST(TaskSettings, MakeATaskOfAWorkload) {
  const Workload workload = find_workload("mlperf-dlrm-dcnv2", 0);
  const Task task = task_of(workload, {.devices = 4, .memory_bytes = kGiB});
  EXPECT_EQ(task.topology.local_world_size, 4);
  EXPECT_EQ(task.batch_size, workload.batch_size);
  EXPECT_EQ(task.tables.size(), workload.tables.size());
  EXPECT_THAT(input_error([&] { (void)task_of(workload, {.memory_bytes = kGiB}); }),
              HasSubstr("devices: expected the number of devices, got nothing"));
  EXPECT_THAT(input_error([&] { (void)task_of(workload, {.devices = 4}); }),
              HasSubstr("memory: expected a size"));
}

TEST(TaskSettings, MoveATaskToOtherDevices) {
  const Task one_host = with_settings(make_task(4, 4), {.devices = 2});
  EXPECT_EQ(one_host.topology.local_world_size, 2);
  EXPECT_THAT(one_host.topology.memory_bytes, ElementsAre(kGiB, kGiB));
  const Task hosts = with_settings(make_task(4, 2), {.devices = 6, .memory_bytes = 2 * kGiB});
  EXPECT_EQ(hosts.topology.local_world_size, 2);
  EXPECT_THAT(hosts.topology.memory_bytes, testing::Each(2 * kGiB));
  EXPECT_EQ(hosts.topology.memory_bytes.size(), 6U);
  EXPECT_THAT(input_error([&] { (void)with_settings(make_task(4, 2), {.devices = 5}); }),
              HasSubstr("local_world_size"));
}

TEST(TaskSettings, RefuseNumbersOfDevicesThatCannotBe) {
  const Workload workload = find_workload("mlperf-dlrm-dcnv2", 0);
  for (const int devices : {std::numeric_limits<int>::min(), -1, 0, kMaxWorldSize + 1}) {
    SCOPED_TRACE(devices);
    const auto refused = HasSubstr("devices: expected an integer between 1 and 65536, got " +
                                   std::to_string(devices));
    EXPECT_THAT(
        input_error([&] { (void)task_of(workload, {.devices = devices, .memory_bytes = kGiB}); }),
        refused);
    EXPECT_THAT(input_error([&] { (void)with_settings(make_task(4, 4), {.devices = devices}); }),
                refused);
    Task task = make_task(4, 4);
    task.topology.world_size = devices;
    EXPECT_THAT(input_error([&] { (void)with_settings(task, {.memory_bytes = kGiB}); }), refused);
  }
}

TEST(TaskSettings, AskForTheMemoryOfDevicesThatDiffer) {
  Task task = make_task(2, 2);
  task.topology.memory_bytes = {kGiB, 2 * kGiB};
  EXPECT_EQ(with_settings(task, {.devices = 2}).topology.memory_bytes, task.topology.memory_bytes);
  EXPECT_THAT(input_error([&] { (void)with_settings(task, {.devices = 4}); }),
              HasSubstr("memory: expected the memory of the new devices"));
}

TEST(TaskSettings, LeaveABatchSizeThatAHistogramHoldsFor) {
  Task task = make_task(2, 2);
  EXPECT_EQ(with_settings(task, {.batch_size = 512}).batch_size, 512);
  task.tables[1].index_distribution.reset();
  task.tables[1].reuse_histogram.emplace();
  task.tables[1].reuse_histogram->front() = 1.0;
  EXPECT_EQ(with_settings(task, {.batch_size = task.batch_size}).batch_size, task.batch_size);
  EXPECT_THAT(input_error([&] { (void)with_settings(task, {.batch_size = 512}); }),
              HasSubstr("for which table \"" + task.tables[1].name + "\" gives its"));
}

}  // namespace
}  // namespace neuroshard
