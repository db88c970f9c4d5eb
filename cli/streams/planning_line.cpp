// Stages of a planning in words, with the time left where it is known.
#include "cli/streams/planning_line.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <new>
#include <system_error>

#include "neuroshard/core/units.h"

namespace neuroshard::cli {

namespace {

constexpr std::chrono::milliseconds kBetweenLooks{200};

double seconds_since(StopClock::Clock::time_point start) {
  return std::chrono::duration<double>(StopClock::Clock::now() - start).count();
}

std::string stage_text(const PlanningProgress& progress) {
  const auto of_all = [&] {
    return progress.all > 0 ? fmt::format(" of {}", progress.all) : std::string();
  };
  switch (progress.stage) {
    case PlanningStage::first_plan:
      return fmt::format("first plan, level {}", progress.done);
    case PlanningStage::improvement:
      return fmt::format("improving, round {}{}", progress.done, of_all());
    case PlanningStage::lower_bound:
      return "lower bound";
    case PlanningStage::baselines:
      return fmt::format("baseline {}{}", progress.done, of_all());
  }
  return "";
}

}  // namespace

PlanningLine::PlanningLine(std::optional<double> limit_seconds, PlannerOptions& options)
    : limit_seconds_(limit_seconds), options_(options) {
  if (verbosity() == Verbosity::quiet) return;
  observer_ = [this](const PlanningProgress& progress) {
    const std::lock_guard lock(mutex_);
    const bool is_same_stage = progress_ && progress_->stage == progress.stage;
    const std::optional<double> before = is_same_stage ? progress_->best_cost_ms : std::nullopt;
    if (!is_same_stage) stage_start_ = StopClock::Clock::now();
    progress_ = progress;
    if (before && (!progress.best_cost_ms || *before < *progress.best_cost_ms)) {
      progress_->best_cost_ms = before;
    }
  };
  options_.observer = &observer_;
  try {
    thread_ = std::thread([this] { run(); });
  } catch (const std::system_error&) {
    return;  // planning goes on without progress
  }
}

PlanningLine::~PlanningLine() {
  options_.observer = nullptr;
  {
    const std::lock_guard lock(mutex_);
    is_over_ = true;
  }
  changed_.notify_all();
  if (thread_.joinable()) thread_.join();
}

void PlanningLine::run() {
  std::unique_lock lock(mutex_);
  while (!changed_.wait_for(lock, kBetweenLooks, [this] { return is_over_; })) {
    try {
      line_.show(text());
    } catch (const std::bad_alloc&) {
      continue;  // planning goes on without progress; what left a thread would end the process
    }
  }
}

std::string PlanningLine::text() const {
  const double seconds = seconds_since(start_);
  std::string text = progress_ ? stage_text(*progress_) : std::string("planning");
  if (progress_ && progress_->best_cost_ms) {
    text += fmt::format(", {:.4g} ms so far", *progress_->best_cost_ms);
  }
  text += ", " + format_seconds(seconds);
  const bool counts = progress_ && progress_->all > 0 && progress_->done > 0;
  std::optional<double> left;
  if (counts) {
    left = seconds_since(stage_start_) / static_cast<double>(progress_->done) *
           static_cast<double>(progress_->all - progress_->done);
  }
  // The limit is of planning, before which the task is read: where that took long, it does not say
  // when the end is.
  if (limit_seconds_ && progress_ && seconds < *limit_seconds_) {
    const double of_limit = *limit_seconds_ - seconds;
    left = left ? std::min(*left, of_limit) : of_limit;
  }
  return left ? fmt::format("{}, at most {} left", text, format_seconds(*left)) : text;
}

}  // namespace neuroshard::cli
