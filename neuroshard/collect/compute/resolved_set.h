// Slices of rows as tables of their own: what backends measure.
#pragma once

#include <cstdint>
#include <vector>

#include "neuroshard/collect/compute/compute_backend.h"
#include "neuroshard/core/table.h"

namespace neuroshard {

/// Backends know whole tables only: makes tables of a set's slices, which `own_tables` keeps for as
/// long as the set is measured. A set without slices stays as it is.
void resolve_slices(PieceSet& set, std::vector<Table>& own_tables);

/// For a set of whole tables that looks up a part of a batch alone: makes tables of its own whose
/// use does not depend on the batch size, as a histogram that is of batches of `batch_size` samples
/// does. `own_tables` likewise.
void use_at_any_batch_size(PieceSet& set, std::int64_t batch_size, std::vector<Table>& own_tables);

}  // namespace neuroshard
