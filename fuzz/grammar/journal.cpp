// The grammar of comparison journals.
#include <string>
#include <utility>

#include "fuzz/grammar/damage.h"
#include "fuzz/grammar/grammar.h"

namespace neuroshard::fuzz {

namespace {

JsonText entry(const std::string& task, const std::string& algorithm, Random& random) {
  const auto ms = [&] { return number(once_in(10, random) ? 0.0 : random.uniform(0.0, 20.0)); };
  const bool is_found = !once_in(5, random);
  JsonText json = object({{"task", text(task)}, {"algorithm", text(algorithm)}});
  if (once_in(2, random)) json.add("cuts", array({text("columns")}));
  json.add("found", token(is_found ? "true" : "false"));
  json.add("wall_ms", ms());
  if (!is_found) return std::move(json.add("reason", text(odd_name(random))));
  json.add("predicted_ms", ms());
  if (once_in(2, random)) json.add("expected_ms", ms());
  json.add("measured_ms", ms());
  json.add("measured_compute_ms", ms());
  if (once_in(2, random)) {
    json.add("compute_mape", number(random.uniform()));
    json.add("drift", number(random.uniform(0.5, 2.0)));
    json.add("less_drift_ms", ms());
  }
  if (!once_in(10, random)) {
    json.add("device_columns", array({number(std::int64_t{8}), number(std::int64_t{0})}));
    json.add("device_compute_ms", array({ms(), ms()}));
    if (once_in(2, random)) json.add("device_less_drift_ms", array({ms(), ms()}));
  }
  if (once_in(4, random)) {
    json.add("all_reduce_bytes", number(integer_between(0, 1 << 30, random)));
    json.add("partial_sums_ms", ms());
  }
  return json;
}

}  // namespace

const Json& journal_comparison() {
  static const Json comparison =
      Json::Object{{"seed", 1}, {"measured", true}, {"models", Json::Array{"cpu", "pcie4"}}};
  return comparison;
}

const ComparedResults& journal_results() {
  static const ComparedResults results{
      {"a.json", "b.json", "c.json", "d.json"}, {2, 2, 2, 2}, {"neuroshard", "random"}, true};
  return results;
}

std::string make_journal(Random& random) {
  std::vector<JsonText> lines{object({{"format", text("neuroshard/comparison-journal/1")},
                                      {"comparison", json_text(journal_comparison())}})};
  const ComparedResults& results = journal_results();
  std::vector<std::size_t> tasks{0, 1, 2, 3};
  random.shuffle(tasks);
  tasks.resize(random.below(tasks.size() + 1));
  for (const std::size_t task : tasks) {
    JsonText entries = array({});
    for (const std::string& algorithm : results.algorithms) {
      entries.elements.push_back(entry(results.tasks[task], algorithm, random));
    }
    lines.push_back(object(
        {{"index", number(static_cast<std::int64_t>(task))}, {"entries", std::move(entries)}}));
  }
  return damaged_lines(std::move(lines), random);
}

}  // namespace neuroshard::fuzz
