// Older plan, models and limit -> new plan with its moves.
#include "neuroshard/plan/replan_task.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <charconv>
#include <cstdint>
#include <map>
#include <memory>
#include <string_view>
#include <utility>
#include <vector>

#include "neuroshard/core/error.h"
#include "neuroshard/plan/plan_models.h"
#include "neuroshard/search/replan/replanner.h"
#include "neuroshard/search/search_json.h"

namespace neuroshard {

namespace {

PlanMoves moves_of(const PlannedTask& planned, const PlacedBefore& before, double max_move) {
  const PlanDocument& document = planned.document;
  const std::vector<DeviceTransfer> transfers = before.transfers(document.plan);
  PlanMoves moves;
  moves.max_move = max_move;
  moves.placed_bytes = before.total_bytes();
  moves.moved_bytes = before.moved_bytes(document.plan);
  for (const DeviceTransfer& transfer : transfers) moves.pairs.push_back({.transfer = transfer});
  price_moves(*planned.models.communication, document.task.topology, moves);
  return moves;
}

/// Which of the task's tables are not as they were in the older plan. Tables are the same if their
/// names and dimensions are (search/replan/placed_before.h).
void compare_tables(const Task& older, const Task& task, PlannedTask& planned) {
  std::map<std::string_view, const Table*> left;
  for (const Table& table : older.tables) left.emplace(table.name, &table);
  std::int64_t num_same = 0;
  std::int64_t num_new = 0;
  std::int64_t num_redimensioned = 0;
  std::int64_t num_resized = 0;
  for (const Table& table : task.tables) {
    const auto before = left.find(table.name);
    if (before == left.end()) {
      ++num_new;
      continue;
    }
    if (before->second->embedding_dim != table.embedding_dim) {
      ++num_redimensioned;
    } else {
      ++num_same;
      if (before->second->num_embeddings != table.num_embeddings) ++num_resized;
    }
    left.erase(before);
  }
  if (num_same == 0) {
    planned.warnings.emplace_back(
        "the task has none of the older plan's tables, by name and dimension: all are placed anew, "
        "and no limit on what moves applies");
    return;
  }
  std::vector<std::string> changes;
  const auto add = [&](std::int64_t number, const char* what) {
    if (number > 0) changes.push_back(fmt::format("{} {}", number, what));
  };
  add(num_new, "new");
  add(static_cast<std::int64_t>(left.size()), "gone");
  add(num_redimensioned, "of another dimension, which counts as new");
  add(num_resized, "with another number of rows");
  if (changes.empty()) return;
  planned.notes.push_back(
      fmt::format("tables compared with the older plan's: {}", fmt::join(changes, ", ")));
}

}  // namespace

PlannedTask replan_task(const Task& task, const PlanDocument& older, double max_move,
                        const PlanRequest& request, const std::string& file) {
  if (!(max_move >= 0.0 && max_move <= 1.0)) {
    throw InputError("max_move", "a share from 0 to 1", fmt::format("{}", max_move));
  }
  validate(request.options);
  PlanRequest timed = request;
  timed.options.deadline = stop_clock_of(request.options).end();
  validate(task);
  require_valid(older, file);
  const CostModels models = load_models_of_plan(older.model, task.topology, request.models, file);
  const auto before = std::make_shared<const PlacedBefore>(older.task, older.plan, task);
  PlannedTask planned = plan_task(task, models, Replanner(before, max_move), timed);
  planned.document.moves = moves_of(planned, *before, max_move);
  planned.document.moves->older_plan_sha256 = plan_sha256(older);
  compare_tables(older.task, task, planned);
  if (request.models.empty()) {
    for (std::string& line : changed_models(older.model, models)) {
      planned.warnings.push_back(std::move(line));
    }
  }
  return planned;
}

PlannerOptions options_of_older(const PlanDocument& older) {
  const Json* recorded = older.search.find("options");
  if (recorded == nullptr || recorded->object() == nullptr) return {};
  PlannerOptions options;
  options.cuts = kColumnsAlone;  // of plans that are older than the others
  for (const Json::Member& member : *recorded->object()) {
    const Json one = Json::Object{{member.key, member.value}};
    try {
      options = planner_options_from_json(JsonReader(one, "search.options"), options);
    } catch (const InputError&) {
      continue;  // other programs write what they like into `search`
    }
  }
  options.stop_by_clock = false;  // another planning may take as long as it needs
  return options;
}

double parse_share(std::string_view text, const std::string& place) {
  const bool is_percentage = text.ends_with('%');
  const std::string_view number = is_percentage ? text.substr(0, text.size() - 1) : text;
  double value = -1.0;
  const auto [at, status] = std::from_chars(number.data(), number.data() + number.size(), value);
  if (is_percentage) value /= 100.0;
  const bool is_share = status == std::errc{} && at == number.data() + number.size() &&
                        value >= 0.0 && value <= 1.0;  // not so for NaN
  if (!is_share) {
    throw InputError(place, "a share such as 10% or 0.1, from 0 to 1", fmt::format("\"{}\"", text));
  }
  return value + 0.0;  // "-0" is shown as 0
}

}  // namespace neuroshard
