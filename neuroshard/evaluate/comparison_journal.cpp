// Comparison results as JSON, one task a line.
#include "neuroshard/evaluate/comparison_journal.h"

#include <utility>

#include "neuroshard/evaluate/comparison_io.h"
#include "neuroshard/io/file.h"
#include "neuroshard/io/json/json_reader.h"

namespace neuroshard {

namespace {

constexpr std::string_view kFormat = "neuroshard/comparison-journal/1";

Json header_of(const Json& comparison) {
  return Json::Object{{"format", std::string(kFormat)}, {"comparison", comparison}};
}

}  // namespace

ComparisonJournal::ComparisonJournal(const std::string& path, const Json& comparison) {
  // The writer comes first: it refuses the file of another comparison before any line is read.
  writer_.emplace(path, header_of(comparison), [](const JsonReader& header) {
    header.expect_format(kFormat);
    header.allow_fields({"format", "comparison"});
    return header_of(header.field("comparison").object());
  });
  if (writer_->done().empty()) return;
  (void)read_json_lines(
      read_file(path), path, [](const JsonReader&) {},
      [&](const JsonReader& line) {
        line.allow_fields({"index", "entries"});
        const std::int64_t task = line.field("index").integer(0);
        const JsonReader entries = line.field("entries");
        std::vector<ComparisonEntry> read;
        for (std::size_t i = 0; i < entries.array_size(); ++i) {
          read.push_back(comparison_entry_from_json(entries.element(i)));
        }
        if (!done_.emplace(task, std::move(read)).second) {
          line.field("index").fail("a task's number once in the file");
        }
      });
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
