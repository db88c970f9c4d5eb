// Cutting the ranks of a table into pieces.
#include "neuroshard/workload/reuse/rank_pieces.h"

#include <algorithm>
#include <cmath>

namespace neuroshard {

namespace {

std::vector<RankPiece> class_pieces(const std::vector<AccessClass>& classes) {
  std::vector<RankPiece> pieces;
  std::uint64_t first = 0;
  for (const AccessClass& access_class : classes) {
    const auto count = static_cast<std::uint64_t>(access_class.num_embeddings);
    pieces.push_back({.first = first, .count = count, .weight = access_class.access_share});
    first += count;
  }
  return pieces;
}

std::vector<RankPiece> zipf_pieces(double exponent, std::uint64_t num_embeddings) {
  const double ratio = std::clamp(std::pow(1.03, 1.0 / exponent), 1.02, 2.0);
  std::vector<RankPiece> pieces;
  for (std::uint64_t first = 0; first < num_embeddings;) {
    const double first_rank = static_cast<double>(first + 1);
    const auto longest = static_cast<std::uint64_t>(std::max(1.0, first_rank * (ratio - 1.0)));
    const std::uint64_t count = std::min(longest, num_embeddings - first);
    const double last_rank = static_cast<double>(first + count);
    const double lowest = std::pow(first_rank / last_rank, exponent);
    RankPiece piece{.first = first,
                    .count = count,
                    .weight = static_cast<double>(count) * std::pow(first_rank, -exponent)};
    if (lowest < 1.0) piece.always_kept_below = static_cast<std::uint64_t>(lowest * 0x1p64);
    pieces.push_back(piece);
    first += count;
  }
  return pieces;
}

}  // namespace

std::vector<RankPiece> rank_pieces(const IndexDistribution& distribution,
                                   std::int64_t num_embeddings) {
  if (!distribution.access_classes.empty()) return class_pieces(distribution.access_classes);
  const auto rows = static_cast<std::uint64_t>(num_embeddings);
  if (distribution.zipf_exponent > 0.0) return zipf_pieces(distribution.zipf_exponent, rows);
  return {{.first = 0, .count = rows, .weight = 1.0}};
}

}  // namespace neuroshard
