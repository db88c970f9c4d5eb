// A plan's violations as text and as JSON.
#include "neuroshard/report/check_report.h"

#include <fmt/format.h>

#include <cstdint>

#include "neuroshard/core/text/printable.h"
#include "neuroshard/core/units.h"

namespace neuroshard {

std::string check_text(const std::string& file, const PlanDocument& document,
                       const std::vector<std::string>& found) {
  const auto count = [](std::size_t number, const char* noun) {
    return format_count(static_cast<std::int64_t>(number), noun);
  };
  if (found.empty()) {
    const std::size_t copies = document.plan.replicated_tables.size();
    return fmt::format("{}: valid: {} of {} on {}{}\n", printable(file),
                       count(document.plan.shards.size(), "shard"),
                       count(document.task.tables.size() - copies, "table"),
                       count(document.task.topology.world_size, "device"),
                       copies > 0 ? fmt::format(", {} on each", count(copies, "table")) : "");
  }
  std::string text;
  for (const std::string& violation : found) {
    text += printable(fmt::format("{}: {}", file, violation));
    text += '\n';
  }
  return text;
}

Json check_json(const std::string& file, const std::vector<std::string>& found) {
  return Json::Object{{"format", "neuroshard/check/1"},
                      {"plan", file},
                      {"valid", found.empty()},
                      {"violations", Json::Array(found.begin(), found.end())}};
}

}  // namespace neuroshard
