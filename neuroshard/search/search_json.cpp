// Options and statistics of a search as JSON.
#include "neuroshard/search/search_json.h"

#include <fmt/format.h>

#include <cmath>
#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <utility>
#include <variant>

#include "neuroshard/core/error.h"
#include "neuroshard/core/machine/parallel.h"
#include "neuroshard/core/units.h"
#include "neuroshard/io/task_io.h"

namespace neuroshard {

namespace {

Json number_or_null(std::optional<double> value) { return value ? Json(*value) : Json(); }

/// Integers of all 64 bits without sign, which JsonReader::integer does not have.
std::uint64_t seed_from_json(const JsonReader& reader) {
  if (const auto* large = std::get_if<std::uint64_t>(&reader.value().value())) return *large;
  const auto* integer = std::get_if<std::int64_t>(&reader.value().value());
  if (integer == nullptr || *integer < 0) reader.fail("an integer of 0 or more and 64 bits");
  return static_cast<std::uint64_t>(*integer);
}

/// In as few digits as read back to the same number.
Json time_limit_json(double seconds) {
  return std::isfinite(seconds) ? Json(fmt::format("{}s", seconds)) : Json();
}

ImprovementSchedule schedule_from_json(const JsonReader& reader) {
  const auto schedule = improvement_schedule_from_string(reader.text());
  if (!schedule) reader.fail("thorough or brief");
  return *schedule;
}

double time_limit_from_json(const JsonReader& reader) {
  if (std::holds_alternative<std::monostate>(reader.value().value())) {
    return std::numeric_limits<double>::infinity();
  }
  const std::string& text = reader.text();
  try {
    return parse_seconds(text, "");
  } catch (const InputError&) {
    reader.fail("a time above 0 such as 500ms or 10s, or null");
  }
}

Json level_json(std::int64_t number, const BeamLevelStats& level) {
  return Json::Object{{"level", number},
                      {"states_tried", level.states_tried},
                      {"states_feasible", level.states_feasible},
                      {"best_cost_ms", number_or_null(level.best_cost_ms)},
                      {"unplaced_bytes", level.unplaced_bytes},
                      {"plans_priced", level.plans_priced},
                      {"head_evaluations", level.head_evaluations},
                      {"pieces_encoded", level.pieces_encoded}};
}

const char* name_of(ChainKind kind) {
  return kind == ChainKind::annealing ? "annealing" : "large_neighbourhood";
}

Json chain_json(const ChainStats& chain) {
  return Json::Object{{"kind", name_of(chain.kind)},
                      {"best_cost_ms", chain.best_cost_ms},
                      {"steps", chain.steps},
                      {"steps_accepted", chain.steps_accepted},
                      {"plans_priced", chain.plans_priced},
                      {"head_evaluations", chain.head_evaluations},
                      {"pieces_encoded", chain.pieces_encoded}};
}

Json round_json(std::int64_t number, const ImprovementRoundStats& round) {
  Json::Array chains;
  for (const ChainStats& chain : round.chains) chains.push_back(chain_json(chain));
  return Json::Object{{"round", number},
                      {"cost_before_ms", round.cost_before_ms},
                      {"cost_after_ms", round.cost_after_ms},
                      {"best_chain", round.best_chain ? Json(*round.best_chain) : Json()},
                      {"chains", std::move(chains)}};
}

}  // namespace

Json to_json(const PlannerOptions& options) {
  Json json = Json::Object{{"steps", options.steps},
                           {"time_limit", time_limit_json(options.time_limit_seconds)},
                           {"improvement", to_string(options.improvement)},
                           {"pessimism", options.pessimism},
                           {"least_gain", options.least_gain},
                           {"cuts", to_json(options.cuts)},
                           {"seed", options.seed},
                           {"threads", options.num_threads}};
  if (options.stop_by_clock) json.set("stop_by_clock", true);
  return json;
}

PlannerOptions planner_options_from_json(const JsonReader& reader, const PlannerOptions& defaults) {
  reader.allow_fields({"steps", "time_limit", "improvement", "pessimism", "least_gain", "cuts",
                       "seed", "threads", "stop_by_clock"});
  PlannerOptions options = defaults;
  const auto read = [&](const char* name, const auto& take) {
    if (const auto field = reader.optional_field(name)) take(*field);
  };
  read("steps", [&](const JsonReader& field) { options.steps = field.integer(); });
  read("time_limit",
       [&](const JsonReader& field) { options.time_limit_seconds = time_limit_from_json(field); });
  read("improvement",
       [&](const JsonReader& field) { options.improvement = schedule_from_json(field); });
  read("pessimism", [&](const JsonReader& field) { options.pessimism = field.number(); });
  read("least_gain", [&](const JsonReader& field) { options.least_gain = field.number(); });
  read("cuts", [&](const JsonReader& field) { options.cuts = cuts_from_json(field); });
  read("seed", [&](const JsonReader& field) { options.seed = seed_from_json(field); });
  read("threads", [&](const JsonReader& field) {
    options.num_threads =
        static_cast<int>(field.integer(std::numeric_limits<int>::min(), kMaxThreads));
  });
  read("stop_by_clock", [&](const JsonReader& field) { options.stop_by_clock = field.boolean(); });
  reader.check([&] { validate(options); });
  return options;
}

Json to_json(const SearchStats& stats) {
  Json::Array levels;
  for (const BeamLevelStats& level : stats.levels) {
    levels.push_back(level_json(static_cast<std::int64_t>(levels.size()), level));
  }
  Json::Array rounds;
  for (const ImprovementRoundStats& round : stats.rounds) {
    rounds.push_back(round_json(static_cast<std::int64_t>(rounds.size()), round));
  }
  return Json::Object{{"levels", std::move(levels)},
                      {"rounds", std::move(rounds)},
                      {"stopped_by_clock", stats.stopped_by_clock}};
}

}  // namespace neuroshard
