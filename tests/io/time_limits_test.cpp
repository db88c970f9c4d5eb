// Times that no sum or ratio can hold are refused by every reader of times.
#include <gtest/gtest.h>

#include <string>

#include "neuroshard/evaluate/evaluation_file.h"
#include "neuroshard/io/communication_costs_io.h"
#include "neuroshard/io/compute_costs_io.h"
#include "neuroshard/io/plan_io.h"
#include "tests/io/io_test_util.h"

namespace neuroshard {
namespace {

const std::string kFuzzCorpus = std::string(NEUROSHARD_SOURCE_DIR) + "/fuzz/corpus/";

/// The message that a corpus file leads to with `from` replaced by each of two absurd times, and
/// that times near to the limits lead to none.
template <typename Parse>
void expect_limits(const std::string& file, const std::string& from, const std::string& field,
                   const std::string& place, const Parse& parse) {
  const std::string text = read_file(kFuzzCorpus + file);
  const auto with = [&](const std::string& ms) {
    return input_error([&] { (void)parse(replaced(text, from, field + ms), "f"); });
  };
  const std::string expected =
      "f: " + place + ": expected milliseconds between 1e-30 and 1e30, got ";
  EXPECT_EQ(with("1e308"), expected + "1e+308");
  EXPECT_EQ(with("5e-324"), expected + "5e-324");
  EXPECT_EQ(with("1e30"), "no error");
  EXPECT_EQ(with("1e-30"), "no error");
}

TEST(TimeLimits, HoldInEveryFormat) {
  expect_limits("compute_costs/small.jsonl", "\"forward_ms\": 1.5",
                "\"forward_ms\": ", "line 2: forward_ms", parse_compute_costs);
  expect_limits("communication_costs/small.jsonl", "[4.1, 0.7]", "[4.1, ", "line 2: forward_ms[1]",
                [](std::string text, const std::string& file) {
                  // The array's end is part of what was replaced.
                  text.insert(text.find(", \"backward_ms\""), "]");
                  return parse_communication_costs(text, file);
                });
  expect_limits("plan/small.json", "\"cost_ms\": 3.5", "\"cost_ms\": ", "predicted.cost_ms",
                parse_plan);
  expect_limits("evaluation/iterations.json", "\"measured_update_ms\": 1.0",
                "\"measured_update_ms\": ", "devices[0].measured_update_ms", parse_evaluation);
}

}  // namespace
}  // namespace neuroshard
