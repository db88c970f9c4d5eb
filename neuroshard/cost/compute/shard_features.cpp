// Features of a piece of a table.
#include "neuroshard/cost/compute/shard_features.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cassert>
#include <cmath>
#include <numeric>

#include "neuroshard/core/error.h"

namespace neuroshard {

namespace {

/// Mean hits of a row in each reuse bin, taken as the middle of the bin; of the open last bin,
/// 1.5 times its lower edge.
constexpr std::array<double, kReuseBins> kHitsInBin = [] {
  std::array<double, kReuseBins> hits{1.0, 2.0};
  double low = 2.0;  // bin i holds (2^(i-1), 2^i]
  for (int bin = 2; bin < kReuseBins; ++bin, low *= 2.0) hits[bin] = 1.5 * low + 0.5;
  return hits;
}();

/// Row pieces up to which a cache of each size would hold a piece's hottest rows.
constexpr std::array<double, 3> kCacheBytes{0x1p18, 0x1p21, 0x1p25};  // 256 KiB, 2 MiB, 32 MiB

constexpr std::int64_t kLineBytes = 64;
constexpr double kVectorFloats = 16.0;  // the widest vectors in use are as long as a cache line

double log2_of(double value) { return std::log2(std::max(value, 1e-6)); }

/// Mean cache lines that a row touches: rows lie one after the other from the start of a line, so a
/// row starts, equally often, at each multiple of g = gcd(row bytes, line) in a line. Rows of a
/// whole number of lines never straddle; rows of 160 bytes touch 3 lines, not 2.5.
double row_lines(std::int64_t row_bytes) {
  const std::int64_t step = std::gcd(row_bytes, kLineBytes);
  return static_cast<double>(row_bytes - step) / static_cast<double>(kLineBytes) + 1.0;
}

struct Work {
  double lookups;
  double distinct_rows;
  double row_bytes;
  double line_bytes;  ///< of the cache lines that a row touches
};

Work work_of(const TableStatistics& table, std::int64_t num_columns,
             const OperatorSettings& settings) {
  double hits_per_row = 0.0;
  for (int bin = 0; bin < kReuseBins; ++bin) {
    hits_per_row += table.reuse_histogram[bin] * kHitsInBin[bin];
  }
  const double lookups = static_cast<double>(settings.batch_size) * table.pooling_factor;
  const std::int64_t row_bytes = num_columns * element_bytes(table.data_type);
  return {
      lookups,
      std::min(lookups / std::max(hits_per_row, 1.0), static_cast<double>(table.num_embeddings)),
      static_cast<double>(row_bytes), row_lines(row_bytes) * static_cast<double>(kLineBytes)};
}

/// Share of the lookups that hit the hottest rows which together fill `cache_bytes`.
double cached_share(const TableStatistics& table, const Work& work, double cache_bytes) {
  double room = cache_bytes / work.line_bytes;
  double cached = 0.0;
  for (int bin = kReuseBins - 1; bin >= 0 && room > 0.0; --bin) {
    const double rows = table.reuse_histogram[bin] * work.distinct_rows;
    const double taken = std::min(rows, room);
    cached += taken * kHitsInBin[bin];
    room -= taken;
  }
  return std::min(cached / work.lookups, 1.0);
}

std::vector<std::string> names_of(FeatureSchema schema) {
  std::vector<std::string> names{"log2_num_embeddings", "log2_num_columns", "log2_pooling_factor",
                                 "log2_batch_size",     "rowwise_adagrad",  "fp16"};
  for (int bin = 0; bin < kReuseBins; ++bin) names.push_back(fmt::format("reuse_{}", bin));
  if (schema == FeatureSchema::extended) {
    for (const char* name :
         {"log2_lookups", "log2_distinct_rows", "log2_hits_per_row", "log2_row_bytes",
          "log2_row_lines", "log2_output_vectors", "log2_piece_bytes", "log2_looked_up_bytes",
          "log2_looked_up_lines", "log2_distinct_bytes", "log2_distinct_lines", "log2_output_bytes",
          "cached_256KiB", "cached_2MiB", "cached_32MiB"}) {
      names.emplace_back(name);
    }
  }
  return names;
}

}  // namespace

std::string_view to_string(FeatureSchema schema) {
  return schema == FeatureSchema::published ? "shard/published/1" : "shard/extended/2";
}

FeatureSchema feature_schema_from_string(std::string_view name, const std::string& place) {
  for (const FeatureSchema schema : {FeatureSchema::published, FeatureSchema::extended}) {
    if (name == to_string(schema)) return schema;
  }
  throw InputError(place,
                   fmt::format("\"{}\" or \"{}\"", to_string(FeatureSchema::published),
                               to_string(FeatureSchema::extended)),
                   fmt::format("\"{}\"", name));
}

const std::vector<std::string>& feature_names(FeatureSchema schema) {
  static const std::vector<std::string> published = names_of(FeatureSchema::published);
  static const std::vector<std::string> extended = names_of(FeatureSchema::extended);
  return schema == FeatureSchema::published ? published : extended;
}

void shard_features(FeatureSchema schema, const TableStatistics& table, std::int64_t num_columns,
                    const OperatorSettings& settings, std::span<float> features) {
  assert(features.size() == feature_names(schema).size());
  std::size_t next = 0;
  const auto add = [&](double value) { features[next++] = static_cast<float>(value); };
  add(log2_of(static_cast<double>(table.num_embeddings)));
  add(log2_of(static_cast<double>(num_columns)));
  add(log2_of(table.pooling_factor));
  add(log2_of(static_cast<double>(settings.batch_size)));
  add(settings.optimizer == Optimizer::rowwise_adagrad ? 1.0 : 0.0);
  add(table.data_type == DataType::fp16 ? 1.0 : 0.0);
  for (const double share : table.reuse_histogram) add(share);
  if (schema == FeatureSchema::published) return;

  const Work work = work_of(table, num_columns, settings);
  add(log2_of(work.lookups));
  add(log2_of(work.distinct_rows));
  add(log2_of(work.lookups / std::max(work.distinct_rows, 1e-6)));
  add(log2_of(work.row_bytes));
  const double row_lines = work.line_bytes / static_cast<double>(kLineBytes);
  add(log2_of(row_lines));
  add(log2_of(std::ceil(static_cast<double>(num_columns) / kVectorFloats)));
  add(log2_of(work.row_bytes * static_cast<double>(table.num_embeddings)));
  add(log2_of(work.row_bytes * work.lookups));
  add(log2_of(row_lines * work.lookups));
  add(log2_of(work.row_bytes * work.distinct_rows));
  add(log2_of(row_lines * work.distinct_rows));
  add(log2_of(static_cast<double>(settings.batch_size * num_columns * table.num_features) * 4.0));
  for (const double bytes : kCacheBytes) add(cached_share(table, work, bytes));
}

}  // namespace neuroshard
