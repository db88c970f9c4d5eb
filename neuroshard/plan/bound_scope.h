// Of which plans a document's lower bound is, and what it leaves out.
#pragma once

#include <cstdint>

#include "neuroshard/io/plan_io.h"
#include "neuroshard/search/bound/bound_pieces.h"

namespace neuroshard {

/// What is to be said of a lower bound with its value.
struct BoundScope {
  Cuts cuts{};  ///< of the plans that it is of (bound_cuts)
  std::int64_t num_tables = 0;
  UnpricedTables unpriced{};
  /// The plan has slices of rows that the bound does not look at: plans with such may cost less.
  bool has_other_slices = false;
};

/// The plan must be valid. Documents record only the bound, so all else follows from the rest.
[[nodiscard]] BoundScope bound_scope(const PlanDocument& document);

}  // namespace neuroshard
