// The progress of the planning of one task.
#pragma once

#include <condition_variable>
#include <mutex>
#include <optional>
#include <string>
#include <thread>

#include "cli/streams/progress.h"
#include "neuroshard/search/planner.h"

namespace neuroshard::cli {

/// Says how far the planning is, for as long as this lives: a thread of its own shows the time
/// where a single step of the search takes many seconds.
class PlanningLine {
 public:
  /// Observes the planning with these options, which must outlive this. `limit_seconds` is when the
  /// clock ends it, if it does.
  PlanningLine(std::optional<double> limit_seconds, PlannerOptions& options);
  ~PlanningLine();
  PlanningLine(const PlanningLine&) = delete;
  PlanningLine& operator=(const PlanningLine&) = delete;

 private:
  void run();
  [[nodiscard]] std::string text() const;  ///< the mutex is held

  ProgressLine line_;
  std::optional<double> limit_seconds_;
  PlannerOptions& options_;
  PlanningObserver observer_;
  StopClock::Clock::time_point start_ = StopClock::Clock::now();
  std::mutex mutex_;
  std::condition_variable changed_;
  bool is_over_ = false;
  std::optional<PlanningProgress> progress_;
  StopClock::Clock::time_point stage_start_ = start_;
  std::thread thread_;  ///< last: it uses the others
};

}  // namespace neuroshard::cli
