// Comparisons that are continued: nothing is lost or mixed up.
#include "neuroshard/evaluate/comparison_journal.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

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
  entry.measured_ms = 13.0;
  entry.measured_compute_ms = 11.0;
  entry.compute_mape = 0.0625;
  entry.drift = 1.125;
  entry.less_drift_ms = 12.5;
  entry.device_columns = {128, 0};
  entry.device_compute_ms = {11.0, 0.0};
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
    ComparisonJournal journal(path, comparison(1));
    EXPECT_EQ(journal.find(0), nullptr);
    journal.append(3, entries);
  }
  {
    ComparisonJournal journal(path, comparison(1));
    EXPECT_EQ(journal.find(0), nullptr);
    ASSERT_NE(journal.find(3), nullptr);
    EXPECT_EQ(text_of(*journal.find(3)), text_of(entries));
    journal.append(0, {failed_entry()});
  }
  EXPECT_EQ(text_of(*ComparisonJournal(path, comparison(1)).find(0)), text_of({failed_entry()}));
}

TEST(ComparisonJournal, IgnoresALineThatWasCutOff) {
  const TemporaryFolder folder;
  const std::string path = folder.file("journal.jsonl");
  {
    ComparisonJournal journal(path, comparison(1));
    journal.append(0, {found_entry()});
    journal.append(1, {found_entry()});
  }
  const std::string whole = read_file(path);
  write_file(path, whole.substr(0, whole.size() - 5));
  ComparisonJournal journal(path, comparison(1));
  EXPECT_NE(journal.find(0), nullptr);
  EXPECT_EQ(journal.find(1), nullptr);
  journal.append(1, {found_entry()});
  EXPECT_EQ(read_file(path), whole);
}

TEST(ComparisonJournal, RefusesAnotherComparisonAndLeavesItAlone) {
  const TemporaryFolder folder;
  const std::string path = folder.file("journal.jsonl");
  ComparisonJournal(path, comparison(1)).append(0, {found_entry()});
  const std::string whole = read_file(path);
  EXPECT_THAT(input_error([&] { ComparisonJournal(path, comparison(2)); }),
              HasSubstr("line 1: comparison.seed: expected 2"));
  EXPECT_EQ(read_file(path), whole);
}

TEST(ComparisonJournal, RefusesLinesThatAreNone) {
  const TemporaryFolder folder;
  const std::string path = folder.file("journal.jsonl");
  ComparisonJournal(path, comparison(1)).append(0, {failed_entry()});
  const std::string whole = read_file(path);
  const auto refusal = [&](const std::string& line) {
    write_file(path, whole + line + "\n");
    return input_error([&] { ComparisonJournal(path, comparison(1)); });
  };
  EXPECT_THAT(refusal(R"({"index": 1, "entries": [], "more": 1})"),
              HasSubstr("line 3: expected no fields but index, entries, got \"more\""));
  EXPECT_THAT(refusal(R"({"index": 0, "entries": []})"), HasSubstr("line 3: index"));
  EXPECT_THAT(refusal(R"({"index": 1, "entries": [{"task": "a"}]})"),
              HasSubstr("line 3: entries[0].algorithm: expected this required field"));
  EXPECT_THAT(
      refusal(
          R"({"index": 1, "entries": [{"task": "a", "algorithm": "b", "found": true, "wall_ms": 1, "predicted_ms": -1}]})"),
      HasSubstr("line 3: entries[0].predicted_ms: expected a number of at least 0"));
}

}  // namespace
}  // namespace neuroshard
