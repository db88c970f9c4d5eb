// Hosts of one kind at different speeds: each folder's speed is found, and its costs brought to the
// first folder's.
#include "neuroshard/train/compute/folder_speeds.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "neuroshard/core/error.h"
#include "tests/io/io_test_util.h"
#include "tests/train/synthetic_costs.h"

namespace neuroshard {
namespace {

ComputeTrainingOptions quick_options() {
  ComputeTrainingOptions options;
  options.loop.batch_size = 32;
  options.num_threads = 1;
  options.seed = 3;
  return options;
}

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
    const std::vector<FolderSpeed> speeds = folder_speeds(files, quick_options());
    ASSERT_EQ(speeds.size(), 2u);
    EXPECT_EQ(speeds[0].folder, folder.file("host"));
    EXPECT_EQ(speeds[0].speed, 1.0);
    EXPECT_EQ(speeds[1].folder, folder.file("other"));
    EXPECT_NEAR(speeds[1].speed, speed, 0.03 * speed);

    ComputeDataset dataset = load_compute_dataset(files, FeatureSchema::work);
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
  ComputeTrainingOptions options = quick_options();
  options.members = 1;
  options.loop.epochs = 2;
  const ComputeTrainingResult result = train_compute_model(dataset, options);
  EXPECT_EQ(result.speeds.at(1).speed, 0.5);
  EXPECT_EQ(result.model->info().metrics.at("speed.host"), 1.0);
  EXPECT_EQ(result.model->info().metrics.at("speed.other"), 0.5);
}

TEST(FolderSpeeds, OfOneFolderAreAnError) {
  const TemporaryFolder folder;
  testing_costs::write_costs(folder.file("a.jsonl"), testing_costs::make_header(), 50);
  EXPECT_THROW((void)folder_speeds({folder.file("a.jsonl")}, quick_options()), InputError);
  EXPECT_THROW((void)folder_speeds({}, quick_options()), InputError);
}

}  // namespace
}  // namespace neuroshard
