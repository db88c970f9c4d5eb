// Comparison results as JSON, one task a line.
#include "neuroshard/evaluate/comparison_journal.h"

#include <fmt/format.h>

#include <filesystem>
#include <string>
#include <string_view>
#include <utility>

#include "neuroshard/core/error.h"
#include "neuroshard/evaluate/comparison_io.h"
#include "neuroshard/io/json/json_reader.h"

namespace neuroshard {

namespace {

constexpr std::string_view kFormat = "neuroshard/comparison-journal/1";

std::string name_in_folder(const std::string& path) {
  return std::filesystem::path(path).filename();
}

/// A task's identity without the folder of its file: a journal goes on from any folder.
Json without_folder(Json identity) {
  const Json* file = identity.find("file");
  if (file != nullptr && file->text() != nullptr)
    identity.set("file", name_in_folder(*file->text()));
  return identity;
}

Json header_of(Json comparison) {
  if (const Json* tasks = comparison.find("tasks"); tasks != nullptr && tasks->array() != nullptr) {
    Json::Array identities = *tasks->array();
    for (Json& identity : identities) identity = without_folder(std::move(identity));
    comparison.set("tasks", std::move(identities));
  }
  return Json::Object{{"format", std::string(kFormat)}, {"comparison", std::move(comparison)}};
}

bool has_measured(const ComparisonEntry& entry) {
  return entry.measured_ms || entry.measured_compute_ms || entry.compute_mape || entry.drift ||
         entry.less_drift_ms;
}

/// The entry of one algorithm for one task. Throws InputError for that of another.
ComparisonEntry read_entry(const JsonReader& json, const std::string& task, int world_size,
                           const std::string& algorithm, bool measured) {
  ComparisonEntry entry = comparison_entry_from_json(json);
  const auto require = [&](std::string_view field, const std::string& expected,
                           const std::string& actual) {
    if (actual != expected) json.field(field).fail(in_quotes(expected));
  };
  require("task", name_in_folder(task), name_in_folder(entry.task));
  require("algorithm", algorithm, entry.algorithm);
  entry.task = task;
  if (measured && entry.found && !entry.measured_ms) {
    json.fail("measured_ms, as plans of this comparison are measured", "none");
  }
  if (measured && entry.found &&
      entry.device_columns.size() != static_cast<std::size_t>(world_size)) {
    json.field("device_columns").fail(fmt::format("{} numbers, one per device", world_size));
  }
  if (!measured && has_measured(entry)) {
    json.fail("nothing measured, as this comparison measures no plan", "a measured cost");
  }
  return entry;
}

}  // namespace

ComparisonJournal::ComparisonJournal(const std::string& path, const Json& comparison,
                                     const ComparedResults& results) {
  const auto canonical_header = [](const JsonReader& header) {
    header.expect_format(kFormat);
    header.allow_fields({"format", "comparison"});
    return header_of(header.field("comparison").object());
  };
  const auto read_task = [&](const JsonReader& line) {
    line.allow_fields({"index", "entries"});
    const std::int64_t task =
        line.field("index").integer(0, static_cast<std::int64_t>(results.tasks.size()) - 1);
    if (done_.contains(task)) line.field("index").fail("a task's number once in the file");
    const JsonReader entries = line.field("entries");
    if (entries.array_size() != results.algorithms.size()) {
      entries.fail(fmt::format("an entry for each algorithm ({})", results.algorithms.size()),
                   std::to_string(entries.array_size()));
    }
    std::vector<ComparisonEntry> read;
    for (std::size_t i = 0; i < entries.array_size(); ++i) {
      const auto number = static_cast<std::size_t>(task);
      read.push_back(read_entry(entries.element(i), results.tasks[number],
                                results.world_sizes[number], results.algorithms[i],
                                results.measured));
    }
    done_.emplace(task, std::move(read));
  };
  writer_.emplace(path, header_of(comparison), canonical_header, read_task);
}

const std::vector<ComparisonEntry>* ComparisonJournal::find(std::int64_t task) const {
  const auto found = done_.find(task);
  return found == done_.end() ? nullptr : &found->second;
}

void ComparisonJournal::append(std::int64_t task, const std::vector<ComparisonEntry>& entries) {
  Json::Array array;
  for (const ComparisonEntry& entry : entries) array.push_back(to_json(entry));
  writer_->append(Json::Object{{"index", task}, {"entries", std::move(array)}});
  writer_->sync();
}

}  // namespace neuroshard
