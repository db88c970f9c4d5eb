// Comparisons as JSON: entries, summaries, and the document "neuroshard/comparison/1"
// (docs/formats.md).
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "neuroshard/cost/model_catalog.h"
#include "neuroshard/evaluate/comparison.h"
#include "neuroshard/io/json/json.h"
#include "neuroshard/io/json/json_reader.h"

namespace neuroshard {

inline constexpr std::string_view kComparisonFormat = "neuroshard/comparison/1";

/// {"task": ..., "algorithm": ..., "found": ..., ...}; fields that have no value are left out.
[[nodiscard]] Json to_json(const ComparisonEntry& entry);
/// As in the documents of `compare`; fields that have no value are left out, or null.
[[nodiscard]] Json to_json(const ComparisonSummary& summary);
/// Throws InputError for fields missing, unknown or out of range.
[[nodiscard]] ComparisonEntry comparison_entry_from_json(const JsonReader& reader);

/// What a comparison's figures are to be read with.
struct ComparisonSetting {
  std::string reference{};  ///< algorithm that ratios are to
  std::string platform{};   ///< cluster on which measured plans' all-to-alls were simulated; or
                            ///< empty
  std::vector<std::string> warnings{};  ///< a line each, as of comparison_warnings
  std::string computation{};    ///< `described` of the model; empty: the text does not say it
  std::string communication{};  ///< likewise of the models
};

/// The whole result. `models` are those of the tasks, at least one.
[[nodiscard]] Json comparison_document(std::span<const CostModels> models,
                                       const std::vector<ComparisonEntry>& entries,
                                       const std::vector<ComparisonSummary>& summaries,
                                       const ComparisonSetting& setting);

}  // namespace neuroshard
