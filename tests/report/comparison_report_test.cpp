// A comparison's table: only columns with values, and their meaning.
#include "neuroshard/report/comparison_report.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace neuroshard {
namespace {

using testing::EndsWith;
using testing::HasSubstr;
using testing::Not;

ComparisonEntry entry(const char* algorithm, double predicted_ms) {
  ComparisonEntry entry;
  entry.task = "t";
  entry.algorithm = algorithm;
  entry.found = true;
  entry.predicted_ms = predicted_ms;
  return entry;
}

std::string text_of(const std::vector<ComparisonEntry>& entries, const std::string& platform = "") {
  return comparison_text(entries, summarize(entries, "a"), {"a", platform});
}

TEST(ComparisonText, Predicted) {
  EXPECT_EQ(text_of({entry("a", 2.0), entry("b", 3.0)}),
            "algorithm  solved  predicted ms  wins  time ms  ratio  worst\n"
            "a             1/1         2.000     1     0.00  1.000  1.000\n"
            "b             1/1         3.000     0     0.00  1.500  1.500\n"
            "mean costs over the 1 task that every algorithm solved\n"
            "ratio: predicted cost to that of a, mean and worst over the tasks that both solved\n");
  EXPECT_THAT(text_of({entry("b", 3.0)}), Not(HasSubstr("ratio")));
}

TEST(ComparisonText, SaysWhichCutsEachAlgorithmHasUnlessTheyAreThePapers) {
  ComparisonEntry a = entry("a", 2.0);
  ComparisonEntry b = entry("b", 3.0);
  ComparisonEntry c = entry("c", 3.0);
  a.cuts = c.cuts = Cuts{true, false, false};
  b.cuts = Cuts{false, false, false};
  EXPECT_THAT(text_of({a, b, c}), Not(HasSubstr("cuts:")));
  c.cuts = Cuts{true, true, false};
  EXPECT_THAT(text_of({a, b, c}),
              HasSubstr("\ncuts: columns of a; none of b; columns+rows of c\n"));
  b.cuts = Cuts{true, true, false};
  EXPECT_THAT(text_of({a, b, c}), HasSubstr("\ncuts: columns of a; columns+rows of b, c\n"));
}

TEST(ComparisonText, NamesTheModelsAndWhatTheyWereLearnedFrom) {
  const std::vector<ComparisonEntry> entries{entry("a", 2.0)};
  EXPECT_THAT(comparison_text(entries, summarize(entries, "a"),
                              {.reference = "a",
                               .platform = "",
                               .computation = "cpu-xeon-2core",
                               .communication = "pcie4, pre-trained (simulated)"}),
              HasSubstr("\ncomputation model: cpu-xeon-2core\n"
                        "communication model: pcie4, pre-trained (simulated)\n"));
}

TEST(ComparisonText, Measured) {
  ComparisonEntry measured = entry("a", 2.0);
  measured.measured_ms = 2.5;
  measured.measured_compute_ms = 1.5;
  EXPECT_THAT(text_of({measured}),
              EndsWith("part-measured: computation run here, all-to-alls predicted; gap: mean of "
                       "|predicted/part-measured - 1|\n"));
  measured.drift = 1.02;
  measured.less_drift_ms = 2.4;
  const std::string text = text_of({measured}, "pcie4");
  EXPECT_THAT(text, HasSubstr("all-to-alls simulated on pcie4"));
  EXPECT_THAT(
      text,
      HasSubstr(
          "less drift: the gap at the speed of the controls' or the model's costs, from which the "
          "machine's differed by +2.0% to +2.0%\n"));
}

TEST(ComparisonText, Expected) {
  ComparisonEntry measured = entry("a", 2.0);
  measured.expected_ms = 2.25;
  EXPECT_THAT(text_of({measured}), Not(HasSubstr("expected")));
  measured.measured_ms = 2.5;
  measured.measured_compute_ms = 1.5;
  std::string text = text_of({measured});
  EXPECT_THAT(text, HasSubstr("   gap  expected gap\n"));
  EXPECT_THAT(text, HasSubstr(" 20.0%         10.0%\n"));
  EXPECT_THAT(text, EndsWith("expected gap: of what plans are expected to cost, as devices that "
                             "are planned alike differ\n"));
  measured.drift = 1.02;
  measured.less_drift_ms = 2.4;
  text = text_of({measured});
  EXPECT_THAT(text, HasSubstr("   gap  less drift  expected gap  expected, less drift\n"));
  EXPECT_THAT(text, HasSubstr(" 20.0%       16.7%         10.0%                  6.2%\n"));
}

TEST(ComparisonText, WithoutACommonTaskThereAreNoMeans) {
  ComparisonEntry unsolved = entry("b", 0.0);
  unsolved.found = false;
  const std::string text = text_of({entry("a", 2.0), unsolved});
  EXPECT_THAT(text, HasSubstr("a             1/1             -"));
  EXPECT_THAT(text, HasSubstr("mean costs over the 0 tasks that every algorithm solved\n"));
}

}  // namespace
}  // namespace neuroshard
