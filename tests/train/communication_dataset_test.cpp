// Communication costs as training data: reading, splitting, refusals.
#include "neuroshard/train/communication/communication_dataset.h"
#include "neuroshard/core/interconnect.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

#include "neuroshard/core/error.h"
#include "tests/io/io_test_util.h"
#include "tests/train/synthetic_all_to_alls.h"

namespace neuroshard {
namespace {

using testing::HasSubstr;
using testing_costs::SyntheticCluster;
using testing_costs::write_all_to_alls;

std::string refusal(const std::vector<std::string>& paths) {
  try {
    (void)load_communication_dataset(paths);
  } catch (const InputError& error) {
    return error.what();
  }
  return "accepted";
}

TEST(CommunicationDataset, HasBothAllToAllsOfEverySample) {
  const TemporaryFolder folder;
  const std::string four = folder.file("four.jsonl");
  const std::string six = folder.file("six.jsonl");
  write_all_to_alls(four, {.world_size = 4}, 20);
  write_all_to_alls(six, {.world_size = 6, .local_world_size = 3}, 10);
  const CommunicationDataset dataset = load_communication_dataset({four, six});
  ASSERT_EQ(dataset.size(), 60);
  ASSERT_EQ(dataset.first_device.size(), 61u);
  const int devices = dataset.first_device.back();
  EXPECT_EQ(devices, 2 * (20 * 4 + 10 * 6));
  EXPECT_EQ(dataset.contexts.cols(), 60);
  EXPECT_EQ(dataset.rests_ms.cols(), 60);
  EXPECT_TRUE(dataset.contexts.allFinite());
  EXPECT_TRUE(dataset.rests_ms.allFinite());
  ASSERT_EQ(dataset.share.size(), static_cast<std::size_t>(devices));
  // The contexts are those of the file's topology and of the direction.
  EXPECT_FLOAT_EQ(dataset.contexts(0, 0), 2.0F);
  EXPECT_FLOAT_EQ(dataset.contexts(0, 59), std::log2(6.0F));
  EXPECT_EQ(dataset.contexts(5, 0), 0.0F);
  EXPECT_EQ(dataset.contexts(5, 1), 1.0F);
  ASSERT_EQ(dataset.files.size(), 2u);
  EXPECT_EQ(dataset.files[1].topology.world_size, 6);
  ASSERT_EQ(dataset.info.clusters.size(), 1u);
  EXPECT_EQ(dataset.info.clusters[0].min_world_size, 4);
  EXPECT_EQ(dataset.info.clusters[0].max_world_size, 6);
  EXPECT_EQ(dataset.info.clusters[0].interconnect.devices_per_host, 3);

  const CommunicationCosts costs = read_communication_costs(four);
  for (int i = 0; i < 40; ++i) {
    const CommunicationCostSample& sample = costs.samples[dataset.sample[i]];
    const bool forward = dataset.direction[i] == AllToAll::forward;
    const std::vector<double>& times = forward ? sample.forward_ms : sample.backward_ms;
    const double last = *std::max_element(sample.start_ms.begin(), sample.start_ms.end());
    for (int d = 0; d < 4; ++d) {
      const int at = dataset.first_device[i] + d;
      EXPECT_FLOAT_EQ(dataset.time_ms[at], static_cast<float>(times[d]));
      EXPECT_FLOAT_EQ(dataset.columns[at], static_cast<float>(sample.columns[d]));
      EXPECT_NEAR(dataset.lag_ms[at], forward ? last - sample.start_ms[d] : 0.0, 1e-5);
      EXPECT_NEAR(dataset.start_ms[at], forward ? sample.start_ms[d] : 0.0, 1e-5);
      // These times are the schedule's own, at the links' own speed.
      EXPECT_NEAR(dataset.lag_ms[at] + dataset.share[at] * dataset.rests_ms(0, i), times[d], 0.002);
      if (!forward) {
        EXPECT_NEAR(dataset.links_ms[at], times[d], 0.002);
      }
    }
  }
}

TEST(CommunicationDataset, SplitsSamplesNotAllToAlls) {
  const TemporaryFolder folder;
  const std::string path = folder.file("costs.jsonl");
  write_all_to_alls(path, {}, 100);
  const CommunicationDataset dataset = load_communication_dataset({path});
  const CommunicationSplit split = split_dataset(dataset, 3);
  EXPECT_EQ(split.training.size(), 160u);
  EXPECT_EQ(split.validation.size(), 20u);
  EXPECT_EQ(split.test.size(), 20u);
  std::set<int> seen;
  for (const auto* part : {&split.training, &split.validation, &split.test}) {
    std::set<int> samples;
    for (const int i : *part) samples.insert(dataset.sample[i]);
    EXPECT_EQ(samples.size() * 2, part->size());
    for (const int sample : samples) EXPECT_TRUE(seen.insert(sample).second);
  }
  EXPECT_EQ(split_dataset(dataset, 3).test, split.test);
  EXPECT_NE(split_dataset(dataset, 4).test, split.test);
}

TEST(CommunicationDataset, RefusesWhatCannotBeTrainedOn) {
  const TemporaryFolder folder;
  const std::string path = folder.file("costs.jsonl");
  write_all_to_alls(path, {}, 5);
  const std::string again = folder.file("again.jsonl");
  write_file(again, read_file(path));
  EXPECT_THAT(refusal({path, again}), HasSubstr("again.jsonl: expected a file not given before"));
  const std::string empty = folder.file("empty.jsonl");
  write_all_to_alls(empty, {.world_size = 3}, 0);
  EXPECT_THAT(refusal({empty}), HasSubstr("empty.jsonl: expected measured samples, got none"));
  SyntheticCluster other{.world_size = 3};
  other.links.card_gb_per_s *= 2.0;
  const std::string faster = folder.file("faster.jsonl");
  write_all_to_alls(faster, other, 5);
  EXPECT_THAT(refusal({path, faster}), HasSubstr("faster.jsonl: hardware: expected the links that "
                                                 "\"test-net\" has in the files before it"));
  const std::string sums = folder.file("sums.jsonl");
  write_all_to_alls(sums, other, 0);
  write_file(sums,
             read_file(sums) + R"({"kind": "all_reduce", "bytes": 4096, "ms": [1, 1, 1]})" + "\n");
  EXPECT_THAT(refusal({path, sums}), HasSubstr("sums.jsonl: hardware: expected the links that "
                                               "\"test-net\" has in the files before it"));
  SyntheticCluster broken{.world_size = 5};
  broken.links.intra_host_gb_per_s = 1e300;  // a schedule needs some rate
  const std::string negative = folder.file("negative.jsonl");
  write_all_to_alls(negative, broken, 2);
  std::string text = read_file(negative);
  text.replace(text.find("1e+300"), 6, "-10.00");
  write_file(negative, text);
  EXPECT_THAT(refusal({negative}), HasSubstr("hardware: intra_host_gb_per_s: expected a bandwidth "
                                             "between 1e-9 and 1e9 GB/s, got -10.0"));
}

TEST(InterconnectFit, FindsTheLinksThatMadeTheTimes) {
  const TemporaryFolder folder;
  const std::string flat = folder.file("flat.jsonl");
  write_all_to_alls(flat, {.interconnect = "", .says_its_links = false}, 60);
  const TrainedCluster hosts = load_communication_dataset({flat}).info.clusters.at(0);
  EXPECT_EQ(hosts.interconnect.name, "measured");
  EXPECT_NEAR(hosts.interconnect.card_gb_per_s, 2.5, 0.05);
  // One device per host: the level in the host is never used, and gets what the other has.
  EXPECT_EQ(hosts.interconnect.intra_host_gb_per_s, hosts.interconnect.card_gb_per_s);

  const std::string two_levels = folder.file("two-levels.jsonl");
  write_all_to_alls(
      two_levels,
      {.interconnect = "", .world_size = 8, .local_world_size = 4, .says_its_links = false}, 60);
  // Every file of a cluster contributes, in any order.
  for (const auto& files :
       {std::vector<std::string>{flat, two_levels}, std::vector<std::string>{two_levels, flat}}) {
    const Interconnect links = load_communication_dataset(files).info.clusters.at(0).interconnect;
    EXPECT_NEAR(links.card_gb_per_s, 2.5, 0.1);
    EXPECT_GT(links.intra_host_gb_per_s, 5.0);
  }
  // Test files do not determine the links.
  const CommunicationDataset training = load_communication_dataset({flat});
  const CommunicationDataset held_out = load_communication_dataset({two_levels}, &training);
  EXPECT_TRUE(held_out.info.clusters.at(0).interconnect.has_links_of(
      training.info.clusters.at(0).interconnect));
  EXPECT_THROW((void)load_communication_dataset({flat}, &training), InputError);
}

}  // namespace
}  // namespace neuroshard
