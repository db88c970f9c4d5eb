// Measuring a plan's devices.
#include "neuroshard/evaluate/plan_evaluation.h"

#include <fmt/format.h>

#include <algorithm>
#include <cassert>
#include <map>
#include <optional>
#include <utility>

#include "neuroshard/collect/compute/compute_benchmark.h"
#include "neuroshard/core/error.h"
#include "neuroshard/io/json.h"
#include "neuroshard/train/metrics.h"

namespace neuroshard {

namespace {

/// Sets measured in turns; each keeps its batch in memory meanwhile.
constexpr int kSetsInFlight = 160;

}  // namespace

std::string measurement_difference(const ComputeCostModel& model, const BackendDescription& here) {
  if (model.hardware().empty()) return "";
  const Json hardware = parse_json(model.hardware(), model.name() + ": hardware");
  const Json measured = parse_json(model.operator_info(), model.name() + ": operator");
  struct Field {
    const Json* theirs;
    const char* name;
    const Json* ours;
  };
  for (const auto& [theirs, name, ours] :
       {Field{hardware.find("name"), "processor", here.hardware.find("name")},
        Field{hardware.find("num_cores"), "num_cores", here.hardware.find("num_cores")},
        Field{measured.find("name"), "operator", here.operator_info.find("name")},
        Field{measured.find("version"), "operator version", here.operator_info.find("version")}}) {
    if (theirs == nullptr || ours == nullptr || *theirs == *ours) continue;
    return fmt::format("{} {}, here it is {}", name, to_line(*theirs), to_line(*ours));
  }
  return "";
}

std::string measurement_difference(const ComputeCostModel& model) {
  return measurement_difference(model, cpu_backend({}, 1).description);
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

/// The same pieces, on one or more devices.
struct HeldPieces {
  std::vector<TablePiece> pieces;
  std::vector<PlanDevice> devices;
};

/// Devices without pieces are left out: they compute nothing.
std::vector<HeldPieces> distinct_holdings(std::span<const SimulatedPlan> plans) {
  using Pieces = std::vector<std::pair<int, std::int64_t>>;  // table and columns, sorted
  std::vector<HeldPieces> result;
  std::map<std::pair<const Task*, Pieces>, std::size_t> known;
  for (std::size_t plan = 0; plan < plans.size(); ++plan) {
    const Task& task = plans[plan].simulator->task();
    std::vector<Pieces> devices(task.topology.world_size);
    for (const Shard& shard : plans[plan].plan->shards) {
      devices[shard.device].emplace_back(shard.table, shard.num_columns);
    }
    for (std::size_t d = 0; d < devices.size(); ++d) {
      if (devices[d].empty()) continue;
      std::sort(devices[d].begin(), devices[d].end());
      const auto [place, is_new] = known.try_emplace({&task, devices[d]}, result.size());
      if (is_new) {
        HeldPieces& held = result.emplace_back();
        for (const auto& [table, columns] : devices[d]) {
          held.pieces.push_back({&task.tables[table], columns});
        }
      }
      result[place->second].devices.push_back({plan, d});
    }
  }
  return result;
}

PlanEvaluation summarize_plan(const Simulator& simulator, const ShardingPlan& plan,
                              const std::vector<double>& compute_ms, std::vector<double> interval) {
  PlanEvaluation evaluation;
  evaluation.predicted = simulator.cost(plan);
  evaluation.measured = simulator.cost(plan, compute_ms);
  evaluation.interval = std::move(interval);
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
  return evaluation;
}

}  // namespace

std::vector<PlanEvaluation> evaluate_plans(std::span<const SimulatedPlan> plans,
                                           ComputeBackend& backend, std::uint64_t seed,
                                           const std::function<void(int)>& on_set) {
  if (plans.empty()) return {};
  const Task& first = plans.front().simulator->task();
  const std::vector<HeldPieces> holdings = distinct_holdings(plans);
  std::vector<std::vector<double>> compute_ms;
  for (const SimulatedPlan& plan : plans) {
    const Task& task = plan.simulator->task();
    assert(task.batch_size == first.batch_size && task.optimizer == first.optimizer);
    compute_ms.emplace_back(task.topology.world_size, 0.0);
  }
  std::vector<std::vector<double>> intervals = compute_ms;
  std::size_t next_set = 0;
  const auto next = [&]() -> std::optional<PieceSet> {
    if (next_set == holdings.size()) return std::nullopt;
    const std::vector<TablePiece>& pieces = holdings[next_set].pieces;
    // Batches and places of its own: sets that have pieces in common must not find rows cached.
    return PieceSet{static_cast<std::int64_t>(next_set), pieces,
                    Random::for_stream(seed, next_set++)};
  };
  int done = 0;
  const auto on_done = [&](const PieceSetResult& result) {
    if (!result.measurement) throw MachineError(result.failure);
    for (const PlanDevice& where : holdings[result.id].devices) {
      compute_ms[where.plan][where.device] =
          result.measurement->forward_ms + result.measurement->backward_ms;
      intervals[where.plan][where.device] = result.measurement->interval;
    }
    if (on_set) on_set(++done);
  };
  backend.measure(next, kSetsInFlight, first.batch_size, first.optimizer, on_done);
  std::vector<PlanEvaluation> evaluations;
  for (std::size_t plan = 0; plan < plans.size(); ++plan) {
    evaluations.push_back(summarize_plan(*plans[plan].simulator, *plans[plan].plan,
                                         compute_ms[plan], std::move(intervals[plan])));
  }
  return evaluations;
}

}  // namespace neuroshard
