// A training's report: every sample in its part, metrics as training computes them, errors by
// table.
#include "neuroshard/report/page/training_data.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <numeric>

#include "neuroshard/report/page/training_page.h"
#include "tests/io/io_test_util.h"
#include "tests/train/synthetic_all_to_alls.h"
#include "tests/train/synthetic_costs.h"

namespace neuroshard {
namespace {

using testing::HasSubstr;

std::size_t samples_in(const TrainingReportData& data, int part) {
  return static_cast<std::size_t>(
      std::count_if(data.samples.begin(), data.samples.end(),
                    [&](const PredictedSample& sample) { return sample.part == part; }));
}

double mape_of(const TrainingReportData& data, int part) {
  double sum = 0.0;
  for (const PredictedSample& sample : data.samples) {
    if (sample.part == part) sum += std::abs(sample.predicted_ms / sample.measured_ms - 1.0);
  }
  return sum / static_cast<double>(samples_in(data, part));
}

TEST(TrainingReportData, HasEverySampleOfEveryFileInItsPart) {
  const TemporaryFolder folder;
  const std::vector<std::string> paths{folder.file("a.jsonl"), folder.file("b.jsonl")};
  testing_costs::write_costs(paths[0], testing_costs::make_header(), 60, 1);
  testing_costs::write_costs(paths[1], testing_costs::make_header(), 40, 2);
  ComputeTrainingOptions options;
  options.members = 2;
  options.loop.epochs = 3;
  options.seed = 5;
  const ComputeDataset dataset = load_compute_dataset(paths, FeatureSchema::work);
  const ComputeTrainingResult result = train_compute_model(dataset, options);
  const TrainingReportData data =
      training_report_data(result, dataset, paths, options.seed, "model.safetensors");
  EXPECT_EQ(data.num_samples, 100u);
  EXPECT_EQ(data.samples.size(), 100u);
  EXPECT_THAT(data.parts, testing::ElementsAre("training", "validation", "unseen combinations",
                                               "unseen tables"));
  const PredictionMetrics* metrics[] = {&result.training, &result.validation,
                                        &result.unseen_combinations, &result.unseen_tables};
  for (int part = 0; part < 4; ++part) {
    EXPECT_EQ(samples_in(data, part), metrics[part]->count);
    EXPECT_NEAR(mape_of(data, part), metrics[part]->mape, 1e-4);
  }
  EXPECT_THAT(data.samples, testing::Each(testing::Field(&PredictedSample::batch_size, 1024)));
  EXPECT_EQ(data.epochs.size(), 6u);
  EXPECT_THAT(data.best_epochs, testing::SizeIs(2));
  EXPECT_THAT(data.groups, testing::SizeIs(testing::Le(20u)));  // tables
  const std::string page = training_page(data);
  EXPECT_THAT(page, testing::StartsWith("<!DOCTYPE html>"));
  EXPECT_THAT(page, HasSubstr("\"unseen combinations\""));
}

TEST(TrainingReportData, IsOfTheSamplesThatWereTrainedOn) {
  const TemporaryFolder folder;
  const std::vector<std::string> paths{folder.file("a.jsonl"), folder.file("b.jsonl")};
  const auto write = [&](const std::string& path, int count, std::uint64_t seed) {
    std::filesystem::remove(path);
    testing_costs::write_costs(path, testing_costs::make_header(), count, seed);
  };
  write(paths[0], 60, 1);
  write(paths[1], 40, 2);
  ComputeTrainingOptions options;
  options.members = 1;
  options.loop.epochs = 1;
  const ComputeDataset dataset = load_compute_dataset(paths, FeatureSchema::work);
  const ComputeTrainingResult result = train_compute_model(dataset, options);
  const auto data = [&] {
    return training_report_data(result, dataset, paths, options.seed, "model.safetensors");
  };
  const double mape = mape_of(data(), 0);
  // Both are still measured into.
  write(paths[0], 70, 1);
  write(paths[1], 50, 2);
  EXPECT_EQ(data().num_samples, 100u);
  EXPECT_EQ(mape_of(data(), 0), mape);
  write(paths[1], 39, 2);
  EXPECT_EQ(input_error([&] { (void)data(); }),
            paths[1] + ": expected the 40 samples that were trained on, got 39");
}

TEST(TrainingReportData, ShowsNotTooManySamples) {
  const TemporaryFolder folder;
  const std::string path = folder.file("a.jsonl");
  testing_costs::write_costs(path, testing_costs::make_header(), 25'001);
  ComputeTrainingOptions options;
  options.members = 1;
  options.loop.epochs = 1;
  const ComputeDataset dataset = load_compute_dataset({path}, FeatureSchema::work);
  const TrainingReportData data =
      training_report_data(train_compute_model(dataset, options), dataset, {path}, 0, "m");
  EXPECT_EQ(data.num_samples, 25'001u);
  EXPECT_EQ(data.samples.size(), 12'501u);
}

TEST(TrainingReportData, CommunicationIsByDirectionAndCluster) {
  const TemporaryFolder folder;
  const std::string path = folder.file("four.jsonl");
  const std::string other = folder.file("two.jsonl");
  testing_costs::write_all_to_alls(path, {}, 60);
  testing_costs::SyntheticCluster two;
  two.world_size = 2;
  testing_costs::write_all_to_alls(other, two, 10, 2);
  const CommunicationDataset dataset = load_communication_dataset({path});
  const CommunicationDataset held_out = load_communication_dataset({other}, &dataset);
  CommunicationTrainingOptions options;
  options.loop.epochs = 2;
  const TrainingReportData data = training_report_data(
      train_communication_model(dataset, held_out, options), {path}, {other}, "m");
  EXPECT_THAT(data.parts, testing::UnorderedElementsAre("forward", "backward", "forward (held out)",
                                                        "backward (held out)"));
  EXPECT_EQ(data.num_samples, 2u * (60 * 4 + 10 * 2));
  ASSERT_THAT(data.groups, testing::SizeIs(4));
  EXPECT_EQ(data.groups[0].name, "test-net, 2 devices: backward");
  EXPECT_EQ(data.groups[0].samples, 20u);
}

TEST(TrainingReportData, HeldOutClustersMayBeOnesThatNothingWasTrainedOn) {
  const TemporaryFolder folder;
  const std::string path = folder.file("known.jsonl");
  const std::string unnamed = folder.file("unnamed.jsonl");
  const std::string other = folder.file("other.jsonl");
  testing_costs::write_all_to_alls(path, {}, 60);
  testing_costs::SyntheticCluster measured;
  measured.interconnect = "";
  testing_costs::write_all_to_alls(unnamed, measured, 60, 2);
  testing_costs::SyntheticCluster faster;
  faster.interconnect = "faster-net";
  faster.links.card_gb_per_s *= 2.0;
  testing_costs::write_all_to_alls(other, faster, 10, 3);
  const CommunicationDataset dataset = load_communication_dataset({path, unnamed});
  const CommunicationDataset held_out = load_communication_dataset({other}, &dataset);
  CommunicationTrainingOptions options;
  options.loop.epochs = 2;
  const CommunicationTrainingResult result = train_communication_model(dataset, held_out, options);
  ASSERT_THAT(result.info.clusters, testing::SizeIs(2));
  const TrainingReportData data = training_report_data(result, {path, unnamed}, {other}, "m");
  EXPECT_EQ(data.num_samples, 2u * 130 * 4);
  std::vector<std::string> names;
  for (const GroupErrors& group : data.groups) names.push_back(group.name);
  EXPECT_THAT(names, testing::Contains("faster-net, 4 devices: forward"));
  EXPECT_THAT(names, testing::Contains(unnamed + ", 4 devices: forward"));
}

}  // namespace
}  // namespace neuroshard
