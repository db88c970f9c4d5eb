// Collections as text.
#include "neuroshard/report/collection_report.h"

#include <fmt/format.h>

#include "neuroshard/core/text/printable.h"
#include "neuroshard/core/units.h"

namespace neuroshard {

std::string collection_progress_text(const CollectionProgress& progress, const std::string& what) {
  return fmt::format("{} of {} {}, {} left", progress.done, progress.requested, what,
                     format_seconds(progress.seconds_left));
}

std::string collected_text(const std::string& file, std::int64_t measured) {
  return fmt::format("{}: {} measured\n", printable(file), format_count(measured, "sample"));
}

std::string merged_text(const std::string& file, const MergedCosts& merged) {
  return fmt::format("{}: {}, {} skipped, {} of a sample left out\n", printable(file),
                     format_count(merged.samples, "sample"), merged.skipped,
                     format_count(merged.repeated, "repetition"));
}

}  // namespace neuroshard
