// Links of a cluster with unknown rates, fitted to measured all-to-alls.
#pragma once

#include <vector>

#include "neuroshard/core/interconnect.h"
#include "neuroshard/cost/communication/link_schedule.h"
#include "neuroshard/io/communication_costs_io.h"

namespace neuroshard {

/// Times of 0 have no logarithm; no real all-to-all of several devices is as short.
inline constexpr double kShortestMs = 1e-6;

/// The rates and latencies with which the link schedule is closest to the measured backward
/// all-to-alls of one cluster's files, in which all devices start together: the smallest mean error
/// of the logarithm. A level that no file has gets the rate of the other, and a card is each
/// device's own. Each file must have samples.
[[nodiscard]] Interconnect fit_interconnect(const std::vector<const CommunicationCosts*>& files);

}  // namespace neuroshard
