// Measured computation costs, JSON Lines format "neuroshard/compute-costs/1" (docs/formats.md).
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "neuroshard/core/piece.h"
#include "neuroshard/core/table.h"
#include "neuroshard/io/json/json.h"
#include "neuroshard/io/json/json_lines.h"
#include "neuroshard/io/sample_io.h"

namespace neuroshard {

inline constexpr std::string_view kComputeCostsFormat = "neuroshard/compute-costs/1";

/// A table whose columns were measured; the number of columns is each sample's.
struct MeasuredTable {
  std::string name;
  std::int64_t num_embeddings = 0;
  double pooling_factor = 0.0;
  DataType data_type = DataType::fp32;
  ReuseHistogram reuse_histogram{};  ///< for the header's batch size
  /// Expected distinct rows of a batch and the share of the lookups that hit the hottest row, where
  /// the collector knew them; else the histogram tells them up to the width of its bins.
  std::optional<double> distinct_rows{};
  std::optional<double> hottest_row_share{};
};

/// The first line: what all samples of a file have in common.
struct ComputeCostsHeader {
  Json hardware = Json::Object{};       ///< object of any content
  Json operator_info = Json::Object{};  ///< field "operator": object of any content
  std::int64_t batch_size = 0;
  Optimizer optimizer = Optimizer::sgd;
  std::vector<MeasuredTable> tables;
  std::optional<Json> sampling;  ///< seed and options of the collector: object of any content
  /// Which sets were measured all along with each sample (ComputeCostSample::reference_ms); empty:
  /// none.
  std::string reference_sets{};
};

/// Measured times of one fused operator over all pieces.
struct ComputeCostSample {
  std::vector<Piece> pieces;  ///< at least one, of the header's tables; field "shards"
  double forward_ms = 0.0;
  double backward_ms = 0.0;
  SampleInfo info;
  /// What each of the header's reference sets took meanwhile, forward and backward [ms]; as many in
  /// every sample of a file, and none where the header has none.
  std::vector<double> reference_ms{};

  friend bool operator==(const ComputeCostSample&, const ComputeCostSample&) = default;
};

struct ComputeCosts {
  ComputeCostsHeader header;
  std::vector<ComputeCostSample> samples;
  std::vector<SkippedSample> skipped;
  bool truncated = false;  ///< the last line was incomplete and has been ignored
};

/// Reads a file, also a gzip-compressed one (".gz"). Throws InputError
/// "file: line N: place: expected ..., got ...".
[[nodiscard]] ComputeCosts read_compute_costs(const std::string& path);

/// As `read_compute_costs`; `file` is what errors call the text.
[[nodiscard]] ComputeCosts parse_compute_costs(std::string_view text, const std::string& file);

/// Appends samples to a file as they are measured; continues a file with the same header.
class ComputeCostsWriter {
 public:
  /// Throws InputError if the header is not valid, the file cannot be written, or it has another
  /// header: the message names the first field that differs.
  ComputeCostsWriter(const std::string& path, const ComputeCostsHeader& header);

  /// `info.id` of the samples, measured or skipped, that the file already had.
  [[nodiscard]] const std::set<std::int64_t>& done() const noexcept { return writer_.done(); }

  /// Throws InputError for a sample that the reader would refuse.
  void append(const ComputeCostSample& sample);
  void append(const SkippedSample& skipped) { writer_.append(to_json(skipped)); }

  /// Makes what was appended permanent (fdatasync).
  void sync() { writer_.sync(); }

  /// For a collection that came to nothing: removes the file if it was not there before.
  void remove_if_new() noexcept { writer_.remove_if_new(); }

 private:
  std::size_t num_tables_;
  bool has_references_;
  std::optional<std::size_t> num_references_;  ///< of the first sample that was appended
  JsonLinesWriter writer_;
};

}  // namespace neuroshard
