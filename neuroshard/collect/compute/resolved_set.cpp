// Slices of rows resolved.
#include "neuroshard/collect/compute/resolved_set.h"

#include <algorithm>

#include "neuroshard/workload/reuse/index_distribution.h"
#include "neuroshard/workload/reuse/row_slice.h"

namespace neuroshard {

namespace {

Table table_of(const Piece& piece, const PieceSet& set) {
  const Table& table = set.table_of(piece);
  if (piece.num_rows == 0) return row_slice(table, set.batch_size, piece.row_share);
  return row_slice(table, AccessByRow(table, set.batch_size), piece.row_offset, piece.num_rows);
}

}  // namespace

void resolve_slices(PieceSet& set, std::vector<Table>& own_tables) {
  const auto is_slice = [](const Piece& piece) { return piece.row_share < 1.0; };
  if (std::none_of(set.pieces.begin(), set.pieces.end(), is_slice)) return;
  own_tables.clear();
  for (Piece& piece : set.pieces) {
    own_tables.push_back(table_of(piece, set));
    piece = {static_cast<int>(own_tables.size()) - 1, piece.num_columns};
  }
  set.tables = own_tables;
  set.has_own_tables = true;
}

void use_at_any_batch_size(PieceSet& set, std::int64_t batch_size, std::vector<Table>& own_tables) {
  own_tables.clear();
  for (Piece& piece : set.pieces) {
    own_tables.push_back(for_any_batch_size(set.table_of(piece), batch_size));
    piece.table = static_cast<int>(own_tables.size()) - 1;
  }
  set.tables = own_tables;
  set.has_own_tables = true;
}

}  // namespace neuroshard
