// How fast a machine was while a sample was measured, as its reference sets tell.
#pragma once

#include <map>
#include <span>
#include <string>
#include <vector>

#include "neuroshard/io/compute_costs_io.h"

namespace neuroshard {

/// What reference sets usually take [ms]: the geometric mean of a sample's, the median over
/// samples; by the name of the sets (ComputeCostsHeader::reference_sets).
using UsualSpeed = std::map<std::string, double>;

/// Of what reference sets took [ms], none of which is empty: every one of them contributes alike,
/// however long it takes.
[[nodiscard]] double mean_of_references(std::span<const double> reference_ms);

/// Of all samples of these files that have reference sets.
[[nodiscard]] UsualSpeed usual_speed(const std::vector<ComputeCosts>& files);

/// What the reference sets of each of these files' samples took, relative to what `usual` says:
/// above 1, the machine was slower than usual. Empty if no sample has reference sets.
[[nodiscard]] std::vector<double> slowness(const std::vector<ComputeCosts>& files,
                                           const UsualSpeed& usual);

/// A sample's cost, forward and backward [ms], as it is when the reference sets, which the file
/// calls `reference_sets`, take what `usual` says. As measured where the file has none. Throws
/// InputError, "PLACE: reference_sets: expected ..., got ...", where `usual` does not know them.
[[nodiscard]] double usual_cost_ms(const ComputeCostSample& sample,
                                   const std::string& reference_sets, const UsualSpeed& usual,
                                   const std::string& place);

}  // namespace neuroshard
