// Training the communication model and the models that it is compared with.
#include "neuroshard/train/communication/communication_trainer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "neuroshard/core/error.h"
#include "neuroshard/cost/communication/analytic_communication.h"
#include "neuroshard/cost/communication/communication_model_io.h"
#include "neuroshard/paper/communication_baselines.h"
#include "tests/io/io_test_util.h"
#include "tests/train/synthetic_all_to_alls.h"

namespace neuroshard {
namespace {

using testing_costs::write_all_to_alls;

/// Some numbers of devices to train on and one between them, all 30 % slower than their links.
struct SlowClusters {
  TemporaryFolder folder;
  CommunicationDataset dataset;
  CommunicationDataset held_out;

  explicit SlowClusters(const std::vector<int>& sizes = {2, 6}) {
    std::vector<std::string> files;
    for (const int size : sizes) {
      files.push_back(folder.file(std::to_string(size)));
      write_all_to_alls(files.back(), {.world_size = size, .slowdown = 1.3}, 60, size);
    }
    write_all_to_alls(folder.file("4"), {.world_size = 4, .slowdown = 1.3}, 40, 4);
    dataset = load_communication_dataset(files);
    held_out = load_communication_dataset({folder.file("4")});
  }
};

/// Devices of the split's test samples.
std::size_t devices_of_test(const CommunicationDataset& dataset, std::uint64_t seed) {
  std::size_t devices = 0;
  for (const int i : split_dataset(dataset, seed).test) {
    devices += static_cast<std::size_t>(dataset.first_device[i + 1] - dataset.first_device[i]);
  }
  return devices / 2;  // both directions
}

TEST(CommunicationTrainer, LearnsWhatTheLinksDoNotSay) {
  const SlowClusters clusters({2, 3, 5, 6});
  CommunicationTrainingOptions options;
  options.loop.epochs = 100;
  options.loop.batch_size = 32;
  options.seed = 5;
  options.name = "slow";
  const CommunicationTrainingResult result =
      train_communication_model(clusters.dataset, clusters.held_out, options);
  EXPECT_EQ(result.info.name, "slow");
  EXPECT_EQ(result.epochs.size(), 100u);
  EXPECT_EQ(result.unseen_placements.forward.count, devices_of_test(clusters.dataset, 5));
  EXPECT_EQ(result.held_out.backward.count, 40u * 4);
  EXPECT_GT(result.links_held_out.backward.mape, 0.2);
  EXPECT_LT(result.unseen_placements.forward.mape, 0.05);
  EXPECT_LT(result.held_out.backward.mape, 0.05);
  EXPECT_LT(result.held_out.forward.mape, 0.05);
  EXPECT_GT(result.held_out.forward.kendall_tau.value(), 0.95);
  EXPECT_EQ(result.info.metrics.at("held_out.forward.mape"), result.held_out.forward.mape);
}

TEST(CommunicationTrainer, TheSameOnAnyNumberOfThreads) {
  const SlowClusters clusters;
  std::vector<std::string> files;
  for (const int threads : {1, 2, 3}) {
    CommunicationTrainingOptions options;
    options.loop.epochs = 3;
    options.num_threads = threads;
    const CommunicationTrainingResult result =
        train_communication_model(clusters.dataset, clusters.held_out, options);
    const std::string path = clusters.folder.file(std::to_string(threads) + ".safetensors");
    write_communication_model(*result.network, result.info, path);
    files.push_back(read_file(path));
  }
  EXPECT_EQ(files[0], files[1]);
  EXPECT_EQ(files[0], files[2]);
}

TEST(CommunicationTrainer, RefusesTooFewSamples) {
  const TemporaryFolder folder;
  write_all_to_alls(folder.file("few"), {}, 29);
  const CommunicationDataset few = load_communication_dataset({folder.file("few")});
  EXPECT_THROW((void)train_communication_model(few, {}, {}), InputError);
}

TEST(CommunicationBaselines, OnePublishedNetworkPerSizeAndDirection) {
  const SlowClusters clusters;
  CommunicationBaselineOptions options;
  options.loop.epochs = 200;
  options.num_threads = 1;
  const CommunicationBaselines one =
      communication_baselines(clusters.dataset, clusters.held_out, options);
  EXPECT_EQ(one.published_networks, 4);
  // The split is the trainer's, and every size of it has its network.
  EXPECT_EQ(one.published_unseen_placements.forward.count, devices_of_test(clusters.dataset, 0));
  EXPECT_GT(one.published_unseen_placements.backward.kendall_tau.value(), 0.5);
  // There is no preset of this name.
  EXPECT_EQ(one.analytic_held_out.forward.count, 0u);
  options.num_threads = 2;
  const CommunicationBaselines two =
      communication_baselines(clusters.dataset, clusters.held_out, options);
  EXPECT_EQ(two.published_unseen_placements.forward.mape,
            one.published_unseen_placements.forward.mape);
  EXPECT_EQ(two.published_unseen_placements.backward.mape,
            one.published_unseen_placements.backward.mape);
}

TEST(CommunicationBaselines, TheAnalyticModelOfThePresetOfThatName) {
  // Slower than the preset's links, so that there is an error to compute.
  const TemporaryFolder folder;
  const testing_costs::SyntheticCluster cluster{.interconnect = "ethernet-25g",
                                                .world_size = 3,
                                                .links = find_interconnect("ethernet-25g"),
                                                .slowdown = 1.25};
  write_all_to_alls(folder.file("3"), cluster, 40);
  const CommunicationDataset dataset = load_communication_dataset({folder.file("3")});
  CommunicationBaselineOptions options;
  options.loop.epochs = 1;
  const CommunicationBaselines baselines = communication_baselines(dataset, dataset, options);
  EXPECT_EQ(baselines.analytic_held_out.backward.count, 120u);
  // Backward, all of it is slower.
  EXPECT_NEAR(baselines.analytic_held_out.backward.mape, 1.0 - 1.0 / 1.25, 1e-5);
  // Forward, waiting is part of the time: by the model itself.
  const AnalyticCommunicationModel model(find_interconnect("ethernet-25g"));
  double sum = 0.0;
  for (const CommunicationCostSample& sample : read_communication_costs(folder.file("3")).samples) {
    const std::vector<double> columns(sample.columns.begin(), sample.columns.end());
    std::vector<double> predicted(3);
    model.forward({.world_size = 3, .local_world_size = 1}, 4096, columns, sample.start_ms,
                  predicted);
    for (int d = 0; d < 3; ++d) sum += std::abs(predicted[d] / sample.forward_ms[d] - 1.0);
  }
  EXPECT_NEAR(baselines.analytic_held_out.forward.mape, sum / 120.0, 1e-5);
  EXPECT_GT(sum, 0.0);
}

}  // namespace
}  // namespace neuroshard
