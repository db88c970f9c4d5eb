// Parts that the formats of measured costs share; used by io only.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "neuroshard/io/json/json.h"
#include "neuroshard/io/json/json_reader.h"

namespace neuroshard {

/// A sample that could not be measured, so that a continued run does not try it again.
struct SkippedSample {
  std::int64_t id = 0;  ///< number in the run's seeded sequence; field "index"
  std::string reason;
};

/// Optional facts about how a sample was measured.
struct SampleInfo {
  std::optional<std::int64_t> id;           ///< as of a skipped sample; field "index"
  std::optional<std::int64_t> repetitions;  ///< timed runs; the times are their medians
  /// Half width of the 95 % confidence interval of the median, as a share of the median.
  std::optional<double> interval;

  friend bool operator==(const SampleInfo&, const SampleInfo&) = default;
};

/// A line {"index": 7, "skipped": "out of memory"}; nullopt for a line without "skipped".
[[nodiscard]] std::optional<SkippedSample> skipped_from_json(const JsonReader& line);
[[nodiscard]] Json to_json(const SkippedSample& skipped);

[[nodiscard]] SampleInfo sample_info_from_json(const JsonReader& line);
void add_sample_info(const SampleInfo& info, Json& line);

/// Half the width of an interval of confidence, as a share of the time; InputError beyond 1e30.
[[nodiscard]] double interval_from_json(const JsonReader& reader);

/// Milliseconds above 0, or at least 0 if `zero_allowed`.
[[nodiscard]] double time_from_json(const JsonReader& reader, bool zero_allowed = false);
/// A batch size within core's limits.
[[nodiscard]] std::int64_t batch_size_from_json(const JsonReader& reader);

}  // namespace neuroshard
