// What lists of pieces must be, whoever makes them.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <vector>

#include "neuroshard/search/beam/piece_list.h"
#include "neuroshard/search/piece_catalog.h"

namespace neuroshard::testing_tasks {

/// Whether the pieces have all columns and rows of every table, once; if not `rows`, in no slices.
inline bool has_each_table_once(const Simulator& simulator, const PieceCatalog& catalog,
                                const PieceList& pieces, bool rows) {
  std::vector<double> columns(simulator.task().tables.size(), 0.0);
  for (const PieceType piece : pieces) {
    if (!rows && catalog.num_slices(piece) > 1) return false;
    columns[catalog.table(piece)] +=
        static_cast<double>(catalog.num_columns(piece)) / catalog.num_slices(piece);
  }
  std::size_t table = 0;
  return std::all_of(columns.begin(), columns.end(), [&](double sum) {
    const auto all = static_cast<double>(simulator.task().tables[table++].embedding_dim);
    return std::abs(sum - all) < 1e-9 * all;
  });
}

}  // namespace neuroshard::testing_tasks
