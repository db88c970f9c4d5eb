// Every reader on some thousand generated inputs; `make torture` tries more of the same.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <exception>
#include <set>
#include <stdexcept>
#include <string>

#include "fuzz/grammar/grammar.h"
#include "fuzz/torture/readers.h"
#include "fuzz/torture/workers.h"
#include "neuroshard/io/file.h"
#include "neuroshard/io/json/json_reader.h"
#include "tests/cli/run_mpi.h"
#include "tests/io/io_test_util.h"

namespace neuroshard {
namespace {

constexpr std::uint64_t kSeed = 1;

/// As `torture` does, in this process: what breaks a promise is named with its number. Of valid
/// inputs all may be read.
void expect_promise_kept(const std::string& name, std::uint64_t runs, bool are_damaged = true) {
  const fuzz::Reader* reader = fuzz::find_reader(name);
  ASSERT_NE(reader, nullptr);
  const TemporaryFolder folder;
  fuzz::Workplace place(NEUROSHARD_EXECUTABLE, folder.file(""));
  std::uint64_t num_read = 0;
  for (std::uint64_t i = 0; i < runs; ++i) {
    SCOPED_TRACE(fmt::format("torture --reader {} --seed {} --first {} --runs 1", name, kSeed, i));
    try {
      if (try_input(*reader, kSeed, i, place) != fuzz::Outcome::refused) ++num_read;
    } catch (const std::exception& error) {
      ADD_FAILURE() << error.what();
    }
  }
  // Else the inputs would say little.
  EXPECT_GT(num_read, runs / 10);
  if (are_damaged) {
    EXPECT_LT(num_read, runs);
  }
}

TEST(Torture, Task) { expect_promise_kept("task", 3'000); }
TEST(Torture, Plan) { expect_promise_kept("plan", 3'000); }
TEST(Torture, Evaluation) { expect_promise_kept("evaluation", 3'000); }
TEST(Torture, ComputeCosts) { expect_promise_kept("compute-costs", 3'000); }
TEST(Torture, CommunicationCosts) { expect_promise_kept("communication-costs", 3'000); }
TEST(Torture, Model) { expect_promise_kept("model", 3'000); }
TEST(Torture, Journal) { expect_promise_kept("journal", 3'000); }
TEST(Torture, Pipeline) { expect_promise_kept("pipeline", 60, false); }
TEST(Torture, Platform) {
  SKIP_IN_UNKNOWN_CODE();
  expect_promise_kept("platform", 60);
}
TEST(Torture, Options) {
  SKIP_IN_UNKNOWN_CODE();
  expect_promise_kept("options", 60);
}

TEST(Grammar, AccessClassesAreOfAllRowsAndAllLookups) {
  std::set<std::size_t> numbers_of_classes;
  for (std::uint64_t i = 0; i < 500; ++i) {
    Random random = Random::for_stream(kSeed, i);
    const Json json = parse_json(fuzz::to_string(fuzz::sketch_task(random).json), "task");
    const JsonReader task(json, "task");
    const JsonReader tables = task.field("tables");
    for (std::size_t t = 0; t < tables.array_size(); ++t) {
      const JsonReader table = tables.element(t);
      const auto distribution = table.optional_field("index_distribution");
      if (!distribution) continue;
      const auto classes = distribution->optional_field("access_classes");
      if (!classes) continue;
      std::int64_t rows = 0;
      double share = 0.0;
      for (std::size_t c = 0; c < classes->array_size(); ++c) {
        const JsonReader access_class = classes->element(c);
        rows += access_class.element(0).integer();
        share += access_class.element(1).number();
      }
      EXPECT_EQ(rows, table.field("num_embeddings").integer());
      EXPECT_NEAR(share, 1.0, 1e-9);
      numbers_of_classes.insert(classes->array_size());
    }
  }
  ASSERT_FALSE(numbers_of_classes.empty());
  EXPECT_EQ(*numbers_of_classes.begin(), 1U);
  EXPECT_GT(*numbers_of_classes.rbegin(), 20U);
}

// What watches over the inputs must itself be seen to work.

fuzz::Outcome end_by_signal(std::string_view, fuzz::Workplace&, Random& random) {
  if (random.below(10) == 0) std::abort();
  return fuzz::Outcome::read;
}

fuzz::Outcome throw_something(std::string_view bytes, fuzz::Workplace&, Random&) {
  if (bytes == "3") throw std::out_of_range("three");
  return fuzz::Outcome::refused;
}

std::string any_digit(Random& random) { return std::to_string(random.below(10)); }

TEST(TortureWorkers, CountAnInputThatEndsTheProcessAndGoOn) {
  const fuzz::Reader reader{"test", any_digit, end_by_signal, false};
  const fuzz::TortureResult result =
      fuzz::torture(reader, {.seed = 2, .first = 5, .runs = 60, .processes = 2});
  EXPECT_EQ(result.tries, 60U);
  EXPECT_GT(result.failures, 0U);
  EXPECT_EQ(result.read + result.failures, 60U);
  ASSERT_FALSE(result.first_ones.empty());
  for (const fuzz::Failure& failure : result.first_ones) {
    EXPECT_EQ(failure.reason, "ended by signal 6");
    // The same input again.
    const fuzz::TortureResult again =
        fuzz::torture(reader, {.seed = 2, .first = failure.number, .runs = 1});
    EXPECT_EQ(again.failures, 1U);
  }
}

TEST(TortureWorkers, CountAnErrorThatIsNotTheLibrarys) {
  const fuzz::Reader reader{"test", any_digit, throw_something, false};
  const fuzz::TortureResult result = fuzz::torture(reader, {.runs = 200, .processes = 3});
  EXPECT_EQ(result.tries, 200U);
  EXPECT_EQ(result.read, 0U);
  EXPECT_GT(result.failures, 0U);
  ASSERT_FALSE(result.first_ones.empty());
  EXPECT_NE(result.first_ones[0].reason.find("three"), std::string::npos);
  EXPECT_EQ(fuzz::input_of(reader, 1, result.first_ones[0].number), "3");
}

}  // namespace
}  // namespace neuroshard
