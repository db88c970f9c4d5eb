// The learned communication model: properties that hold for any parameters.
#include "neuroshard/cost/communication/neural_communication_model.h"
#include "neuroshard/core/interconnect.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <cmath>
#include <set>

#include "neuroshard/core/error.h"
#include "neuroshard/core/numbers/random.h"
#include "neuroshard/cost/communication/analytic_communication.h"
#include "neuroshard/cost/communication/communication_model_io.h"
#include "neuroshard/cost/communication/ring_all_reduce.h"
#include "tests/cost/arbitrary_communication.h"
#include "tests/io/io_test_util.h"

namespace neuroshard {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using testing_networks::random_communication_network;
using testing_networks::two_clusters;

struct NetworkCase {
  Topology topology;
  std::vector<double> columns;
  std::vector<double> start_ms;
};

NetworkCase arbitrary_network_case() {
  NetworkCase drawn;
  drawn.topology.local_world_size = *rc::gen::element(1, 2, 4);
  drawn.topology.world_size = drawn.topology.local_world_size * *rc::gen::inRange(1, 5);
  const int world_size = drawn.topology.world_size;
  for (int d = 0; d < world_size; ++d) {
    drawn.columns.push_back(*rc::gen::inRange(0, 3000));
    drawn.start_ms.push_back(*rc::gen::inRange(0, 20'000) * 1e-3);
  }
  const double earliest = *std::min_element(drawn.start_ms.begin(), drawn.start_ms.end());
  for (double& start : drawn.start_ms) start -= earliest;
  return drawn;
}

RC_GTEST_PROP(NeuralCommunicationModelProperty, NobodyEndsBeforeTheLastHasStarted, ()) {
  const NeuralCommunicationModel model(random_communication_network(*rc::gen::inRange(0, 50)),
                                       two_clusters(), 1);
  const NetworkCase c = arbitrary_network_case();
  const int world_size = c.topology.world_size;
  std::vector<double> times(world_size);
  model.forward(c.topology, 4096, c.columns, c.start_ms, times);
  const double last = *std::max_element(c.start_ms.begin(), c.start_ms.end());
  for (int d = 0; d < world_size; ++d) {
    RC_ASSERT(std::isfinite(times[d]));
    if (world_size > 1) RC_ASSERT(c.start_ms[d] + times[d] >= last - 1e-9);
  }
  std::vector<double> backward(world_size);
  model.backward(c.topology, 4096, c.columns, backward);
  for (int d = 0; d < world_size; ++d) {
    RC_ASSERT(backward[d] >= 0.0);
    // The floor that lower bounds of plans rely on.
    RC_ASSERT(model.floor_ms(c.topology, 4096, c.columns[d]) <=
              (times[d] + backward[d]) * (1.0 + 1e-9));
  }
}

/// Hosts in another order, and the cards of each host, and the devices of each card.
std::vector<int> reordered(const Topology& topology, int on_card, Random& random) {
  std::vector<int> order;
  const auto shuffled = [&](int first, int last, int step) {
    std::vector<int> starts;
    for (int i = first; i < last; i += step) starts.push_back(i);
    random.shuffle(starts);
    return starts;
  };
  const int per_host = topology.local_world_size;
  for (const int host : shuffled(0, topology.world_size, per_host)) {
    for (const int card : shuffled(host, host + per_host, std::min(on_card, per_host))) {
      for (const int d : shuffled(card, card + std::min(on_card, per_host), 1)) order.push_back(d);
    }
  }
  return order;
}

RC_GTEST_PROP(NeuralCommunicationModelProperty, HostsAndDevicesOfAHostMayChangePlaces, ()) {
  const auto cluster = *rc::gen::element<std::size_t>(0, 1);
  const NeuralCommunicationModel model(random_communication_network(*rc::gen::inRange(0, 50)),
                                       two_clusters(), cluster);
  NetworkCase c = arbitrary_network_case();
  if (cluster == 0) c.topology.local_world_size = 1;
  const int world_size = c.topology.world_size;
  std::vector<double> times(world_size);
  model.forward(c.topology, 4096, c.columns, c.start_ms, times);
  std::vector<double> backward(world_size);
  model.backward(c.topology, 4096, c.columns, backward);
  Random random(*rc::gen::inRange(0, 1000));
  const std::vector<int> order =
      reordered(c.topology, model.cluster().interconnect.devices_per_card, random);
  NetworkCase moved = c;
  for (int d = 0; d < world_size; ++d) {
    moved.columns[d] = c.columns[order[d]];
    moved.start_ms[d] = c.start_ms[order[d]];
  }
  std::vector<double> moved_times(world_size);
  model.forward(c.topology, 4096, moved.columns, moved.start_ms, moved_times);
  std::vector<double> moved_backward(world_size);
  model.backward(c.topology, 4096, moved.columns, moved_backward);
  for (int d = 0; d < world_size; ++d) {
    RC_ASSERT(std::abs(moved_backward[d] - backward[order[d]]) <= 1e-9 * backward[order[d]]);
  }
  // Of two devices that would send equally long, one is taken for the slowest sender: which one may
  // change the others' own ends, but never the last.
  const auto last_end = [&](const std::vector<double>& of, const std::vector<double>& starts) {
    double last = 0.0;
    for (int d = 0; d < world_size; ++d) last = std::max(last, of[d] + starts[d]);
    return last;
  };
  const double last = last_end(times, c.start_ms);
  RC_ASSERT(std::abs(last_end(moved_times, moved.start_ms) - last) <= 1e-9 * last);
  if (std::set<double>(c.columns.begin(), c.columns.end()).size() == c.columns.size()) {
    for (int d = 0; d < world_size; ++d) {
      RC_ASSERT(std::abs(moved_times[d] - times[order[d]]) <= 1e-9 * (1.0 + times[order[d]]));
    }
  }
}

/// From the first start to the last end.
double duration(const CommunicationCostModel& model, const NetworkCase& c) {
  std::vector<double> times(c.columns.size());
  model.forward(c.topology, 4096, c.columns, c.start_ms, times);
  double last = 0.0;
  for (std::size_t d = 0; d < times.size(); ++d) last = std::max(last, c.start_ms[d] + times[d]);
  return last;
}

RC_GTEST_PROP(NeuralCommunicationModelProperty, IsWithinItsFactorOfTheLinkSchedule, ()) {
  const auto cluster = *rc::gen::element<std::size_t>(0, 1);
  const NeuralCommunicationModel model(random_communication_network(*rc::gen::inRange(0, 200)),
                                       two_clusters(), cluster);
  NetworkCase c = arbitrary_network_case();
  if (cluster == 0) c.topology.local_world_size = 1;
  const AnalyticCommunicationModel links(model.cluster().interconnect);
  const double learned = duration(model, c);
  const double by_links = duration(links, c);
  RC_ASSERT(learned >= by_links * (1.0 - 1e-12));
  RC_ASSERT(learned <= by_links * 9.0 * (1.0 + 1e-12));
}

TEST(NeuralCommunicationModel, OneDeviceHasNoPeers) {
  const NeuralCommunicationModel model(random_communication_network(1), two_clusters(), 0);
  const Topology topology{.world_size = 1};
  const std::vector<double> columns{64.0};
  const std::vector<double> start{0.0};
  std::vector<double> times{7.0};
  model.forward(topology, 4096, columns, start, times);
  EXPECT_EQ(times[0], 0.0);
  EXPECT_EQ(model.floor_ms(topology, 4096, 64.0), 0.0);
}

TEST(NeuralCommunicationModel, SaysWhatItWasNotTrainedFor) {
  const NeuralCommunicationModel model(random_communication_network(1), two_clusters(), 1);
  Task task;
  task.batch_size = 4096;
  task.topology = {.world_size = 8, .local_world_size = 4};
  EXPECT_TRUE(model.outside_range(task).empty());
  task.topology = {.world_size = 32, .local_world_size = 8};
  task.batch_size = 512;
  EXPECT_THAT(
      model.outside_range(task),
      ElementsAre(
          HasSubstr("world_size: \"boxes\" was trained on 2 to 16, got 32; costs are by the links"),
          HasSubstr("local_world_size: \"boxes\" was trained on at most 4, got 8"),
          HasSubstr("batch_size: trained on 1024 to 65536, got 512")));
}

TEST(NeuralCommunicationModel, BeyondItsRangeTheLinksAloneDecide) {
  const NeuralCommunicationModel model(random_communication_network(1), two_clusters(), 0);
  const Topology topology{.world_size = 32, .local_world_size = 1};
  std::vector<double> columns(32, 64.0);
  std::vector<double> start(32, 0.0);
  std::vector<double> times(32);
  model.forward(topology, 32'000, columns, start, times);
  // 64 columns of 4 bytes for 1,000 samples of each of 31 peers at 2 GB/s.
  for (const double time : times) EXPECT_NEAR(time, 64 * 4 * 1000 * 31 / 2e6 + 0.03, 1e-9);
}

TEST(CommunicationModelIo, ReadsBackBitForBit) {
  const TemporaryFolder folder;
  const std::string path = folder.file("m.safetensors");
  const auto network = random_communication_network(4);
  write_communication_model(*network, two_clusters(), path);
  const CommunicationModelFile read = communication_model_from(ModelFile(path), path);
  EXPECT_EQ(read.info.name, "two");
  EXPECT_EQ(read.info.metrics.at("mape"), 0.5);
  ASSERT_EQ(read.info.clusters.size(), 2u);
  EXPECT_EQ(read.info.clusters[1].interconnect.devices_per_card, 2);
  EXPECT_EQ(read.info.clusters[1].interconnect.devices_per_host, 4);
  EXPECT_EQ(read.info.clusters[0].interconnect.inter_host_latency_ms, 0.03);
  EXPECT_EQ(read.info.max_batch_size, 65'536);
  ASSERT_EQ(read.network->layers.size(), 2u);
  EXPECT_EQ(read.network->layers[1].weights, network->layers[1].weights);
  EXPECT_EQ(read.network->layers[0].bias, network->layers[0].bias);
  EXPECT_EQ(read.of_cluster("boxes", "x")->name(), "boxes");
  try {
    (void)read.of_cluster("", "topology.interconnect");
    FAIL();
  } catch (const InputError& error) {
    EXPECT_STREQ(error.what(),
                 "topology.interconnect: expected an interconnect of the model: hosts, boxes, "
                 "got \"\"");
  }
}

TEST(CommunicationModelIo, AllReducesAndPartialSumsAreOfAClusterOrOfNone) {
  const TemporaryFolder folder;
  const std::string path = folder.file("m.safetensors");
  CommunicationModelInfo info = two_clusters();
  info.collectives_sha256 = "abc";
  CollectiveWeights& learned = info.clusters[1].collectives;
  for (std::size_t i = 0; i < kNumAllReduceTerms; ++i) learned.all_reduce.push_back(0.25 * i);
  for (std::size_t i = 0; i < kNumPartialSumTerms; ++i) learned.partial_sums.push_back(0.5);
  write_communication_model(*random_communication_network(4), info, path);
  const CommunicationModelFile read = communication_model_from(ModelFile(path), path);
  EXPECT_EQ(read.info.collectives_sha256, "abc");
  EXPECT_EQ(read.info.clusters[1].collectives.all_reduce, learned.all_reduce);
  const auto without = read.of_cluster("hosts", "x");
  const auto with = read.of_cluster("boxes", "x");
  EXPECT_FALSE(without->knows_all_reduces() || without->knows_partial_sums());
  EXPECT_TRUE(with->knows_all_reduces() && with->knows_partial_sums());
  const Topology topology{.world_size = 8, .local_world_size = 4};
  const Interconnect& links = with->cluster().interconnect;
  EXPECT_EQ(with->all_reduce_ms(topology, 1e6), learned.all_reduce_ms(links, topology, 1e6));
  EXPECT_EQ(with->partial_sums_ms(1e6), learned.partial_sums_ms(1e6));
  EXPECT_EQ(without->all_reduce_ms(topology, 1e6),
            ring_all_reduce_ms(without->cluster().interconnect, topology, 1e6));
  EXPECT_EQ(without->partial_sums_ms(1e6), 1e6 / (kHostMemoryGbPerS * 1e6));

  learned.all_reduce[3] = -1e-3;
  write_communication_model(*random_communication_network(4), info, path);
  EXPECT_THAT(input_error([&] { (void)communication_model_from(ModelFile(path), path); }),
              HasSubstr("clusters: [1].all_reduce[3]: expected a weight between 0 and "));
  learned.all_reduce.pop_back();
  write_communication_model(*random_communication_network(4), info, path);
  EXPECT_THAT(input_error([&] { (void)communication_model_from(ModelFile(path), path); }),
              HasSubstr("[1].all_reduce: expected 19 or 37 weights, got an array of 36"));
  // Without memory, as simulations and older models are.
  learned.all_reduce.assign(kNumLinkAllReduceTerms, 0.5);
  learned.partial_sums.assign(kNumPlainPartialSumTerms, 0.5);
  write_communication_model(*random_communication_network(4), info, path);
  const auto links_alone = communication_model_from(ModelFile(path), path).of_cluster("boxes", "x");
  EXPECT_EQ(links_alone->all_reduce_ms(topology, 1e6), learned.all_reduce_ms(links, topology, 1e6));
  CollectiveWeights padded = learned;
  padded.all_reduce.resize(kNumAllReduceTerms);
  padded.partial_sums.resize(kNumPartialSumTerms);
  EXPECT_EQ(links_alone->all_reduce_ms(topology, 1e6), padded.all_reduce_ms(links, topology, 1e6));
  EXPECT_EQ(links_alone->partial_sums_ms(1e7), padded.partial_sums_ms(1e7));
}

TEST(CommunicationModelIo, RefusesRangesThatNothingIsInAndClustersOfOneName) {
  const TemporaryFolder folder;
  const std::string path = folder.file("m.safetensors");
  const auto network = random_communication_network(1);
  const auto error_of = [&](const CommunicationModelInfo& info) {
    write_communication_model(*network, info, path);
    try {
      (void)communication_model_from(ModelFile(path), path);
    } catch (const InputError& error) {
      return std::string(error.what());
    }
    return std::string("no error");
  };
  const CommunicationModelInfo valid = two_clusters();
  EXPECT_EQ(error_of(valid), "no error");
  CommunicationModelInfo info = valid;
  info.max_batch_size = info.min_batch_size - 1;
  EXPECT_THAT(error_of(info), HasSubstr("max_batch_size: expected an integer between "));
  info = valid;
  info.clusters[1].max_world_size = info.clusters[1].min_world_size - 1;
  EXPECT_THAT(error_of(info), HasSubstr("[1].max_world_size: expected an integer of at least "));
  info = valid;
  info.clusters[1].interconnect.name = info.clusters[0].interconnect.name;
  EXPECT_THAT(error_of(info), HasSubstr("[1].name: expected a name that no other cluster has"));
}

TEST(CommunicationModelIo, RefusesTheArchitectureThatWasNotMonotone) {
  const TemporaryFolder folder;
  const std::string path = folder.file("old.safetensors");
  TensorFile file;
  file.metadata = {{"format", kModelFormat},
                   {"kind", "communication"},
                   {"architecture", "link-delays"},
                   {"feature_schema", "communication/1"}};
  write_tensors(file, path);
  try {
    (void)communication_model_from(ModelFile(path), path);
    FAIL();
  } catch (const InputError& error) {
    EXPECT_EQ(error.what(),
              path +
                  ": __metadata__.architecture: expected \"rendezvous-mixture\" (train the model "
                  "again, on the same costs), got \"link-delays\", of an earlier version");
  }
}

}  // namespace
}  // namespace neuroshard
