// The table of readers, and those of texts: tasks, plans and evaluations.
#include "fuzz/torture/readers.h"

#include <algorithm>
#include <iterator>
#include <stdexcept>

#include "fuzz/grammar/damage.h"
#include "fuzz/grammar/grammar.h"
#include "fuzz/promise.h"
#include "fuzz/targets.h"
#include "fuzz/torture/use.h"
#include "neuroshard/report/page/report_json.h"

namespace neuroshard::fuzz {

namespace {

constexpr Reader kReaders[] = {
    {"task", make_task, read_task_text, false},
    {"plan", make_plan, read_plan_text, false},
    {"evaluation", make_evaluation, read_evaluation_text, false},
    {"compute-costs", make_compute_costs, read_compute_cost_lines, false},
    {"communication-costs", make_communication_costs, read_communication_cost_lines, false},
    {"model", make_model, read_model_file, false},
    {"journal", make_journal, read_journal_file, false},
    {"pipeline", make_small_task, take_through_pipeline, true},
    {"platform", make_platform, read_platform_file, true},
    {"options", make_options, run_command_line, true},
};

/// A plan on two devices, which some evaluations are of.
PlanDocument plan_of_two_devices() {
  for (const OptionFile& file : option_files()) {
    if (file.name == "plan.json") return parse_plan(file.text, file.name);
  }
  throw std::logic_error("no plan among the files");
}

}  // namespace

std::span<const Reader> readers() { return kReaders; }

const Reader* find_reader(std::string_view name) {
  const auto found = std::find_if(std::begin(kReaders), std::end(kReaders),
                                  [&](const Reader& reader) { return reader.name == name; });
  return found == std::end(kReaders) ? nullptr : found;
}

std::string input_of(const Reader& reader, std::uint64_t seed, std::uint64_t number) {
  Random random = Random::for_stream(seed, number);
  return reader.make(random);
}

Outcome try_input(const Reader& reader, std::uint64_t seed, std::uint64_t number,
                  Workplace& place) {
  Random random = Random::for_stream(seed, number);
  const std::string bytes = reader.make(random);
  return reader.read(bytes, place, random);
}

Outcome read_task_text(std::string_view bytes, Workplace& place, Random& random) {
  if (!task(bytes)) return Outcome::refused;
  if (!once_in(100, random)) return Outcome::read;
  return use_task(parse_task(bytes, "f"), place, random) ? Outcome::used : Outcome::read;
}

Outcome read_plan_text(std::string_view bytes, Workplace& place, Random& random) {
  if (!plan(bytes)) return Outcome::refused;
  if (!once_in(20, random)) return Outcome::read;
  return use_plan(parse_plan(bytes, "f"), place, random) ? Outcome::used : Outcome::read;
}

Outcome read_evaluation_text(std::string_view bytes, Workplace&, Random&) {
  static const PlanDocument document = plan_of_two_devices();
  if (!evaluation(bytes)) return Outcome::refused;
  const EvaluationRecord record = parse_evaluation(bytes, "f");
  const bool is_shown = answered([&] {
    const ReportData data = report_data({{"f", document}}, {{"e", record}});
    require(!to_line(to_json(data)).empty(), "an evaluation has a report");
  });
  require(is_shown == is_evaluation_of(record, document),
          "an evaluation of a plan is shown, and no other");
  return is_shown ? Outcome::used : Outcome::read;
}

}  // namespace neuroshard::fuzz
