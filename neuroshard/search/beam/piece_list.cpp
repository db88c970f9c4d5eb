// Lists of pieces with one cut more.
#include "neuroshard/search/beam/piece_list.h"

#include <algorithm>

#include "neuroshard/core/numbers/random.h"

namespace neuroshard {

std::uint64_t hash_of(const PieceList& pieces) {
  std::uint64_t hash = 0;
  for (const PieceType piece : pieces) hash += mix64(static_cast<std::uint64_t>(piece) + 1);
  return hash;
}

void add_slices(const PieceCatalog& catalog, PieceType piece, PieceList& pieces) {
  for (int slice = 0; slice < catalog.num_slices(piece); ++slice) {
    pieces.push_back(catalog.has_equal_slices(piece) ? piece : piece + slice);
  }
}

namespace {

/// The list without a piece and, of a slice, the others of its columns.
PieceList without(const PieceCatalog& catalog, const PieceList& pieces, std::size_t position) {
  const PieceType piece = pieces[position];
  const int slices = catalog.num_slices(piece);
  PieceList result;
  result.reserve(pieces.size() + static_cast<std::size_t>(slices));
  if (catalog.has_equal_slices(piece)) {
    // Equal pieces are neighbours, and there are as many as slices, or a multiple of it.
    const std::size_t end = position + static_cast<std::size_t>(slices);
    for (std::size_t i = 0; i < pieces.size(); ++i) {
      if (i < position || i >= end) result.push_back(pieces[i]);
    }
    return result;
  }
  const PieceType first = catalog.first_slice(piece);
  std::vector<bool> removed(static_cast<std::size_t>(slices));
  for (const PieceType other : pieces) {
    const bool is_slice = other >= first && other < first + slices;
    if (is_slice && !removed[other - first]) {
      removed[other - first] = true;
    } else {
      result.push_back(other);
    }
  }
  return result;
}

}  // namespace

PieceList replaced(const PieceCatalog& catalog, const PieceList& pieces, std::size_t position,
                   std::initializer_list<PieceType> by) {
  PieceList result = without(catalog, pieces, position);
  const auto first = [&](PieceType a, PieceType b) { return catalog.goes_first(a, b); };
  const auto place_of = [&](PieceType piece) {
    return std::upper_bound(result.begin(), result.end(), piece, first);
  };
  for (const PieceType piece : by) {
    const int slices = catalog.num_slices(piece);
    if (catalog.has_equal_slices(piece)) {
      result.insert(place_of(piece), static_cast<std::size_t>(slices), piece);
      continue;
    }
    for (int slice = 0; slice < slices; ++slice) {
      result.insert(place_of(piece + slice), piece + slice);
    }
  }
  return result;
}

}  // namespace neuroshard
