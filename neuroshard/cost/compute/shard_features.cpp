// Features of a piece of a table.
#include "neuroshard/cost/compute/shard_features.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cassert>
#include <cmath>
#include <numbers>

#include "neuroshard/core/error.h"
#include "neuroshard/cost/compute/piece_work.h"

namespace neuroshard {

namespace {

double log2_of(double value) { return std::log2(std::max(value, 1e-6)); }

/// Of a number of things, none of them being a meaningful case.
double log2_of_count(double count) { return std::log2(1.0 + count); }

constexpr int kHitBins = kReuseBins - 1;  // all distinct rows are a feature of their own

std::vector<std::string> names_of_published() {
  std::vector<std::string> names{"log2_num_embeddings", "log2_num_columns", "log2_pooling_factor",
                                 "log2_batch_size",     "rowwise_adagrad",  "fp16"};
  for (int bin = 0; bin < kReuseBins; ++bin) names.push_back(fmt::format("reuse_{}", bin));
  return names;
}

constexpr std::array<const char*, 3> kFreeFeatures{"log2_num_embeddings", "rowwise_adagrad",
                                                   "fp16"};

std::vector<std::string> names_of_work() {
  // The estimate is first, where log_estimate finds it.
  std::vector<std::string> names{"log2_estimate_ms",
                                 "log2_batch_size",
                                 "log2_pooling_factor",
                                 "log2_lookups",
                                 "log2_distinct_rows",
                                 "log2_hottest_row_hits",
                                 "log2_num_columns",
                                 "log2_row_bytes",
                                 "log2_row_lines",
                                 "log2_vector_operations",
                                 "log2_output_bytes",
                                 "log2_table_bytes",
                                 "log2_all_vector_operations",
                                 "log2_all_lines",
                                 "log2_distinct_lines"};
  for (int bin = 1; bin <= kHitBins; ++bin) {
    names.push_back(fmt::format("log2_rows_hit_{}_times", (1 << (bin - 1)) + 1));
  }
  for (const double bytes : kCacheBytes) {
    names.push_back(fmt::format("log2_uncached_lines_{}KiB", std::lround(bytes / 1024.0)));
  }
  for (const double bytes : kCacheBytes) {
    names.push_back(fmt::format("log2_uncached_gradient_lines_{}KiB", std::lround(bytes / 1024.0)));
  }
  for (const char* name : kFreeFeatures) names.emplace_back(name);
  return names;
}

}  // namespace

std::string_view to_string(FeatureSchema schema) {
  return schema == FeatureSchema::published ? "shard/published/1" : "shard/work/1";
}

FeatureSchema feature_schema_from_string(std::string_view name, const std::string& place) {
  for (const FeatureSchema schema : {FeatureSchema::published, FeatureSchema::work}) {
    if (name == to_string(schema)) return schema;
  }
  throw InputError(place,
                   fmt::format("\"{}\" or \"{}\"", to_string(FeatureSchema::published),
                               to_string(FeatureSchema::work)),
                   fmt::format("\"{}\"", name));
}

const std::vector<std::string>& feature_names(FeatureSchema schema) {
  static const std::vector<std::string> published = names_of_published();
  static const std::vector<std::string> work = names_of_work();
  return schema == FeatureSchema::published ? published : work;
}

std::size_t num_growing_features(FeatureSchema schema) {
  return schema == FeatureSchema::published ? 0
                                            : feature_names(schema).size() - kFreeFeatures.size();
}

double log_estimate(std::span<const float> features) {
  return static_cast<double>(features[0]) * std::numbers::ln2;
}

namespace {

class FeatureWriter {
 public:
  explicit FeatureWriter(std::span<float> features) : features_(features) {}
  void add(double value) { features_[next_++] = static_cast<float>(value); }
  [[nodiscard]] bool complete() const { return next_ == features_.size(); }

 private:
  std::span<float> features_;
  std::size_t next_ = 0;
};

void write_published(const TableStatistics& table, std::int64_t num_columns,
                     const OperatorSettings& settings, FeatureWriter& features) {
  features.add(log2_of(static_cast<double>(table.num_embeddings)));
  features.add(log2_of(static_cast<double>(num_columns)));
  features.add(log2_of(table.pooling_factor));
  features.add(log2_of(static_cast<double>(settings.batch_size)));
  features.add(settings.optimizer == Optimizer::rowwise_adagrad ? 1.0 : 0.0);
  features.add(table.data_type == DataType::fp16 ? 1.0 : 0.0);
  for (const double share : table.reuse_histogram) features.add(share);
}

void write_work(const TableStatistics& table, std::int64_t num_columns,
                const OperatorSettings& settings, const PhysicalEstimate& estimate,
                FeatureWriter& features) {
  static thread_local std::vector<double> terms;
  terms.resize(work_terms().size());
  const PieceWork work = piece_work(table, num_columns, settings);
  write_work_terms(work, table, settings, terms);
  features.add(std::log2(estimate.piece_ms(terms)));
  features.add(std::log2(work.batch_size));
  // Below an eighth of a lookup per sample only the lookups count.
  features.add(std::log2(0.125 + table.pooling_factor));
  features.add(log2_of_count(work.lookups));
  features.add(log2_of_count(work.distinct_rows));
  features.add(log2_of_count(work.hottest_row_hits));
  features.add(std::log2(static_cast<double>(num_columns)));
  features.add(std::log2(work.row_bytes));
  features.add(std::log2(work.row_lines));
  features.add(std::log2(work.vector_operations));
  features.add(std::log2(work.output_bytes));
  features.add(std::log2(work.table_bytes));
  features.add(log2_of_count(work.lookups * work.vector_operations));
  features.add(log2_of_count(work.lookups * work.row_lines));
  features.add(log2_of_count(work.distinct_rows * work.row_lines));
  for (int bin = 1; bin <= kHitBins; ++bin) features.add(log2_of_count(work.rows_hit[bin]));
  for (const double lookups : work.uncached_lookups) {
    features.add(log2_of_count(lookups * work.row_lines));
  }
  for (const double lines : work.uncached_gradient_lines) features.add(log2_of_count(lines));
  features.add(std::log2(static_cast<double>(table.num_embeddings)));
  features.add(settings.optimizer == Optimizer::rowwise_adagrad ? 1.0 : 0.0);
  features.add(table.data_type == DataType::fp16 ? 1.0 : 0.0);
}

}  // namespace

void shard_features(FeatureSchema schema, const TableStatistics& table, std::int64_t num_columns,
                    const OperatorSettings& settings, const PhysicalEstimate& estimate,
                    std::span<float> features) {
  assert(features.size() == feature_names(schema).size());
  FeatureWriter writer(features);
  if (schema == FeatureSchema::published) {
    write_published(table, num_columns, settings, writer);
  } else {
    write_work(table, num_columns, settings, estimate, writer);
  }
  assert(writer.complete());
}

}  // namespace neuroshard
