// The main path: one plan made, made again, or priced.
#include "neuroshard/plan/plan_task.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <memory>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "neuroshard/baselines/baselines.h"
#include "neuroshard/baselines/planner_catalog.h"
#include "neuroshard/core/error.h"
#include "neuroshard/core/units.h"
#include "neuroshard/core/version.h"
#include "neuroshard/cost/communication/transfer_time.h"
#include "neuroshard/cost/expected_cost.h"
#include "neuroshard/io/task_io.h"
#include "neuroshard/plan/plan_models.h"
#include "neuroshard/plan/plan_request_io.h"
#include "neuroshard/plan/plan_warnings.h"
#include "neuroshard/search/bound/lower_bound.h"
#include "neuroshard/search/search_json.h"
#include "neuroshard/search/slices/row_slices.h"

namespace neuroshard {

namespace {

using Clock = StopClock::Clock;

/// What is done for each table after the search: its pieces are encoded for the lower bound and for
/// the range of the networks, and written [s].
constexpr double kAfterSearch_s = 30e-6;
/// Of this, what is left for each shard after the lower bound, which may be cut short: it is priced
/// by each network, for the warnings, and written [s]. On the slowest CPU that it was measured on.
constexpr double kAfterBound_s = 15e-6;
/// After the search, for each segment of a table whose rows have a known order: how a slice's rows
/// are used is a sum over segments [s].
constexpr double kAfterSearchOfSegment_s = 0.3e-6;

/// Segments of the task's tables whose rows have a known order and may be cut. Those of power laws
/// are few, and in what the limit may be exceeded by.
std::size_t num_segments(const Task& task, const Cuts& cuts) {
  std::size_t segments = 0;
  for (const Table& table : task.tables) {
    const bool may_be_cut = cuts.rows && table.allow.rows && can_slice(task, table, 2);
    if (!has_row_order(table) || !may_be_cut) continue;
    segments += table.row_access.size();
    if (table.row_access.empty() && table.index_distribution) {
      segments += table.index_distribution->access_classes.size();
    }
  }
  return segments;
}

/// When the request's time is over, and its parts: the planner ends earlier by what cannot be left
/// out after it, as far as that is more than the tenth, or the 100 ms, by which the limit may be
/// exceeded.
class TimeLimit {
 public:
  /// Throws InfeasibleError if that leaves no time to the planner.
  TimeLimit(const PlannerOptions& options, const Task& task) : end_(stop_clock_of(options).end()) {
    const double slack_s = std::max(0.1 * options.time_limit_seconds, 0.1);
    slack_ = duration(std::min(slack_s, kMostSeconds) / 2.0);
    const std::size_t num_tables = task.tables.size();
    const double after_s =
        kAfterSearch_s * static_cast<double>(num_tables) +
        kAfterSearchOfSegment_s * static_cast<double>(num_segments(task, options.cuts));
    after_ = std::max(duration(after_s) - slack_, Clock::duration{0});
    if (end_ && after_ >= duration(std::min(options.time_limit_seconds, kMostSeconds))) {
      throw InfeasibleError(fmt::format(
          "{}: what comes after a search takes about {} for {}", no_plan_in_time(options).what(),
          format_seconds(after_s), format_count(static_cast<std::int64_t>(num_tables), "table")));
    }
  }

  [[nodiscard]] StopClock clock() const { return StopClock(end_); }
  [[nodiscard]] std::optional<Clock::time_point> of_planner() const {
    return end_ ? std::optional(*end_ - after_) : std::nullopt;
  }
  [[nodiscard]] StopClock of_bound(std::size_t num_shards) const {
    const auto after = duration(kAfterBound_s * static_cast<double>(num_shards));
    return end_ ? StopClock(*end_ + slack_ - after) : StopClock();
  }

 private:
  static Clock::duration duration(double seconds) {
    return std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(seconds));
  }

  std::optional<Clock::time_point> end_;
  Clock::duration slack_{};
  Clock::duration after_{};
};

AlgorithmOutcome outcome_of(const Planner& planner, const Simulator& simulator,
                            const PlannerOptions& options) {
  AlgorithmOutcome outcome;
  outcome.algorithm = planner.name();
  const Clock::time_point start = Clock::now();
  if (stop_clock_of(options).is_over()) {
    outcome.reason = no_plan_in_time(options).what();
    return outcome;
  }
  try {
    outcome.cost_ms = planner.plan(simulator, options).predicted.cost_ms;
    outcome.found = true;
  } catch (const InfeasibleError& error) {
    outcome.reason = error.what();
  }
  outcome.wall_ms = std::chrono::duration<double, std::milli>(Clock::now() - start).count();
  return outcome;
}

Json outcome_json(const AlgorithmOutcome& outcome) {
  Json json = Json::Object{{"algorithm", outcome.algorithm}, {"found", outcome.found}};
  if (outcome.found) {
    json.set("cost_ms", outcome.cost_ms);
  } else {
    json.set("reason", outcome.reason);
  }
  json.set("wall_ms", outcome.wall_ms);
  return json;
}

/// How the plan was found (docs/formats.md); `lower_bound_ms` 0 is left out.
Json search_json(const PlannedTask& planned, const Planner& planner, const PlanRequest& request) {
  const SearchStats& stats = planned.stats;
  Json search = Json::Object{{"algorithm", std::string(planner.name())},
                             {"version", std::string(version())},
                             {"seed", request.options.seed},
                             {"options", to_json(request.options)},
                             {"plans_priced", stats.plans_priced},
                             {"states_expanded", stats.states_expanded},
                             {"head_evaluations", stats.head_evaluations},
                             {"pieces_encoded", stats.pieces_encoded},
                             {"statistics", to_json(stats)}};
  if (request.lower_bound) search.set("lower_bound_ms", planned.lower_bound_ms);
  if (planned.expected_ms) search.set("expected_ms", *planned.expected_ms);
  search.set("wall_ms", stats.wall_ms);
  if (!planned.baselines.empty()) {
    Json::Array baselines;
    for (const AlgorithmOutcome& outcome : planned.baselines) {
      baselines.push_back(outcome_json(outcome));
    }
    search.set("baselines", std::move(baselines));
  }
  return search;
}

/// The models of the plan's search: those that price it, unless the document records others.
const Json& models_of_search(const PlanDocument& document) {
  const Json* models = document.search.find("model");
  return models == nullptr ? document.model : *models;
}

bool was_stopped_by_clock(const PlanDocument& document) {
  const Json* statistics = document.search.find("statistics");
  const Json* stopped = statistics == nullptr ? nullptr : statistics->find("stopped_by_clock");
  return stopped != nullptr && *stopped == Json(true);
}

/// How the plan was found, which a new price does not change, with the new lower bound and expected
/// cost.
Json search_of_priced(const PlanDocument& found, const PricedPlan& priced, bool has_bound) {
  const Json& made_with = models_of_search(found);
  const bool by_others = !(priced.document.model == made_with);
  Json search = Json::Object{};
  const auto set_bound = [&] {
    if (has_bound) search.set("lower_bound_ms", priced.lower_bound_ms);
  };
  const auto set_expected = [&] {
    if (priced.expected_ms) search.set("expected_ms", *priced.expected_ms);
  };
  for (const Json::Member& member : *found.search.object()) {
    if (member.key == "model" && !by_others) continue;  // those that price it again
    if (member.key == "lower_bound_ms") {
      set_bound();
    } else if (member.key == "expected_ms") {
      set_expected();
    } else {
      search.set(member.key, member.value);
    }
  }
  set_bound();  // where they were not there before
  set_expected();
  if (by_others && found.search.find("options") != nullptr) search.set("model", made_with);
  return search;
}

}  // namespace

PlannedTask plan_task(const Task& task, const PlanRequest& request) {
  validate(request.options);
  PlanRequest timed = request;
  timed.options.deadline = stop_clock_of(request.options).end();
  const std::unique_ptr<Planner> planner = find_planner(request.algorithm);
  validate(task);
  return plan_task(task, load_cost_models(request.models, task.topology), *planner, timed);
}

namespace {

/// Ways in which the plan places a table other than whole on one device.
Cuts cuts_of(const Task& task, const ShardingPlan& plan) {
  return {.columns = std::any_of(plan.shards.begin(), plan.shards.end(),
                                 [&](const Shard& shard) {
                                   return shard.num_columns <
                                          task.tables[shard.table].embedding_dim;
                                 }),
          .rows = plan.has_row_slices(),
          .replicas = !plan.replicated_tables.empty()};
}

/// 0 if the clock came first.
double bound_in_time(const Simulator& simulator, const Cuts& cuts, double known_ms,
                     const StopClock& clock) {
  try {
    return lower_bound_ms(simulator, cuts, known_ms, clock);
  } catch (const TimeIsOver&) {
    return 0.0;
  }
}

Simulator simulator_in_time(const Task& task, const CostModels& models,
                            const PlannerOptions& options, const StopClock& clock) {
  try {
    clock.check();
    return {task, models.compute, models.communication, clock};
  } catch (const TimeIsOver&) {
    throw no_plan_in_time(options);
  }
}

}  // namespace

PlannedTask plan_task(const Task& task, const CostModels& models, const Planner& planner,
                      const PlanRequest& request) {
  validate(request.options);
  const TimeLimit limit(request.options, task);
  const Simulator simulator = simulator_in_time(task, models, request.options, limit.clock());
  PlannerOptions options = request.options;
  options.deadline = limit.of_planner();
  PlanningResult found = planner.plan(simulator, options);
  PlannedTask planned;
  planned.models = models;
  planned.stats = std::move(found.stats);
  if (request.lower_bound) {
    tell(options.observer, {.stage = PlanningStage::lower_bound});
    // As bound_cuts has it: a planner may have cuts of its own (baselines/planner_with_cuts.h).
    planned.lower_bound_ms =
        bound_in_time(simulator, options.cuts | cuts_of(task, found.plan), found.predicted.cost_ms,
                      limit.of_bound(found.plan.shards.size()));
  }
  planned.expected_ms = expected_cost_ms(simulator.compute(), found.predicted);
  planned.member_ranges = simulator.member_ranges(found.plan);
  planned.warnings =
      prediction_warnings(models, simulator, found.plan, found.predicted, planned.member_ranges);
  planned.notes = model_notes(models, task.topology);
  if (request.baselines) {
    const auto baselines = make_baselines();
    PlannerOptions unobserved = options;
    unobserved.observer = nullptr;
    for (const std::unique_ptr<Planner>& baseline : baselines) {
      tell(options.observer, {.stage = PlanningStage::baselines,
                              .done = static_cast<std::int64_t>(planned.baselines.size()),
                              .all = static_cast<std::int64_t>(baselines.size())});
      planned.baselines.push_back(outcome_of(*baseline, simulator, unobserved));
    }
  }
  planned.document = {task,
                      std::move(found.plan),
                      std::move(found.predicted),
                      models_json(models),
                      search_json(planned, planner, request),
                      planned.warnings};
  return planned;
}

PlannedTask plan_like(const PlanDocument& document, const std::vector<std::string>& names,
                      const std::string& file, const PlanningObserver* observer) {
  if (document.moves) {
    throw InputError(file + ": moves", "a plan that was made from its task alone",
                     "one that was made from an older plan: make it again with --from");
  }
  PlanRequest request = plan_request_of(document, file);
  // As much work as was done then, however long it takes here.
  request.options.stop_by_clock = false;
  request.options.observer = observer;
  const std::unique_ptr<Planner> planner = find_planner(request.algorithm);
  const Json& made_with = models_of_search(document);
  const CostModels models = load_models_of_plan(made_with, document.task.topology, names, file);
  if (const auto changed = changed_models(made_with, models); !changed.empty()) {
    throw InputError(file + ": " + changed.front());
  }
  PlannedTask planned = plan_task(document.task, models, *planner, request);
  ShardingPlan before = document.plan;
  sort_shards(before);
  if (planned.document.plan.shards != before.shards ||
      planned.document.plan.replicated_tables != before.replicated_tables) {
    const Json* made_by = document.search.find("version");
    planned.warnings.push_back(fmt::format(
        "{}: this is another plan than the one in the file, which version {} made{}", file,
        made_by != nullptr && made_by->text() != nullptr ? *made_by->text() : "unknown",
        was_stopped_by_clock(document) ? ", and the clock stopped" : ""));
  }
  return planned;
}

Cuts bound_cuts(const PlanDocument& document) {
  const Cuts own = cuts_of(document.task, document.plan);
  const Json* options = document.search.find("options");
  const Json* searched = options == nullptr ? nullptr : options->find("cuts");
  if (searched == nullptr) return own;
  try {
    return own | cuts_from_json(JsonReader(*searched, "search.options.cuts"));
  } catch (const InputError&) {
    return own;  // other programs write what they like into `search`
  }
}

void price_moves(const CommunicationCostModel& communication, const Topology& topology,
                 PlanMoves& moves) {
  const Interconnect* links = communication.links();
  const auto ms = [&](std::span<const DeviceTransfer> of) -> std::optional<double> {
    if (links == nullptr) return std::nullopt;
    return transfer_ms(*links, topology, of);
  };
  std::vector<DeviceTransfer> transfers;
  for (PlanMoves::Pair& pair : moves.pairs) {
    transfers.push_back(pair.transfer);
    pair.ms = ms({&pair.transfer, 1});
  }
  moves.ms = ms(transfers);
}

PricedPlan price_plan(const PlanDocument& document, const PriceRequest& request,
                      const std::string& file) {
  require_valid(document, file);
  PricedPlan priced;
  ModelsOfPlan found = models_of_plan(document, request.models, file);
  priced.models = std::move(found.models);
  priced.notes = std::move(found.notes);
  const Simulator simulator(document.task, priced.models.compute, priced.models.communication);
  const PlanCost predicted = simulator.cost(document.plan);
  priced.expected_ms = expected_cost_ms(simulator.compute(), predicted);
  priced.member_ranges = simulator.member_ranges(document.plan);
  priced.warnings =
      prediction_warnings(priced.models, simulator, document.plan, predicted, priced.member_ranges);
  if (request.lower_bound) {
    const Cuts cuts = bound_cuts(document);
    priced.lower_bound_ms = lower_bound_ms(simulator, cuts, predicted.cost_ms);
  }
  priced.document = document;
  priced.document.predicted = predicted;
  priced.document.model = models_json(priced.models);
  priced.document.search = search_of_priced(document, priced, request.lower_bound);
  priced.document.warnings = priced.warnings;
  if (priced.document.moves) {
    price_moves(*priced.models.communication, document.task.topology, *priced.document.moves);
  }
  for (std::string& line : found.changes) priced.warnings.push_back(std::move(line));
  return priced;
}

void require_valid(const PlanDocument& document, const std::string& file) {
  const std::vector<std::string> found = violations(document.task, document.plan);
  if (!found.empty()) {
    throw InfeasibleError(fmt::format("{}: not valid: {}", file, found.front()));
  }
}

}  // namespace neuroshard
