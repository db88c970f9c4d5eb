// Options and statistics of a search as JSON: the fields `options` and `statistics` of a plan's
// `search` (docs/formats.md).
#pragma once

#include "neuroshard/io/json/json.h"
#include "neuroshard/io/json/json_reader.h"
#include "neuroshard/search/planner.h"

namespace neuroshard {

/// Every option by its long name in snake case, as a user writes it: "steps", "time_limit" ("1s";
/// null: none), "improvement" ("thorough" or "brief"), "pessimism", "least_gain", "cuts",
/// "seed", "threads"; and "stop_by_clock", if it is true.
[[nodiscard]] Json to_json(const PlannerOptions& options);

/// Reads back what `to_json` wrote, exactly; what is absent is as in `defaults`. Throws InputError,
/// which names file and option, for an unknown option or a value out of range.
[[nodiscard]] PlannerOptions planner_options_from_json(const JsonReader& reader,
                                                       const PlannerOptions& defaults = {});

/// "stopped_by_clock", and "levels" and "rounds" with an object each, whose fields are those of the
/// structs of search_stats.h and their number. No times: the same search always gives the same
/// bytes.
[[nodiscard]] Json to_json(const SearchStats& stats);

}  // namespace neuroshard
