// The readers of everything that comes from outside, each with the grammar of its inputs and the
// promise that it keeps.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "fuzz/torture/workplace.h"
#include "neuroshard/core/numbers/random.h"

namespace neuroshard::fuzz {

/// What became of an input.
enum class Outcome {
  refused,  ///< by an error of the library
  read,     ///< accepted
  used,     ///< and taken further: planned, priced, trained on, simulated
};

struct Reader {
  std::string_view name;
  std::string (*make)(Random& random);
  /// Throws Violation, or whatever else the reader should not have thrown.
  Outcome (*read)(std::string_view bytes, Workplace& place, Random& random);
  /// Each input takes some hundred times as long: a process of its own, or a measurement.
  bool is_slow;
};

[[nodiscard]] std::span<const Reader> readers();
/// nullptr for an unknown name.
[[nodiscard]] const Reader* find_reader(std::string_view name);

/// The input of this number, which follows from the seed and the number alone.
[[nodiscard]] std::string input_of(const Reader& reader, std::uint64_t seed, std::uint64_t number);

/// Makes it and reads it. Throws as Reader::read does.
Outcome try_input(const Reader& reader, std::uint64_t seed, std::uint64_t number, Workplace& place);

// The promises, reader by reader.
Outcome read_task_text(std::string_view bytes, Workplace& place, Random& random);
Outcome read_plan_text(std::string_view bytes, Workplace& place, Random& random);
Outcome read_evaluation_text(std::string_view bytes, Workplace& place, Random& random);
Outcome read_compute_cost_lines(std::string_view bytes, Workplace& place, Random& random);
Outcome read_communication_cost_lines(std::string_view bytes, Workplace& place, Random& random);
Outcome read_model_file(std::string_view bytes, Workplace& place, Random& random);
Outcome read_journal_file(std::string_view bytes, Workplace& place, Random& random);
Outcome read_platform_file(std::string_view bytes, Workplace& place, Random& random);
Outcome take_through_pipeline(std::string_view bytes, Workplace& place, Random& random);
Outcome run_command_line(std::string_view words, Workplace& place, Random& random);

}  // namespace neuroshard::fuzz
