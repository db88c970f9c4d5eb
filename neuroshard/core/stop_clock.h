// The clock that may stop long work: every long loop of a search looks at it now and then.
#pragma once

#include <chrono>
#include <exception>
#include <optional>

namespace neuroshard {

/// Thrown by StopClock::check. Whoever started the work with a clock catches it: it is a signal, no
/// error that crosses a public boundary.
class TimeIsOver : public std::exception {
 public:
  [[nodiscard]] const char* what() const noexcept override { return "the time is over"; }
};

/// When work must end, if ever. Threads may share it. A look takes some 30 ns.
class StopClock {
 public:
  using Clock = std::chrono::steady_clock;

  StopClock() = default;  ///< never
  explicit StopClock(std::optional<Clock::time_point> end) : end_(end) {}

  [[nodiscard]] bool is_over() const { return end_ && Clock::now() >= *end_; }
  /// Throws TimeIsOver if it is over.
  void check() const {
    if (is_over()) throw TimeIsOver();
  }

  [[nodiscard]] const std::optional<Clock::time_point>& end() const { return end_; }

 private:
  std::optional<Clock::time_point> end_;
};

/// The same for short steps, of which only every `kSteps`-th looks at the clock. Not to be shared.
class PatientClock {
 public:
  explicit PatientClock(const StopClock& clock) : clock_(clock) {}
  void check() {
    if (++steps_ % kSteps == 0) clock_.check();
  }

 private:
  static constexpr unsigned kSteps = 64;

  StopClock clock_;
  unsigned steps_ = 0;
};

}  // namespace neuroshard
