// Tables that cover the space.
#include "neuroshard/workload/generate/coverage_workload.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <vector>

#include "neuroshard/core/numbers/low_discrepancy.h"
#include "neuroshard/core/numbers/random.h"
#include "neuroshard/workload/generate/generated_workloads.h"
#include "neuroshard/workload/table_names.h"

namespace neuroshard {

namespace {

constexpr int kNumTables = 384;
constexpr std::int64_t kBatchSize = 4096;
/// The smallest batch that tables of one histogram bin must make sense for.
constexpr double kSmallestBatch = 64.0;

double between_logs(double low, double high, double x) { return low * std::pow(high / low, x); }

/// A few classes of rows, the hottest with the fewest; `x` spreads how uneven they are.
std::vector<AccessClass> random_classes(std::int64_t num_embeddings, double x, Random& random) {
  const std::int64_t most = std::min<std::int64_t>(num_embeddings, 2 + random.integer(0, 5));
  std::vector<AccessClass> classes;
  std::int64_t left = num_embeddings;
  double total = 0.0;
  for (std::int64_t i = 0; i < most; ++i) {
    const bool last = i + 1 == most;
    const std::int64_t spare = left - (most - i - 1);
    const auto wanted = static_cast<std::int64_t>(
        between_logs(1.0, static_cast<double>(std::max<std::int64_t>(spare, 1)), random.uniform()));
    const std::int64_t rows = last ? left : std::clamp<std::int64_t>(wanted, 1, spare);
    // Between a share by rows (even use) and a share that the number of rows does not matter for.
    const double share = std::pow(static_cast<double>(rows), 1.0 - x) * random.uniform(0.2, 1.0);
    classes.push_back({rows, share});
    total += share;
    left -= rows;
  }
  for (AccessClass& access_class : classes) access_class.access_share /= total;
  return classes;
}

/// How the rows are used: the kind by `kind`, how unevenly by `x`, both in [0, 1).
void set_use(Table& table, double kind, double x, Random& random) {
  IndexDistribution distribution;
  if (kind < 0.3 || table.num_embeddings == 1) return;  // uniform
  if (kind < 0.6) {
    distribution.zipf_exponent = 0.3 + 1.3 * x;
  } else if (kind < 0.8) {
    distribution.access_classes = random_classes(table.num_embeddings, x, random);
  } else if (kind < 0.9) {
    const double hot = 0.05 + 0.85 * x;
    distribution.access_classes = {{1, hot}, {table.num_embeddings - 1, 1.0 - hot}};
  } else {
    const double most = std::log2(std::max(table.pooling_factor * kSmallestBatch, 1.0));
    const int bins = std::min(static_cast<int>(most) + 1, kReuseBins);
    table.reuse_histogram = ReuseHistogram{};
    (*table.reuse_histogram)[static_cast<std::size_t>(x * bins)] = 1.0;
    return;
  }
  table.index_distribution = std::move(distribution);
}

}  // namespace

Workload coverage_workload(std::uint64_t seed) {
  constexpr std::uint64_t kStream = 17;
  const LowDiscrepancySequence<5> sequence(mix64(seed));
  Workload workload{.name = kCoverage,
                    .source = "generated: tables spread evenly over the whole space",
                    .accesses =
                        "differs by table: uniform, a power law of exponent 0.3 to 1.6, a few "
                        "classes of rows, one hot row, or one bin of the reuse histogram",
                    .batch_size = kBatchSize,
                    .optimizer = Optimizer::rowwise_adagrad};
  for (int t = 0; t < kNumTables; ++t) {
    Random random = Random::for_stream(mix64(seed) + kStream, static_cast<std::uint64_t>(t));
    const std::array<double, 5> x = sequence.point(t);
    Table table;
    table.num_embeddings = std::llround(between_logs(1.0, 1e9, x[0]));
    table.embedding_dim = kGeneratedEmbeddingDim;
    table.pooling_factor = between_logs(0.01, 500.0, x[1]);
    if (table.pooling_factor >= 1.0 && random.uniform() < 0.5) {
      table.pooling_factor = std::round(table.pooling_factor);
    }
    table.data_type = x[4] < 0.25 ? DataType::fp16 : DataType::fp32;
    set_use(table, x[2], x[3], random);
    workload.tables.push_back(std::move(table));
  }
  name_tables(workload.tables);
  return workload;
}

}  // namespace neuroshard
