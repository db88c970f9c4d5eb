// A plan made from an older one, with little moved.
#pragma once

#include <string>
#include <string_view>

#include "neuroshard/plan/plan_task.h"

namespace neuroshard {

/// The share of the bytes that an older plan placed which a new plan may move, unless it is given.
inline constexpr double kDefaultMaxMove = 0.1;

/// Plans the task from an older plan, of this task or another one, whose tables and devices are
/// known by their names and numbers: the new plan moves at most `max_move`, from 0 to 1, of the
/// bytes that the older one placed of what the task still has (search/replan/placed_before.h).
/// `document.moves` says what moves, and how long that takes over the links of the communication
/// model. The request's `algorithm` is ignored; for a kind of model that it does not name the older
/// plan's is taken, with a warning if that has changed. `file` names the older plan in errors.
/// Throws as plan_task; InfeasibleError also if the older plan is not valid for its own task, or no
/// plan is found that moves so little.
[[nodiscard]] PlannedTask replan_task(const Task& task, const PlanDocument& older, double max_move,
                                      const PlanRequest& request, const std::string& file);

/// The options that the older plan was made with, as far as it records them: the defaults of a
/// request that is made from it. What is not as docs/formats.md says counts as absent.
[[nodiscard]] PlannerOptions options_of_older(const PlanDocument& older);

/// "10%" or "0.1" -> 0.1. Throws InputError naming `place` unless it is from 0 to 1.
[[nodiscard]] double parse_share(std::string_view text, const std::string& place);

}  // namespace neuroshard
