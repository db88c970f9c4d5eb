// The relaxed mean device: bounds that can be computed by hand.
#include "neuroshard/search/bound/mean_device.h"

#include <gtest/gtest.h>

#include "tests/search/arbitrary_simulator.h"
#include "tests/search/flat_partial_sums.h"

namespace neuroshard {
namespace {

using testing_tasks::analytic_compute;
using testing_tasks::FlatPartialSums;
using testing_tasks::make_simulator;
using testing_tasks::make_table;
using testing_tasks::one_host_task;

constexpr double kNoPlanKnown = std::numeric_limits<double>::infinity();
constexpr std::int64_t kMemory = 1000;

/// Of two devices of 1,000 bytes on one host; the model's cost is its overhead and the sum of what
/// its pieces take.
class MeanDeviceTest : public testing::Test {
 protected:
  /// A contribution of one piece that takes `ms`.
  static std::vector<double> taking(double ms) { return {1.0, ms}; }
  double bound_ms(double known_ms = kNoPlanKnown) const { return device_.bound_ms(known_ms, {}); }
  double floor_ms(double columns) const {
    const Task& task = simulator_.task();
    return simulator_.communication().floor_ms(task.topology, task.batch_size, columns);
  }
  /// Of a device that has any pieces.
  double launch_ms() const { return simulator_.compute().cost(taking(0.0)) + floor_ms(0.0); }

  Simulator simulator_ = make_simulator(one_host_task({make_table("a", 10, 8)}, 2, kMemory));
  MeanDevice device_{simulator_};
};

TEST_F(MeanDeviceTest, TakesHalfOfTheCheapestCuts) {
  device_.add_table(2);
  device_.add_piece(2, 1.0, taking(10.0), {});
  device_.add_piece(1, 1.0, taking(6.0), {});  // two of them: dearer
  device_.add_table(1);
  device_.add_piece(1, 1.0, taking(8.0), {});
  device_.add_piece(1, 0.5, taking(3.0), {});  // two slices: cheaper
  EXPECT_NEAR(bound_ms(), launch_ms() + (10.0 + 6.0) / 2, 1e-9);
}

TEST_F(MeanDeviceTest, LeavesOutPiecesThatCostWhatAKnownPlanDoes) {
  device_.add_table(2);
  device_.add_piece(2, 1.0, taking(10.0), {});
  device_.add_piece(1, 1.0, taking(6.0), {});
  EXPECT_NEAR(bound_ms(), launch_ms() + 5.0, 1e-9);
  // A plan of less than 9 ms has two narrow pieces, one on each device or both on one.
  EXPECT_NEAR(bound_ms(launch_ms() + 9.0), launch_ms() + 6.0, 1e-9);
  EXPECT_NEAR(bound_ms(launch_ms() + 5.5), launch_ms() + 5.5, 1e-9);  // there is no such plan
}

TEST_F(MeanDeviceTest, PaysForMemoryWithDearerCuts) {
  device_.add_table(2);
  device_.add_piece(2, 1.0, taking(10.0), {.bytes = 3.0 * kMemory});
  device_.add_piece(1, 1.0, taking(6.0), {.bytes = 0.5 * kMemory});
  // Half of the table's cheap cut fits: 2,000 bytes of both devices.
  EXPECT_NEAR(bound_ms(), launch_ms() + 0.5 * (10.0 + 12.0) / 2, 0.05);
}

TEST_F(MeanDeviceTest, CopiesWhereThatIsCheaper) {
  device_.add_table(1);
  device_.add_piece(1, 1.0, taking(10.0), {});
  device_.add_table(1);
  device_.add_piece(1, 1.0, taking(8.0), {});
  device_.add_copy(taking(1.0), {});
  // The copies' operator may not exist, so that its overhead is no part.
  EXPECT_NEAR(bound_ms(), launch_ms() + 5.0 + 1.0, 1e-9);
}

TEST_F(MeanDeviceTest, PaysForColumnsOfEverySlice) {
  device_.add_table(1);
  device_.add_piece(1, 0.25, taking(1.0), {.columns = 64.0});
  EXPECT_NEAR(bound_ms(), launch_ms() + 2.0 + floor_ms(128.0) - floor_ms(0.0), 1e-6);
}

TEST_F(MeanDeviceTest, PaysForPartialSumsOnEveryDevice) {
  constexpr double kPartialBytes = 1e9;
  device_.add_table(1);
  device_.add_piece(1, 0.5, taking(1.0), {.partial_bytes = kPartialBytes});
  // Two slices, of which each device adds up its samples' sums.
  const double partial_ms = simulator_.partial_sums_ms(2.0 * kPartialBytes);
  EXPECT_LE(bound_ms(), launch_ms() + 1.0 + partial_ms);
  EXPECT_GE(bound_ms(), launch_ms() + 1.0 + 0.99 * partial_ms);
}

/// The rate per byte is that of all narrow pieces together, not of one.
TEST_F(MeanDeviceTest, PaysForNoMorePartialSumsThanNarrowPiecesTakeTogether) {
  constexpr double kPartialMs = 1.0;
  const Simulator simulator(simulator_.task(), analytic_compute(),
                            std::make_shared<FlatPartialSums>(kPartialMs));
  MeanDevice device(simulator);
  device.add_table(16);
  device.add_piece(1, 0.5, taking(0.25), {.partial_bytes = 1e6});
  const double slices_ms = 32 * 0.25 / 2;
  const double bound = device.bound_ms(kNoPlanKnown, {});
  EXPECT_LE(bound, launch_ms() + slices_ms + kPartialMs + 1e-9);
  EXPECT_GE(bound, launch_ms() + slices_ms + 0.99 * kPartialMs);
}

TEST_F(MeanDeviceTest, SaysNothingWhereNoPlanFits) {
  device_.add_table(2);
  device_.add_piece(2, 1.0, taking(10.0), {});
  device_.add_table(1);  // of no pieces
  EXPECT_EQ(bound_ms(), 0.0);
  EXPECT_EQ(bound_ms(7.0), 7.0);
}

TEST_F(MeanDeviceTest, TakesTheLeastOfATableThatIsNotLookedAt) {
  device_.add_table_of_least(taking(10.0), {});
  EXPECT_NEAR(bound_ms(9.0 + launch_ms()), launch_ms() + 5.0, 1e-9);  // in more than one piece
}

TEST_F(MeanDeviceTest, StopsByTheClock) {
  device_.add_table(1);
  device_.add_piece(1, 1.0, taking(10.0), {});
  EXPECT_THROW((void)device_.bound_ms(kNoPlanKnown, StopClock(StopClock::Clock::now())),
               TimeIsOver);
}

}  // namespace
}  // namespace neuroshard
