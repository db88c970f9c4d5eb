// The ends of the link schedule as times from each device's own entry.
#include "neuroshard/cost/communication/analytic_communication.h"

#include <fmt/format.h>

#include <cassert>
#include <utility>

#include "neuroshard/cost/communication/link_schedule.h"
#include "neuroshard/cost/communication/ring_all_reduce.h"

namespace neuroshard {

AnalyticCommunicationModel::AnalyticCommunicationModel(Interconnect interconnect)
    : interconnect_(std::move(interconnect)),
      name_(fmt::format("analytic-{}", interconnect_.name)) {
  validate(interconnect_);
}

void AnalyticCommunicationModel::forward(const Topology& topology, std::int64_t batch_size,
                                         std::span<const double> columns,
                                         std::span<const double> start_ms,
                                         std::span<double> forward_ms) const {
  assert(start_ms.size() == columns.size() && forward_ms.size() == columns.size());
  thread_link_schedule(interconnect_, topology, batch_size).ends(columns, start_ms, forward_ms);
  for (std::size_t d = 0; d < forward_ms.size(); ++d) forward_ms[d] -= start_ms[d];
}

void AnalyticCommunicationModel::backward(const Topology& topology, std::int64_t batch_size,
                                          std::span<const double> columns,
                                          std::span<double> backward_ms) const {
  static thread_local std::vector<double> together;
  together.assign(columns.size(), 0.0);
  thread_link_schedule(interconnect_, topology, batch_size).ends(columns, together, backward_ms);
}

double AnalyticCommunicationModel::all_reduce_ms(const Topology& topology, double bytes) const {
  return ring_all_reduce_ms(interconnect_, topology, bytes);
}

double AnalyticCommunicationModel::partial_sums_ms(double bytes) const {
  return bytes / (interconnect_.memory_gb_per_s * 1e6);
}

double AnalyticCommunicationModel::floor_ms(const Topology& topology, std::int64_t batch_size,
                                            double columns) const {
  return 2.0 * own_messages_ms(interconnect_, topology, batch_size, columns);
}

std::vector<std::string> AnalyticCommunicationModel::outside_range(const Task& task) const {
  const int per_host = task.topology.local_world_size;
  if (per_host <= interconnect_.devices_per_host) return {};
  return {fmt::format("topology.local_world_size: {} describes hosts of at most {} devices, got {}",
                      interconnect_.name, interconnect_.devices_per_host, per_host)};
}

}  // namespace neuroshard
