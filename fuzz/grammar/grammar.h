// A grammar for each format: inputs that are right or nearly so, from a seeded generator.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "fuzz/grammar/json_text.h"
#include "neuroshard/core/numbers/random.h"
#include "neuroshard/evaluate/comparison_journal.h"

namespace neuroshard::fuzz {

/// A task before it is damaged, and what a plan for it needs to know.
struct TaskSketch {
  JsonText json{};
  std::vector<std::string> names{};
  std::vector<std::int64_t> rows{};
  std::vector<std::int64_t> columns{};
  std::int64_t devices = 1;
};
/// A valid one in most cases: values are within their limits, but not always with each other.
[[nodiscard]] TaskSketch sketch_task(Random& random);
/// A name that a table may have.
[[nodiscard]] std::string table_name(std::size_t number, Random& random);
/// 17 shares that add up to 1.
[[nodiscard]] JsonText reuse_histogram(Random& random);

[[nodiscard]] std::string make_task(Random& random);
/// Undamaged, of a few tables and devices and small batches, so that its plan can be measured. Not
/// valid in some cases, as values may not go with each other.
[[nodiscard]] std::string make_small_task(Random& random);
[[nodiscard]] std::string make_plan(Random& random);
[[nodiscard]] std::string make_evaluation(Random& random);
[[nodiscard]] std::string make_compute_costs(Random& random);
[[nodiscard]] std::string make_communication_costs(Random& random);
/// safetensors; the checksum is that of the bytes in most cases, whatever they are.
[[nodiscard]] std::string make_model(Random& random);
[[nodiscard]] std::string make_journal(Random& random);
/// A SimGrid platform file.
[[nodiscard]] std::string make_platform(Random& random);
/// Words of a command line after the program's name, each ended by a zero byte. They name no file
/// but those of `option_files` and outputs in the folder that the program is run in, and ask for
/// nothing that takes long.
[[nodiscard]] std::string make_options(Random& random);

/// What journals are of, when they are not damaged.
[[nodiscard]] const Json& journal_comparison();
[[nodiscard]] const ComparedResults& journal_results();

/// What must be in the folder for `make_options`: valid files by name.
struct OptionFile {
  std::string name;
  std::string text;
};
[[nodiscard]] std::vector<OptionFile> option_files();

}  // namespace neuroshard::fuzz
