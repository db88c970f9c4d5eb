// Slices of rows as tables of their own: what backends measure.
#pragma once

#include <vector>

#include "neuroshard/collect/compute/compute_backend.h"
#include "neuroshard/core/table.h"

namespace neuroshard {

/// Backends know whole tables only: makes tables of a set's slices, which `own_tables` keeps for as
/// long as the set is measured. A set without slices stays as it is.
void resolve_slices(PieceSet& set, std::vector<Table>& own_tables);

}  // namespace neuroshard
