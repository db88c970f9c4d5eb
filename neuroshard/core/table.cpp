// An embedding table: names of its enumerations and the range check of its numbers.
#include "neuroshard/core/table.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "neuroshard/core/error.h"

namespace neuroshard {

std::string_view to_string(DataType type) { return type == DataType::fp32 ? "fp32" : "fp16"; }

std::string_view to_string(Optimizer optimizer) {
  return optimizer == Optimizer::sgd ? "sgd" : "rowwise_adagrad";
}

std::string_view to_string(RowOrder order) {
  return order == RowOrder::hashed ? "hashed" : "by_frequency";
}

std::optional<DataType> data_type_from_string(std::string_view name) {
  for (const DataType type : {DataType::fp32, DataType::fp16}) {
    if (name == to_string(type)) return type;
  }
  return std::nullopt;
}

std::optional<Optimizer> optimizer_from_string(std::string_view name) {
  for (const Optimizer optimizer : {Optimizer::sgd, Optimizer::rowwise_adagrad}) {
    if (name == to_string(optimizer)) return optimizer;
  }
  return std::nullopt;
}

std::string to_string(const Cuts& cuts) {
  std::string text;
  for (const CutName& cut : kCutNames) {
    if (!(cuts.*cut.allowed)) continue;
    if (!text.empty()) text += '+';
    text += cut.name;
  }
  return text.empty() ? "none" : text;
}

std::optional<Cuts> cuts_from_string(std::string_view text) {
  Cuts cuts{false, false, false};
  if (text == "none") return cuts;
  for (bool is_last = false; !is_last;) {
    const std::size_t end = text.find('+');
    const std::string_view name = text.substr(0, end);
    const auto* cut = std::find_if(kCutNames.begin(), kCutNames.end(),
                                   [&](const CutName& known) { return known.name == name; });
    if (cut == kCutNames.end() || cuts.*cut->allowed) return std::nullopt;
    cuts.*cut->allowed = true;
    is_last = end == std::string_view::npos;
    text.remove_prefix(is_last ? text.size() : end + 1);
  }
  return cuts;
}

std::optional<RowOrder> row_order_from_string(std::string_view name) {
  for (const RowOrder order : {RowOrder::hashed, RowOrder::by_frequency}) {
    if (name == to_string(order)) return order;
  }
  return std::nullopt;
}

bool has_row_order(const Table& table) {
  if (!table.row_access.empty()) return true;
  if (table.row_order == RowOrder::hashed) return false;
  const std::optional<IndexDistribution>& distribution = table.index_distribution;
  return table.reuse_histogram || (distribution && (!distribution->access_classes.empty() ||
                                                    distribution->zipf_exponent > 0.0));
}

namespace {

/// Shares are accepted if they add up to 1 within this: text formats round them.
constexpr double kShareSumTolerance = 1e-3;

void require(bool ok, const std::string& place, const std::string& expected,
             const std::string& actual) {
  if (!ok) throw InputError(place, expected, actual);
}

void validate_histogram(const ReuseHistogram& histogram, const std::string& place) {
  double sum = 0.0;
  for (int bin = 0; bin < kReuseBins; ++bin) {
    const double share = histogram[bin];
    require(std::isfinite(share) && share >= 0.0 && share <= 1.0 + kShareSumTolerance,
            fmt::format("{}[{}]", place, bin), "a share between 0 and 1", fmt::format("{}", share));
    sum += share;
  }
  require(std::abs(sum - 1.0) <= kShareSumTolerance, place, "17 shares that add up to 1",
          fmt::format("a sum of {}", sum));
}

void validate_distribution(const Table& table, const std::string& place) {
  const IndexDistribution& distribution = *table.index_distribution;
  if (distribution.access_classes.empty()) {
    const double exponent = distribution.zipf_exponent;
    require(std::isfinite(exponent) && exponent >= 0.0 && exponent <= 10.0,
            place + ".zipf_exponent", "a number between 0 and 10", fmt::format("{}", exponent));
    return;
  }
  std::int64_t rows = 0;
  double share = 0.0;
  for (std::size_t i = 0; i < distribution.access_classes.size(); ++i) {
    const AccessClass& access_class = distribution.access_classes[i];
    const std::string where = fmt::format("{}.access_classes[{}]", place, i);
    require(access_class.num_embeddings >= 1 && access_class.num_embeddings <= kMaxEmbeddings,
            where, "a number of rows of at least 1",
            fmt::format("{}", access_class.num_embeddings));
    require(std::isfinite(access_class.access_share) && access_class.access_share >= 0.0, where,
            "a share between 0 and 1", fmt::format("{}", access_class.access_share));
    rows += access_class.num_embeddings;
    share += access_class.access_share;
  }
  require(rows <= table.num_embeddings, place + ".access_classes",
          fmt::format("at most num_embeddings = {} rows", table.num_embeddings),
          fmt::format("{} rows", rows));
  require(std::abs(share - 1.0) <= kShareSumTolerance, place + ".access_classes",
          "shares that add up to 1", fmt::format("a sum of {}", share));
}

void validate_row_access(const std::vector<RowAccessPoint>& points, const std::string& place) {
  require(points.size() <= kMaxRowAccessPoints, place,
          fmt::format("at most {} points", kMaxRowAccessPoints), fmt::format("{}", points.size()));
  RowAccessPoint before;
  for (std::size_t i = 0; i < points.size(); ++i) {
    const RowAccessPoint& point = points[i];
    const std::string where = fmt::format("{}[{}]", place, i);
    require(point.row_share > before.row_share && point.row_share <= 1.0, where,
            fmt::format("a share of the rows above {}, at most 1", before.row_share),
            fmt::format("{}", point.row_share));
    require(point.access_share >= before.access_share && point.access_share <= 1.0, where,
            fmt::format("a share of the accesses from {} to 1", before.access_share),
            fmt::format("{}", point.access_share));
    before = point;
  }
  require(points.empty() || (before.row_share == 1.0 && before.access_share == 1.0), place,
          "[1, 1] as the last point",
          fmt::format("[{}, {}]", before.row_share, before.access_share));
}

}  // namespace

void validate(const Table& table, const std::string& place) {
  require(!table.name.empty(), place + ".name", "a name that is not empty", "\"\"");
  require(table.num_embeddings >= 1 && table.num_embeddings <= kMaxEmbeddings,
          place + ".num_embeddings", fmt::format("an integer between 1 and {}", kMaxEmbeddings),
          fmt::format("{}", table.num_embeddings));
  require(table.embedding_dim >= 1 && table.embedding_dim <= kMaxEmbeddingDim,
          place + ".embedding_dim", fmt::format("an integer between 1 and {}", kMaxEmbeddingDim),
          fmt::format("{}", table.embedding_dim));
  require(std::isfinite(table.pooling_factor) && table.pooling_factor > 0.0 &&
              table.pooling_factor <= kMaxPoolingFactor,
          place + ".pooling_factor", fmt::format("a number above 0, at most {}", kMaxPoolingFactor),
          fmt::format("{}", table.pooling_factor));
  require(!(table.reuse_histogram && table.index_distribution), place,
          "reuse_histogram or index_distribution", "both");
  if (table.reuse_histogram) {
    validate_histogram(*table.reuse_histogram, place + ".reuse_histogram");
  }
  if (table.index_distribution) validate_distribution(table, place + ".index_distribution");
  require(table.row_access.empty() || table.row_order == RowOrder::hashed, place,
          "row_order or row_access", "both");
  validate_row_access(table.row_access, place + ".row_access");
  require(table.min_shard_columns >= 0 && table.min_shard_columns <= kMaxEmbeddingDim,
          place + ".min_shard_columns",
          fmt::format("an integer between 0 and {}", kMaxEmbeddingDim),
          fmt::format("{}", table.min_shard_columns));
  require(table.min_shard_rows >= 0 && table.min_shard_rows <= kMaxEmbeddings,
          place + ".min_shard_rows", fmt::format("an integer between 0 and {}", kMaxEmbeddings),
          fmt::format("{}", table.min_shard_rows));
  for (const auto& [field, bytes] :
       {std::pair{".extra_bytes_per_shard", table.extra_bytes_per_shard},
        {".extra_bytes_per_column", table.extra_bytes_per_column}}) {
    require(bytes >= 0 && bytes <= kMaxExtraBytes, place + field,
            fmt::format("an integer between 0 and {}", kMaxExtraBytes), fmt::format("{}", bytes));
  }
  require(table.num_features >= 1 && table.num_features <= kMaxFeatures, place + ".num_features",
          fmt::format("an integer between 1 and {}", kMaxFeatures),
          fmt::format("{}", table.num_features));
}

}  // namespace neuroshard
