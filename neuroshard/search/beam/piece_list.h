// The pieces that a search's tables are cut into, as lists that differ by a cut.
#pragma once

#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <vector>

#include "neuroshard/search/piece_catalog.h"

namespace neuroshard {

/// In the order of placement (PieceCatalog::goes_first).
using PieceList = std::vector<PieceType>;

/// Equal for lists with the same pieces; the order of a list follows from its pieces.
[[nodiscard]] std::uint64_t hash_of(const PieceList& pieces);

/// Adds all slices of the columns of a piece, which is the first of them, or any of equal ones.
void add_slices(const PieceCatalog& catalog, PieceType piece, PieceList& pieces);

/// The list with the piece at `position` and, of a slice, the others of its columns replaced by all
/// slices of the pieces `by`.
[[nodiscard]] PieceList replaced(const PieceCatalog& catalog, const PieceList& pieces,
                                 std::size_t position, std::initializer_list<PieceType> by);

}  // namespace neuroshard
