// Dealing out a data set's rows, grouped by rate of access, to seeded, heterogeneous tables.
//
// The rows of all tables together have the published aggregates (rate_spectrum.h). They are dealt
// out whole, class by class, so the aggregates do not depend on how: that is where the seed comes
// in. Each table draws how many lookups it wants and how hot it is; proportional fitting finds
// the table x rate matrix of lookups nearest to these wishes; rounding makes it whole rows; and
// the pooling factor follows from the rows that a table got.
#include "neuroshard/workload/generate/generated_workloads.h"

#include <algorithm>
#include <cassert>
#include <cmath>

#include "neuroshard/core/numbers/random.h"
#include "neuroshard/workload/generate/proportional_fitting.h"
#include "neuroshard/workload/generate/rate_spectrum.h"
#include "neuroshard/workload/published_workloads.h"
#include "neuroshard/workload/table_names.h"

namespace neuroshard {

namespace {

using Eigen::Index;

/// Pooling factors that tables ask for: log-normal with this spread, within these limits.
constexpr double kPoolingSpread = 1.6;
constexpr double kMinPooling = 0.25;
constexpr double kMaxPooling = 200.0;

/// A row asks for at most this share of a table's lookups.
constexpr double kMaxShareOfRow = 0.25;

/// Hotness of tables: mean and spread, over tables, of the natural logarithm of the rate that a
/// table prefers, and the range of the width of that preference.
constexpr double kHotnessMean = 3.0;
constexpr double kHotnessSpread = 2.5;
constexpr double kMinHotnessWidth = 1.0;
constexpr double kMaxHotnessWidth = 2.5;

/// Tables have rows that hardly any batch touches: the number of rows is up to this many times
/// that of the accessed ones, at least kMinRows, and above kManyRows only if they are accessed.
constexpr double kMinGrowth = 1.05;
constexpr double kMaxGrowth = 20.0;
constexpr std::int64_t kMinRows = 500;
constexpr double kManyRows = 6e7;

struct Wish {
  double lookups = 0.0;  ///< per batch
  double hotness = 0.0;  ///< natural logarithm of a rate
  double hotness_width = 0.0;
};

double mean_of_clamped(const std::vector<double>& values, double scale) {
  double sum = 0.0;
  for (const double value : values) sum += std::clamp(value * scale, kMinPooling, kMaxPooling);
  return sum / static_cast<double>(values.size());
}

/// Log-normal pooling factors within the limits, scaled to the published mean by bisection.
std::vector<double> draw_pooling_factors(const LocalityFacts& facts, Random& random) {
  std::vector<double> factors;
  for (int i = 0; i < facts.num_tables; ++i) {
    factors.push_back(std::exp(kPoolingSpread * random.normal()));
  }
  double low = 0.0;
  double high = 1e6;
  for (int i = 0; i < 100; ++i) {
    const double middle = 0.5 * (low + high);
    (mean_of_clamped(factors, middle) < facts.mean_pooling_factor ? low : high) = middle;
  }
  for (double& factor : factors) factor = std::clamp(factor * high, kMinPooling, kMaxPooling);
  return factors;
}

std::vector<Wish> draw_wishes(const LocalityFacts& facts, Random& random) {
  std::vector<Wish> wishes;
  for (const double pooling_factor : draw_pooling_factors(facts, random)) {
    wishes.push_back({.lookups = pooling_factor * static_cast<double>(facts.batch_size),
                      .hotness = kHotnessMean + kHotnessSpread * random.normal(),
                      .hotness_width = random.uniform(kMinHotnessWidth, kMaxHotnessWidth)});
  }
  return wishes;
}

/// Element (t, c): lookups of table t in rows of rate class c. Tables with few lookups get no rows
/// that would take most of them.
Eigen::MatrixXd fit_lookups(const std::vector<Wish>& wishes,
                            const std::vector<RateClass>& spectrum) {
  const auto num_tables = static_cast<Index>(wishes.size());
  const auto num_classes = static_cast<Index>(spectrum.size());
  Eigen::VectorXd table_sums(num_tables);
  Eigen::VectorXd class_sums(num_classes);
  for (Index c = 0; c < num_classes; ++c) class_sums[c] = spectrum[c].rate * spectrum[c].rows;
  Eigen::MatrixXd prior(num_tables, num_classes);
  for (Index t = 0; t < num_tables; ++t) {
    const Wish& wish = wishes[t];
    table_sums[t] = wish.lookups;
    for (Index c = 0; c < num_classes; ++c) {
      const double distance = (std::log(spectrum[c].rate) - wish.hotness) / wish.hotness_width;
      const bool fits = spectrum[c].rate <= kMaxShareOfRow * wish.lookups;
      prior(t, c) = fits ? wish.lookups * class_sums[c] * std::exp(-0.5 * distance * distance) : 0;
    }
  }
  table_sums *= class_sums.sum() / table_sums.sum();
  return proportional_fit(std::move(prior), table_sums, class_sums);
}

/// Whole rows of one class for each table: fractions are rounded so that the sum over tables is
/// exactly the class's, by differences of the rounded running sum (systematic sampling).
std::vector<std::int64_t> deal_rows(const Eigen::VectorXd& lookups, const RateClass& rate_class,
                                    Random& random) {
  std::vector<std::int64_t> rows;
  const double shift = random.uniform();
  double running = 0.0;
  auto dealt = static_cast<std::int64_t>(0);
  for (Index t = 0; t < lookups.size(); ++t) {
    running += lookups[t] / rate_class.rate;
    const double end = t + 1 == lookups.size() ? rate_class.rows : running;
    const auto up_to = std::max(dealt, static_cast<std::int64_t>(std::floor(end + shift)));
    rows.push_back(up_to - dealt);
    dealt = up_to;
  }
  return rows;
}

/// The rows of a table; `rows[c]` of class c.
Table make_table(const std::vector<RateClass>& spectrum, const std::vector<std::int64_t>& rows,
                 std::int64_t batch_size, Random& random) {
  double lookups = 0.0;
  double accessed = 0.0;
  for (std::size_t c = 0; c < rows.size(); ++c) {
    accessed += static_cast<double>(rows[c]);
    lookups += static_cast<double>(rows[c]) * spectrum[c].rate;
  }
  // A table asks for lookups worth four rows of the hottest class open to it, and its wish is
  // spread over dozens of classes, so it gets rows: in 500 seeds the lowest pooling factor was
  // 0.16.
  assert(lookups > 0.0);
  IndexDistribution distribution;
  for (std::size_t c = rows.size(); c-- > 0;) {  // hottest first
    if (rows[c] == 0) continue;
    const double share = static_cast<double>(rows[c]) * spectrum[c].rate / lookups;
    distribution.access_classes.push_back({rows[c], share});
  }
  const double growth = std::exp(random.uniform(std::log(kMinGrowth), std::log(kMaxGrowth)));
  const double grown = std::max(accessed, std::min(accessed * growth, kManyRows));
  Table table;
  table.num_embeddings =
      std::max(static_cast<std::int64_t>(grown), random.integer(kMinRows, 4 * kMinRows));
  table.embedding_dim = kGeneratedEmbeddingDim;
  table.pooling_factor = lookups / static_cast<double>(batch_size);
  table.index_distribution = std::move(distribution);
  return table;
}

std::vector<RateClass> whole_spectrum(const LocalityFacts& facts) {
  std::vector<RateClass> spectrum = rate_spectrum(facts);
  for (RateClass& rate_class : spectrum) rate_class.rows = std::round(rate_class.rows);
  std::erase_if(spectrum, [](const RateClass& rate_class) { return rate_class.rows < 1.0; });
  return spectrum;
}

std::vector<Table> generate_tables(const LocalityFacts& facts, Random& random) {
  const std::vector<RateClass> spectrum = whole_spectrum(facts);
  const Eigen::MatrixXd lookups = fit_lookups(draw_wishes(facts, random), spectrum);
  const auto num_tables = static_cast<std::size_t>(facts.num_tables);
  std::vector<std::vector<std::int64_t>> rows(num_tables);  // [table][class]
  for (std::size_t c = 0; c < spectrum.size(); ++c) {
    const auto dealt = deal_rows(lookups.col(static_cast<Index>(c)), spectrum[c], random);
    for (std::size_t t = 0; t < num_tables; ++t) rows[t].push_back(dealt[t]);
  }
  std::vector<Table> tables;
  for (std::size_t t = 0; t < num_tables; ++t) {
    tables.push_back(make_table(spectrum, rows[t], facts.batch_size, random));
  }
  name_tables(tables);
  return tables;
}

Workload generate(const std::string& name, std::size_t data_set, std::uint64_t seed) {
  const LocalityFacts facts = published_locality().at(data_set);
  Random random = Random::for_stream(seed, data_set);
  return {.name = name,
          .source = "generated, with the aggregate locality of " + facts.name +
                    " (facebookresearch/dlrm_datasets)",
          .accesses =
              "access classes of each table, generated so that together they have the "
              "published aggregates",
          .batch_size = facts.batch_size,
          .optimizer = Optimizer::sgd,
          .tables = generate_tables(facts, random)};
}

}  // namespace

Workload dlrm_2021(std::uint64_t seed) { return generate(kDlrm2021, 0, seed); }
Workload dlrm_2022(std::uint64_t seed) { return generate(kDlrm2022, 1, seed); }

}  // namespace neuroshard
