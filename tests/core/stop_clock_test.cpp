// The clock that stops work: over at its end, never without one.
#include "neuroshard/core/stop_clock.h"

#include <gtest/gtest.h>

namespace neuroshard {
namespace {

TEST(StopClock, IsNeverOverWithoutAnEnd) {
  EXPECT_FALSE(StopClock().is_over());
  EXPECT_NO_THROW(StopClock().check());
  EXPECT_FALSE(StopClock(std::nullopt).is_over());
}

TEST(StopClock, IsOverFromItsEndOn) {
  const auto now = StopClock::Clock::now();
  EXPECT_TRUE(StopClock(now).is_over());
  EXPECT_THROW(StopClock(now).check(), TimeIsOver);
  EXPECT_FALSE(StopClock(now + std::chrono::hours(1)).is_over());
}

TEST(PatientClock, LooksNowAndThen) {
  PatientClock clock{StopClock(StopClock::Clock::now())};
  const auto work = [&] {
    for (int step = 0; step < 1000; ++step) clock.check();
  };
  EXPECT_NO_THROW(clock.check()) << "the first step";
  EXPECT_THROW(work(), TimeIsOver);
}

}  // namespace
}  // namespace neuroshard
