// Drawing indices: a piece of ranks by an alias table, a rank in it, and the rank's row.
//
// A power law is drawn by rejection too, but not by Hoermann and Derflinger's rejection-inversion:
// the alias table over short pieces of ranks needs no logarithm and no power on the hot path,
// and serves all kinds of distributions.
#include "neuroshard/workload/reuse/index_batch.h"

#include <cmath>

#include "neuroshard/workload/reuse/alias_table.h"
#include "neuroshard/workload/reuse/index_distribution.h"
#include "neuroshard/workload/reuse/rank_pieces.h"

namespace neuroshard {

namespace {

std::vector<double> weights_of(const std::vector<RankPiece>& pieces) {
  std::vector<double> weights;
  for (const RankPiece& piece : pieces) weights.push_back(piece.weight);
  return weights;
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
  Impl(const Table& table, const IndexDistribution& distribution)
      : pieces(rank_pieces(distribution, table.num_embeddings)),
        choose(weights_of(pieces)),
        scatter(static_cast<std::uint64_t>(table.num_embeddings)),
        exponent(distribution.zipf_exponent),
        whole_bag(static_cast<std::int64_t>(std::floor(table.pooling_factor))),
        extra_probability(table.pooling_factor - std::floor(table.pooling_factor)) {}

  [[nodiscard]] RowDistribution rows() const {
    return {pieces.data(), choose.slots().data(), pieces.size(), scatter, exponent};
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
  std::int64_t whole_bag;
  double extra_probability;
};

IndexSampler::IndexSampler(const Table& table, std::int64_t batch_size)
    : impl_(std::make_unique<Impl>(table, resolved_distribution(table, batch_size))) {}
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
