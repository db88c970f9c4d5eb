// Hosts of one kind at different speeds: each folder's speed is found, and its costs brought to the
// first folder's.
#include "neuroshard/train/compute/folder_speeds.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "neuroshard/core/error.h"
#include "tests/io/io_test_util.h"
#include "tests/train/synthetic_costs.h"

namespace neuroshard {
namespace {

constexpr std::uint64_t kSeed = 3;

/// Two files of a host, and one of another host of `speed` times its costs, in folders.
std::vector<std::string> files_of_two_hosts(const TemporaryFolder& folder, double speed) {
  std::filesystem::create_directories(folder.file("host"));
  std::filesystem::create_directories(folder.file("other"));
  const ComputeCostsHeader header = testing_costs::make_header();
  testing_costs::write_costs(folder.file("host/a.jsonl"), header, 200, 1);
  testing_costs::write_costs(folder.file("host/b.jsonl"), header, 100, 2);
  testing_costs::write_costs(folder.file("as-host.jsonl"), header, 150, 3);
  ComputeCosts costs = read_compute_costs(folder.file("as-host.jsonl"));
  ComputeCostsWriter writer(folder.file("other/c.jsonl"), header);
  for (ComputeCostSample sample : costs.samples) {
    sample.forward_ms *= speed;
    sample.backward_ms *= speed;
    writer.append(sample);
  }
  return {folder.file("host/a.jsonl"), folder.file("other/c.jsonl"), folder.file("host/b.jsonl")};
}

TEST(FolderSpeeds, AreFoundAndTakenOut) {
  for (const double speed : {0.7, 1.0, 1.6}) {
    const TemporaryFolder folder;
    const std::vector<std::string> files = files_of_two_hosts(folder, speed);
    ComputeDataset dataset = load_compute_dataset(files, FeatureSchema::work);
    const std::vector<FolderSpeed> speeds = folder_speeds(dataset, files, kSeed, 1);
    ASSERT_EQ(speeds.size(), 2u);
    EXPECT_EQ(speeds[0].folder, folder.file("host"));
    EXPECT_EQ(speeds[0].speed, 1.0);
    EXPECT_EQ(speeds[1].folder, folder.file("other"));
    EXPECT_NEAR(speeds[1].speed, speed, 0.03 * speed);

    const std::vector<double> measured = dataset.cost_ms;
    divide_by_speeds(dataset, files, speeds);
    ASSERT_EQ(dataset.size(), 450u);
    for (std::size_t i = 0; i < measured.size(); ++i) {
      const bool of_other = i >= 200 && i < 350;
      EXPECT_EQ(dataset.cost_ms[i], of_other ? measured[i] / speeds[1].speed : measured[i]) << i;
    }
    EXPECT_EQ(dataset.speeds.size(), 2u);
  }
}

TEST(FolderSpeeds, AreInTheModel) {
  const TemporaryFolder folder;
  const std::vector<std::string> files = files_of_two_hosts(folder, 0.5);
  ComputeDataset dataset = load_compute_dataset(files, FeatureSchema::work);
  divide_by_speeds(dataset, files, {{folder.file("host")}, {folder.file("other"), 0.5}});
  ComputeTrainingOptions options;
  options.members = 1;
  options.loop.epochs = 2;
  const ComputeTrainingResult result = train_compute_model(dataset, options);
  EXPECT_EQ(result.speeds.at(1).speed, 0.5);
  EXPECT_EQ(result.model->info().metrics.at("speed.1"), 1.0);
  EXPECT_EQ(result.model->info().metrics.at("speed.2"), 0.5);
}

TEST(FolderSpeeds, AreTheSameOnAnyNumberOfThreads) {
  const TemporaryFolder folder;
  const std::vector<std::string> files = files_of_two_hosts(folder, 1.3);
  const ComputeDataset dataset = load_compute_dataset(files, FeatureSchema::work);
  EXPECT_EQ(folder_speeds(dataset, files, kSeed, 1)[1].speed,
            folder_speeds(dataset, files, kSeed, 3)[1].speed);
}

TEST(FolderSpeeds, FewSamplesWithSetsOfALargerFolderFollowThat) {
  const TemporaryFolder folder;
  const std::vector<std::string> files = files_of_two_hosts(folder, 1.6);
  std::filesystem::create_directories(folder.file("again"));
  const ComputeCosts costs = read_compute_costs(files[1]);
  {
    ComputeCostsWriter writer(folder.file("again/d.jsonl"), testing_costs::make_header());
    for (std::size_t i = 0; i < 40; ++i) {
      ComputeCostSample sample = costs.samples[i];
      sample.forward_ms *= 0.5;
      sample.backward_ms *= 0.5;
      writer.append(sample);
    }
  }
  const std::vector<std::string> all{files[0], folder.file("again/d.jsonl"), files[1]};
  const std::vector<FolderSpeed> speeds =
      folder_speeds(load_compute_dataset(all, FeatureSchema::work), all, kSeed, 1);
  ASSERT_EQ(speeds.size(), 3u);
  EXPECT_NEAR(speeds[2].speed, 1.6, 0.03 * 1.6) << "by a network of the first";
  EXPECT_NEAR(speeds[1].speed, 0.5 * speeds[2].speed, 1e-5) << "by the sets of the third";
}

TEST(FolderSpeeds, FoldersWithTheSameReferenceSetsHaveOneSpeed) {
  const TemporaryFolder folder;
  const std::vector<std::string> files = files_of_two_hosts(folder, 1.6);
  // Two folders of a host of 0.8 times the costs, which is slower by half in the second.
  std::vector<std::string> all{files[0]};
  std::uint64_t seed = 10;
  for (const double slowness : {1.0, 1.5}) {
    const std::string name = "with-" + std::to_string(++seed);
    std::filesystem::create_directories(folder.file(name));
    ComputeCostsHeader header = testing_costs::make_header();
    testing_costs::write_costs(folder.file("plain.jsonl"), header, 100, seed);
    ComputeCosts costs = read_compute_costs(folder.file("plain.jsonl"));
    std::filesystem::remove(folder.file("plain.jsonl"));
    header.reference_sets = "reference-1";
    all.push_back(folder.file(name + "/a.jsonl"));
    ComputeCostsWriter writer(all.back(), header);
    for (ComputeCostSample& sample : costs.samples) {
      sample.forward_ms *= 0.8 * slowness;
      sample.backward_ms *= 0.8 * slowness;
      sample.reference_ms = {2.0 * slowness};
      writer.append(sample);
    }
  }
  ComputeDataset dataset = load_compute_dataset(all, FeatureSchema::work);
  EXPECT_DOUBLE_EQ(dataset.reference_ms.at("reference-1"), 2.5);  // the median of 2 and 3
  const std::vector<FolderSpeed> speeds = folder_speeds(dataset, all, kSeed, 1);
  ASSERT_EQ(speeds.size(), 3u);
  EXPECT_EQ(speeds[1].speed, speeds[2].speed);
  EXPECT_NEAR(speeds[1].speed, 0.8 * 1.25, 0.03);
  divide_by_speeds(dataset, all, speeds);
  EXPECT_DOUBLE_EQ(dataset.reference_ms.at("reference-1"), 2.5 / speeds[1].speed);
}

/// A network of few samples is off by more than what sets tell that were measured twice.
TEST(FolderSpeeds, OfSetsThatTwoFoldersShareAreTheirRatios) {
  const TemporaryFolder folder;
  const std::vector<std::string> files = files_of_two_hosts(folder, 1.6);
  std::filesystem::create_directories(folder.file("again"));
  const ComputeCostsHeader header = testing_costs::make_header();
  ComputeCosts costs = read_compute_costs(files[1]);
  std::filesystem::remove(folder.file("as-host.jsonl"));
  ComputeCostsWriter writer(folder.file("again/d.jsonl"), header);
  for (std::size_t i = 0; i < 40; ++i) {  // a tenth of them off, as if the machine had been slow
    const double factor = i % 10 == 0 ? 3.0 : 0.5;
    costs.samples[i].forward_ms *= factor;
    costs.samples[i].backward_ms *= factor;
    writer.append(costs.samples[i]);
  }
  // Those of host/a.jsonl are sets of their own.
  const std::vector<std::string> all{folder.file("again/d.jsonl"), files[1], files[0]};
  int epochs = 0;
  const std::vector<FolderSpeed> speeds =
      folder_speeds(load_compute_dataset(all, FeatureSchema::work), all, kSeed, 1,
                    [&](const EpochStats&) { ++epochs; });
  ASSERT_EQ(speeds.size(), 3u);
  EXPECT_NEAR(speeds[1].speed, 2.0, 1e-5);
  EXPECT_NEAR(speeds[2].speed, 2.0 / 1.6, 0.03 * 1.25) << "by a network of both";
  EXPECT_GT(epochs, 0);
  epochs = 0;
  const std::vector<std::string> two{all[0], all[1]};
  EXPECT_NEAR(folder_speeds(load_compute_dataset(two, FeatureSchema::work), two, kSeed, 1,
                            [&](const EpochStats&) { ++epochs; })[1]
                  .speed,
              2.0, 1e-5);
  EXPECT_EQ(epochs, 0) << "without a network";
}

/// What folder_speeds says of files that it refuses.
std::string speeds_refusal(const std::vector<std::string>& files) {
  try {
    const ComputeDataset dataset =
        files.empty() ? ComputeDataset{} : load_compute_dataset(files, FeatureSchema::work);
    (void)folder_speeds(dataset, files, kSeed, 1);
  } catch (const InputError& error) {
    return error.what();
  }
  return "";
}

TEST(FolderSpeeds, AFolderIsOneByAnyName) {
  const TemporaryFolder folder;
  std::filesystem::create_directories(folder.file("host/sub"));
  std::uint64_t seed = 0;
  for (const char* name : {"host/a.jsonl", "host/b.jsonl", "host/c.jsonl", "host/d.jsonl"}) {
    testing_costs::write_costs(folder.file(name), testing_costs::make_header(), 50, ++seed);
  }
  std::filesystem::create_directory_symlink(folder.file("host"), folder.file("link"));
  EXPECT_EQ(speeds_refusal({folder.file("host/a.jsonl"), folder.file("host/./b.jsonl"),
                            folder.file("host/sub/../c.jsonl"), folder.file("link/d.jsonl")}),
            "costs: expected files in two folders or more, of which each has a speed of its own, "
            "got all in " +
                folder.file("host"));
  EXPECT_THAT(speeds_refusal({}), testing::HasSubstr("got none"));
}

TEST(FolderSpeeds, OfFoldersThatTellNothingAreAnError) {
  const TemporaryFolder folder;
  const ComputeCostsHeader header = testing_costs::make_header();
  for (const char* name : {"host", "few", "none"}) {
    std::filesystem::create_directories(folder.file(name));
  }
  testing_costs::write_costs(folder.file("host/a.jsonl"), header, 100);
  testing_costs::write_costs(folder.file("few/a.jsonl"), header, 20, 2);
  testing_costs::write_costs(folder.file("none/a.jsonl"), header, 0, 3);
  const std::string host = folder.file("host/a.jsonl");
  EXPECT_EQ(speeds_refusal({folder.file("few/a.jsonl"), host}),
            folder.file("few") +
                ": expected at least 30 samples to train on in the first folder, with which the "
                "others are compared, got 16");
  EXPECT_EQ(speeds_refusal({host, folder.file("none/a.jsonl")}),
            folder.file("none") + ": expected measured samples, got none");
}

TEST(FolderSpeeds, OfAnotherKindOfMachineAreAnError) {
  const TemporaryFolder folder;
  EXPECT_THAT(
      speeds_refusal(files_of_two_hosts(folder, 1e4)),
      testing::HasSubstr(folder.file("other") + ": expected costs between 1/100 of those "));
}

}  // namespace
}  // namespace neuroshard
