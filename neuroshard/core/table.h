// An embedding table as the planner sees it: its sizes, its data type, and how its rows are used.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace neuroshard {

enum class DataType { fp32, fp16 };
enum class Optimizer { sgd, rowwise_adagrad };

/// Where a table's hot rows are.
enum class RowOrder {
  hashed,        ///< anywhere: a range of rows has accesses in proportion to its rows
  by_frequency,  ///< row 0 is the hottest, and none is hotter than the one before it
};

[[nodiscard]] constexpr std::int64_t element_bytes(DataType type) {
  return type == DataType::fp32 ? 4 : 2;
}
[[nodiscard]] std::string_view to_string(DataType type);
[[nodiscard]] std::string_view to_string(Optimizer optimizer);
[[nodiscard]] std::string_view to_string(RowOrder order);
/// nullopt for a name that is not one of the enumerators'.
[[nodiscard]] std::optional<DataType> data_type_from_string(std::string_view name);
[[nodiscard]] std::optional<Optimizer> optimizer_from_string(std::string_view name);
[[nodiscard]] std::optional<RowOrder> row_order_from_string(std::string_view name);

/// Number of bins of a reuse histogram. Bin 0: rows hit exactly once; bin i: rows hit
/// (2^(i-1), 2^i] times; the last bin: more than 32,768 times.
inline constexpr int kReuseBins = 17;

/// Of the distinct rows that one batch touches, the share in each bin; the shares add up to 1.
using ReuseHistogram = std::array<double, kReuseBins>;

/// A group of rows that are all equally likely.
struct AccessClass {
  std::int64_t num_embeddings = 0;
  double access_share = 0.0;  ///< share of all lookups that hit a row of this class
};

/// How likely each row is, independent of the batch size. Exactly one of the two is given.
struct IndexDistribution {
  double zipf_exponent = 0.0;                 ///< row of rank r has weight r^-exponent; 0 = uniform
  std::vector<AccessClass> access_classes{};  ///< if not empty: piecewise uniform, shares sum to 1
};

/// A point of the curve of a table's accesses over its rows, both as shares of all.
struct RowAccessPoint {
  double row_share = 0.0;     ///< of the rows, from row 0 on
  double access_share = 0.0;  ///< of the accesses: what hits these rows
};

/// Ways to place a table other than whole on one device.
struct Cuts {
  bool columns = true;   ///< pieces of its columns
  bool rows = true;      ///< slices of its rows
  bool replicas = true;  ///< whole on every device, each looking up its own share of the batch

  friend bool operator==(const Cuts&, const Cuts&) = default;
};

/// The cuts of the paper's search.
inline constexpr Cuts kColumnsAlone{.columns = true, .rows = false, .replicas = false};

struct CutName {
  std::string_view name;
  bool Cuts::*allowed;
};
/// What files and the command line call the cuts.
inline constexpr std::array<CutName, 3> kCutNames{
    {{"columns", &Cuts::columns}, {"rows", &Cuts::rows}, {"replicas", &Cuts::replicas}}};

/// "columns+rows", "none".
[[nodiscard]] std::string to_string(const Cuts& cuts);
/// Reads what `to_string` writes, in any order; nullopt for anything else.
[[nodiscard]] std::optional<Cuts> cuts_from_string(std::string_view text);

/// What both allow.
[[nodiscard]] constexpr Cuts operator&(const Cuts& a, const Cuts& b) {
  return {a.columns && b.columns, a.rows && b.rows, a.replicas && b.replicas};
}

/// What either allows.
[[nodiscard]] constexpr Cuts operator|(const Cuts& a, const Cuts& b) {
  return {a.columns || b.columns, a.rows || b.rows, a.replicas || b.replicas};
}

/// One embedding table. Its use is `reuse_histogram` (valid for the task's batch size) or
/// `index_distribution` (valid for any batch size), or neither: uniform.
struct Table {
  std::string name{};
  std::int64_t num_embeddings = 0;  ///< rows
  std::int64_t embedding_dim = 0;   ///< columns
  double pooling_factor = 0.0;      ///< mean number of indices per sample, of all features
  DataType data_type = DataType::fp32;
  std::optional<ReuseHistogram> reuse_histogram{};
  std::optional<IndexDistribution> index_distribution{};
  RowOrder row_order = RowOrder::hashed;
  /// Measured instead of `row_order`: rises from [0, 0], which is left out, to [1, 1], linear in
  /// between; rows rise by half a row of the largest table at least. Empty: not measured.
  std::vector<RowAccessPoint> row_access{};
  /// No piece of the table is narrower; a table of fewer than twice as many columns stays whole. 0:
  /// any width that cuts at multiples of 4 columns leave.
  std::int64_t min_shard_columns = 0;
  /// No slice has fewer rows; a table of fewer than twice as many is not cut into slices. 0: as 1.
  std::int64_t min_shard_rows = 0;
  Cuts allow{};
  /// Memory that every piece takes beyond weights and optimizer state (its indices, for example),
  /// and that each of its columns takes (the pooled output, for example).
  std::int64_t extra_bytes_per_shard = 0;
  std::int64_t extra_bytes_per_column = 0;
  /// Features that look up in the table: each has a pooled output of its own.
  std::int64_t num_features = 1;
  /// Devices on which its pieces may lie, in any order; empty: any. A replicated table lies on all.
  std::vector<int> devices{};
  /// Another table of the task that this one stays with: both are whole and on one device. Empty:
  /// none. The relation is symmetric and transitive (core/table_pins.h).
  std::string same_device_as{};
};

/// True if ranges of the table's rows may have other shares of the accesses than of the rows.
[[nodiscard]] bool has_row_order(const Table& table);

/// Throws InputError ("place.field: expected ..., got ...") unless every number is in range.
void validate(const Table& table, const std::string& place);

/// Limits that keep every product of sizes inside 64 bits; beyond them an input is refused.
inline constexpr std::int64_t kMaxEmbeddings = std::int64_t{1} << 42;
inline constexpr std::int64_t kMaxEmbeddingDim = 65'536;
inline constexpr double kMaxPoolingFactor = 1e6;
inline constexpr std::int64_t kMaxFeatures = 1024;
inline constexpr std::size_t kMaxRowAccessPoints = 1024;
inline constexpr std::int64_t kMaxBatchSize = std::int64_t{1} << 30;
inline constexpr std::int64_t kMaxExtraBytes = std::int64_t{1} << 44;

}  // namespace neuroshard
