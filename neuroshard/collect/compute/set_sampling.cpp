// Drawing sets of pieces.
#include "neuroshard/collect/compute/set_sampling.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <numeric>

#include "neuroshard/core/error.h"
#include "neuroshard/core/numbers/low_discrepancy.h"
#include "neuroshard/core/numbers/random.h"
#include "neuroshard/core/units.h"

namespace neuroshard {

namespace {

/// Pieces drawn for one sample before the memory is called too small; with coverage sampling, for
/// one piece before the passes are.
constexpr int kMaxDraws = 10'000;

// Coverage sampling.
constexpr double kLeastPassBytes = 65'536.0;
/// Of what large sets may move, what others may.
constexpr double kUsualShareOfMaxPass = 0.1;
/// Candidates for one piece; the one nearest to the bytes wanted is taken.
constexpr int kCandidates = 24;
/// A piece is near enough within this factor.
constexpr double kNearEnough = 1.5;
/// Pieces of a set differ from the mean by up to this factor.
constexpr double kUnevenness = 3.0;
constexpr double kNarrowestSlice = 1.0 / 64.0;

double between_logs(double low, double high, double x) { return low * std::pow(high / low, x); }

/// The tables that this sample is drawn from: all held-out ones or all others.
std::vector<int> sample_pool(const ComputeSamplingOptions& options, Random& random) {
  const bool from_held_out = random.uniform() < options.held_out_share;
  std::vector<int> pool;
  std::vector<int> others;
  for (std::size_t i = 0; i < options.tables.size(); ++i) {
    const bool held_out = is_held_out(options.tables[i].name, options.held_out_share);
    (held_out == from_held_out ? pool : others).push_back(static_cast<int>(i));
  }
  return pool.empty() ? others : pool;
}

std::vector<Piece> uniform_pieces(const ComputeSamplingOptions& options, Random& random) {
  const std::vector<int> pool = sample_pool(options, random);
  const std::int64_t count = random.integer(options.min_tables, options.max_tables);
  std::vector<Piece> pieces;
  std::int64_t bytes = 0;
  for (int draw = 0; draw < kMaxDraws; ++draw) {
    const Piece piece{pool[random.below(pool.size())],
                      options.dims[random.below(options.dims.size())]};
    const std::int64_t piece_bytes =
        shard_bytes(options.tables[piece.table], piece.num_columns, options.optimizer);
    if (bytes + piece_bytes > options.memory_bytes) continue;
    bytes += piece_bytes;
    pieces.push_back(piece);
    if (static_cast<std::int64_t>(pieces.size()) == count) return pieces;
  }
  if (static_cast<int>(pieces.size()) >= options.min_tables) return pieces;
  throw InputError("memory",
                   "room for " + format_count(options.min_tables, "piece") + " of the pool",
                   format_bytes(static_cast<double>(options.memory_bytes)));
}

/// Half of the slices are one of several equal ones, as cuts make them.
double random_row_share(Random& random) {
  if (random.uniform() < 0.5) return 1.0 / static_cast<double>(random.integer(2, 16));
  return std::round(between_logs(kNarrowestSlice, 1.0, random.uniform()) * 1e4) / 1e4;
}

Piece random_piece(const ComputeSamplingOptions& options, const std::vector<int>& pool,
                   Random& random) {
  // Widths are even on a logarithmic scale, whatever the list's steps.
  const auto [low, high] = std::minmax_element(options.dims.begin(), options.dims.end());
  const double wanted =
      between_logs(static_cast<double>(*low), static_cast<double>(*high) + 1.0, random.uniform());
  const auto distance = [&](std::int64_t dim) {
    return std::abs(std::log(static_cast<double>(dim) / wanted));
  };
  const std::int64_t dim =
      *std::min_element(options.dims.begin(), options.dims.end(),
                        [&](std::int64_t a, std::int64_t b) { return distance(a) < distance(b); });
  const double share = random.uniform() < options.slice_share ? random_row_share(random) : 1.0;
  return {pool[random.below(pool.size())], dim, share};
}

std::vector<Piece> coverage_pieces(const ComputeSamplingOptions& options, std::int64_t id,
                                   Random& random) {
  const std::vector<int> pool = sample_pool(options, random);
  const std::array<double, 3> x = LowDiscrepancySequence<3>(mix64(options.seed)).point(id);
  const auto count = static_cast<int>(
      between_logs(options.min_tables, static_cast<double>(options.max_tables) + 1.0, x[0]));
  const bool large = x[2] < options.large_share;
  const double wanted_bytes =
      large ? between_logs(options.usual_max_pass_bytes, options.max_pass_bytes, x[1])
            : between_logs(kLeastPassBytes, options.usual_max_pass_bytes, x[1]);
  const double most_bytes = large ? options.max_pass_bytes : options.usual_max_pass_bytes;
  std::vector<Piece> pieces;
  double left = most_bytes;
  while (static_cast<int>(pieces.size()) < count) {
    // Where few of the pool's pieces fit, none of the usual candidates may.
    const bool is_needed = static_cast<int>(pieces.size()) < options.min_tables;
    const double wanted =
        wanted_bytes / count * between_logs(1.0 / kUnevenness, kUnevenness, random.uniform());
    Piece best;
    double best_bytes = 0.0;
    double best_distance = std::numeric_limits<double>::infinity();
    const auto wants_another = [&](int draws) {
      if (is_needed && best.num_columns == 0) return draws < kMaxDraws;
      return draws < kCandidates && best_distance > std::log(kNearEnough);
    };
    for (int draw = 0; wants_another(draw); ++draw) {
      const Piece piece = random_piece(options, pool, random);
      const double bytes = pass_bytes(options.tables[piece.table], piece, options.batch_size);
      const double distance = std::abs(std::log(bytes / wanted));
      if (bytes > left || distance >= best_distance) continue;
      best = piece;
      best_bytes = bytes;
      best_distance = distance;
    }
    if (best.num_columns == 0) break;  // nothing fits any more
    left -= best_bytes;
    pieces.push_back(best);
  }
  if (static_cast<int>(pieces.size()) >= options.min_tables) return pieces;
  throw InputError("max_pass_bytes",
                   "room for " + format_count(options.min_tables, "piece") + " of the pool",
                   format_bytes(most_bytes));
}

}  // namespace

std::vector<std::int64_t> widths_of_pieces() {
  std::vector<std::int64_t> widths;
  for (std::int64_t width = 4; width <= 128; width += 4) widths.push_back(width);
  return widths;
}

void set_max_pass(ComputeSamplingOptions& options, std::int64_t max_pass_bytes) {
  const auto bytes = static_cast<double>(max_pass_bytes);
  options.max_pass_bytes = bytes;
  options.usual_max_pass_bytes = kUsualShareOfMaxPass * bytes;
  if (options.usual_max_pass_bytes < kLeastPassBytes) {
    throw InputError("--max-pass", "at least 640 KiB", format_bytes(bytes));
  }
}

void validate(const ComputeSamplingOptions& options) {
  const auto require = [](bool ok, const char* place, const char* expected, std::int64_t actual) {
    if (!ok) throw InputError(place, expected, fmt::format("{}", actual));
  };
  const auto require_share = [](double share, const char* place) {
    if (!(share >= 0.0 && share < 1.0)) {
      throw InputError(place, "a share from 0 to below 1", fmt::format("{}", share));
    }
  };
  require(!options.tables.empty(), "workload", "at least one table", 0);
  require(!options.dims.empty(), "dims", "at least one number of columns", 0);
  for (const std::int64_t dim : options.dims) {
    require(dim >= 1 && dim <= kMaxEmbeddingDim, "dims", "numbers of columns of at least 1", dim);
  }
  require_share(options.held_out_share, "held_out");
  require(options.min_tables >= 1, "min_tables", "at least 1", options.min_tables);
  require(options.max_tables >= options.min_tables, "max_tables", "at least min_tables",
          options.max_tables);
  require(options.batch_size >= 1 && options.batch_size <= kMaxBatchSize, "batch_size",
          "an integer between 1 and 2^30", options.batch_size);
  require(options.in_flight >= 1, "in_flight", "at least 1", options.in_flight);
  require(options.candidates >= 1, "candidates", "at least 1", options.candidates);
  require(options.candidates == 1 || options.interest, "candidates", "1 where no interest is given",
          options.candidates);
  if (options.sampling == SetSampling::given) {
    require(options.given != nullptr, "given", "a sequence of sets", 0);
    require(options.candidates == 1, "candidates", "1 where sets are given", options.candidates);
  }
  if (options.sampling != SetSampling::coverage) return;
  require_share(options.slice_share, "slices");
  if (!(options.large_share >= 0.0 && options.large_share <= 1.0)) {
    throw InputError("large_share", "a share from 0 to 1", fmt::format("{}", options.large_share));
  }
  if (!(options.max_pass_bytes >= 2.0 * kLeastPassBytes &&
        options.usual_max_pass_bytes <= options.max_pass_bytes)) {
    throw InputError("max_pass_bytes", "at least 128 KiB", format_bytes(options.max_pass_bytes));
  }
  if (!(options.usual_max_pass_bytes >= kLeastPassBytes)) {
    throw InputError("usual_max_pass_bytes", "at least 64 KiB",
                     format_bytes(options.usual_max_pass_bytes));
  }
}

bool is_held_out(const std::string& table_name, double held_out_share) {
  return static_cast<double>(hash_of_name(table_name) >> 11) * 0x1p-53 < held_out_share;
}

double pass_bytes(const Table& table, const Piece& piece, std::int64_t batch_size) {
  constexpr double kLineBytes = 64.0;
  const auto batch = static_cast<double>(batch_size);
  const auto columns = static_cast<double>(piece.num_columns);
  const double row_bytes = columns * static_cast<double>(element_bytes(table.data_type));
  const double lookups = batch * table.pooling_factor * piece.row_share;
  return lookups * (std::ceil(row_bytes / kLineBytes) * kLineBytes + 8.0) +
         batch * (columns * 4.0 + 8.0);
}

namespace {

/// Set `number` of the sequence of all sets that are drawn.
std::vector<Piece> drawn_pieces(const ComputeSamplingOptions& options, std::int64_t number) {
  // Streams of the generator alternate: the draws for a sample's set must not shift those for its
  // batches, which have the odd ones.
  Random random = Random::for_stream(options.seed, 2 * static_cast<std::uint64_t>(number));
  if (options.sampling == SetSampling::uniform) return uniform_pieces(options, random);
  return coverage_pieces(options, number, random);
}

}  // namespace

std::vector<Piece> sample_pieces(const ComputeSamplingOptions& options, std::int64_t id) {
  if (options.sampling == SetSampling::given) return options.given(id);
  if (options.candidates == 1) return drawn_pieces(options, id);
  std::vector<Piece> best;
  double most = -std::numeric_limits<double>::infinity();
  for (int candidate = 0; candidate < options.candidates; ++candidate) {
    std::vector<Piece> pieces = drawn_pieces(options, id * options.candidates + candidate);
    const double interest = options.interest(pieces);
    if (interest <= most) continue;
    most = interest;
    best = std::move(pieces);
  }
  return best;
}

}  // namespace neuroshard
