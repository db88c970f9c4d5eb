// Options and statistics of a search as JSON.
#include "neuroshard/search/search_json.h"

#include <cmath>
#include <cstdint>
#include <limits>
#include <optional>
#include <utility>
#include <variant>

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

ImprovementSchedule schedule_from_json(const JsonReader& reader) {
  const auto schedule = improvement_schedule_from_string(reader.text());
  if (!schedule) reader.fail("\"thorough\" or \"brief\"");
  return *schedule;
}

double time_limit_from_json(const JsonReader& reader) {
  const bool is_null = std::holds_alternative<std::monostate>(reader.value().value());
  return is_null ? std::numeric_limits<double>::infinity() : reader.number();
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
  const bool is_limited = std::isfinite(options.time_limit_seconds);
  return Json::Object{
      {"steps", options.steps},
      {"time_limit_seconds", is_limited ? Json(options.time_limit_seconds) : Json()},
      {"improvement", to_string(options.improvement)},
      {"pessimism", options.pessimism},
      {"least_gain", options.least_gain},
      {"seed", options.seed},
      {"threads", options.num_threads}};
}

PlannerOptions planner_options_from_json(const JsonReader& reader) {
  reader.allow_fields(
      {"steps", "time_limit_seconds", "improvement", "pessimism", "least_gain", "seed", "threads"});
  PlannerOptions options;
  options.steps = reader.field("steps").integer();
  options.time_limit_seconds = time_limit_from_json(reader.field("time_limit_seconds"));
  options.improvement = schedule_from_json(reader.field("improvement"));
  options.pessimism = reader.field("pessimism").number();
  options.least_gain = reader.field("least_gain").number();
  options.seed = seed_from_json(reader.field("seed"));
  options.num_threads = static_cast<int>(reader.field("threads").integer(
      std::numeric_limits<int>::min(), std::numeric_limits<int>::max()));
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
  return Json::Object{{"plans_priced", stats.plans_priced},
                      {"states_expanded", stats.states_expanded},
                      {"head_evaluations", stats.head_evaluations},
                      {"pieces_encoded", stats.pieces_encoded},
                      {"levels", std::move(levels)},
                      {"rounds", std::move(rounds)}};
}

}  // namespace neuroshard
