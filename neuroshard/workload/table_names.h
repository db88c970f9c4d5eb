// Naming the tables of a workload.
#pragma once

#include <vector>

#include "neuroshard/core/table.h"

namespace neuroshard {

/// Names the tables "t0", "t1", ..., padded with zeros to the same length.
void name_tables(std::vector<Table>& tables);

}  // namespace neuroshard
