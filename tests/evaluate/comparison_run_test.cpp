// Whole comparisons: plans measured together, results read back from a journal, and controls.
#include "neuroshard/evaluate/comparison_run.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>

#include "neuroshard/baselines/planner_catalog.h"
#include "neuroshard/evaluate/comparison_io.h"
#include "neuroshard/io/compute_costs_io.h"
#include "neuroshard/io/task_io.h"
#include "neuroshard/workload/workload.h"
#include "tests/cost/arbitrary_network.h"
#include "tests/evaluate/exact_backend.h"
#include "tests/io/io_test_util.h"
#include "tests/search/arbitrary_simulator.h"

namespace neuroshard {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;
using testing_backends::ExactDevice;
using testing_tasks::make_table;
using testing_tasks::one_host_task;

CostModels analytic_models() {
  CostModels models;
  models.compute = testing_tasks::analytic_compute();
  models.communication =
      std::make_shared<AnalyticCommunicationModel>(find_interconnect("a100-nvswitch"));
  return models;
}

NamedTask named(const std::string& name, std::int64_t columns, std::int64_t batch_size = 1024) {
  Task task = one_host_task({make_table("a", 100, columns)}, 1, std::int64_t{1} << 20);
  task.batch_size = batch_size;
  return {name, task, Json::Object{{"name", name}}};
}

std::vector<std::unique_ptr<Planner>> one_planner() {
  std::vector<std::unique_ptr<Planner>> planners;
  planners.push_back(find_planner("greedy-size"));
  return planners;
}

TEST(ReadNamedTasks, ATaskIsGivenOnceByWhateverPaths) {
  const TemporaryFolder folder;
  const Task task = named("a", 4).task;
  std::filesystem::create_directory(folder.file("other"));
  const std::string path = folder.file("a.json");
  for (const char* name : {"a.json", "copy.json", "other/a.json"}) {
    write_task(task, folder.file(name));
  }
  std::filesystem::create_symlink("a.json", folder.file("link.json"));
  // Other files are other tasks, whatever they are called and contain.
  const std::vector<std::string> three{path, folder.file("copy.json"), folder.file("other/a.json")};
  const std::vector<NamedTask> tasks = read_named_tasks(three);
  ASSERT_EQ(tasks.size(), 3u);
  EXPECT_EQ(tasks[2].name, folder.file("other/a.json"));
  for (const char* name : {"a.json", "./a.json", "other/../a.json", "link.json"}) {
    const std::string again = folder.file(name);
    const std::vector<std::string> twice{path, three[1], again};
    EXPECT_EQ(input_error([&] { (void)read_named_tasks(twice); }),
              fmt::format("{}: expected each task once, got the file of {} again", again, path));
  }
}

TEST(ArenaDataType, IsThatOfTheTablesOfAllTasks) {
  std::vector<NamedTask> tasks{named("a", 4), named("b", 8)};
  EXPECT_EQ(arena_data_type(tasks), DataType::fp32);
  tasks[0].task.tables[0].data_type = DataType::fp16;
  EXPECT_EQ(arena_data_type(tasks), DataType::fp32);
  tasks[1].task.tables[0].data_type = DataType::fp16;
  EXPECT_EQ(arena_data_type(tasks), DataType::fp16);
}

/// A device that outlives its backend, and counts how often a sequence of sets began.
class CountingDevice final : public MeasuringDevice {
 public:
  CountingDevice(ExactDevice& exact, int& groups) : exact_(exact), groups_(groups) {}
  void forget_tables() override { ++groups_; }
  std::unique_ptr<PreparedSet> prepare(const PieceSet& set) override { return exact_.prepare(set); }
  [[nodiscard]] int max_in_flight() const override { return exact_.max_in_flight(); }
  [[nodiscard]] std::int64_t bytes_between_passes() const override { return 0; }
  std::int64_t disturb_caches(std::int64_t bytes) override { return bytes; }
  [[nodiscard]] RepetitionOptions repetitions() const override { return exact_.repetitions(); }

 private:
  ExactDevice& exact_;
  int& groups_;
};

class ComparisonRunTest : public testing::Test {
 protected:
  ComparisonRunOptions measured() {
    ComparisonRunOptions options;
    options.measuring = ComputeBackendFactory{
        {}, [this] { return one_device(std::make_unique<CountingDevice>(exact_, groups_)); }};
    return options;
  }

  ExactDevice exact_;
  int groups_ = 0;
  CostModels models_ = analytic_models();
};

TEST_F(ComparisonRunTest, TasksOfOneBatchAndOptimizerAreMeasuredTogether) {
  const std::vector<NamedTask> tasks{named("a", 4), named("b", 8), named("c", 12, 2048),
                                     named("d", 16, 2048)};
  std::vector<std::size_t> done;
  ComparisonRun run(one_planner(), measured());
  const auto entries =
      run.compare(tasks, {&models_, 1}, "", [&](const ComparisonProgress& progress) {
        EXPECT_EQ(progress.tasks, 4u);
        done.push_back(progress.done);
      });
  EXPECT_EQ(groups_, 2);
  EXPECT_THAT(done, ElementsAre(2, 4));
  ASSERT_EQ(entries.size(), 4u);
  EXPECT_EQ(entries[3].task, "d");
  EXPECT_EQ(entries[3].measured_compute_ms, 32.0);  // a millisecond a column and direction
}

TEST_F(ComparisonRunTest, GoesOnFromItsJournal) {
  const TemporaryFolder folder;
  const std::string journal = folder.file("journal.jsonl");
  const std::vector<NamedTask> tasks{named("a", 4), named("b", 8, 2048)};
  ComparisonRun run(one_planner(), measured());
  (void)run.compare(tasks, {&models_, 1}, journal);
  const std::string whole = read_file(journal);
  write_file(journal, whole.substr(0, whole.size() - 5));
  exact_.measured.clear();
  const auto entries = run.compare(tasks, {&models_, 1}, journal);
  EXPECT_THAT(exact_.measured, ElementsAre(8.0));
  EXPECT_EQ(entries.size(), 2u);
  exact_.measured.clear();
  EXPECT_EQ(run.compare(tasks, {&models_, 1}, journal).size(), 2u);
  EXPECT_THAT(exact_.measured, ElementsAre());

  ComparisonRun predicted(one_planner(), {});
  EXPECT_THAT(input_error([&] {
                (void)predicted.compare(tasks, {&models_, 1}, journal);
              }),
              HasSubstr("comparison.measured: expected false"));
}

TEST_F(ComparisonRunTest, AJournalIsWithAClockOrWithout) {
  const TemporaryFolder folder;
  const std::vector<NamedTask> tasks{named("a", 4)};
  ComparisonRunOptions clocked;
  clocked.planner.stop_by_clock = true;
  ComparisonRun without(one_planner(), {});
  ComparisonRun with(one_planner(), clocked);
  const std::string journal = folder.file("without.jsonl");
  (void)without.compare(tasks, {&models_, 1}, journal);
  EXPECT_THAT(read_file(journal), Not(HasSubstr("stop_by_clock")));  // as it always was
  EXPECT_THAT(input_error([&] {
                (void)with.compare(tasks, {&models_, 1}, journal);
              }),
              HasSubstr("comparison.stop_by_clock: expected true as in this run"));
  const std::string other = folder.file("with.jsonl");
  (void)with.compare(tasks, {&models_, 1}, other);
  EXPECT_EQ(with.compare(tasks, {&models_, 1}, other).size(), 1u);
  EXPECT_THAT(input_error([&] {
                (void)without.compare(tasks, {&models_, 1}, other);
              }),
              HasSubstr("comparison.stop_by_clock: expected nothing as in this run"));
}

TEST_F(ComparisonRunTest, AJournalIsOfTheCommunicationModelsOfAllTasks) {
  const TemporaryFolder folder;
  const std::string journal = folder.file("journal.jsonl");
  const std::vector<NamedTask> tasks{named("a", 4), named("b", 8)};
  ComparisonRun run(one_planner(), {});
  (void)run.compare(tasks, std::vector<CostModels>{models_, models_}, journal);
  EXPECT_THAT(read_file(journal), Not(HasSubstr("communication_models")));
  EXPECT_EQ(run.compare(tasks, {&models_, 1}, journal).size(), 2u);  // one pair is as good

  const std::string several = folder.file("several.jsonl");
  std::vector<CostModels> models{models_, models_};
  models[1].communication =
      std::make_shared<AnalyticCommunicationModel>(find_interconnect("pcie4"));
  models[1].communication_sha256 = "before";
  (void)run.compare(tasks, models, several);
  EXPECT_EQ(run.compare(tasks, models, several).size(), 2u);
  models[1].communication_sha256 = "now";
  EXPECT_THAT(input_error([&] { (void)run.compare(tasks, models, several); }),
              HasSubstr("comparison.communication_models[1].sha256: expected \"now\""));
}

/// Times that depend on the set's batches, as real ones do: other groups have other times.
class DrawnDevice final : public MeasuringDevice {
 public:
  std::unique_ptr<PreparedSet> prepare(const PieceSet& set) override {
    Random random = set.random;
    return std::make_unique<Prepared>(static_cast<double>(set.pieces.front().num_columns) *
                                      random.uniform(1.0, 2.0));
  }
  [[nodiscard]] int max_in_flight() const override { return 1000; }
  [[nodiscard]] std::int64_t bytes_between_passes() const override { return 0; }
  std::int64_t disturb_caches(std::int64_t bytes) override { return bytes; }
  [[nodiscard]] RepetitionOptions repetitions() const override {
    return {.warm_ups = 0, .min_repetitions = 1, .max_repetitions = 1};
  }

 private:
  class Prepared final : public PreparedSet {
   public:
    explicit Prepared(double ms) : ms_(ms) {}
    std::future<double> forward() override { return known_time(ms_); }
    std::future<double> backward() override { return known_time(ms_); }
    [[nodiscard]] std::int64_t bytes_touched() const override { return 0; }

   private:
    double ms_;
  };
};

/// The entries, but for how long planning took.
std::vector<std::string> lines_of(std::vector<ComparisonEntry> entries) {
  std::vector<std::string> lines;
  for (ComparisonEntry& entry : entries) {
    entry.wall_ms = 0.0;
    lines.push_back(to_line(to_json(entry)));
  }
  return lines;
}

/// The first `count` lines.
std::string head_of(const std::string& text, std::size_t count) {
  std::size_t end = 0;
  for (; count > 0; --count) end = text.find('\n', end) + 1;
  return text.substr(0, end);
}

/// A file of samples of single tables of dlrm-2021.
std::string controls_file(const TemporaryFolder& folder, std::int64_t batch_size) {
  const Table table = find_workload("dlrm-2021", 0).tables.front();
  ComputeCostsHeader header;
  header.batch_size = batch_size;
  MeasuredTable& measured = header.tables.emplace_back();
  measured.name = table.name;
  measured.num_embeddings = table.num_embeddings;
  measured.pooling_factor = table.pooling_factor;
  measured.data_type = table.data_type;
  measured.reuse_histogram[0] = 1.0;
  header.sampling = Json::Object{{"workload", "dlrm-2021"}};
  std::string path = folder.file(fmt::format("controls-{}.jsonl", batch_size));
  ComputeCostsWriter writer(path, header);
  ComputeCostSample sample;
  sample.pieces = {{0, 64}};
  sample.forward_ms = sample.backward_ms = 32.0;  // half of what they take now
  writer.append(sample);
  return path;
}

TEST_F(ComparisonRunTest, ControlsAreMeasuredWithThePlans) {
  const TemporaryFolder folder;
  ComparisonRunOptions options = measured();
  options.controls = {controls_file(folder, 1024)};
  ComparisonRun run(one_planner(), options);
  const auto entries = run.compare({named("a", 4)}, {&models_, 1});
  EXPECT_THAT(exact_.measured, ElementsAre(4.0, 64.0));
  EXPECT_EQ(entries.front().drift, 2.0);
  EXPECT_THAT(
      input_error([&] {
        (void)run.compare({named("b", 4, 2048)}, {&models_, 1});
      }),
      HasSubstr("controls: expected samples of batch size 2048, optimizer sgd and tables of "
                "dlrm-2021, got none"));
}

TEST_F(ComparisonRunTest, AResumedRunIsEqualToAnUninterruptedOne) {
  const TemporaryFolder folder;
  ComparisonRunOptions options;
  options.measuring =
      ComputeBackendFactory{{}, [] { return one_device(std::make_unique<DrawnDevice>()); }};
  options.controls = {controls_file(folder, 1024), controls_file(folder, 2048)};
  std::vector<NamedTask> tasks;  // more than a group of one batch size, then another
  for (int t = 0; t < 15; ++t) {
    tasks.push_back(named(fmt::format("t{:02}", t), 4 * (t + 1), t < 13 ? 1024 : 2048));
  }
  const std::string journal = folder.file("journal.jsonl");
  const auto run = [&] {
    ComparisonRun comparison(one_planner(), options);
    return lines_of(comparison.compare(tasks, {&models_, 1}, journal));
  };
  const std::vector<std::string> whole = run();
  ASSERT_EQ(whole.size(), tasks.size());
  const std::string text = read_file(journal);
  for (std::size_t done = 0; done <= tasks.size(); ++done) {
    write_file(journal, head_of(text, 1 + done));
    EXPECT_EQ(run(), whole) << done << " tasks were done";
  }
  // Any other order of what was done, too: the last of the first group is missing.
  const std::string first = head_of(text, 12);
  const std::string twelve = head_of(text, 13);
  write_file(journal, first + text.substr(twelve.size()));
  EXPECT_EQ(run(), whole);
}

TEST_F(ComparisonRunTest, AJournalGoesOnWithReferenceSetsAsItBegan) {
  const TemporaryFolder folder;
  ComputeModelInfo info = testing_networks::wide_info("mine");
  info.reference_ms = {{"reference-1", 100.0}};
  models_.compute = std::make_shared<NeuralComputeModel>(
      testing_networks::random_network(ComputeArchitecture::bounded_loads, 1), info);
  ComparisonRunOptions options = measured();
  const std::vector<NamedTask> tasks{named("a", 4), named("b", 8, 2048)};
  const std::string journal = folder.file("journal.jsonl");
  const auto run = [&] {
    ComparisonRun comparison(one_planner(), options);
    return lines_of(comparison.compare(tasks, {&models_, 1}, journal));
  };
  options.has_reference_sets = true;
  const std::vector<std::string> whole = run();
  EXPECT_THAT(whole, testing::Each(HasSubstr("\"device_less_drift_ms\"")));
  write_file(journal, head_of(read_file(journal), 2));
  EXPECT_EQ(run(), whole);
  options.has_reference_sets = false;
  EXPECT_THAT(input_error([&] { (void)run(); }), HasSubstr("reference_sets"));
  options.has_reference_sets = true;
  options.controls = {controls_file(folder, 1024)};
  EXPECT_EQ(input_error([&] { (void)run(); }),
            "controls and reference sets: expected one of the two, got both");
  options.controls.clear();
  options.measuring.reset();
  EXPECT_EQ(input_error([&] { (void)run(); }), "reference sets need measured plans");
}

TEST_F(ComparisonRunTest, RefusesControlsThatSayNothing) {
  const TemporaryFolder folder;
  ComparisonRunOptions predicted;
  predicted.controls = {controls_file(folder, 1024)};
  EXPECT_THAT(input_error([&] { ComparisonRun(one_planner(), predicted); }),
              HasSubstr("controls needs measured plans"));
  ComparisonRunOptions options = measured();
  const std::string file = controls_file(folder, 512);
  std::string text = read_file(file);
  text.replace(text.find("\"workload\""), 10, "\"other\"");
  write_file(file, text);
  options.controls = {file};
  EXPECT_THAT(input_error([&] { ComparisonRun(one_planner(), options); }),
              HasSubstr("line 1: sampling.workload: expected the name of a workload, got none"));
}

}  // namespace
}  // namespace neuroshard
