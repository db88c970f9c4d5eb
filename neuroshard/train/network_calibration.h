// Links of a cluster whose rates nobody knows, fitted to measured all-to-alls.
#pragma once

#include "neuroshard/cost/link_schedule.h"
#include "neuroshard/io/communication_costs_io.h"

namespace neuroshard {

/// The rates and latencies with which the link schedule is nearest to the measured backward
/// all-to-alls, in which all devices start together: the smallest mean error of the logarithm.
/// Levels that the topology lacks get the rate of the level that it has. There must be samples.
[[nodiscard]] ClusterNetwork calibrate_network(const CommunicationCosts& costs);

}  // namespace neuroshard
