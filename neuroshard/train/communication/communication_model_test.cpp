// Predictions of every line of a file against what it says.
#include "neuroshard/train/communication/communication_model_test.h"

#include <algorithm>
#include <map>
#include <memory>
#include <utility>

#include "neuroshard/core/error.h"
#include "neuroshard/io/communication_costs_io.h"

namespace neuroshard {

namespace {

using SamplesByKind = std::map<std::string, std::vector<TestedSample>>;

/// TestedSample::id of the sample at `place`, from 0, of the all-to-alls or of all others.
std::int64_t id_of(const SampleInfo& info, std::size_t place) {
  return info.id.value_or(static_cast<std::int64_t>(place) + 2);
}

void add_devices(std::int64_t id, const std::vector<double>& predicted,
                 const std::vector<double>& measured, std::vector<TestedSample>& samples) {
  for (std::size_t d = 0; d < measured.size(); ++d) {
    // A device that has nothing to send or receive takes no time.
    if (measured[d] > 0.0) samples.push_back({id, predicted[d], measured[d]});
  }
}

}  // namespace

std::vector<FileTest> test_communication_model(const CommunicationModelFile& model,
                                               const std::string& path) {
  const CommunicationCosts costs = read_communication_costs(path);
  const CommunicationCostsHeader& header = costs.header;
  const auto cluster = model.of_cluster(header.interconnect, path + ": topology.interconnect");
  Topology topology;
  topology.world_size = header.world_size;
  topology.local_world_size = header.local_world_size;
  SamplesByKind samples;
  std::vector<double> predicted(header.world_size);
  for (std::size_t i = 0; i < costs.samples.size(); ++i) {
    const CommunicationCostSample& sample = costs.samples[i];
    const std::int64_t id = id_of(sample.info, i);
    // The model's columns are fp32.
    const double share = static_cast<double>(element_bytes(header.data_type)) /
                         static_cast<double>(element_bytes(DataType::fp32));
    std::vector<double> columns;
    for (const std::int64_t count : sample.columns) {
      columns.push_back(share * static_cast<double>(count));
    }
    cluster->forward(topology, header.batch_size, columns, sample.start_ms, predicted);
    add_devices(id, predicted, sample.forward_ms, samples["forward"]);
    cluster->backward(topology, header.batch_size, columns, predicted);
    add_devices(id, predicted, sample.backward_ms, samples["backward"]);
  }
  for (std::size_t i = 0; i < costs.collectives.size(); ++i) {
    const CollectiveCostSample& sample = costs.collectives[i];
    const auto bytes = static_cast<double>(sample.bytes);
    const double measured = *std::max_element(sample.ms.begin(), sample.ms.end());
    if (measured <= 0.0) continue;
    samples[std::string(to_string(sample.kind))].push_back(
        {id_of(sample.info, i),
         sample.kind == CollectiveKind::all_reduce ? cluster->all_reduce_ms(topology, bytes)
                                                   : cluster->partial_sums_ms(bytes),
         measured});
  }
  std::vector<FileTest> tests;
  for (auto& [kind, of_kind] : samples) {
    if (!of_kind.empty()) tests.push_back({path, tested(std::move(of_kind)), kind});
  }
  if (tests.empty()) throw InputError(path, "measured samples", "none");
  return tests;
}

}  // namespace neuroshard
