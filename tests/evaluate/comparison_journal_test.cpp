// Comparisons that are continued: nothing is lost or mixed up.
#include "neuroshard/evaluate/comparison_journal.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <cstdio>
#include <string>
#include <utility>
#include <vector>

#include "neuroshard/evaluate/comparison_io.h"
#include "tests/io/io_test_util.h"

namespace neuroshard {
namespace {

using testing::HasSubstr;

ComparisonEntry found_entry() {
  ComparisonEntry entry;
  entry.task = "a.json";
  entry.algorithm = "neuroshard";
  entry.cuts = Cuts{true, true, false};  // the other entry is of a version that did not say
  entry.found = true;
  entry.wall_ms = 1.5;
  entry.predicted_ms = 12.25;
  entry.expected_ms = 12.75;
  entry.measured_ms = 13.0;
  entry.measured_compute_ms = 11.0;
  entry.compute_mape = 0.0625;
  entry.drift = 1.125;
  entry.less_drift_ms = 12.5;
  entry.device_columns = {128, 0};
  entry.device_compute_ms = {11.0, 0.0};
  entry.device_less_drift_ms = {10.5, 0.0};
  entry.warnings = {"model: its 2 networks disagree by 50% about device 1"};
  return entry;
}

ComparisonEntry failed_entry() {
  ComparisonEntry entry;
  entry.task = "a.json";
  entry.algorithm = "random";
  entry.reason = "no room";
  entry.wall_ms = 0.5;
  return entry;
}

Json comparison(int seed) { return Json::Object{{"seed", seed}, {"measured", true}}; }

/// Eight tasks of two devices, all of the same name, and these algorithms.
ComparedResults results_of(std::vector<std::string> algorithms, bool measured = true) {
  return {std::vector<std::string>(8, "a.json"), std::vector<int>(8, 2), std::move(algorithms),
          measured};
}
const ComparedResults kBoth = results_of({"neuroshard", "random"});
const ComparedResults kFound = results_of({"neuroshard"});
const ComparedResults kFailed = results_of({"random"});

std::string text_of(const std::vector<ComparisonEntry>& entries) {
  std::string text;
  for (const ComparisonEntry& entry : entries) text += to_line(to_json(entry)) + "\n";
  return text;
}

TEST(ComparisonJournal, GivesBackWhatAnEarlierRunLeft) {
  const TemporaryFolder folder;
  const std::string path = folder.file("journal.jsonl");
  const std::vector<ComparisonEntry> entries{found_entry(), failed_entry()};
  {
    ComparisonJournal journal(path, comparison(1), kBoth);
    EXPECT_EQ(journal.find(0), nullptr);
    journal.append(3, entries);
  }
  {
    ComparisonJournal journal(path, comparison(1), kBoth);
    EXPECT_EQ(journal.find(0), nullptr);
    ASSERT_NE(journal.find(3), nullptr);
    EXPECT_EQ(text_of(*journal.find(3)), text_of(entries));
    journal.append(0, entries);
  }
  EXPECT_EQ(text_of(*ComparisonJournal(path, comparison(1), kBoth).find(0)), text_of(entries));
}

TEST(ComparisonJournal, IgnoresALineThatWasCutOff) {
  const TemporaryFolder folder;
  const std::string path = folder.file("journal.jsonl");
  {
    ComparisonJournal journal(path, comparison(1), kFound);
    journal.append(0, {found_entry()});
    journal.append(1, {found_entry()});
  }
  const std::string whole = read_file(path);
  write_file(path, whole.substr(0, whole.size() - 5));
  ComparisonJournal journal(path, comparison(1), kFound);
  EXPECT_NE(journal.find(0), nullptr);
  EXPECT_EQ(journal.find(1), nullptr);
  journal.append(1, {found_entry()});
  EXPECT_EQ(read_file(path), whole);
}

TEST(ComparisonJournal, RefusesAnotherComparisonAndLeavesItAlone) {
  const TemporaryFolder folder;
  const std::string path = folder.file("journal.jsonl");
  ComparisonJournal(path, comparison(1), kFound).append(0, {found_entry()});
  const std::string whole = read_file(path);
  EXPECT_THAT(input_error([&] { ComparisonJournal(path, comparison(2), kFound); }),
              HasSubstr("line 1: comparison.seed: expected 2"));
  EXPECT_EQ(read_file(path), whole);
}

TEST(ComparisonJournal, GoesOnFromAnotherFolder) {
  const TemporaryFolder folder;
  const std::string path = folder.file("journal.jsonl");
  const auto of_task = [](const std::string& file) {
    return Json(
        Json::Object{{"tasks", Json::Array{Json::Object{{"file", file}, {"sha256", "0123"}}}}});
  };
  const auto results = [](const std::string& task) {
    ComparedResults compared = kFound;
    compared.tasks[0] = task;
    return compared;
  };
  ComparisonEntry entry = found_entry();
  entry.task = "tasks/a.json";
  ComparisonJournal(path, of_task(entry.task), results(entry.task)).append(0, {entry});
  {
    const ComparisonJournal again(path, of_task("../b/a.json"), results("../b/a.json"));
    ASSERT_NE(again.find(0), nullptr);
    EXPECT_EQ(again.find(0)->front().task, "../b/a.json");
  }
  EXPECT_THAT(input_error([&] { ComparisonJournal(path, of_task("b.json"), results("b.json")); }),
              HasSubstr("line 1: comparison.tasks[0].file: expected \"b.json\""));
}

TEST(ComparisonJournal, RefusesLinesThatAreNone) {
  const TemporaryFolder folder;
  const std::string path = folder.file("journal.jsonl");
  ComparisonJournal(path, comparison(1), kFailed).append(0, {failed_entry()});
  const std::string whole = read_file(path);
  const auto refusal = [&](const std::string& line) {
    write_file(path, whole + line + "\n");
    return input_error([&] { ComparisonJournal(path, comparison(1), kFailed); });
  };
  EXPECT_THAT(refusal(R"({"index": 1, "entries": [], "more": 1})"),
              HasSubstr("line 3: expected no fields but index, entries, got \"more\""));
  EXPECT_THAT(refusal(R"({"index": 0, "entries": []})"), HasSubstr("line 3: index"));
  EXPECT_THAT(refusal(R"({"index": 1, "entries": [{"task": "a"}]})"),
              HasSubstr("line 3: entries[0].algorithm: expected this required field"));
  EXPECT_THAT(
      refusal(
          R"({"index": 1, "entries": [{"task": "a", "algorithm": "b", "found": true, "wall_ms": 1, "predicted_ms": -1}]})"),
      HasSubstr("line 3: entries[0].predicted_ms: expected milliseconds above 0"));
}

TEST(ComparisonJournal, StaysAsItWasIfItIsRefused) {
  const TemporaryFolder folder;
  const std::string path = folder.file("journal.jsonl");
  ComparisonJournal(path, comparison(1), kFailed).append(0, {failed_entry()});
  const std::string damaged =
      read_file(path) + "{\"index\": 99, \"entries\": []}\n{\"index\": 1, \"ent";
  write_file(path, damaged);
  EXPECT_THAT(input_error([&] { ComparisonJournal(path, comparison(1), kFailed); }),
              HasSubstr("line 3: index"));
  EXPECT_EQ(read_file(path), damaged);
}

TEST(ComparisonJournal, RefusesCostsWhoseRatiosAreNoNumbers) {
  const TemporaryFolder folder;
  const std::string path = folder.file("journal.jsonl");
  for (const char* ms : {"0", "5e-324", "1e308"}) {
    const std::string line =
        R"({"index": 1, "entries": [{"task": "a.json", "algorithm": "random", "found": true, )"
        R"("wall_ms": 1, "predicted_ms": )" +
        std::string(ms) + "}]}\n";
    std::remove(path.c_str());
    (void)ComparisonJournal(path, comparison(1), kFailed);
    write_file(path, read_file(path) + line);
    EXPECT_THAT(input_error([&] { ComparisonJournal(path, comparison(1), kFailed); }),
                HasSubstr("line 2: entries[0].predicted_ms: expected milliseconds "))
        << ms;
  }
}

TEST(ComparisonJournal, RefusesResultsOfOtherTasksAndAlgorithms) {
  const TemporaryFolder folder;
  const std::string path = folder.file("journal.jsonl");
  const auto refusal = [&](const ComparedResults& results, std::int64_t task,
                           const std::vector<ComparisonEntry>& entries) {
    std::remove(path.c_str());
    ComparisonJournal(path, comparison(1), results).append(task, entries);
    return input_error([&] { ComparisonJournal(path, comparison(1), results); });
  };
  const auto located = [&](const std::string& text) { return path + ": line 2: " + text; };
  EXPECT_EQ(refusal(kFound, 8, {found_entry()}),
            located("index: expected an integer between 0 and 7, got 8"));
  EXPECT_EQ(refusal(kBoth, 0, {found_entry()}),
            located("entries: expected an entry for each algorithm (2), got 1"));
  EXPECT_EQ(refusal(kBoth, 0, {found_entry(), found_entry()}),
            located(R"(entries[1].algorithm: expected "random", got "neuroshard")"));
  ComparisonEntry other = found_entry();
  other.task = "b.json";
  EXPECT_EQ(refusal(kFound, 0, {other}),
            located(R"(entries[0].task: expected "a.json", got "b.json")"));
  ComparisonEntry predicted = found_entry();
  predicted.measured_ms.reset();
  EXPECT_EQ(refusal(results_of({"neuroshard"}, false), 0, {found_entry()}),
            located("entries[0]: expected nothing measured, as this comparison measures no plan, "
                    "got a measured cost"));
  EXPECT_EQ(refusal(results_of({"neuroshard"}, true), 0, {predicted}),
            located("entries[0]: expected measured_ms, as plans of this comparison are measured, "
                    "got none"));
}

/// What `compare --platform` simulates of a journal's plans is of the task's devices.
TEST(ComparisonJournal, RefusesDevicesThatATaskDoesNotHave) {
  const TemporaryFolder folder;
  const std::string path = folder.file("journal.jsonl");
  const auto refusal = [&](const ComparisonEntry& entry) {
    std::remove(path.c_str());
    ComparisonJournal(path, comparison(1), kFound).append(0, {entry});
    return input_error([&] { ComparisonJournal(path, comparison(1), kFound); });
  };
  ComparisonEntry none = found_entry();
  none.device_columns.clear();
  none.device_compute_ms.clear();
  none.device_less_drift_ms.clear();
  EXPECT_THAT(refusal(none), HasSubstr("line 2: entries[0].device_columns: expected"));
  ComparisonEntry three = found_entry();
  three.device_columns.push_back(4);
  three.device_compute_ms.push_back(1.0);
  three.device_less_drift_ms.push_back(1.0);
  EXPECT_THAT(refusal(three),
              HasSubstr("line 2: entries[0].device_columns: expected 2 numbers, one per device"));
  ComparisonEntry one = found_entry();
  one.device_less_drift_ms.pop_back();
  EXPECT_THAT(refusal(one),
              HasSubstr("line 2: entries[0].device_less_drift_ms: expected 2 numbers, "
                        "one per device"));
  ComparisonEntry wide = found_entry();
  wide.device_columns[1] = std::int64_t{1} << 61;
  EXPECT_THAT(refusal(wide), HasSubstr("line 2: entries[0].device_columns[1]: expected"));
  ComparisonEntry stopped = found_entry();
  stopped.drift = 0.0;
  EXPECT_THAT(refusal(stopped), HasSubstr("line 2: entries[0].drift: expected a number above 0"));
}

}  // namespace
}  // namespace neuroshard
