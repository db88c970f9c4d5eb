// Alternating passes of sets, timed on each device.
#include "neuroshard/collect/compute/measure_sets.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <exception>
#include <memory>
#include <mutex>
#include <new>
#include <optional>
#include <span>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "neuroshard/core/error.h"
#include "neuroshard/core/units.h"

namespace neuroshard {

namespace {

using Clock = std::chrono::steady_clock;

/// Sets that begin under a deadline before any time is known.
constexpr std::size_t kFirstSets = 32;

double seconds_since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

/// The caller's functions, called by one thread at a time.
class Sequence {
 public:
  Sequence(const std::function<std::optional<PieceSet>()>& next,
           const std::function<void(const PieceSetResult&)>& on_done,
           const std::function<void()>& on_round)
      : next_(next), on_done_(on_done), on_round_(on_round) {}

  std::optional<PieceSet> next() {
    const std::lock_guard lock(mutex_);
    return stopped_ ? std::nullopt : next_();
  }
  void done(const PieceSetResult& result) {
    const std::lock_guard lock(mutex_);
    on_done_(result);
  }
  void round_ended() {
    if (!on_round_) return;
    const std::lock_guard lock(mutex_);
    on_round_();
  }
  /// No further set begins.
  void stop() {
    const std::lock_guard lock(mutex_);
    stopped_ = true;
  }

 private:
  const std::function<std::optional<PieceSet>()>& next_;
  const std::function<void(const PieceSetResult&)>& on_done_;
  const std::function<void()>& on_round_;
  std::mutex mutex_;
  bool stopped_ = false;
};

struct MeanSeconds {
  double sum = 0.0;
  std::int64_t count = 0;

  void add(double seconds) {
    sum += seconds;
    ++count;
  }
  [[nodiscard]] double mean() const { return count > 0 ? sum / static_cast<double>(count) : 0.0; }
};

/// A repetition whose times may still be on their way.
struct Round {
  std::future<double> forward_ms;
  std::future<double> backward_ms;
  double seconds = 0.0;     ///< of the host, with what came before the passes
  bool is_counted = false;  ///< among what all repetitions take

  /// Whether both passes have run: a device with a queue starts them in no time, and one without
  /// memory does not run one.
  [[nodiscard]] bool has_run() const {
    const auto is_ready = [](const std::future<double>& time) {
      return time.valid() && time.wait_for(std::chrono::seconds(0)) == std::future_status::ready;
    };
    return is_ready(forward_ms) && is_ready(backward_ms);
  }
};

/// A set between its first pass and its last.
struct Run {
  Run(std::int64_t set_id, std::unique_ptr<PreparedSet> prepared,
      const RepetitionOptions& repetitions, std::int64_t now)
      : id(set_id), set(std::move(prepared)), last_pass(now), total(repetitions) {}

  std::int64_t id;
  std::unique_ptr<PreparedSet> set;
  bool is_reference = false;  ///< runs as long as others do, and every round counts
  std::int64_t last_pass;     ///< when it ended, in bytes touched
  std::vector<Round> rounds;  ///< not yet looked at
  RepeatedTiming total;
  std::vector<double> forward_ms;
  std::vector<double> backward_ms;
  std::string failure;  ///< not empty: why there will be no measurement

  /// Waits for the rounds that have been started, and counts how long each took of those that are
  /// not counted yet.
  void collect_times(MeanSeconds& all_rounds) {
    for (Round& round : rounds) {
      const Clock::time_point start = Clock::now();
      const double forward = round.forward_ms.get();
      const double backward = round.backward_ms.get();
      if (is_reference || !total.warming_up()) {
        forward_ms.push_back(forward);
        backward_ms.push_back(backward);
      }
      if (is_reference) continue;
      const double seconds = round.seconds + seconds_since(start);
      total.add(forward + backward, seconds);
      if (!round.is_counted) all_rounds.add(seconds);
    }
    rounds.clear();
  }

  /// Until the fewest repetitions are done, where one takes `usual_seconds` as long as none is.
  [[nodiscard]] double seconds_left(double usual_seconds) const {
    double seconds = total.expected_seconds(usual_seconds) - total.seconds();
    for (const Round& round : rounds) seconds -= round.seconds;
    return std::max(seconds, 0.0);
  }

  [[nodiscard]] ComputeMeasurement measurement(double quantile) const {
    return {estimate_quantile(forward_ms, quantile).value,
            estimate_quantile(backward_ms, quantile).value, static_cast<int>(forward_ms.size()),
            total.estimate().interval};
  }

  /// Of a reference set, the quantile over the last `count` rounds whose times are collected.
  [[nodiscard]] double last_rounds_ms(std::size_t count, double quantile) const {
    std::vector<double> sums;
    for (std::size_t i = forward_ms.size() - count; i < forward_ms.size(); ++i) {
      sums.push_back(forward_ms[i] + backward_ms[i]);
    }
    return estimate_quantile(sums, quantile).value;
  }
};

/// One device at work on the sequence.
class DeviceLoop {
 public:
  DeviceLoop(MeasuringDevice& device, const MeasuringOptions& options, Sequence& sequence)
      : device_(device),
        sequence_(sequence),
        repetitions_(device.repetitions()),
        reference_sets_(options.reference_sets),
        in_flight_(std::clamp(
            options.in_flight, 1,
            std::max(device.max_in_flight() - static_cast<int>(options.reference_sets.size()), 1))),
        deadline_(options.deadline) {}

  void run() {
    if (device_.max_in_flight() <= static_cast<int>(reference_sets_.size()) &&
        !reference_sets_.empty()) {
      throw InputError("reference sets",
                       fmt::format("a device that can have more than {} ready",
                                   format_count(reference_sets_.size(), "set")),
                       fmt::format("{}", device_.max_in_flight()));
    }
    device_.forget_tables();
    Random order(0);
    while (true) {
      begin_sets();
      if (num_in_flight() == 0) return;
      if (references_.size() < reference_sets_.size()) begin_references();
      // No set always follows the same one, or comes first after the passes of the other kind,
      // whose lines are still on their way out of the caches.
      order.shuffle(runs_);
      start_round();
      for (const Run* reference : references_) {
        if (!reference->failure.empty()) throw reference_failure(reference->failure);
      }
      sequence_.round_ended();
      std::erase_if(runs_, [&](const std::unique_ptr<Run>& run) { return finish_if_done(*run); });
    }
  }

 private:
  /// Sets, without the reference sets.
  [[nodiscard]] std::size_t num_in_flight() const { return runs_.size() - references_.size(); }

  /// After the first sets, so that nothing runs where there are none.
  void begin_references() {
    for (const PieceSet& set : reference_sets_) {
      try {
        runs_.push_back(
            std::make_unique<Run>(set.id, device_.prepare(set), repetitions_, bytes_touched_));
      } catch (const std::bad_alloc&) {
        throw reference_failure("out of memory");
      } catch (const OutOfMemory& error) {
        throw reference_failure(error.what());
      }
      runs_.back()->is_reference = true;
      references_.push_back(runs_.back().get());
    }
  }

  static MachineError reference_failure(const std::string& failure) {
    return MachineError("the reference sets cannot be run: " + failure);
  }

  void begin_sets() {
    while (more_ && (num_in_flight() == 0 ||
                     (static_cast<int>(num_in_flight()) < in_flight_ && device_.has_room()))) {
      if (deadline_ && !another_can_begin()) return;
      const Clock::time_point start = Clock::now();
      const std::optional<PieceSet> set = sequence_.next();
      if (!set) {
        more_ = false;
        return;
      }
      if (set->has_own_tables) device_.forget_tables();
      try {
        runs_.push_back(
            std::make_unique<Run>(set->id, device_.prepare(*set), repetitions_, bytes_touched_));
      } catch (const std::bad_alloc&) {
        sequence_.done({set->id, std::nullopt, "out of memory"});
      } catch (const OutOfMemory& error) {
        sequence_.done({set->id, std::nullopt, error.what()});
      }
      preparing_.add(seconds_since(start));
    }
  }

  /// Whether one more can be done in time, as far as is known now: where the first sets took
  /// longer than others do, more can begin later. Nothing of any is known before the first round,
  /// or, of a device with a queue, before its times are fetched.
  [[nodiscard]] bool another_can_begin() const {
    if (rounds_.count == 0) return num_in_flight() < kFirstSets;
    const double usual = rounds_.mean();
    const RepeatedTiming its_own(repetitions_);
    double seconds = preparing_.mean() + its_own.expected_seconds(usual);
    for (const std::unique_ptr<Run>& run : runs_) {
      if (!run->is_reference) seconds += run->seconds_left(usual);
    }
    // Sets that are not known well enough go on among the others.
    const double round = usual * static_cast<double>(num_in_flight() + 1);
    seconds = std::max(seconds, round * its_own.fewest_runs());
    seconds += reference_rounds_.mean() * its_own.fewest_runs();
    return Clock::now() + std::chrono::duration_cast<Clock::duration>(
                              std::chrono::duration<double>(seconds)) <=
           *deadline_;
  }

  /// One repetition of every set.
  void start_round() {
    double references_seconds = 0.0;
    for (const std::unique_ptr<Run>& run : runs_) {
      const Clock::time_point start = Clock::now();
      Round& round = run->rounds.emplace_back();
      round.forward_ms = start_pass(*run, &PreparedSet::forward);
      round.seconds = seconds_since(start);
    }
    for (const std::unique_ptr<Run>& run : runs_) {
      if (!run->failure.empty()) continue;
      const Clock::time_point start = Clock::now();
      Round& round = run->rounds.back();
      round.backward_ms = start_pass(*run, &PreparedSet::backward);
      round.seconds += seconds_since(start);
      round.is_counted = !run->is_reference && round.has_run();
      if (round.is_counted) rounds_.add(round.seconds);
      if (run->is_reference) references_seconds += round.seconds;
    }
    if (!references_.empty()) reference_rounds_.add(references_seconds);
  }

  std::future<double> start_pass(Run& run, std::future<double> (PreparedSet::*pass)()) {
    const std::int64_t missing = run.last_pass + device_.bytes_between_passes() - bytes_touched_;
    if (missing > 0) bytes_touched_ += device_.disturb_caches(missing);
    std::future<double> time;
    try {
      time = (run.set.get()->*pass)();
    } catch (const std::bad_alloc&) {
      run.failure = "out of memory";
    } catch (const OutOfMemory& error) {  // of what only a pass needs
      run.failure = error.what();
    }
    bytes_touched_ += run.set->bytes_touched();
    run.last_pass = bytes_touched_;
    return time;
  }

  /// Times are only fetched where they may suffice, so that a device with a queue need not wait for
  /// the host before.
  bool finish_if_done(Run& run) {
    if (run.is_reference) return false;
    if (!run.failure.empty()) {
      sequence_.done({run.id, std::nullopt, run.failure});
      return true;
    }
    const bool is_late = deadline_ && Clock::now() > *deadline_;
    if (!is_late && static_cast<int>(run.rounds.size()) < run.total.runs_until_next_look()) {
      return false;
    }
    run.collect_times(rounds_);
    if (!run.total.done() && !(is_late && run.total.suffices_in_a_hurry())) return false;
    ComputeMeasurement measured = run.measurement(repetitions_.quantile);
    for (Run* reference : references_) {
      reference->collect_times(rounds_);
      measured.reference_ms.push_back(
          reference->last_rounds_ms(run.forward_ms.size(), repetitions_.quantile));
    }
    sequence_.done({run.id, measured, ""});
    return true;
  }

  MeasuringDevice& device_;
  Sequence& sequence_;
  RepetitionOptions repetitions_;
  std::span<const PieceSet> reference_sets_;
  int in_flight_;  ///< besides the reference sets
  std::optional<Clock::time_point> deadline_;
  MeanSeconds preparing_;         ///< of a set
  MeanSeconds rounds_;            ///< of a repetition of a set, of those known to have run
  MeanSeconds reference_rounds_;  ///< of a repetition of all reference sets
  std::vector<std::unique_ptr<Run>>
      runs_;                      ///< with the reference sets, in the order of the last round
  std::vector<Run*> references_;  ///< those of `runs_`, in the order given
  bool more_ = true;
  /// A clock that only advances when memory is touched.
  std::int64_t bytes_touched_ = 0;
};

}  // namespace

void measure_sets(ComputeBackend& backend, const MeasuringOptions& options,
                  const std::function<std::optional<PieceSet>()>& next,
                  const std::function<void(const PieceSetResult&)>& on_done) {
  Sequence sequence(next, on_done, options.on_round);
  if (backend.devices.size() == 1) {
    DeviceLoop(*backend.devices.front(), options, sequence).run();
    return;
  }
  std::vector<std::exception_ptr> failures(backend.devices.size());
  {
    std::vector<std::jthread> threads;
    for (std::size_t i = 0; i < backend.devices.size(); ++i) {
      threads.emplace_back([&, i] {
        try {
          DeviceLoop(*backend.devices[i], options, sequence).run();
        } catch (...) {
          sequence.stop();
          failures[i] = std::current_exception();
        }
      });
    }
  }
  for (const std::exception_ptr& failure : failures) {
    if (failure) std::rethrow_exception(failure);
  }
}

}  // namespace neuroshard
