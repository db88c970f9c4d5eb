// Parts of measured samples to and from JSON.
#include "neuroshard/io/sample_io.h"

#include <fmt/format.h>

#include <limits>

#include "neuroshard/core/table.h"
#include "neuroshard/core/units.h"

namespace neuroshard {

namespace {

/// Of the shares that tell how sure a time is; of more the mean would leave the numbers.
constexpr double kMostInterval = 1e30;

constexpr std::int64_t kMaxInteger = std::numeric_limits<std::int64_t>::max();

}  // namespace

std::optional<SkippedSample> skipped_from_json(const JsonReader& line) {
  const auto reason = line.optional_field("skipped");
  if (!reason) return std::nullopt;
  line.allow_fields({"index", "skipped"});
  return SkippedSample{line.field("index").integer(0, kMaxInteger), reason->text()};
}

Json to_json(const SkippedSample& skipped) {
  return Json().set("index", skipped.id).set("skipped", skipped.reason);
}

SampleInfo sample_info_from_json(const JsonReader& line) {
  SampleInfo info;
  if (const auto id = line.optional_field("index")) info.id = id->integer(0, kMaxInteger);
  if (const auto repetitions = line.optional_field("repetitions")) {
    info.repetitions = repetitions->integer(1, kMaxInteger);
  }
  if (const auto interval = line.optional_field("interval")) {
    info.interval = interval_from_json(*interval);
  }
  return info;
}

void add_sample_info(const SampleInfo& info, Json& line) {
  if (info.id) line.set("index", *info.id);
  if (info.repetitions) line.set("repetitions", *info.repetitions);
  if (info.interval) line.set("interval", *info.interval);
}

double interval_from_json(const JsonReader& reader) {
  const double share = reader.number();
  if (!(share >= 0.0 && share <= kMostInterval)) {
    reader.fail(fmt::format("a share between 0 and {}", kMostInterval));
  }
  return share;
}

double time_from_json(const JsonReader& reader, bool zero_allowed) {
  const double milliseconds = reader.number();
  if (zero_allowed && milliseconds == 0.0) return milliseconds;
  if (!(milliseconds > 0.0)) {
    reader.fail(zero_allowed ? "milliseconds of at least 0" : "milliseconds above 0");
  }
  if (!is_time(milliseconds)) {
    reader.fail("milliseconds between 1e-30 and 1e30");
  }
  return milliseconds;
}

std::int64_t batch_size_from_json(const JsonReader& reader) {
  return reader.integer(1, kMaxBatchSize);
}

}  // namespace neuroshard
