// Warnings by their reason.
#include "neuroshard/plan/collected_warnings.h"

#include <fmt/format.h>

#include <algorithm>
#include <string_view>

namespace neuroshard {

namespace {

/// What a warning has in common with others of its reason: the text before the item's own value,
/// before the table's name, or before how far the networks disagree.
std::string_view reason_of(std::string_view warning) {
  return warning.substr(
      0, std::min({warning.find(", got "), warning.find(" (\""), warning.find(" disagree by ")}));
}

}  // namespace

void CollectedWarnings::add(const std::string& item, std::span<const std::string> warnings) {
  ++count_;
  std::vector<std::string_view> met;
  for (const std::string& warning : warnings) {
    const std::string_view key = reason_of(warning);
    if (std::find(met.begin(), met.end(), key) != met.end()) continue;
    met.push_back(key);
    const auto known = std::find_if(reasons_.begin(), reasons_.end(),
                                    [&](const Reason& reason) { return reason.key == key; });
    if (known != reasons_.end()) {
      ++known->count;
    } else {
      reasons_.push_back({std::string(key), warning, item, 1});
    }
  }
}

std::vector<std::string> CollectedWarnings::lines() const {
  std::vector<std::string> lines;
  for (const Reason& reason : reasons_) {
    lines.push_back(count_ == 1
                        ? reason.first_warning
                        : fmt::format("{}: {} of {} {}, the first of them {}", reason.first_warning,
                                      reason.count, count_, items_, reason.first_item));
  }
  return lines;
}

std::vector<std::string> further_warnings(const std::string& item,
                                          std::span<const std::string> lines,
                                          std::vector<std::string>& known) {
  std::vector<std::string> further;
  for (const std::string& line : lines) {
    const bool is_known = std::ranges::any_of(
        known, [&](const std::string& other) { return reason_of(other) == reason_of(line); });
    if (is_known) continue;
    further.push_back(fmt::format("{}: {}", item, line));
    known.push_back(line);
  }
  return further;
}

}  // namespace neuroshard
