// Measuring a plan's devices.
#include "neuroshard/evaluate/plan_evaluation.h"

#include <fmt/format.h>

#include <algorithm>
#include <cassert>
#include <initializer_list>
#include <map>
#include <optional>
#include <tuple>
#include <unordered_map>
#include <utility>

#include "neuroshard/collect/compute/cpu/compute_benchmark.h"
#include "neuroshard/collect/compute/measure_sets.h"
#include "neuroshard/collect/compute/resolved_set.h"
#include "neuroshard/collect/compute/usual_speed.h"
#include "neuroshard/core/error.h"
#include "neuroshard/core/text/name_list.h"
#include "neuroshard/core/text/printable.h"
#include "neuroshard/cost/expected_cost.h"
#include "neuroshard/io/json/json.h"
#include "neuroshard/train/metrics.h"

namespace neuroshard {

namespace {

/// Sets that are measured together, alternating; each keeps its batch in memory meanwhile.
constexpr int kSetsInFlight = 160;

/// A field of a description, and what it is called.
struct Field {
  const char* key;
  const char* name;
};

/// "processor "A", here it is "B"" of the first field that both have and that differs, or "".
std::string field_difference(const Json& theirs, const Json& ours,
                             std::initializer_list<Field> fields) {
  for (const auto& [key, name] : fields) {
    const Json* measured = theirs.find(key);
    const Json* here = ours.find(key);
    if (measured == nullptr || here == nullptr || *measured == *here) continue;
    return fmt::format("{} {}, here it is {}", name, to_line(*measured), to_line(*here));
  }
  return "";
}

}  // namespace

std::string features_not_measured(std::span<const Table> tables) {
  constexpr std::size_t kMostNames = 3;
  std::vector<std::string> names;
  for (const Table& table : tables) {
    if (table.num_features > 1) names.push_back(fmt::format("\"{}\"", printable(table.name)));
  }
  if (names.empty()) return "";
  return fmt::format(
      "tables with several features: measured with one pooled output, predicted with one for each "
      "feature ({})",
      name_list(names, kMostNames));
}

std::string measurement_difference(const ComputeCostModel& model, const BackendDescription& here) {
  if (model.hardware().empty()) return "";
  const Json hardware = parse_json(model.hardware(), model.name() + ": hardware");
  const std::string difference = field_difference(
      hardware, here.hardware, {{"name", "processor"}, {"num_cores", "num_cores"}});
  return difference.empty() ? operator_difference(model, here) : difference;
}

std::string operator_difference(const ComputeCostModel& model, const BackendDescription& here) {
  if (model.operator_info().empty()) return "";
  const Json measured = parse_json(model.operator_info(), model.name() + ": operator");
  return field_difference(measured, here.operator_info,
                          {{"name", "operator"}, {"version", "operator version"}});
}

std::string measurement_difference(const ComputeCostModel& model) {
  return measurement_difference(model, cpu_backend({}, 1).description);
}

std::vector<std::string> measuring_warnings(const ComputeCostModel& model,
                                            const std::string& difference,
                                            std::span<const Table> tables) {
  std::vector<std::string> lines;
  if (!difference.empty()) lines.push_back(model.name() + ": measured on " + difference);
  std::string features = features_not_measured(tables);
  if (!features.empty()) lines.push_back(std::move(features));
  return lines;
}

DataType arena_data_type(const Task& task) {
  const bool all_fp16 = std::all_of(task.tables.begin(), task.tables.end(), [](const Table& table) {
    return table.data_type == DataType::fp16;
  });
  return all_fp16 ? DataType::fp16 : DataType::fp32;
}

namespace {

/// A device of a plan.
struct PlanDevice {
  std::size_t plan;
  std::size_t device;
};

/// A piece and the rows that it has: of hashed ids too, where a Piece has a share of them alone.
struct HeldPiece {
  Piece piece;
  std::int64_t first_row = 0;
  std::int64_t num_rows = 0;

  // NOLINTNEXTLINE(modernize-use-nullptr)
  friend auto operator<=>(const HeldPiece&, const HeldPiece&) = default;
};

/// What a device of a plan holds, or of several plans a device each.
struct Holding {
  std::span<const Table> tables;
  std::vector<HeldPiece> pieces;  ///< sorted
  std::int64_t batch_size = 0;
  bool are_copies = false;  ///< of whole tables, each device looking up its share of the batch
  std::vector<PlanDevice> devices;
};

/// Whole tables.
std::vector<HeldPiece> replicas(const Task& task, const ShardingPlan& plan) {
  std::vector<HeldPiece> pieces;
  for (const int index : plan.replicated_tables) {
    const Table& table = task.tables[index];
    pieces.push_back({{index, table.embedding_dim}, 0, table.num_embeddings});
  }
  return pieces;
}

/// Devices without pieces are left out: they compute nothing. Replicated tables are an operator of
/// their own. What devices of different plans have in common is one holding; devices of one plan
/// are not, even if they hold the same: each has its own place in memory and its own batches, and
/// a plan's cost is that of its slowest device.
std::vector<Holding> distinct_holdings(std::span<const SimulatedPlan> plans) {
  std::vector<Holding> result;
  // By what is held, and by how many devices before hold the same in that plan.
  std::map<std::tuple<const Task*, bool, std::vector<HeldPiece>, int>, std::size_t> known;
  for (std::size_t plan = 0; plan < plans.size(); ++plan) {
    const Task& task = plans[plan].simulator->task();
    std::vector<std::vector<HeldPiece>> devices(task.topology.world_size);
    for (const Shard& shard : plans[plan].plan->shards) {
      devices[shard.device].push_back(
          {piece_of(task, shard), shard.row_offset, shard.rows_of(task.tables[shard.table])});
    }
    std::map<std::pair<bool, std::vector<HeldPiece>>, int> before;
    const auto add = [&](std::vector<HeldPiece> pieces, bool are_copies, std::size_t device) {
      const std::int64_t batch_size = are_copies ? replica_batch_size(task) : task.batch_size;
      if (pieces.empty()) return;
      std::sort(pieces.begin(), pieces.end());
      const int number = before[{are_copies, pieces}]++;
      const auto [place, is_new] =
          known.try_emplace({&task, are_copies, pieces, number}, result.size());
      if (is_new) result.push_back({task.tables, std::move(pieces), batch_size, are_copies, {}});
      result[place->second].devices.push_back({plan, device});
    };
    for (std::size_t d = 0; d < devices.size(); ++d) {
      add(devices[d], false, d);
      add(replicas(task, *plans[plan].plan), true, d);
    }
  }
  return result;
}

/// Of a device's own pieces. Where one is a slice, each with its rows, if the backend can drop the
/// lookups of others; else slices are as the table's mean (`resolve_slices`).
PieceSet set_of(const Holding& held, std::int64_t id, Random random, Optimizer optimizer,
                bool can_keep_rows) {
  PieceSet set{id, held.tables, {}, random, held.batch_size, optimizer};
  const bool has_slices =
      std::any_of(held.pieces.begin(), held.pieces.end(),
                  [&](const HeldPiece& held_piece) { return held_piece.piece.row_share < 1.0; });
  for (const HeldPiece& each : held.pieces) {
    set.pieces.push_back(each.piece);
    if (!has_slices || !can_keep_rows) continue;
    set.pieces.back() = {each.piece.table, each.piece.num_columns};
    set.rows.push_back({each.first_row, each.num_rows});
  }
  return set;
}

/// A set to measure: one of the plans' or of the controls.
struct MeasuredItem {
  bool is_control = false;
  std::size_t number = 0;
};

/// The controls spread evenly among the sets.
std::vector<MeasuredItem> order_of_measurement(std::size_t num_sets, std::size_t num_controls) {
  std::vector<MeasuredItem> order;
  std::size_t controls = 0;
  for (std::size_t set = 0; set < num_sets; ++set) {
    order.push_back({false, set});
    for (; controls * num_sets < num_controls * (set + 1); ++controls) {
      order.push_back({true, controls});
    }
  }
  return order;
}

/// What was measured of a plan's devices.
struct MeasuredDevices {
  std::vector<double> compute_ms;
  std::vector<double> interval;
  std::vector<double> less_drift_ms;  ///< `compute_ms` at the speed of the predictions
};

PlanEvaluation summarize_plan(const SimulatedPlan& of, MeasuredDevices devices,
                              std::optional<double> drift) {
  const Simulator& simulator = *of.simulator;
  const std::vector<double>& compute_ms = devices.compute_ms;
  PlanEvaluation evaluation;
  evaluation.additions = additions_of(of);
  evaluation.predicted = simulator.cost(*of.plan);
  evaluation.expected_ms = expected_cost_ms(simulator.compute(), evaluation.predicted);
  evaluation.measured = simulator.cost(*of.plan, compute_ms);
  evaluation.interval = std::move(devices.interval);
  std::vector<double> predicted;
  std::vector<double> measured;
  for (std::size_t d = 0; d < compute_ms.size(); ++d) {
    if (compute_ms[d] <= 0.0) continue;
    measured.push_back(compute_ms[d]);
    predicted.push_back(evaluation.predicted.devices[d].compute_ms);
  }
  const PredictionMetrics metrics = prediction_metrics(predicted, measured);
  evaluation.compute_mape = metrics.mape;
  evaluation.compute_tau = metrics.kendall_tau;
  if (drift) {
    evaluation.drift = drift;
    evaluation.less_drift = simulator.cost(*of.plan, devices.less_drift_ms);
  }
  return evaluation;
}

}  // namespace

PlanAdditions additions_of(const SimulatedPlan& plan) {
  const double bytes = all_reduce_bytes(plan.simulator->task(), plan.plan->replicated_tables);
  return {static_cast<std::int64_t>(bytes), plan.simulator->partial_sums_ms(*plan.plan)};
}

std::int64_t num_measured_sets(std::span<const SimulatedPlan> plans) {
  return static_cast<std::int64_t>(distinct_holdings(plans).size());
}

std::vector<PlanEvaluation> evaluate_plans(std::span<const SimulatedPlan> plans,
                                           ComputeBackend& backend, std::uint64_t seed,
                                           const std::function<void(int)>& on_set,
                                           std::span<const SpeedControl> controls,
                                           const SpeedReference* reference) {
  assert(controls.empty() || reference == nullptr);
  if (plans.empty()) return {};
  const Task& first = plans.front().simulator->task();
  const std::vector<Holding> holdings = distinct_holdings(plans);
  const bool can_keep_rows =
      std::all_of(backend.devices.begin(), backend.devices.end(),
                  [](const auto& device) { return device->can_keep_rows(); });
  std::vector<MeasuredDevices> devices;
  for (const SimulatedPlan& plan : plans) {
    const Task& task = plan.simulator->task();
    assert(task.batch_size == first.batch_size && task.optimizer == first.optimizer);
    const std::vector<double> nothing(task.topology.world_size, 0.0);
    devices.push_back({nothing, nothing, nothing});
  }
  const std::vector<MeasuredItem> order = order_of_measurement(holdings.size(), controls.size());
  std::size_t next_item = 0;
  std::unordered_map<std::int64_t, std::vector<Table>> own_tables;  // of sets in flight
  const auto next = [&]() -> std::optional<PieceSet> {
    if (next_item == order.size()) return std::nullopt;
    const MeasuredItem item = order[next_item];
    const auto id = static_cast<std::int64_t>(next_item++);
    // Each set has its own batches and memory: sets that share pieces must not find rows cached.
    if (item.is_control) {
      const SpeedControl& control = controls[item.number];
      const Random random = Random::for_stream(seed, item.number + holdings.size());
      PieceSet set{id, control.tables, control.pieces, random, first.batch_size, first.optimizer};
      resolve_slices(set, own_tables[id]);
      return set;
    }
    const Holding& held = holdings[item.number];
    PieceSet set =
        set_of(held, id, Random::for_stream(seed, item.number), first.optimizer, can_keep_rows);
    if (held.are_copies) {
      use_at_any_batch_size(set, first.batch_size, own_tables[id]);
    } else {
      resolve_slices(set, own_tables[id]);
    }
    return set;
  };
  int done = 0;
  std::vector<double> drifts;
  const auto on_done = [&](const PieceSetResult& result) {
    const MeasuredItem item = order[result.id];
    own_tables.erase(result.id);
    if (result.measurement) {
      const double cost_ms = result.measurement->forward_ms + result.measurement->backward_ms;
      if (item.is_control) {
        drifts.push_back(cost_ms / controls[item.number].cost_ms);
      } else {
        double slowness = 1.0;
        if (reference != nullptr) {
          slowness = mean_of_references(result.measurement->reference_ms) / reference->usual_ms;
          drifts.push_back(slowness);
        }
        for (const PlanDevice& where : holdings[item.number].devices) {
          double& sum_ms = devices[where.plan].compute_ms[where.device];
          double& interval = devices[where.plan].interval[where.device];
          // Of a device with copies and pieces, two operators.
          interval = sum_ms > 0.0 ? (interval * sum_ms + result.measurement->interval * cost_ms) /
                                        (sum_ms + cost_ms)
                                  : result.measurement->interval;
          sum_ms += cost_ms;
          devices[where.plan].less_drift_ms[where.device] += cost_ms / slowness;
        }
      }
    } else if (!item.is_control) {
      throw MachineError(result.failure);
    }
    if (on_set) on_set(++done);
  };
  MeasuringOptions measuring{.in_flight = kSetsInFlight};
  if (reference != nullptr) measuring.reference_sets = reference->sets.sets;
  measure_sets(backend, measuring, next, on_done);
  const std::optional<double> drift =
      drifts.empty() ? std::nullopt : std::optional(median_drift(drifts));
  std::vector<PlanEvaluation> evaluations;
  for (std::size_t plan = 0; plan < plans.size(); ++plan) {
    if (!controls.empty() && drift) {
      for (double& ms : devices[plan].less_drift_ms) ms /= *drift;
    }
    evaluations.push_back(summarize_plan(plans[plan], std::move(devices[plan]), drift));
  }
  return evaluations;
}

}  // namespace neuroshard
