// Drawing indices: a piece of ranks by an alias table, a rank in it, and the rank's row.
//
// A power law is drawn by rejection too, but not by Hoermann and Derflinger's rejection-inversion:
// the alias table over short pieces of ranks needs no logarithm and no power on the hot path,
// and serves all kinds of distributions.
#include "neuroshard/workload/reuse/index_batch.h"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <span>
#include <utility>

#include "neuroshard/workload/reuse/access_by_row.h"
#include "neuroshard/workload/reuse/alias_table.h"
#include "neuroshard/workload/reuse/index_distribution.h"
#include "neuroshard/workload/reuse/rank_pieces.h"
#include "neuroshard/workload/reuse/rate_class.h"

namespace neuroshard {

namespace {

std::vector<double> weights_of(const std::vector<RankPiece>& pieces) {
  std::vector<double> weights;
  for (const RankPiece& piece : pieces) weights.push_back(piece.weight);
  return weights;
}

/// What a sampler draws rows from.
struct Ranks {
  std::vector<RankPiece> pieces;
  RankScatter scatter;
  double exponent = 0.0;
  std::vector<RowSegment> segments{};
};

Ranks ranks_of(const Table& table, IndexDistribution distribution) {
  const auto rows = static_cast<std::uint64_t>(table.num_embeddings);
  const bool is_ordered = table.row_order == RowOrder::by_frequency;
  if (is_ordered) {
    std::stable_sort(distribution.access_classes.begin(), distribution.access_classes.end(),
                     [](const AccessClass& a, const AccessClass& b) {
                       return a.access_share * static_cast<double>(b.num_embeddings) >
                              b.access_share * static_cast<double>(a.num_embeddings);
                     });
  }
  return {rank_pieces(distribution, table.num_embeddings),
          is_ordered ? RankScatter::identity(rows) : RankScatter(rows, hash_of_name(table.name)),
          distribution.zipf_exponent};
}

/// Segments of whole rows; one of less than a row is joined with the next.
Ranks ranks_by_row(const Table& table, const AccessByRow& accesses) {
  Ranks ranks{{}, RankScatter::identity(static_cast<std::uint64_t>(table.num_embeddings))};
  std::int64_t first = 0;
  std::vector<RateClass> rates;
  const std::span<const AccessByRow::Segment> segments = accesses.segments();
  for (std::size_t i = 0; i < segments.size(); ++i) {
    const AccessByRow::Segment& segment = segments[i];
    std::copy_if(segment.rows.begin(), segment.rows.end(), std::back_inserter(rates),
                 [](const RateClass& rows) { return rows.rate > 0.0; });
    std::int64_t end = table.num_embeddings;
    if (i + 1 < segments.size()) {
      const std::int64_t nearest = std::llround(segment.first_row + segment.num_rows);
      end = std::min(nearest, table.num_embeddings - 1);
    }
    if (end == first) continue;
    auto rank = static_cast<std::uint64_t>(first);
    ranks.segments.push_back(
        {rank, RankScatter(static_cast<std::uint64_t>(end - first), hash_of_name(table.name))});
    const double hits = hits_of(rates);
    if (hits > 0.0) {
      for (const AccessClass& whole : whole_rows(std::exchange(rates, {}), end - first)) {
        const auto count = static_cast<std::uint64_t>(whole.num_embeddings);
        ranks.pieces.push_back(
            {.first = rank, .count = count, .weight = whole.access_share * hits});
        rank += count;
      }
    }
    first = end;
  }
  return ranks;
}

Ranks ranks_of(const Table& table, std::int64_t batch_size) {
  return table.row_access.empty() ? ranks_of(table, resolved_distribution(table, batch_size))
                                  : ranks_by_row(table, AccessByRow(table, batch_size));
}

}  // namespace

void keep_rows(RowRange rows, IndexBatch& batch) {
  std::size_t kept = 0;
  std::int64_t begin = batch.offsets.empty() ? 0 : batch.offsets.front();
  for (std::size_t bag = 1; bag < batch.offsets.size(); ++bag) {
    const std::int64_t end = batch.offsets[bag];
    for (std::int64_t i = begin; i < end; ++i) {
      const std::int64_t row = batch.indices[static_cast<std::size_t>(i)] - rows.first;
      if (row >= 0 && row < rows.count) batch.indices[kept++] = row;
    }
    begin = end;
    batch.offsets[bag] = static_cast<std::int64_t>(kept);
  }
  batch.indices.resize(kept);
}

struct IndexSampler::Impl {
  Impl(const Table& table, Ranks ranks)
      : pieces(std::move(ranks.pieces)),
        choose(weights_of(pieces)),
        scatter(ranks.scatter),
        exponent(ranks.exponent),
        segments(std::move(ranks.segments)),
        whole_bag(static_cast<std::int64_t>(std::floor(table.pooling_factor))),
        extra_probability(table.pooling_factor - std::floor(table.pooling_factor)) {}

  [[nodiscard]] RowDistribution rows() const {
    return {pieces.data(), choose.slots().data(), pieces.size(),  scatter,
            exponent,      segments.data(),       segments.size()};
  }

  void draw_offsets(std::int64_t batch_size, Random& random,
                    std::vector<std::int64_t>& offsets) const {
    offsets.resize(static_cast<std::size_t>(batch_size) + 1);
    std::int64_t end = 0;
    offsets[0] = 0;
    for (std::size_t bag = 1; bag < offsets.size(); ++bag) {
      end += whole_bag;
      if (extra_probability > 0.0 && random.uniform() < extra_probability) ++end;
      offsets[bag] = end;
    }
  }

  std::vector<RankPiece> pieces;
  AliasTable choose;
  RankScatter scatter;
  double exponent;
  std::vector<RowSegment> segments;
  std::int64_t whole_bag;
  double extra_probability;
};

IndexSampler::IndexSampler(const Table& table, std::int64_t batch_size)
    : impl_(std::make_unique<Impl>(table, ranks_of(table, batch_size))) {}
IndexSampler::~IndexSampler() = default;
IndexSampler::IndexSampler(IndexSampler&&) noexcept = default;
IndexSampler& IndexSampler::operator=(IndexSampler&&) noexcept = default;

void IndexSampler::draw(std::int64_t batch_size, Random& random, IndexBatch& batch) const {
  impl_->draw_offsets(batch_size, random, batch.offsets);
  batch.indices.resize(static_cast<std::size_t>(batch.offsets.back()));
  const RowDistribution distribution = rows();
  for (std::int64_t& index : batch.indices) index = draw_row(distribution, random);
}

RowDistribution IndexSampler::rows() const { return impl_->rows(); }

}  // namespace neuroshard
