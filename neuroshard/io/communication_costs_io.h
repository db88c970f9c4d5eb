// Measured communication costs, JSON Lines format "neuroshard/communication-costs/1"
// (docs/formats.md).
#pragma once

#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "neuroshard/core/table.h"
#include "neuroshard/io/json/json.h"
#include "neuroshard/io/json/json_lines.h"
#include "neuroshard/io/sample_io.h"

namespace neuroshard {

inline constexpr std::string_view kCommunicationCostsFormat = "neuroshard/communication-costs/1";

/// The first line: the properties that all samples of a file share.
struct CommunicationCostsHeader {
  Json hardware = Json::Object{};  ///< object of any content
  int world_size = 1;              ///< topology.world_size
  int local_world_size = 1;        ///< topology.local_world_size: devices per host
  std::string interconnect;        ///< topology.interconnect; may be empty
  std::int64_t batch_size = 0;
  DataType data_type = DataType::fp32;  ///< of the messages
  std::optional<Json> sampling;  ///< seed and options of the collector: object of any content
};

/// One placement and what its two all-to-alls took. Every vector has world_size elements.
struct CommunicationCostSample {
  std::vector<std::int64_t> columns;  ///< sum of columns on each device, at least 0
  std::vector<double> start_ms;       ///< when each device enters the forward all-to-all, >= 0
  std::vector<double> forward_ms;     ///< from its own entry to its own end, waiting included, >= 0
  std::vector<double> backward_ms;    ///< all devices enter together, >= 0
  SampleInfo info;

  friend bool operator==(const CommunicationCostSample&, const CommunicationCostSample&) = default;
};

/// What devices do besides the all-to-alls; a line's "kind".
enum class CollectiveKind {
  all_reduce,    ///< sum of fp32 values that lie on each device
  partial_sums,  ///< addition of received partial sums: memory work of each device
};
[[nodiscard]] std::string_view to_string(CollectiveKind kind);

/// What one of these took.
struct CollectiveCostSample {
  CollectiveKind kind = CollectiveKind::all_reduce;
  /// On each device: of the values that are summed; of partial sums those read and written.
  std::int64_t bytes = 0;
  std::vector<double> ms;  ///< of each device; all enter together, >= 0
  SampleInfo info;

  friend bool operator==(const CollectiveCostSample&, const CollectiveCostSample&) = default;
};

struct CommunicationCosts {
  CommunicationCostsHeader header;
  std::vector<CommunicationCostSample> samples;
  std::vector<CollectiveCostSample> collectives;
  std::vector<SkippedSample> skipped;
  bool truncated = false;  ///< the last line was incomplete and has been ignored
};

/// Reads a file, also a gzip-compressed one (".gz"). Throws InputError
/// "file: line N: place: expected ..., got ...".
[[nodiscard]] CommunicationCosts read_communication_costs(const std::string& path);

/// As `read_communication_costs`; `file` is what errors call the text.
[[nodiscard]] CommunicationCosts parse_communication_costs(std::string_view text,
                                                           const std::string& file);

/// Appends samples to a file as they are measured; continues a file with the same header.
class CommunicationCostsWriter {
 public:
  /// Throws InputError if the header is not valid, the file cannot be written, or it has another
  /// header: the message names the first field that differs.
  CommunicationCostsWriter(const std::string& path, const CommunicationCostsHeader& header);

  /// `info.id` of the samples, measured or skipped, that the file already had.
  [[nodiscard]] const std::set<std::int64_t>& done() const noexcept { return writer_.done(); }

  /// Throws InputError for a sample that the reader would refuse.
  void append(const CommunicationCostSample& sample);
  void append(const CollectiveCostSample& sample);
  void append(const SkippedSample& skipped) { writer_.append(to_json(skipped)); }

  /// Makes what was appended permanent (fdatasync).
  void sync() { writer_.sync(); }

 private:
  int world_size_;
  JsonLinesWriter writer_;
};

}  // namespace neuroshard
