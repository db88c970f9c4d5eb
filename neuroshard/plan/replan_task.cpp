// Older plan, models and limit -> new plan with its moves.
#include "neuroshard/plan/replan_task.h"

#include <fmt/format.h>

#include <charconv>
#include <memory>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "neuroshard/core/error.h"
#include "neuroshard/cost/communication/transfer_time.h"
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
  const Interconnect* links = planned.models.communication->links();
  const auto ms = [&](std::span<const DeviceTransfer> of) -> std::optional<double> {
    if (links == nullptr) return std::nullopt;
    return transfer_ms(*links, document.task.topology, of);
  };
  moves.ms = ms(transfers);
  for (const DeviceTransfer& transfer : transfers) {
    moves.pairs.push_back({transfer, ms({&transfer, 1})});
  }
  return moves;
}

}  // namespace

PlannedTask replan_task(const Task& task, const PlanDocument& older, double max_move,
                        const PlanRequest& request, const std::string& file) {
  if (!(max_move >= 0.0 && max_move <= 1.0)) {
    throw InputError("max_move", "a share from 0 to 1", fmt::format("{}", max_move));
  }
  PlanRequest timed = request;
  timed.options.deadline = stop_clock_of(request.options).end();
  validate(task);
  require_valid(older, file);
  const CostModels models = load_models_of_plan(older.model, task.topology, request.models, file);
  const auto before = std::make_shared<const PlacedBefore>(older.task, older.plan, task);
  PlannedTask planned = plan_task(task, models, Replanner(before, max_move), timed);
  planned.document.moves = moves_of(planned, *before, max_move);
  if (request.models.empty()) {
    for (std::string& line : changed_models(older.model, models)) {
      planned.warnings.push_back(std::move(line));
    }
  }
  return planned;
}

PlannerOptions options_of_older(const PlanDocument& older, const std::string& file) {
  if (older.search.find("options") == nullptr) return {};
  const Json around = Json::Object{{"search", older.search}};
  PlannerOptions of_old_plans;
  of_old_plans.cuts = kColumnsAlone;
  const JsonReader whole(around, file);
  const JsonReader search = whole.field("search");
  return planner_options_from_json(search.field("options"), of_old_plans);
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
  return value;
}

}  // namespace neuroshard
