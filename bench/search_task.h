// The tasks of the search's benchmarks.
#pragma once

#include <memory>

#include "neuroshard/cost/simulator.h"

namespace neuroshard::bench {

/// `num_tables` tables of dlrm-2021, repeated cyclically, with the dimensions of the paper's tasks
/// in cyclic order, on devices with 1.5 times the memory that they need; shipped models.
[[nodiscard]] std::unique_ptr<Simulator> make_simulator(int num_tables, int num_devices);

}  // namespace neuroshard::bench
