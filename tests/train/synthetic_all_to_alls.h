// Files of communication costs that follow the rendezvous schedule, for tests of training.
#pragma once

#include <algorithm>
#include <string>
#include <vector>

#include "neuroshard/core/interconnect.h"
#include "neuroshard/core/numbers/random.h"
#include "neuroshard/cost/communication/rendezvous_schedule.h"
#include "neuroshard/io/communication_costs_io.h"
#include "neuroshard/io/interconnect_io.h"

namespace neuroshard::testing_costs {

struct SyntheticCluster {
  std::string interconnect = "test-net";
  int world_size = 4;
  int local_world_size = 1;
  Interconnect links{.intra_host_gb_per_s = 20.0,
                     .intra_host_latency_ms = 0.005,
                     .devices_per_card = 1,
                     .card_gb_per_s = 2.5,
                     .inter_host_latency_ms = 0.03};
  bool says_its_links = true;  ///< in the header
  double slowdown = 1.0;       ///< of everything after the last start, against the links
};

/// Writes `num_samples` samples to `path`: random columns and lags, times by the links.
inline void write_all_to_alls(const std::string& path, const SyntheticCluster& cluster,
                              int num_samples, std::uint64_t seed = 1) {
  CommunicationCostsHeader header;
  header.hardware.set("kind", "simulated").set("name", cluster.interconnect);
  if (cluster.says_its_links) set_links(header.hardware, cluster.links);
  header.world_size = cluster.world_size;
  header.local_world_size = cluster.local_world_size;
  header.interconnect = cluster.interconnect;
  header.batch_size = 4096;
  RendezvousSchedule schedule(
      cluster.links,
      {.world_size = cluster.world_size, .local_world_size = cluster.local_world_size},
      header.batch_size, element_bytes(header.data_type));
  const auto devices = static_cast<std::size_t>(cluster.world_size);
  CommunicationCostsWriter writer(path, header);
  Random random(seed);
  AllToAllEnds ends;
  for (int i = 0; i < num_samples; ++i) {
    CommunicationCostSample sample;
    sample.info.id = i;
    sample.info.repetitions = 1;
    std::vector<double> columns;
    for (std::size_t d = 0; d < devices; ++d) {
      sample.columns.push_back(random.integer(1, 300) * 4);
      columns.push_back(static_cast<double>(sample.columns.back()));
      sample.start_ms.push_back(d == 0 ? 0.0 : random.uniform(0.0, 5.0));
    }
    const auto times = [&](const std::vector<double>& start_ms) {
      std::vector<double> result(devices);
      for (std::size_t d = 0; d < devices; ++d) {
        result[d] = ends.last_start_ms +
                    std::max(ends.shares[d] * ends.rests_ms[0], 0.001) * cluster.slowdown -
                    start_ms[d];
      }
      return result;
    };
    schedule.forward(columns, sample.start_ms, ends);
    sample.forward_ms = times(sample.start_ms);
    schedule.backward(columns, ends);
    sample.backward_ms = times(std::vector<double>(devices, 0.0));
    writer.append(sample);
  }
  writer.sync();
}

}  // namespace neuroshard::testing_costs
