// Costs over sizes of clusters: which are planned, which follow, and what is refused.
#include "neuroshard/decide/capacity.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "neuroshard/core/error.h"
#include "neuroshard/cost/compute/compute_model_io.h"
#include "neuroshard/report/capacity_report.h"
#include "tests/cost/arbitrary_network.h"
#include "tests/decide/decide_tasks.h"
#include "tests/io/io_test_util.h"

namespace neuroshard {
namespace {

using testing::AllOf;
using testing::Contains;
using testing::ElementsAre;
using testing::EndsWith;
using testing::HasSubstr;
using testing::StartsWith;
using testing_decide::kEstimates;
using testing_decide::make_task;

CapacityRequest make_request(std::vector<int> devices, std::vector<std::int64_t> memory) {
  CapacityRequest request;
  request.devices = std::move(devices);
  request.memory_bytes = std::move(memory);
  request.models = kEstimates;
  request.options.steps = 500;
  request.options.num_threads = 2;
  return request;
}

constexpr std::int64_t kMiB = 1 << 20;

TEST(ParseDeviceNumbers, DoublesAndLists) {
  EXPECT_THAT(parse_device_numbers("4:64", "d"), ElementsAre(4, 8, 16, 32, 64));
  EXPECT_THAT(parse_device_numbers("4:70", "d"), ElementsAre(4, 8, 16, 32, 64));
  EXPECT_THAT(parse_device_numbers("12,4", "d"), ElementsAre(4, 12));
  EXPECT_THAT(parse_device_numbers("1,4:16,8", "d"), ElementsAre(1, 4, 8, 16));
  EXPECT_THAT(parse_device_numbers("65536:65536", "d"), ElementsAre(65536));
  for (const char* text : {"", ",", "4,", "0", "-4", "8:4", "4:", ":4", "a", "4:8:16", "65537"}) {
    EXPECT_THROW((void)parse_device_numbers(text, "--devices"), InputError) << text;
  }
}

TEST(Capacity, CostsNeverRiseWithMemory) {
  // The tables need some 320 MiB.
  const Capacity capacity = plan_capacity(
      make_task(), make_request({4, 1, 2}, {1024 * kMiB, 16 * kMiB, 100 * kMiB, 200 * kMiB}));
  EXPECT_THAT(capacity.devices, ElementsAre(1, 2, 4));
  ASSERT_EQ(capacity.points.size(), 12U);
  for (std::size_t i = 0; i < capacity.points.size(); ++i) {
    const CapacityPoint& point = capacity.points[i];
    EXPECT_EQ(point.devices, capacity.devices[i / 4]);
    EXPECT_EQ(point.memory_bytes, capacity.memory_bytes[i % 4]);
    EXPECT_LE(point.used_bytes, point.memory_bytes);
    EXPECT_NE(point.found, !point.reason.empty());
    if (i % 4 == 0 || !capacity.points[i - 1].found) continue;
    EXPECT_TRUE(point.found);
    EXPECT_LE(point.cost_ms, capacity.points[i - 1].cost_ms);
  }
  EXPECT_FALSE(capacity.points[0].found);
  EXPECT_FALSE(capacity.points[8].found);  // 4 of 16 MiB
  ASSERT_TRUE(capacity.smallest && capacity.cheapest);
  EXPECT_EQ(capacity.points[*capacity.smallest].devices, 1);
  EXPECT_EQ(capacity.points[*capacity.smallest].memory_bytes, 1024 * kMiB);
}

TEST(Capacity, DoesNotDependOnTheNumberOfThreads) {
  CapacityRequest request = make_request({1, 2, 4}, {100 * kMiB, 400 * kMiB});
  const Capacity first = plan_capacity(make_task(), request);
  request.options.num_threads = 1;
  EXPECT_EQ(to_document(capacity_json(plan_capacity(make_task(), request))),
            to_document(capacity_json(first)));
}

TEST(Capacity, SaysAboutHowManyPlansNetworksDisagree) {
  const TemporaryFolder folder;
  const std::string path = folder.file("unsure.safetensors");
  write_compute_model(*testing_networks::random_model(ComputeArchitecture::bounded_loads, 5), path);
  CapacityRequest request = make_request({1, 2}, {1024 * kMiB, 2048 * kMiB});
  request.models = {path, "analytic-a100-nvswitch"};
  const Capacity capacity = plan_capacity(make_task(), request);
  for (const CapacityPoint& point : capacity.points) {
    EXPECT_THAT(point.warnings, Contains(HasSubstr("unsure: its 3 networks disagree by")))
        << point.devices;
  }
  EXPECT_THAT(capacity.warnings,
              Contains(AllOf(StartsWith("unsure: its 3 networks disagree by"),
                             EndsWith(": 4 of 4 plans, the first of them 1 device with 1.00 GiB "
                                      "each"))));
}

TEST(Capacity, TellsProgressOfEveryPoint) {
  std::size_t calls = 0;
  (void)plan_capacity(make_task(), make_request({1, 4}, {100 * kMiB, 400 * kMiB}),
                      [&](std::size_t done, std::size_t all) {
                        EXPECT_EQ(done, ++calls);
                        EXPECT_EQ(all, 4U);
                      });
  EXPECT_EQ(calls, 4U);
}

TEST(Capacity, HostsKeepTheirSize) {
  EXPECT_NO_THROW((void)plan_capacity(make_task(), make_request({2, 8}, {1024 * kMiB})));
  try {
    (void)plan_capacity(make_task(), make_request({6}, {1024 * kMiB}));
    FAIL() << "expected an InputError";
  } catch (const InputError& error) {
    EXPECT_EQ(std::string(error.what()),
              "--devices: expected at most 4 devices, or a multiple of the task's 4 per host, got "
              "6");
  }
}

TEST(Capacity, OptionsAreThoseThatAreUsed) {
  CapacityRequest request = make_request({4}, {1024 * kMiB});
  const auto cost_ms = [&] { return plan_capacity(make_task(), request).points[0].cost_ms; };
  request.options = options_of_short_search();
  request.options.num_threads = 2;
  EXPECT_EQ(request.options.improvement, ImprovementSchedule::brief);
  const double brief_ms = cost_ms();
  request.options.improvement = ImprovementSchedule::thorough;
  EXPECT_NE(cost_ms(), brief_ms);
  request.options.steps = 0;
  EXPECT_THROW((void)cost_ms(), InputError);
  request.options.steps = 10;
  request.options.stop_by_clock = true;
  EXPECT_THROW((void)cost_ms(), InputError);
}

TEST(Capacity, RefusesWhatItCannotPlan) {
  EXPECT_THROW((void)plan_capacity(make_task(), make_request({}, {kMiB})), InputError);
  EXPECT_THROW((void)plan_capacity(make_task(), make_request({4}, {})), InputError);
  EXPECT_THROW((void)plan_capacity(make_task(), make_request({4}, {0})), InputError);
  for (const int devices : {-1, 0, kMaxWorldSize + 4}) {
    EXPECT_THROW((void)plan_capacity(make_task(), make_request({devices}, {kMiB})), InputError);
  }
}

TEST(Capacity, NumbersOfDevicesThatPinsRuleOutArePointsWithoutAPlan) {
  Task pinned = make_task();
  pinned.tables[0].devices = {3};
  const Capacity capacity =
      plan_capacity(pinned, make_request({1, 2, 4, 8}, {1024 * kMiB, 2048 * kMiB}));
  ASSERT_EQ(capacity.points.size(), 8U);
  for (std::size_t i = 0; i < 8; ++i) {
    EXPECT_EQ(capacity.points[i].found, i >= 4);
    EXPECT_EQ(capacity.points[i].is_ruled_out, i < 4);
  }
  EXPECT_EQ(capacity.points[0].reason,
            "1 device: tables[0].devices[0]: expected a device from 0 to 0, got 3");
  EXPECT_EQ(capacity.points[3].reason,
            "2 devices: tables[0].devices[0]: expected a device from 0 to 1, got 3");
  EXPECT_EQ(capacity.smallest, 4U);
  EXPECT_THAT(
      capacity_text(capacity),
      HasSubstr("-  2 devices: tables[0].devices[0]: expected a device from 0 to 1, got 3\n"));
  const Capacity none = plan_capacity(pinned, make_request({1, 2}, {kMiB}));
  EXPECT_FALSE(none.smallest);
  EXPECT_THAT(capacity_text(none),
              HasSubstr("no plan fits; with the most devices: 2 devices: tables[0].devices[0]: "));
  // Sizes out of range are errors all the same.
  EXPECT_THROW((void)plan_capacity(pinned, make_request({2}, {0})), InputError);
  EXPECT_THROW((void)plan_capacity(pinned, make_request({2}, {0, 1 << 20})), InputError);
}

TEST(Capacity, SaysOnceOfAllNumbersOfDevicesWhatTheModelWasNotTrainedOn) {
  const TemporaryFolder folder;
  const std::string path = folder.file("few.safetensors");
  TrainedRange range = testing_networks::wide_info().range;
  range.max_pieces = 4;
  testing_networks::write_model_of_range(path, "few", range);
  CapacityRequest request = make_request({1, 2, 4}, {2048 * kMiB});
  request.models = {path, "analytic-a100-nvswitch"};
  std::vector<std::string> of_task;
  for (const std::string& line : plan_capacity(make_task(), request).warnings) {
    if (line.find(" tables for ") != std::string::npos) of_task.push_back(line);
  }
  EXPECT_THAT(of_task,
              ElementsAre("few: tables: trained on at most 4 pieces on a device, got 12 tables for "
                          "1 device: 2 of 3 numbers of devices, the first of them 1 device"));
}

TEST(CapacityText, HasABarForEachCost) {
  Capacity capacity = plan_capacity(make_task(), make_request({4}, {1024 * kMiB}));
  capacity.points.clear();
  capacity.devices = {4, 8};
  capacity.memory_bytes = {kMiB, 2 * kMiB, 4 * kMiB};
  for (const double cost_ms : {0.0, 8.0, 4.0, 2.0, 2.0, 2.0}) {
    CapacityPoint point;
    point.found = cost_ms > 0.0;
    point.cost_ms = cost_ms;
    capacity.points.push_back(point);
  }
  const std::string bar(25, '#');
  EXPECT_THAT(capacity_text(capacity),
              HasSubstr("      4  1.00 MiB                    -  does not fit\n"
                        "         2.00 MiB                8.000  " +
                        bar + bar +
                        "\n"
                        "         4.00 MiB                4.000  " +
                        bar +
                        "\n"
                        "      8  1.00 MiB to 4.00 MiB    2.000  #############\n"));
}

TEST(CapacityText, HasTableChartAndChoice) {
  const std::string text =
      capacity_text(plan_capacity(make_task(), make_request({1, 4}, {100 * kMiB, 1024 * kMiB})));
  EXPECT_THAT(text, HasSubstr("devices  100.00 MiB  1.00 GiB\n"));
  EXPECT_THAT(text, HasSubstr("\ndevices  memory of each"));
  EXPECT_THAT(text, HasSubstr("      1  100.00 MiB"));
  EXPECT_THAT(text, HasSubstr("does not fit\n"));
  EXPECT_THAT(text, HasSubstr("      4  100.00 MiB  "));
  EXPECT_THAT(text, HasSubstr("####"));
  EXPECT_THAT(text, HasSubstr("\nmodels: analytic-a100-40gb (an estimate, not measured) for "));
  EXPECT_THAT(text, HasSubstr("the smallest that fits: 1 device of 1.00 GiB ("));
  EXPECT_THAT(capacity_text(plan_capacity(make_task(), make_request({4}, {kMiB}))),
              HasSubstr("no plan fits; with the most devices: "));
}

}  // namespace
}  // namespace neuroshard
