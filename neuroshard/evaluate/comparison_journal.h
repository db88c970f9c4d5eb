// A comparison that can be stopped and continued: its results task by task in a JSON Lines file.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "neuroshard/evaluate/comparison.h"
#include "neuroshard/io/json/json.h"
#include "neuroshard/io/json/json_lines.h"

namespace neuroshard {

/// What the entries of a comparison must be of.
struct ComparedResults {
  std::vector<std::string> tasks;       ///< names, by number
  std::vector<int> world_sizes;         ///< devices of each task
  std::vector<std::string> algorithms;  ///< names, in the order of a task's entries
  bool measured = false;                ///< whether every plan has a measured cost
};

/// The first line names everything that the results depend on, given by the caller; every other one
/// is {"index": number of the task, "entries": [...]}. So a continued run measures the tasks that
/// are missing and refuses a file of another comparison.
class ComparisonJournal {
 public:
  /// Reads what an earlier run left, if there is a file. Throws InputError if it is malformed or of
  /// another comparison; the message names the first field that differs. Lines that are not of
  /// `results` are refused too: a journal that somebody has edited or damaged is not believed.
  ComparisonJournal(const std::string& path, const Json& comparison,
                    const ComparedResults& results);

  /// The entries of a task that is done already.
  [[nodiscard]] const std::vector<ComparisonEntry>* find(std::int64_t task) const;

  void append(std::int64_t task, const std::vector<ComparisonEntry>& entries);

 private:
  std::map<std::int64_t, std::vector<ComparisonEntry>> done_;
  std::optional<JsonLinesWriter> writer_;
};

}  // namespace neuroshard
