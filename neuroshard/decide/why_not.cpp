// Choices forced by pins, by tables cut beforehand, or by a start that the improvement keeps.
#include "neuroshard/decide/why_not.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <iterator>
#include <optional>
#include <set>
#include <utility>

#include "neuroshard/core/error.h"
#include "neuroshard/core/slowest_device.h"
#include "neuroshard/core/table_pins.h"
#include "neuroshard/core/units.h"
#include "neuroshard/decide/planning_again.h"
#include "neuroshard/plan/collected_warnings.h"
#include "neuroshard/plan/plan_task.h"
#include "neuroshard/plan/plan_warnings.h"
#include "neuroshard/search/replan/replanner.h"

namespace neuroshard {

namespace {

constexpr const char* kChoices =
    "TABLE:rows=R, TABLE:columns=C, TABLE:replicated or TABLE:device=D";

/// The number after `name`; nothing if the text is not that.
std::optional<int> number_after(std::string_view text, std::string_view name) {
  if (!text.starts_with(name)) return std::nullopt;
  text.remove_prefix(name.size());
  int number = -1;
  const auto [at, status] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (status != std::errc{} || at != text.data() + text.size() || number < 0) return std::nullopt;
  return number;
}

std::vector<Shard> shards_of(const ShardingPlan& plan, int table) {
  std::vector<Shard> shards;
  for (const Shard& shard : plan.shards) {
    if (shard.table == table) shards.push_back(shard);
  }
  return shards;
}

bool is_on_every_device(const ShardingPlan& plan, int table) {
  const std::vector<int>& copies = plan.replicated_tables;
  return std::find(copies.begin(), copies.end(), table) != copies.end();
}

/// Whether the table lies in the plan as the choice says.
bool meets(const ShardingPlan& plan, int table, const Choice& choice) {
  if (choice.kind == Choice::Kind::replicated) return is_on_every_device(plan, table);
  if (is_on_every_device(plan, table)) return false;
  const std::vector<Shard> shards = shards_of(plan, table);
  const auto all = [&](const auto& is_so) {
    return std::all_of(shards.begin(), shards.end(), is_so);
  };
  if (choice.kind == Choice::Kind::device) {
    return all([&](const Shard& shard) { return shard.device == choice.number; });
  }
  if (choice.kind == Choice::Kind::columns) {
    return static_cast<int>(shards.size()) == choice.number &&
           all([](const Shard& shard) { return shard.has_all_rows(); });
  }
  // Slices may be in pieces of columns, each of the same rows.
  std::set<std::pair<std::int64_t, std::int64_t>> slices;
  for (const Shard& shard : shards) slices.emplace(shard.row_offset, shard.num_rows);
  return static_cast<int>(slices.size()) == choice.number;
}

/// The search for a plan with a choice.
class ForcedPlanning {
 public:
  ForcedPlanning(const PricedPlan& priced, const Choice& choice, PlannerOptions options)
      : priced_(priced),
        document_(priced.document),
        task_(priced.document.task),
        choice_(choice),
        options_(options),
        number_(find_table(task_, choice.table, "--why-not")),
        table_(task_.tables[number_]),
        allowed_(allowed_cuts(task_)[number_]) {}

  /// Of a plan that has the choice already, no worse than that.
  [[nodiscard]] PlanningResult plan() const {
    const bool is_met = is_met_already();
    std::optional<PlanningResult> best;
    try {
      best = planned();
    } catch (const InfeasibleError&) {
      if (!is_met) throw;
    }
    if (best && !meets(best->plan, number_, choice_)) best.reset();
    if (is_met) {
      const double cost_ms = best ? best->predicted.cost_ms : 0.0;
      const PlanCost& own = *document_.predicted;
      if (!best || own.cost_ms <= cost_ms) best = PlanningResult{document_.plan, own, {}};
    }
    if (best) return std::move(*best);
    throw InfeasibleError(fmt::format("no plan found that fits into memory with table \"{}\" {}",
                                      choice_.table, choice_text(choice_)));
  }

  [[nodiscard]] bool is_met_already() const { return meets(document_.plan, number_, choice_); }
  [[nodiscard]] Simulator simulator() const { return simulator_of(task_); }

 private:
  [[nodiscard]] PlanningResult planned() const {
    switch (choice_.kind) {
      case Choice::Kind::device:
        return on_device();
      case Choice::Kind::columns:
        return in_columns();
      case Choice::Kind::rows:
        return in_rows();
      default:
        return replicated();
    }
  }

  [[nodiscard]] Simulator simulator_of(Task task) const {
    return {std::move(task), priced_.models.compute, priced_.models.communication};
  }

  [[noreturn]] void refuse(const std::string& expected) const {
    throw InputError("--why-not", fmt::format("{} of table \"{}\"", expected, choice_.table),
                     fmt::format("{}", choice_.number));
  }
  /// `cut` as tasks name it: "columns", "rows" or "replicas".
  void require_allowed(bool is_allowed, const char* cut, const char* what) const {
    if (is_allowed) return;
    throw InfeasibleError(fmt::format("table \"{}\": the task does not allow {}, as {}",
                                      choice_.table, what,
                                      reason_against_cut(task_, TablePins(task_), number_, cut)));
  }

  PlanningResult on_device() const {
    const int devices = task_.topology.world_size;
    if (choice_.number >= devices) {
      throw InputError("--why-not", fmt::format("a device from 0 to {}", devices - 1),
                       fmt::format("{}", choice_.number));
    }
    const TablePins pins(task_);
    if (!pins.permits(number_, choice_.number)) {
      throw InfeasibleError(fmt::format("table \"{}\": the task does not allow it on device {}",
                                        choice_.table, choice_.number));
    }
    Task pinned = task_;
    pinned.tables[number_].devices = {choice_.number};
    return planned_again(simulator_of(std::move(pinned)), document_, options_);
  }

  /// The table as several, of some of its columns each, which cannot be cut.
  PlanningResult in_columns() const {
    const std::int64_t dim = table_.embedding_dim;
    const std::int64_t pieces = choice_.number;
    const std::int64_t quanta = dim / kColumnGranularity;
    if (pieces < 1) refuse("at least one piece of columns");
    if (pieces > 1) require_allowed(allowed_.columns, "columns", "pieces of its columns");
    const bool can_be =
        pieces == 1 || (can_cut(dim) && pieces <= quanta &&
                        quanta / pieces * kColumnGranularity >= narrowest_cut(table_));
    if (!can_be) {
      refuse(fmt::format("at most {} of columns",
                         format_count(can_cut(dim) ? dim / narrowest_cut(table_) : 1, "piece")));
    }
    Task split = task_;
    std::vector<Table> parts;
    std::vector<std::int64_t> offsets{0};
    for (std::int64_t i = 0; i < pieces; ++i) {
      Table part = table_;
      part.embedding_dim =
          pieces == 1 ? dim
                      : (quanta / pieces + (i < quanta % pieces ? 1 : 0)) * kColumnGranularity;
      part.allow = {false, false, false};
      if (pieces > 1) part.name = unused_name(i);
      offsets.push_back(offsets.back() + part.embedding_dim);
      parts.push_back(std::move(part));
    }
    split.tables[number_] = parts.front();
    split.tables.insert(split.tables.end(), parts.begin() + 1, parts.end());
    PlanningResult result = planned_again(simulator_of(split), document_, options_);
    const auto first_added = static_cast<int>(task_.tables.size());
    for (Shard& shard : result.plan.shards) {
      const int part = shard.table == number_       ? 0
                       : shard.table >= first_added ? shard.table - first_added + 1
                                                    : -1;
      if (part < 0) continue;
      shard.table = number_;
      shard.column_offset = offsets[part];
    }
    sort_shards(result.plan);
    result.predicted = simulator().cost(result.plan);
    return result;
  }

  [[nodiscard]] std::string unused_name(std::int64_t part) const {
    std::string name = fmt::format("{}#{}", table_.name, part);
    const auto is_used = [&] {
      return std::any_of(task_.tables.begin(), task_.tables.end(),
                         [&](const Table& other) { return other.name == name; });
    };
    while (is_used()) name += '#';
    return name;
  }

  /// The plan without the table.
  [[nodiscard]] ShardingPlan others() const {
    ShardingPlan plan = document_.plan;
    std::erase_if(plan.shards, [&](const Shard& shard) { return shard.table == number_; });
    std::erase(plan.replicated_tables, number_);
    return plan;
  }

  PlanningResult in_rows() const {
    if (choice_.number < 1) refuse("at least one slice of rows");
    if (choice_.number > 1) require_allowed(allowed_.rows, "rows", "slices of its rows");
    const Simulator all = simulator();
    // As it is: plans by others may have more slices than there are devices.
    if (is_met_already()) return improved_from(all, document_.plan, options_);
    const std::int64_t least = std::max<std::int64_t>(table_.min_shard_rows, 1);
    const std::int64_t most =
        std::min<std::int64_t>(task_.topology.world_size, table_.num_embeddings / least);
    if (choice_.number > 1 && choice_.number > most) {
      refuse(fmt::format("at most {} of rows", format_count(most, "slice")));
    }
    ShardingPlan parts = others();
    const std::vector<std::int64_t> ends = all.slice_ends(number_, choice_.number);
    for (int i = 0; i < choice_.number; ++i) {
      Shard slice{number_, 0, table_.embedding_dim, -1};
      if (choice_.number > 1) {
        slice.row_offset = ends[i];
        slice.num_rows = ends[i + 1] - ends[i];
      }
      parts.shards.push_back(slice);
    }
    return improved_from(all, parts, options_);
  }

  PlanningResult replicated() const {
    require_allowed(allowed_.replicas, "replicas", "copies of it on every device");
    if (is_met_already()) return improved_from(simulator(), document_.plan, options_);
    ShardingPlan parts = others();
    parts.replicated_tables.push_back(number_);
    sort_shards(parts);
    return improved_from(simulator(), parts, options_);
  }

  const PricedPlan& priced_;
  const PlanDocument& document_;
  const Task& task_;
  const Choice& choice_;
  PlannerOptions options_;
  int number_;
  const Table& table_;
  Cuts allowed_;
};

}  // namespace

std::string choice_text(const Choice& choice) {
  switch (choice.kind) {
    case Choice::Kind::rows:
      return fmt::format("in {} of rows", format_count(choice.number, "slice"));
    case Choice::Kind::columns:
      return fmt::format("in {} of columns", format_count(choice.number, "piece"));
    case Choice::Kind::replicated:
      return "whole on every device";
    default:
      return fmt::format("on device {}", choice.number);
  }
}

Choice parse_choice(std::string_view text, const std::string& place) {
  const std::size_t colon = text.rfind(':');
  Choice choice;
  if (colon != std::string_view::npos && colon > 0) {
    choice.table = text.substr(0, colon);
    const std::string_view what = text.substr(colon + 1);
    const auto take = [&](std::string_view name, Choice::Kind kind) {
      const std::optional<int> number = number_after(what, name);
      if (!number) return false;
      choice.kind = kind;
      choice.number = *number;
      return true;
    };
    if (what == "replicated") {
      choice.kind = Choice::Kind::replicated;
      return choice;
    }
    if (take("rows=", Choice::Kind::rows) || take("columns=", Choice::Kind::columns) ||
        take("device=", Choice::Kind::device)) {
      return choice;
    }
  }
  throw InputError(place, kChoices, fmt::format("\"{}\"", text));
}

WhyNot why_not(const PlanDocument& document, const Choice& choice, const ExplainRequest& request,
               const std::string& file) {
  const PlannerOptions options = short_search(document, request.seconds_per_planning);
  const PricedPlan priced = price_plan(document, {request.models, false}, file);
  const ForcedPlanning forced(priced, choice, options);
  const PlanningResult planned = forced.plan();
  const Simulator simulator = forced.simulator();
  const PlanCost cost = simulator.cost(planned.plan);
  const int number = find_table(document.task, choice.table, "--why-not");
  WhyNot result;
  result.choice = choice;
  result.is_met_already = forced.is_met_already();
  result.warnings = priced.warnings;
  std::vector<std::string> known = priced.warnings;
  std::ranges::move(
      further_warnings("with the choice",
                       prediction_warnings(priced.models, simulator, planned.plan), known),
      std::back_inserter(result.warnings));
  result.notes = priced.notes;
  result.cost_ms = priced.document.predicted->cost_ms;
  result.choice_ms = cost.cost_ms;
  result.shards = shards_of(document.plan, number);
  result.choice_shards = shards_of(planned.plan, number);
  result.is_replicated = is_on_every_device(document.plan, number);
  result.models = priced.models;
  const std::vector<DeviceCost>& devices = priced.document.predicted->devices;
  result.slowest_device = static_cast<int>(slowest_device(devices));
  result.equally_slow = equally_slow(devices);
  result.slowest = devices[result.slowest_device];
  result.choice_slowest_device = static_cast<int>(slowest_device(cost.devices));
  result.choice_equally_slow = equally_slow(cost.devices);
  result.choice_slowest = cost.devices[result.choice_slowest_device];
  return result;
}

}  // namespace neuroshard
