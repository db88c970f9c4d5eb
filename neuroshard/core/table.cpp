// An embedding table: names of its enumerations and the range check of its numbers.
#include "neuroshard/core/table.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
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

/// From one point of `row_access` to the next: half a row of the largest table. What is measured is
/// of whole rows; in much less than one, accesses per row are no number.
constexpr double kLeastRowShare = 0.5 / static_cast<double>(kMaxEmbeddings);
static_assert(kLeastRowShare == 0x1p-43);

/// Throws unless the field's number is one from `least` to `most`. Here and below, a message is
/// made only where it is needed: tasks have 100,000 tables.
void require_between(std::int64_t number, std::int64_t least, std::int64_t most,
                     const std::string& place, std::string_view field) {
  if (number >= least && number <= most) return;
  throw InputError(fmt::format("{}.{}", place, field),
                   fmt::format("an integer between {} and {}", least, most),
                   fmt::to_string(number));
}

void validate_histogram(const ReuseHistogram& histogram, const std::string& place) {
  double sum = 0.0;
  for (int bin = 0; bin < kReuseBins; ++bin) {
    const double share = histogram[bin];
    const bool is_share = share >= 0.0 && share <= 1.0 + kShareSumTolerance;
    if (!is_share) {
      throw InputError(fmt::format("{}[{}]", place, bin), "a share between 0 and 1",
                       fmt::format("{}", share));
    }
    sum += share;
  }
  if (std::abs(sum - 1.0) > kShareSumTolerance) {
    throw InputError(place, "17 shares that add up to 1", fmt::format("a sum of {}", sum));
  }
}

void validate_distribution(const Table& table, const std::string& place) {
  const IndexDistribution& distribution = *table.index_distribution;
  if (distribution.access_classes.empty()) {
    const double exponent = distribution.zipf_exponent;
    const bool is_exponent = exponent >= 0.0 && exponent <= 10.0;
    if (!is_exponent) {
      throw InputError(place + ".zipf_exponent", "a number between 0 and 10",
                       fmt::format("{}", exponent));
    }
    return;
  }
  std::int64_t rows = 0;
  double share = 0.0;
  for (std::size_t i = 0; i < distribution.access_classes.size(); ++i) {
    const AccessClass& access_class = distribution.access_classes[i];
    if (access_class.num_embeddings < 1 || access_class.num_embeddings > kMaxEmbeddings) {
      throw InputError(fmt::format("{}.access_classes[{}]", place, i),
                       "a number of rows of at least 1",
                       fmt::format("{}", access_class.num_embeddings));
    }
    if (!std::isfinite(access_class.access_share) || access_class.access_share < 0.0) {
      throw InputError(fmt::format("{}.access_classes[{}]", place, i), "a share between 0 and 1",
                       fmt::format("{}", access_class.access_share));
    }
    // Millions of the largest classes have more rows together than 64 bits count.
    rows += std::min(access_class.num_embeddings, std::numeric_limits<std::int64_t>::max() - rows);
    share += access_class.access_share;
  }
  if (rows > table.num_embeddings) {
    throw InputError(place + ".access_classes",
                     fmt::format("at most num_embeddings = {} rows", table.num_embeddings),
                     fmt::format("{} rows", rows));
  }
  if (std::abs(share - 1.0) > kShareSumTolerance) {
    throw InputError(place + ".access_classes", "shares that add up to 1",
                     fmt::format("a sum of {}", share));
  }
}

void validate_row_access(const std::vector<RowAccessPoint>& points, const std::string& place) {
  if (points.size() > kMaxRowAccessPoints) {
    throw InputError(place, fmt::format("at most {} points", kMaxRowAccessPoints),
                     fmt::format("{}", points.size()));
  }
  RowAccessPoint before;
  for (std::size_t i = 0; i < points.size(); ++i) {
    const RowAccessPoint& point = points[i];
    const bool has_more_rows =
        point.row_share - before.row_share >= kLeastRowShare && point.row_share <= 1.0;
    if (!has_more_rows) {
      throw InputError(fmt::format("{}[{}]", place, i),
                       fmt::format("a share of the rows above {} by at least 2^-43, at most 1",
                                   before.row_share),
                       fmt::format("{}", point.row_share));
    }
    const bool rises = point.access_share >= before.access_share && point.access_share <= 1.0;
    if (!rises) {
      throw InputError(fmt::format("{}[{}]", place, i),
                       fmt::format("a share of the accesses from {} to 1", before.access_share),
                       fmt::format("{}", point.access_share));
    }
    before = point;
  }
  if (before.row_share != 1.0 || before.access_share != 1.0) {
    throw InputError(place, "[1, 1] as the last point",
                     fmt::format("[{}, {}]", before.row_share, before.access_share));
  }
}

}  // namespace

void validate(const Table& table, const std::string& place) {
  if (table.name.empty()) throw InputError(place + ".name", "a name that is not empty", "\"\"");
  require_between(table.num_embeddings, 1, kMaxEmbeddings, place, "num_embeddings");
  require_between(table.embedding_dim, 1, kMaxEmbeddingDim, place, "embedding_dim");
  const bool has_pooling = table.pooling_factor > 0.0 && table.pooling_factor <= kMaxPoolingFactor;
  if (!has_pooling) {
    throw InputError(place + ".pooling_factor",
                     fmt::format("a number above 0, at most {}", kMaxPoolingFactor),
                     fmt::format("{}", table.pooling_factor));
  }
  if (table.reuse_histogram && table.index_distribution) {
    throw InputError(place, "reuse_histogram or index_distribution", "both");
  }
  if (table.reuse_histogram) {
    validate_histogram(*table.reuse_histogram, place + ".reuse_histogram");
  }
  if (table.index_distribution) validate_distribution(table, place + ".index_distribution");
  if (!table.row_access.empty()) {
    if (table.row_order != RowOrder::hashed) {
      throw InputError(place, "row_order or row_access", "both");
    }
    validate_row_access(table.row_access, place + ".row_access");
  }
  require_between(table.min_shard_columns, 0, kMaxEmbeddingDim, place, "min_shard_columns");
  require_between(table.min_shard_rows, 0, kMaxEmbeddings, place, "min_shard_rows");
  require_between(table.extra_bytes_per_shard, 0, kMaxExtraBytes, place, "extra_bytes_per_shard");
  require_between(table.extra_bytes_per_column, 0, kMaxExtraBytes, place, "extra_bytes_per_column");
  require_between(table.num_features, 1, kMaxFeatures, place, "num_features");
}

}  // namespace neuroshard
