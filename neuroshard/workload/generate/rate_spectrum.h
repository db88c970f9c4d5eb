// How often a batch hits the rows of a whole data set, recovered from its published locality.
#pragma once

#include <vector>

#include "neuroshard/workload/published_workloads.h"
#include "neuroshard/workload/reuse/rate_class.h"

namespace neuroshard {

/// The rows of all tables of the data set by expected hits per batch: rates at powers of the square
/// root of 2. Poisson-mixed, it has the published shares of rows and of lookups within 0.001, and
/// the numbers of distinct rows and of lookups within 0.1 %. Numbers of rows may be
/// fractions. Found by non-negative least squares; as many spectra have these aggregates, the
/// smoothest is taken.
[[nodiscard]] std::vector<RateClass> rate_spectrum(const LocalityFacts& facts);

}  // namespace neuroshard
