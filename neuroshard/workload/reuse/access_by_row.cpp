// Segments of rows: by popularity, or with the measured shares of the accesses.
#include "neuroshard/workload/reuse/access_by_row.h"

#include <algorithm>
#include <cassert>
#include <cmath>
#include <numeric>
#include <utility>

#include "neuroshard/workload/reuse/poisson_reuse.h"
#include "neuroshard/workload/reuse/zipf_reuse.h"

namespace neuroshard {

namespace {

/// Rates within a class of a power law's rows differ by up to this where every class is a segment
/// (errors grow with its square, and cuts fall between), and where segments are mixtures.
constexpr double kFallOfOrdered = 1.03;
constexpr double kFallOfMixed = 1.1;

/// Last rank of a class by its first: a flat power law still has classes enough to be cut between,
/// and one so steep that nothing hits its tail not too many.
constexpr double kLeastRankRatio = 1.02;
constexpr double kMostRankRatio = 2.0;

/// Access classes of a table may be as many as its rows; every segment of a measured curve has a
/// share of each.
constexpr std::size_t kMostClassesOfMixed = 256;

/// Fewer lookups than this in a batch are taken as this many, so that shares of them are numbers.
constexpr double kFewestLookups = 0x1p-20;

/// Of a row: a smaller part is rounding.
constexpr double kPartOfRow = 1e-9;

double rows_of(const std::vector<RateClass>& classes) {
  double rows = 0.0;
  for (const RateClass& rate_class : classes) rows += rate_class.rows;
  return rows;
}

void sort_by_rate(std::vector<RateClass>& classes) {
  std::stable_sort(classes.begin(), classes.end(),
                   [](const RateClass& a, const RateClass& b) { return a.rate > b.rate; });
}

std::vector<RateClass> zipf_classes(double exponent, std::int64_t num_embeddings, double hits,
                                    double fall) {
  const double ratio = std::clamp(std::pow(fall, 1.0 / exponent), kLeastRankRatio, kMostRankRatio);
  std::vector<RateClass> classes;
  double weight = 0.0;
  for (std::int64_t first = 0; first < num_embeddings;) {
    const double longest = static_cast<double>(first + 1) * (ratio - 1.0);
    const std::int64_t count =
        std::clamp<std::int64_t>(static_cast<std::int64_t>(longest), 1, num_embeddings - first);
    const double of_class = zipf_range_weight(exponent, first, count);
    weight += of_class;
    classes.push_back({of_class / static_cast<double>(count), static_cast<double>(count)});
    first += count;
  }
  for (RateClass& rate_class : classes) rate_class.rate *= hits / weight;
  return classes;
}

/// The pool's classes with, of each, the rows that a segment takes; both have the same classes.
struct Taken {
  std::vector<RateClass> rows;
  std::vector<RateClass> left;
};

/// Takes `num_rows` rows with `hits` hits out of the pool: a mixture of its hottest rows and of an
/// even share of all, such that the hits are right where that is possible.
Taken take(const std::vector<RateClass>& pool, double num_rows, double hits) {
  const double part = std::min(num_rows / rows_of(pool), 1.0);
  const double even_hits = hits_of(pool) * part;
  std::vector<double> hottest;
  double top_hits = 0.0;
  double missing = num_rows;
  for (const RateClass& rate_class : pool) {
    hottest.push_back(std::min(rate_class.rows, missing));
    top_hits += hottest.back() * rate_class.rate;
    missing -= hottest.back();
  }
  const double sorted = top_hits > even_hits
                            ? std::clamp((hits - even_hits) / (top_hits - even_hits), 0.0, 1.0)
                            : 0.0;
  Taken taken{pool, pool};
  for (std::size_t i = 0; i < pool.size(); ++i) {
    taken.rows[i].rows = sorted * hottest[i] + (1.0 - sorted) * part * pool[i].rows;
    taken.left[i].rows = std::max(pool[i].rows - taken.rows[i].rows, 0.0);
  }
  return taken;
}

using Segment = AccessByRow::Segment;

/// Between the points of the measured curve.
std::vector<Segment> measured_segments(const Table& table, double hits) {
  const auto rows = static_cast<double>(table.num_embeddings);
  std::vector<Segment> segments;
  RowAccessPoint before;
  for (const RowAccessPoint& point : table.row_access) {
    segments.push_back({before.row_share * rows, (point.row_share - before.row_share) * rows,
                        (point.access_share - before.access_share) * hits});
    before = point;
  }
  return segments;
}

double density(const Segment& segment) { return segment.hits / segment.num_rows; }

/// Distributes a table's rows over the segments: the one with the most accesses a row takes first.
void distribute(std::vector<RateClass> pool, std::vector<Segment>& segments) {
  const double rows = rows_of(pool);
  std::vector<std::size_t> by_density(segments.size());
  std::iota(by_density.begin(), by_density.end(), std::size_t{0});
  std::stable_sort(by_density.begin(), by_density.end(), [&](std::size_t a, std::size_t b) {
    return density(segments[a]) > density(segments[b]);
  });
  for (const std::size_t i : by_density) {
    Segment& segment = segments[i];
    Taken taken = take(pool, segment.num_rows, segment.hits);
    pool = std::move(taken.left);
    segment.rows = std::move(taken.rows);
    std::erase_if(segment.rows,
                  [](const RateClass& rate_class) { return rate_class.rows < kPartOfRow; });
    std::erase_if(pool, [](const RateClass& rate_class) { return rate_class.rows < kPartOfRow; });
    // The measured accesses are right, whatever the histogram or distribution says.
    const double found = hits_of(segment.rows);
    if (found > 0.0) {
      for (RateClass& rate_class : segment.rows) rate_class.rate *= segment.hits / found;
    } else {
      segment.rows = {{density(segment), segment.num_rows}};
    }
    if (pool.empty()) pool = {{0.0, rows}};  // rounding; the last segment has taken all rows
  }
}

ReuseStatistics reuse_of(const std::vector<RateClass>& classes) {
  ReuseStatistics result;
  for (const RateClass& rate_class : classes) {
    const PoissonReuse reuse = poisson_reuse(rate_class.rate);
    add_rows(result, rate_class.rows, reuse);
    result.num_indices += rate_class.rows * rate_class.rate;
    result.distinct_rows += rate_class.rows * reuse.hit;
  }
  return result;
}

/// Neighbours whose rates differ by up to a factor of `fall` as one class; `classes` by falling
/// rate.
std::vector<RateClass> joined_neighbours(const std::vector<RateClass>& classes, double fall) {
  std::vector<RateClass> joined;
  double first_rate = 0.0;
  for (const RateClass& rate_class : classes) {
    if (joined.empty() || rate_class.rate * fall < first_rate) {
      joined.push_back(rate_class);
      first_rate = rate_class.rate;
      continue;
    }
    RateClass& last = joined.back();
    const double rows = last.rows + rate_class.rows;
    last.rate = (last.rate * last.rows + rate_class.rate * rate_class.rows) / rows;
    last.rows = rows;
  }
  return joined;
}

std::vector<Segment> segments_of(const Table& table, std::int64_t batch_size) {
  assert(has_row_order(table));
  std::vector<Segment> segments;
  if (table.row_access.empty()) {
    double first = 0.0;
    for (const RateClass& rows : rows_by_popularity(table, batch_size, kFallOfOrdered)) {
      segments.push_back({first, rows.rows, rows.rate * rows.rows, {rows}});
      first += rows.rows;
    }
  } else {
    std::vector<RateClass> pool = rows_by_popularity(table, batch_size, kFallOfMixed);
    if (pool.size() > kMostClassesOfMixed) pool = joined_neighbours(pool, kFallOfMixed);
    segments = measured_segments(table, hits_of(pool));
    if (table.index_distribution || table.reuse_histogram) {
      distribute(std::move(pool), segments);
    } else {
      for (Segment& segment : segments) segment.rows = {{density(segment), segment.num_rows}};
    }
  }
  for (Segment& segment : segments) segment.reuse = reuse_of(segment.rows);
  return segments;
}

RowWeights hits_by_row(const std::vector<Segment>& segments, std::int64_t num_rows) {
  std::vector<RowWeights::Segment> hits;
  for (const Segment& segment : segments) {
    hits.push_back({segment.first_row, segment.num_rows, segment.hits});
  }
  return {std::move(hits), num_rows};
}

}  // namespace

std::vector<RateClass> rows_by_popularity(const Table& table, std::int64_t batch_size,
                                          double fall) {
  const double hits =
      std::max(static_cast<double>(batch_size) * table.pooling_factor, kFewestLookups);
  const auto rows = static_cast<double>(table.num_embeddings);
  const IndexDistribution distribution = resolved_distribution(table, batch_size);
  if (distribution.access_classes.empty()) {
    if (distribution.zipf_exponent > 0.0) {
      return zipf_classes(distribution.zipf_exponent, table.num_embeddings, hits, fall);
    }
    return {{hits / rows, rows}};
  }
  double total_share = 0.0;  // 1 up to the rounding that input files are allowed
  for (const AccessClass& access_class : distribution.access_classes) {
    total_share += access_class.access_share;
  }
  std::vector<RateClass> classes;
  for (const AccessClass& access_class : distribution.access_classes) {
    const auto of_class = static_cast<double>(access_class.num_embeddings);
    if (of_class <= 0.0) continue;
    classes.push_back({hits * access_class.access_share / total_share / of_class, of_class});
  }
  sort_by_rate(classes);
  const double unused = rows - rows_of(classes);
  if (unused > 0.0) classes.push_back({0.0, unused});
  return classes;
}

AccessByRow::AccessByRow(const Table& table, std::int64_t batch_size)
    : num_embeddings_(table.num_embeddings),
      segments_(segments_of(table, batch_size)),
      hits_(hits_by_row(segments_, table.num_embeddings)) {}

std::vector<AccessByRow::Overlap> AccessByRow::overlaps_of(std::int64_t first,
                                                           std::int64_t count) const {
  assert(first >= 0 && count >= 1 && count <= num_embeddings_ - first);
  const auto begin = static_cast<double>(first);
  const auto end = static_cast<double>(first + count);
  auto segment = std::upper_bound(
      segments_.begin(), segments_.end(), begin,
      [](double row, const Segment& candidate) { return row < candidate.first_row; });
  std::vector<Overlap> overlaps;
  for (segment -= segment == segments_.begin() ? 0 : 1;
       segment != segments_.end() && segment->first_row < end; ++segment) {
    const double rows =
        std::min(end, segment->first_row + segment->num_rows) - std::max(begin, segment->first_row);
    if (rows > 0.0) overlaps.push_back({&*segment, rows / segment->num_rows});
  }
  return overlaps;
}

std::vector<RateClass> AccessByRow::rows(std::int64_t first, std::int64_t count) const {
  std::vector<RateClass> result;
  for (const auto& [segment, part] : overlaps_of(first, count)) {
    for (const RateClass& rows : segment->rows) result.push_back({rows.rate, rows.rows * part});
  }
  sort_by_rate(result);
  return result;
}

/// Put together from fractions of rows if need be: the segments' classes are merged by falling
/// rate, as far as one row reaches. A row that is spread over all segments is a part of each.
double AccessByRow::hottest_hits(const std::vector<Overlap>& overlaps) {
  struct Rest {
    const RateClass* next;
    const RateClass* end;
    double part;
  };
  const auto cooler = [](const Rest& a, const Rest& b) { return a.next->rate < b.next->rate; };
  std::vector<Rest> rests;
  rests.reserve(overlaps.size());
  for (const auto& [segment, part] : overlaps) {
    const std::vector<RateClass>& rows = segment->rows;
    rests.push_back({rows.data(), rows.data() + rows.size(), part});
  }
  std::make_heap(rests.begin(), rests.end(), cooler);
  double missing = 1.0;
  double hits = 0.0;
  while (!rests.empty() && missing > 0.0) {
    std::pop_heap(rests.begin(), rests.end(), cooler);
    Rest& hottest = rests.back();
    const double taken = std::min(hottest.next->rows * hottest.part, missing);
    hits += taken * hottest.next->rate;
    missing -= taken;
    ++hottest.next;
    if (hottest.next == hottest.end) {
      rests.pop_back();
    } else {
      std::push_heap(rests.begin(), rests.end(), cooler);
    }
  }
  return hits;
}

RangeAccess AccessByRow::range(std::int64_t first, std::int64_t count) const {
  RangeAccess result;
  result.num_rows = count;
  const std::vector<Overlap> overlaps = overlaps_of(first, count);
  for (const auto& [segment, part] : overlaps) {
    result.reuse.num_indices += part * segment->hits;
    result.reuse.distinct_rows += part * segment->reuse.distinct_rows;
    for (int bin = 0; bin < kReuseBins; ++bin) {
      result.reuse.rows[bin] += part * segment->reuse.rows[bin];
      result.reuse.indices[bin] += part * segment->reuse.indices[bin];
    }
  }
  result.share = result.reuse.num_indices / hits_.total();
  result.hottest_row_hits = hottest_hits(overlaps);
  return result;
}

}  // namespace neuroshard
