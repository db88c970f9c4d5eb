// Reuse of one row whose hits in a batch are Poisson distributed.
#pragma once

#include <array>

#include "neuroshard/core/table.h"
#include "neuroshard/workload/reuse/index_distribution.h"

namespace neuroshard {

/// For X ~ Poisson(mean): where a row with `mean` expected hits ends up.
struct PoissonReuse {
  double hit = 0.0;                          ///< P(X >= 1); the sum of `rows`
  std::array<double, kReuseBins> rows{};     ///< P(X in bin)
  std::array<double, kReuseBins> indices{};  ///< E[X; X in bin]; adds up to `mean`
};

/// Absolute error below 1e-6 for `rows`, relative to the mean below 1e-6 for `indices`; for means
/// up to 64 exact to rounding, also relative to the chance of a hit. Takes 0.1 to 0.3
/// microseconds. `mean` is finite and at least 0.
[[nodiscard]] PoissonReuse poisson_reuse(double mean);

/// Adds `num_rows` rows with this reuse (any number, also a fraction) to the statistics' bins.
inline void add_rows(ReuseStatistics& statistics, double num_rows, const PoissonReuse& reuse) {
  for (int bin = 0; bin < kReuseBins; ++bin) {
    statistics.rows[bin] += num_rows * reuse.rows[bin];
    statistics.indices[bin] += num_rows * reuse.indices[bin];
  }
}

}  // namespace neuroshard
