// A workload: the tables of one recommendation model with its training settings.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "neuroshard/core/table.h"

namespace neuroshard {

struct Workload {
  std::string name{};
  std::string source{};  ///< who published it, and where
  /// How likely its tables' rows are, in words: as published, and what is assumed where that is not
  /// enough. The tables' `index_distribution` says the same in numbers.
  std::string accesses{};
  std::int64_t batch_size = 0;
  Optimizer optimizer = Optimizer::sgd;
  std::vector<Table> tables{};  ///< names unique
};

/// Names the tables "t0", "t1", ..., padded with zeros to the same length.
void name_tables(std::vector<Table>& tables);

}  // namespace neuroshard
