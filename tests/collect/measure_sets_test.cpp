// The loop that measures: the number and order of passes, when caches are disturbed, when times are
// fetched, and how failures are reported.
#include "neuroshard/collect/compute/measure_sets.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <map>
#include <new>
#include <set>
#include <stdexcept>
#include <thread>
#include <utility>

#include "tests/collect/scripted_device.h"

namespace neuroshard {
namespace {

using testing::ElementsAre;
using testing_collection::Action;
using testing_collection::Script;
using testing_collection::ScriptedDevice;
using testing_collection::Step;

/// Sets 0 to count - 1 on scripted devices, and their results.
class Measurement {
 public:
  explicit Measurement(const Script& script, int num_devices = 1) {
    for (int i = 0; i < num_devices; ++i) {
      backend_.devices.push_back(std::make_unique<ScriptedDevice>(script));
    }
  }

  void run(std::int64_t count, int in_flight) {
    run(count, MeasuringOptions{.in_flight = in_flight});
  }
  void run(std::int64_t count, const MeasuringOptions& options) {
    std::int64_t begun = 0;
    measure_sets(
        backend_, options,
        [&]() -> std::optional<PieceSet> {
          const Caller only(*this);
          if (begun == count) return std::nullopt;
          return PieceSet{begun++, {}, {}, Random(1)};
        },
        [&](const PieceSetResult& result) {
          const Caller only(*this);
          EXPECT_TRUE(results.emplace(result.id, result).second) << "set " << result.id;
        });
  }

  [[nodiscard]] ScriptedDevice& device(std::size_t i = 0) {
    return static_cast<ScriptedDevice&>(*backend_.devices[i]);
  }
  /// Steps of a kind of the first device; of any set, or of one.
  [[nodiscard]] std::int64_t count(Action action, std::optional<std::int64_t> id = std::nullopt) {
    return std::count_if(device().steps.begin(), device().steps.end(), [&](const Step& step) {
      return step.action == action && (!id || step.id == *id);
    });
  }

  std::map<std::int64_t, PieceSetResult> results;

 private:
  /// Within a function of the caller, where one thread may be at a time.
  class Caller {
   public:
    explicit Caller(Measurement& measurement) : inside_(measurement.inside_) {
      EXPECT_EQ(inside_.fetch_add(1), 0) << "two threads call";
      std::this_thread::yield();
    }
    ~Caller() { --inside_; }
    Caller(const Caller&) = delete;
    Caller& operator=(const Caller&) = delete;

   private:
    std::atomic<int>& inside_;
  };

  ComputeBackend backend_;
  std::atomic<int> inside_{0};
};

TEST(MeasureSets, EverySetRunsItsRepetitionsAndNoMore) {
  for (const int in_flight : {0, 1, 3, 50}) {
    Measurement measurement(Script{});
    measurement.run(10, in_flight);
    ASSERT_EQ(measurement.results.size(), 10u);
    for (const auto& [id, result] : measurement.results) {
      ASSERT_TRUE(result.measurement.has_value());
      EXPECT_EQ(result.measurement->repetitions, 3);
      EXPECT_EQ(measurement.count(Action::prepare, id), 1);
      EXPECT_EQ(measurement.count(Action::forward, id), 4) << "with a warm-up";
      EXPECT_EQ(measurement.count(Action::backward, id), 4);
    }
    EXPECT_EQ(measurement.device().most_ready,
              static_cast<std::size_t>(std::clamp(in_flight, 1, 10)));
    EXPECT_TRUE(measurement.device().ready.empty());
  }
}

/// Each pass of a set takes a millisecond, or longer on a busy machine.
Script slow_passes(RepetitionOptions repetitions) {
  return {.repetitions = repetitions, .bytes_touched = [](std::int64_t) {
            std::this_thread::sleep_for(std::chrono::milliseconds(1));
            return 0;
          }};
}

TEST(MeasureSets, NoMoreSetsBeginThanCanBeDoneByTheDeadline) {
  Measurement measurement(slow_passes(
      {.target_interval = 0.0, .warm_ups = 1, .min_repetitions = 9, .max_repetitions = 9}));
  const auto now = std::chrono::steady_clock::now();
  measurement.run(1'000, {.in_flight = 1'000, .deadline = now + std::chrono::seconds(1)});
  EXPECT_GE(measurement.results.size(), 32u) << "those that begin before times are known";
  EXPECT_LE(measurement.results.size(), 50u) << "of 20 ms or more";
  for (const auto& [id, result] : measurement.results) {
    EXPECT_EQ(result.measurement->repetitions, 9);
  }
}

/// Passes of a device with a queue start at once; their times are what takes half a millisecond.
TEST(MeasureSets, WaitingForTimesCountsBeforeTheDeadline) {
  Measurement measurement(Script{.repetitions = {.target_interval = 0.0,
                                                 .warm_ups = 1,
                                                 .min_repetitions = 9,
                                                 .max_repetitions = 9},
                                 .time = [](std::int64_t, Action, int) {
                                   std::this_thread::sleep_for(std::chrono::microseconds(500));
                                   return 0.5;
                                 }});
  const auto now = std::chrono::steady_clock::now();
  measurement.run(1'000, {.in_flight = 1'000, .deadline = now + std::chrono::milliseconds(500)});
  EXPECT_GE(measurement.results.size(), 32u) << "those that begin before times are known";
  EXPECT_LE(measurement.results.size(), 50u) << "of 10 ms or more";
}

/// The first sets take longer than all others: how many can be done is not judged by them for good.
TEST(MeasureSets, MoreSetsBeginOnceTheyTurnOutToBeQuick) {
  Measurement measurement({.repetitions = {.target_interval = 0.0,
                                           .warm_ups = 0,
                                           .min_repetitions = 3,
                                           .max_repetitions = 3},
                           .bytes_touched = [](std::int64_t id) {
                             if (id < 32) std::this_thread::sleep_for(std::chrono::milliseconds(2));
                             return 0;
                           }});
  const auto now = std::chrono::steady_clock::now();
  measurement.run(1'000, {.in_flight = 1'000, .deadline = now + std::chrono::seconds(2)});
  EXPECT_EQ(measurement.results.size(), 1'000u);
}

TEST(MeasureSets, AfterTheDeadlineTheFewestRepetitionsOfAHurrySuffice) {
  Measurement measurement(slow_passes({.target_interval = 0.0,
                                       .warm_ups = 1,
                                       .min_repetitions = 9,
                                       .max_repetitions = 9,
                                       .hurried_repetitions = 3}));
  const auto now = std::chrono::steady_clock::now();
  measurement.run(1'000, {.in_flight = 1'000, .deadline = now + std::chrono::milliseconds(90)});
  EXPECT_EQ(measurement.results.size(), 32u);  // one repetition of these takes 64 ms
  for (const auto& [id, result] : measurement.results) {
    EXPECT_EQ(result.measurement->repetitions, 3);
  }
}

TEST(MeasureSets, TellsOfEveryRepetitionOfAllSets) {
  Measurement measurement(Script{});
  int rounds = 0;
  measurement.run(5, {.in_flight = 5, .on_round = [&] { ++rounds; }});
  EXPECT_EQ(rounds, 4);
}

TEST(MeasureSets, ADeviceHasNoMoreSetsReadyThanItCan) {
  Measurement measurement(Script{.max_in_flight = 2});
  measurement.run(5, 50);
  EXPECT_EQ(measurement.results.size(), 5u);
  EXPECT_EQ(measurement.device().most_ready, 2u);
}

TEST(MeasureSets, SetsAlternateInChangingOrder) {
  constexpr std::int64_t kSets = 4;
  Measurement measurement(Script{});
  measurement.run(kSets, kSets);
  std::vector<Step> passes;
  for (const Step& step : measurement.device().steps) {
    if (step.action == Action::forward || step.action == Action::backward) passes.push_back(step);
  }
  ASSERT_EQ(passes.size(), 4u * 2u * kSets);
  std::set<std::vector<std::int64_t>> orders;
  for (auto round = passes.begin(); round != passes.end(); round += 2 * kSets) {
    std::vector<std::int64_t> order;
    for (std::int64_t i = 0; i < kSets; ++i) {
      EXPECT_EQ(round[i].action, Action::forward);
      EXPECT_EQ(round[kSets + i], (Step{Action::backward, round[i].id}));
      order.push_back(round[i].id);
    }
    orders.insert(order);
    EXPECT_THAT(order, testing::UnorderedElementsAre(0, 1, 2, 3));
  }
  EXPECT_GT(orders.size(), 1u);
}

TEST(MeasureSets, OneSetAloneFindsAllCachesDisturbed) {
  Measurement measurement(
      Script{.bytes_between_passes = 100, .bytes_touched = [](std::int64_t) { return 1'000; }});
  measurement.run(2, 1);
  const std::vector<Step>& steps = measurement.device().steps;
  for (std::size_t i = 0; i < steps.size(); ++i) {
    if (steps[i].action != Action::forward && steps[i].action != Action::backward) continue;
    ASSERT_GT(i, 0u);
    EXPECT_EQ(steps[i - 1], (Step{Action::disturb, -1, 100}));
  }
  EXPECT_EQ(measurement.count(Action::disturb), 2 * 2 * 4);
}

TEST(MeasureSets, CachesAreDisturbedByWhatIsMissingAndNoMore) {
  const auto bytes_of = [](std::int64_t id) { return 10 + 15 * id; };
  constexpr std::int64_t kNeeded = 100;
  constexpr std::int64_t kBlock = 16;
  Measurement measurement(
      Script{.bytes_between_passes = kNeeded, .block_bytes = kBlock, .bytes_touched = bytes_of});
  measurement.run(9, 3);
  std::map<std::int64_t, std::int64_t> last_pass;
  std::int64_t touched = 0;
  std::int64_t disturbed = 0;
  for (const Step& step : measurement.device().steps) {
    if (step.action == Action::prepare) {
      last_pass[step.id] = touched;
    } else if (step.action == Action::disturb) {
      disturbed = step.bytes;
    } else if (step.action != Action::ask) {
      const std::int64_t missing = last_pass[step.id] + kNeeded - touched;
      EXPECT_EQ(disturbed, missing <= 0 ? 0 : (missing + kBlock - 1) / kBlock * kBlock);
      touched += std::exchange(disturbed, 0) + bytes_of(step.id);
      last_pass[step.id] = touched;
    }
  }
  EXPECT_EQ(measurement.results.size(), 9u);
  EXPECT_GT(measurement.count(Action::disturb), 0);
  EXPECT_LT(measurement.count(Action::disturb), 9 * 2 * 4);
}

TEST(MeasureSets, TimesAreQuantilesOfTheRepetitionsThatCount) {
  // The warm-up's are far off; forward and backward vary against each other.
  const std::vector<double> forward{90.0, 1.0, 2.0, 3.0, 4.0, 5.0};
  const std::vector<double> backward{90.0, 50.0, 40.0, 30.0, 20.0, 10.0};
  Measurement measurement(Script{.repetitions = {.quantile = 0.25,
                                                 .target_interval = 0.0,
                                                 .warm_ups = 1,
                                                 .min_repetitions = 2,
                                                 .max_repetitions = 5},
                                 .time = [&](std::int64_t id, Action pass, int run) {
                                   const auto& times = pass == Action::forward ? forward : backward;
                                   return static_cast<double>(id + 1) * times[run];
                                 }});
  measurement.run(3, 2);
  ASSERT_EQ(measurement.results.size(), 3u);
  for (const auto& [id, result] : measurement.results) {
    const auto factor = static_cast<double>(id + 1);
    ASSERT_TRUE(result.measurement.has_value());
    EXPECT_DOUBLE_EQ(result.measurement->forward_ms, factor * 2.0);
    EXPECT_DOUBLE_EQ(result.measurement->backward_ms, factor * 20.0);
    EXPECT_EQ(result.measurement->repetitions, 5);
  }
}

/// Sets that others are measured next to: 101, 102, ...
std::vector<PieceSet> reference_sets(int count) {
  std::vector<PieceSet> sets;
  for (int i = 1; i <= count; ++i) sets.push_back({100 + i, {}, {}, Random(1)});
  return sets;
}

TEST(MeasureSets, ReferenceSetsRunInEveryRoundAndTellWhatTheyTookMeanwhile) {
  // Each round is slower than the one before: in round `r` reference set `n` takes n (10 r + 1) ms,
  // both passes together.
  Measurement measurement(Script{.repetitions = {.quantile = 0.5,
                                                 .target_interval = 0.0,
                                                 .warm_ups = 1,
                                                 .min_repetitions = 2,
                                                 .max_repetitions = 3},
                                 .time = [](std::int64_t id, Action pass, int run) {
                                   if (id < 100) return 1.0;
                                   return static_cast<double>(id - 100) *
                                          (pass == Action::forward ? 10.0 * run : 1.0);
                                 }});
  const std::vector<PieceSet> sets = reference_sets(2);
  measurement.run(4, {.in_flight = 2, .reference_sets = sets});
  ASSERT_EQ(measurement.results.size(), 4u);
  // Sets 0 and 1 run in rounds 0 to 3, of which the first does not count, sets 2 and 3 in 4 to 7.
  for (const auto& [id, result] : measurement.results) {
    const double middle = id < 2 ? 2.0 : 6.0;
    ASSERT_TRUE(result.measurement.has_value());
    EXPECT_EQ(result.measurement->repetitions, 3);
    EXPECT_THAT(result.measurement->reference_ms,
                ElementsAre(10.0 * middle + 1.0, 2.0 * (10.0 * middle + 1.0)));
  }
  EXPECT_EQ(measurement.count(Action::prepare, 101), 1);
  EXPECT_EQ(measurement.count(Action::forward, 101), 8);
  EXPECT_EQ(measurement.count(Action::backward, 102), 8);
  EXPECT_EQ(measurement.device().most_ready, 4u) << "they take no place of a set";
  EXPECT_TRUE(measurement.device().ready.empty());
}

TEST(MeasureSets, WithoutASetNoReferenceSetRuns) {
  Measurement measurement(Script{});
  const std::vector<PieceSet> sets = reference_sets(2);
  measurement.run(0, {.in_flight = 2, .reference_sets = sets});
  EXPECT_TRUE(measurement.device().steps.empty());
}

TEST(MeasureSets, WithoutReferenceSetsThereAreNoTimesOfThem) {
  Measurement measurement(Script{});
  measurement.run(1, 1);
  EXPECT_TRUE(measurement.results.at(0).measurement->reference_ms.empty());
}

TEST(MeasureSets, ReferenceSetsThatCannotRunAreAFailureOfTheMachine) {
  const std::vector<PieceSet> sets = reference_sets(2);
  for (const Action failing : {Action::prepare, Action::forward, Action::backward}) {
    const auto fail = [failing](std::int64_t id, Action action) {
      if (id == 102 && action == failing) throw OutOfMemory("arena: too small");
    };
    // A set is done after its first round, in which a reference set fails.
    Measurement measurement(Script{
        .repetitions =
            {.target_interval = 0.0, .warm_ups = 0, .min_repetitions = 1, .max_repetitions = 1},
        .on_prepare = [&](std::int64_t id) { fail(id, Action::prepare); },
        .on_pass = fail});
    try {
      measurement.run(2, {.in_flight = 2, .reference_sets = sets});
      FAIL() << "no error";
    } catch (const MachineError& error) {
      EXPECT_STREQ(error.what(), "the reference sets cannot be run: arena: too small");
    }
  }
}

TEST(MeasureSets, ADeviceForOneSetHasNoPlaceForReferenceSets) {
  Measurement measurement(Script{.max_in_flight = 2});
  const std::vector<PieceSet> sets = reference_sets(2);
  EXPECT_THROW(measurement.run(1, {.in_flight = 1, .reference_sets = sets}), InputError);
  Measurement wider(Script{.max_in_flight = 3});
  wider.run(4, {.in_flight = 5, .reference_sets = sets});
  EXPECT_EQ(wider.device().most_ready, 3u);
}

TEST(MeasureSets, TheTimeOfReferenceSetsCountsBeforeTheDeadline) {
  // Without them hundreds of sets can be done by then, which take no time; a round of the reference
  // sets takes ten milliseconds and each set runs in three.
  const auto begun_by_deadline = [](const std::vector<PieceSet>& references) {
    Measurement measurement(Script{.repetitions = {.target_interval = 0.0,
                                                   .warm_ups = 1,
                                                   .min_repetitions = 2,
                                                   .max_repetitions = 2},
                                   .on_pass = [](std::int64_t id, Action) {
                                     if (id > 1'000)
                                       std::this_thread::sleep_for(std::chrono::milliseconds(5));
                                   }});
    measurement.run(1'000,
                    {.in_flight = 1,
                     .deadline = std::chrono::steady_clock::now() + std::chrono::milliseconds(500),
                     .reference_sets = references});
    return measurement.results.size();
  };
  const std::vector<PieceSet> slow{{1'001, {}, {}, Random(1)}};
  EXPECT_GT(begun_by_deadline({}), 100u);
  const std::size_t begun = begun_by_deadline(slow);
  EXPECT_GE(begun, 1u);
  EXPECT_LE(begun, 500u / 30u + 1u);
}

TEST(MeasureSets, EndsASetOnceItsIntervalIsReached) {
  // Set 0 is exact, set 1 scatters until the limit.
  Measurement measurement(Script{
      .repetitions = {.max_repetitions = 20},
      .time = [](std::int64_t id, Action, int run) { return id == 0 ? 1.0 : 1.0 + run % 7; }});
  measurement.run(2, 2);
  EXPECT_EQ(measurement.results.at(0).measurement->repetitions, 13);
  EXPECT_EQ(measurement.results.at(0).measurement->interval, 0.0);
  EXPECT_EQ(measurement.results.at(1).measurement->repetitions, 20);
}

TEST(MeasureSets, AsksForTimesOnlyWhereTheyMayBeEnough) {
  Measurement measurement(Script{.repetitions = {.target_interval = 0.0,
                                                 .warm_ups = 1,
                                                 .min_repetitions = 4,
                                                 .max_repetitions = 7,
                                                 .further_repetitions = 2}});
  measurement.run(1, 1);
  std::vector<int> passes_before_asking;
  int passes = 0;
  Action last = Action::prepare;
  for (const Step& step : measurement.device().steps) {
    if (step.action == Action::ask && last != Action::ask) passes_before_asking.push_back(passes);
    if (step.action == Action::forward || step.action == Action::backward) ++passes;
    last = step.action;
  }
  EXPECT_THAT(passes_before_asking, ElementsAre(2 * 5, 2 * 7, 2 * 9));
  EXPECT_EQ(measurement.results.at(0).measurement->repetitions, 8);
}

TEST(MeasureSets, ASetWithoutMemoryFailsAlone) {
  Measurement measurement(Script{.on_prepare = [](std::int64_t id) {
    if (id == 1) throw OutOfMemory("arena: too small");
    if (id == 3) throw std::bad_alloc();
  }});
  measurement.run(5, 2);
  ASSERT_EQ(measurement.results.size(), 5u);
  for (const std::int64_t id : {0, 2, 4}) {
    EXPECT_TRUE(measurement.results.at(id).measurement.has_value());
    EXPECT_EQ(measurement.results.at(id).failure, "");
  }
  EXPECT_EQ(measurement.results.at(1).failure, "arena: too small");
  EXPECT_EQ(measurement.results.at(3).failure, "out of memory");
  EXPECT_FALSE(measurement.results.at(1).measurement || measurement.results.at(3).measurement);
}

TEST(MeasureSets, ASetWhosePassHasNoMemoryFailsAlone) {
  for (const Action failing : {Action::forward, Action::backward}) {
    Measurement measurement(Script{.on_pass = [failing](std::int64_t id, Action pass) {
      if (id == 1 && pass == failing) throw OutOfMemory("outputs: too many");
    }});
    measurement.run(3, 2);
    ASSERT_EQ(measurement.results.size(), 3u);
    EXPECT_EQ(measurement.results.at(1).failure, "outputs: too many");
    EXPECT_TRUE(measurement.results.at(0).measurement && measurement.results.at(2).measurement);
  }
}

TEST(MeasureSets, AFailureOfTheDeviceIsThrown) {
  Measurement measurement(Script{.on_prepare = [](std::int64_t id) {
    if (id == 2) throw MachineError("cuda: the device may be lost");
  }});
  EXPECT_THROW(measurement.run(5, 1), MachineError);
  EXPECT_EQ(measurement.results.size(), 2u) << "what was done before stands";
  Measurement in_a_pass(Script{
      .time = [](std::int64_t, Action, int) -> double { throw MachineError("cuda: kernels"); }});
  EXPECT_THROW(in_a_pass.run(5, 1), MachineError);
}

TEST(MeasureSets, AnExceptionOfTheCallerPassesThrough) {
  for (const int num_devices : {1, 2}) {
    ComputeBackend backend;
    for (int i = 0; i < num_devices; ++i) {
      backend.devices.push_back(std::make_unique<ScriptedDevice>(Script{}));
    }
    const auto next = []() -> std::optional<PieceSet> { return PieceSet{0, {}, {}, Random(1)}; };
    EXPECT_THROW(measure_sets(backend, 4, next,
                              [](const PieceSetResult&) { throw std::runtime_error("full"); }),
                 std::runtime_error);
    EXPECT_THROW(
        measure_sets(
            backend, 4, []() -> std::optional<PieceSet> { throw std::runtime_error("no next"); },
            [](const PieceSetResult&) {}),
        std::runtime_error);
  }
}

TEST(MeasureSets, NoSetBeginsWithoutRoomUnlessItIsAlone) {
  Measurement some(Script{.has_room = [](std::size_t num_ready) { return num_ready < 3; }});
  some.run(10, 50);
  EXPECT_EQ(some.results.size(), 10u);
  EXPECT_EQ(some.device().most_ready, 3u);

  Measurement none(Script{.has_room = [](std::size_t) { return false; }});
  none.run(10, 50);
  EXPECT_EQ(none.results.size(), 10u);
  EXPECT_EQ(none.device().most_ready, 1u);
}

TEST(MeasureSets, DevicesShareTheSets) {
  constexpr int kDevices = 4;
  Measurement measurement(Script{.time =
                                     [](std::int64_t, Action, int) {
                                       std::this_thread::sleep_for(std::chrono::microseconds(50));
                                       return 1.0;
                                     }},
                          kDevices);
  measurement.run(60, 2);  // which checks that callbacks are never concurrent
  EXPECT_EQ(measurement.results.size(), 60u);
  std::size_t prepared = 0;
  for (int i = 0; i < kDevices; ++i) {
    EXPECT_LE(measurement.device(i).most_ready, 2u);
    for (const Step& step : measurement.device(i).steps) prepared += step.action == Action::prepare;
  }
  EXPECT_EQ(prepared, 60u) << "each on one device";
}

TEST(MeasureSets, WhereOneDeviceFailsTheOthersFinishWhatTheyHaveBegun) {
  Measurement measurement(Script{.time =
                                     [](std::int64_t id, Action, int) {
                                       if (id == 5) throw MachineError("cuda: lost");
                                       std::this_thread::sleep_for(std::chrono::microseconds(200));
                                       return 1.0;
                                     }},
                          3);
  EXPECT_THROW(measurement.run(100'000, 1), MachineError);
  // Sets begun before it, but the failed one; no new ones were begun for long.
  EXPECT_GE(measurement.results.size(), 5u);
  EXPECT_LT(measurement.results.size(), 1'000u);
  EXPECT_FALSE(measurement.results.contains(5));
  for (const auto& [id, result] : measurement.results) EXPECT_TRUE(result.measurement) << id;
}

TEST(MeasureSets, TablesOfOneSetAloneAreNotRemembered) {
  ComputeBackend backend;
  backend.devices.push_back(std::make_unique<ScriptedDevice>(Script{}));
  std::int64_t begun = 0;
  measure_sets(
      backend, 1,
      [&]() -> std::optional<PieceSet> {
        if (begun == 4) return std::nullopt;
        PieceSet set{begun++, {}, {}, Random(1)};
        set.has_own_tables = set.id == 2;
        return set;
      },
      [](const PieceSetResult&) {});
  const auto& device = static_cast<const ScriptedDevice&>(*backend.devices.front());
  EXPECT_THAT(device.forgotten_before, ElementsAre(0, 2));  // at first, and before set 2
}

}  // namespace
}  // namespace neuroshard
