// The tasks of the search's benchmarks.
#pragma once

#include <memory>

#include "neuroshard/cost/simulator.h"

namespace neuroshard::bench {

/// `num_tables` tables of dlrm-2021, taken round and round, with the dimensions of the paper's
/// tasks in turn, on devices that have half as much memory again as they need; shipped models.
[[nodiscard]] std::unique_ptr<Simulator> make_simulator(int num_tables, int num_devices);

}  // namespace neuroshard::bench
