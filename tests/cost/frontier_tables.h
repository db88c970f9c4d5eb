// Random tables and tasks from everywhere in the task format, its extremes included: plain loops
// over them take seconds where generators that shrink take minutes.
#pragma once

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "neuroshard/core/numbers/random.h"
#include "neuroshard/core/piece.h"
#include "neuroshard/core/sharding_plan.h"
#include "neuroshard/core/task.h"
#include "neuroshard/cost/compute/compute_cost_model.h"
#include "neuroshard/workload/reuse/access_by_row.h"

namespace neuroshard::testing_frontier {

/// Uniform on a logarithmic scale; one of twenty is an end of the range.
inline double spread(double low, double high, Random& random) {
  const double x = random.uniform();
  if (x < 0.025) return low;
  if (x < 0.05) return high;
  return low * std::pow(high / low, random.uniform());
}

inline std::int64_t spread_integer(std::int64_t low, std::int64_t high, Random& random) {
  const double value = spread(static_cast<double>(low), static_cast<double>(high), random);
  return std::clamp<std::int64_t>(std::llround(value), low, high);
}

inline std::vector<AccessClass> random_classes(std::int64_t num_embeddings, Random& random) {
  std::vector<AccessClass> classes;
  std::int64_t left = num_embeddings;
  double total = 0.0;
  for (std::int64_t i = random.integer(1, 6); i > 0 && left > 0; --i) {
    const std::int64_t rows = spread_integer(1, left, random);
    const double share = spread(1e-6, 1.0, random);
    classes.push_back({rows, share});
    total += share;
    left -= rows;
  }
  for (AccessClass& access_class : classes) access_class.access_share /= total;
  return classes;
}

inline ReuseHistogram random_histogram(Random& random) {
  ReuseHistogram histogram{};
  double total = 0.0;
  const std::int64_t bins = random.integer(1, 5);
  for (std::int64_t i = 0; i < bins; ++i) {
    const double share = spread(1e-4, 1.0, random);
    histogram[random.below(kReuseBins)] += share;
    total += share;
  }
  for (double& share : histogram) share /= total;
  return histogram;
}

/// The ways in which a table says how its rows are used.
enum class RowUse { uniform, zipf, classes, one_bin, histogram };
inline constexpr int kRowUses = 5;

inline Table random_table(RowUse use, Random& random) {
  Table table;
  table.name = "t";
  table.num_embeddings = spread_integer(1, kMaxEmbeddings, random);
  table.embedding_dim = spread_integer(1, kMaxEmbeddingDim, random);
  if (random.below(2) == 0) table.embedding_dim = (table.embedding_dim + 3) / 4 * 4;
  table.pooling_factor = spread(1e-6, kMaxPoolingFactor, random);
  if (random.below(100) == 0) table.pooling_factor = 1e-12;
  table.data_type = random.below(3) == 0 ? DataType::fp16 : DataType::fp32;
  table.num_features = random.below(10) == 0 ? random.integer(2, 1024) : 1;
  IndexDistribution distribution;
  switch (use) {
    case RowUse::uniform:
      return table;
    case RowUse::zipf:
      distribution.zipf_exponent =
          random.below(4) == 0 ? spread(1e-3, 10.0, random) : random.uniform(0.1, 1.8);
      break;
    case RowUse::classes:
      distribution.access_classes = random_classes(table.num_embeddings, random);
      break;
    case RowUse::one_bin:
      table.reuse_histogram = ReuseHistogram{};
      (*table.reuse_histogram)[random.below(kReuseBins)] = 1.0;
      return table;
    case RowUse::histogram:
      table.reuse_histogram = random_histogram(random);
      return table;
  }
  table.index_distribution = std::move(distribution);
  return table;
}

inline RowUse random_use(Random& random) {
  // A power law takes longest to compute.
  const double x = random.uniform();
  if (x < 0.25) return RowUse::uniform;
  if (x < 0.35) return RowUse::zipf;
  if (x < 0.65) return RowUse::classes;
  return x < 0.8 ? RowUse::one_bin : RowUse::histogram;
}

/// A curve of accesses over the rows: convex, concave or neither, with steep and flat segments.
inline std::vector<RowAccessPoint> random_row_access(Random& random) {
  std::vector<double> rows{1.0};
  std::vector<double> accesses{1.0};
  for (std::int64_t i = random.integer(0, 4); i > 0; --i) {
    rows.push_back(spread(1e-9, 1.0, random));
    accesses.push_back(random.below(5) == 0 ? 0.0 : spread(1e-9, 1.0, random));
  }
  std::sort(rows.begin(), rows.end());
  std::sort(accesses.begin(), accesses.end());
  std::vector<RowAccessPoint> points;
  for (std::size_t i = 0; i < rows.size(); ++i) {
    if (points.empty() || rows[i] > points.back().row_share) {
      points.push_back({rows[i], accesses[i]});
    }
  }
  points.back().access_share = 1.0;
  return points;
}

/// On one device or several; some tables say which rows are used most. Most have few tables, for
/// speed; some have up to 60.
inline Task random_task(Random& random) {
  Task task;
  task.batch_size = spread_integer(1, kMaxBatchSize, random);
  task.optimizer = random.below(2) == 0 ? Optimizer::sgd : Optimizer::rowwise_adagrad;
  const std::uint64_t size = random.below(200);
  const std::int64_t tables = size == 0   ? spread_integer(5, 60, random)
                              : size < 50 ? random.integer(2, 4)
                                          : 1;
  for (std::int64_t t = 0; t < tables; ++t) {
    task.tables.push_back(random_table(random_use(random), random));
    Table& table = task.tables.back();
    table.name = fmt::format("t{}", t);
    const std::uint64_t order = random.below(10);
    if (order == 0) table.row_order = RowOrder::by_frequency;
    if (order == 1) table.row_access = random_row_access(random);
  }
  const bool has_several = random.below(4) == 0;
  const int devices = has_several ? static_cast<int>(spread_integer(2, 1024, random)) : 1;
  task.topology.world_size = task.topology.local_world_size = devices;
  task.topology.memory_bytes.assign(devices, std::int64_t{1} << 60);
  return task;
}

/// Rows of one slice, any of the table's.
inline Shard random_slice(const Task& task, int table, Random& random) {
  const std::int64_t rows = task.tables[table].num_embeddings;
  Shard shard;
  shard.table = table;
  shard.num_columns = task.tables[table].embedding_dim;
  shard.row_offset = random.below(3) == 0 ? 0 : spread_integer(1, rows, random) - 1;
  shard.num_rows = spread_integer(1, rows - shard.row_offset, random);
  return shard;
}

/// Columns of one piece that the table may be cut into, or all of them.
inline std::int64_t random_width(const Table& table, Random& random) {
  if (!can_cut(table, table.embedding_dim) || random.below(3) == 0) return table.embedding_dim;
  const std::int64_t narrowest = narrowest_cut(table) / kColumnGranularity;
  const std::int64_t widest = table.embedding_dim / kColumnGranularity - narrowest;
  return kColumnGranularity * spread_integer(narrowest, widest, random);
}

inline TableStatistics statistics_of(const Table& table, std::int64_t batch_size) {
  Task task;
  task.batch_size = batch_size;
  task.tables = {table};
  return table_statistics(task).front();
}

/// Of a slice of the table's rows; `rows.table` is not used.
inline TableStatistics statistics_of(const Table& table, std::int64_t batch_size,
                                     const Shard& rows) {
  Task task;
  task.tables = {table};
  Shard shard = rows;
  shard.table = 0;
  const Piece piece = piece_of(task, shard);
  const TableStatistics whole = statistics_of(table, batch_size);
  if (piece.num_rows == 0) return whole.slice(piece.row_share, batch_size);
  return whole.slice(AccessByRow(table, batch_size).range(piece.row_offset, piece.num_rows));
}

inline std::string describe(const Table& table, std::int64_t batch_size, std::int64_t columns) {
  std::string use = "uniform";
  if (table.reuse_histogram) {
    use = "histogram";
    for (int bin = 0; bin < kReuseBins; ++bin) {
      const double share = (*table.reuse_histogram)[static_cast<std::size_t>(bin)];
      if (share > 0.0) use += fmt::format(" {}: {}", bin, share);
    }
  } else if (table.index_distribution && table.index_distribution->zipf_exponent > 0.0) {
    use = fmt::format("zipf {}", table.index_distribution->zipf_exponent);
  } else if (table.index_distribution) {
    use = "classes";
    for (const auto& [rows, share] : table.index_distribution->access_classes) {
      use += fmt::format(" {}: {}", rows, share);
    }
  }
  if (table.row_order == RowOrder::by_frequency) use += ", by frequency";
  for (const RowAccessPoint& point : table.row_access) {
    use += fmt::format(", accesses to {}: {}", point.row_share, point.access_share);
  }
  return fmt::format("{} rows, {} of {} columns, {}, pooling {}, {} features, batch {}, {}",
                     table.num_embeddings, columns, table.embedding_dim, to_string(table.data_type),
                     table.pooling_factor, table.num_features, batch_size, use);
}

/// The largest relative fall of a quantity that should not fall, and where it was.
class LargestFall {
 public:
  /// `slack`: absolute, allowed in addition.
  template <typename Describe>
  void add(double before, double after, double slack, const Describe& describe) {
    const double fall = (before - slack - after) / std::max(std::abs(before), 1e-300);
    if (!(fall > fall_) && !std::isnan(fall)) return;
    fall_ = std::isnan(fall) ? 1e300 : fall;
    where_ = fmt::format("from {} to {}: {}", before, after, describe());
  }
  [[nodiscard]] double fall() const { return fall_; }
  [[nodiscard]] const std::string& where() const { return where_; }

 private:
  double fall_ = 0.0;
  std::string where_;
};

}  // namespace neuroshard::testing_frontier
