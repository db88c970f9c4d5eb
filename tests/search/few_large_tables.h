// Tasks for tests of replicated tables.
#pragma once

#include <cmath>
#include <cstdint>
#include <string>

#include "neuroshard/core/numbers/random.h"
#include "tests/cost/arbitrary_task.h"

namespace neuroshard::testing_tasks {

/// One to four tables with most of the lookups, and small ones, on hosts of a slow network: what
/// copies are worth, other cuts decide.
inline Task task_with_few_large_tables(std::uint64_t seed, int num_devices) {
  Random random(seed);
  Task task;
  task.batch_size = 16'384;
  task.topology = make_topology(num_devices, 1, std::int64_t{1} << 36);
  task.topology.interconnect = "ethernet-10g";
  const auto large = static_cast<int>(random.integer(1, 4));
  const auto small = static_cast<int>(random.integer(4, 12));
  for (int i = 0; i < large + small; ++i) {
    const bool is_large = i < large;
    const double rows =
        std::pow(10.0, is_large ? random.uniform(5.5, 7.0) : random.uniform(1.5, 4.0));
    const std::int64_t columns = std::int64_t{is_large ? 128 : 16} << random.integer(0, 2);
    task.tables.push_back(make_table("t" + std::to_string(i), static_cast<std::int64_t>(rows),
                                     columns,
                                     random.uniform(is_large ? 20.0 : 1.0, is_large ? 80.0 : 5.0)));
  }
  return task;
}

}  // namespace neuroshard::testing_tasks
