// Drawing indices: a piece of ranks by an alias table, a rank in it, and the rank's row.
//
// A power law is drawn by rejection too, but not by Hoermann and Derflinger's rejection-inversion:
// the alias table over short pieces of ranks needs no logarithm and no power on the hot path,
// and serves all kinds of distributions.
#include "neuroshard/workload/index_batch.h"

#include <algorithm>
#include <cmath>
#include <numbers>
#include <numeric>

#include "neuroshard/workload/alias_table.h"
#include "neuroshard/workload/index_distribution.h"
#include "neuroshard/workload/rank_pieces.h"
#include "neuroshard/workload/wide_product.h"

namespace neuroshard {

namespace {

/// The fixed bijection rank -> (rank * multiplier + offset) modulo the number of rows.
class RankScatter {
 public:
  explicit RankScatter(std::uint64_t num_rows)
      : num_rows_(num_rows), inverse_(~std::uint64_t{0} / num_rows), offset_(num_rows / 3) {
    // Below 2^21, so that a product with a rank below 2^42 (kMaxEmbeddings) and the sum fit 64
    // bits.
    const double range = std::min(static_cast<double>(num_rows), 0x1p21);
    multiplier_ = static_cast<std::uint64_t>(range * (std::numbers::phi - 1.0)) | 1;
    while (std::gcd(multiplier_, num_rows) != 1) multiplier_ += 2;
  }

  [[nodiscard]] std::int64_t operator()(std::uint64_t rank) const {
    const std::uint64_t product = rank * multiplier_ + offset_;
    // Barrett reduction: the quotient estimate is exact or one too small.
    const std::uint64_t quotient = wide_product(product, inverse_).high;
    const std::uint64_t remainder = product - quotient * num_rows_;
    return static_cast<std::int64_t>(remainder >= num_rows_ ? remainder - num_rows_ : remainder);
  }

 private:
  std::uint64_t num_rows_;
  std::uint64_t inverse_;
  std::uint64_t multiplier_ = 1;
  std::uint64_t offset_;
};

std::vector<double> weights_of(const std::vector<RankPiece>& pieces) {
  std::vector<double> weights;
  for (const RankPiece& piece : pieces) weights.push_back(piece.weight);
  return weights;
}

}  // namespace

struct IndexSampler::Impl {
  Impl(const Table& table, const IndexDistribution& distribution)
      : pieces(rank_pieces(distribution, table.num_embeddings)),
        choose(weights_of(pieces)),
        scatter(static_cast<std::uint64_t>(table.num_embeddings)),
        exponent(distribution.zipf_exponent),
        whole_bag(static_cast<std::int64_t>(std::floor(table.pooling_factor))),
        extra_probability(table.pooling_factor - std::floor(table.pooling_factor)) {}

  [[nodiscard]] std::uint64_t draw_rank(Random& random) const {
    for (;;) {
      const RankPiece& piece = pieces[choose(random())];
      const WideProduct product = wide_product(random(), piece.count);
      const std::uint64_t rank = piece.first + product.high;
      const std::uint64_t coin = product.low;
      if (coin <= piece.always_kept_below || is_kept(piece, rank, coin)) return rank;
    }
  }

  [[nodiscard]] bool is_kept(const RankPiece& piece, std::uint64_t rank, std::uint64_t coin) const {
    const double ratio = static_cast<double>(piece.first + 1) / static_cast<double>(rank + 1);
    return static_cast<double>(coin) * 0x1p-64 < std::pow(ratio, exponent);
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
  const Impl& impl = *impl_;
  for (std::int64_t& index : batch.indices) index = impl.scatter(impl.draw_rank(random));
}

}  // namespace neuroshard
