// Measuring a plan's devices.
#include "neuroshard/evaluate/plan_evaluation.h"

#include <fmt/format.h>

#include <algorithm>

#include "neuroshard/collect/compute/hardware_info.h"
#include "neuroshard/io/json.h"
#include "neuroshard/train/metrics.h"

namespace neuroshard {

std::string hardware_difference(const ComputeCostModel& model) {
  if (model.hardware().empty()) return "";
  const Json measured_on = parse_json(model.hardware(), model.name() + ": hardware");
  const HardwareInfo here = cpu_info();
  const auto difference = [&](const char* field, const Json& value) {
    const Json* other = measured_on.find(field);
    return other == nullptr || *other == value
               ? std::string()
               : fmt::format("{} {}, this machine has {}", field, to_line(*other), to_line(value));
  };
  const std::string name = difference("name", here.name);
  return name.empty() ? difference("num_cores", here.num_cores) : name;
}

DataType arena_data_type(const Task& task) {
  const bool all_fp16 = std::all_of(task.tables.begin(), task.tables.end(), [](const Table& table) {
    return table.data_type == DataType::fp16;
  });
  return all_fp16 ? DataType::fp16 : DataType::fp32;
}

PlanEvaluation evaluate_plan(const Simulator& simulator, const ShardingPlan& plan,
                             ComputeBenchmark& benchmark, std::uint64_t seed,
                             const std::function<void(int)>& on_device) {
  const Task& task = simulator.task();
  std::vector<std::vector<TablePiece>> pieces(task.topology.world_size);
  for (const Shard& shard : plan.shards) {
    pieces[shard.device].push_back({&task.tables[shard.table], shard.num_columns});
  }
  PlanEvaluation evaluation;
  evaluation.predicted = simulator.cost(plan);
  std::vector<double> compute_ms(pieces.size(), 0.0);
  std::vector<double> predicted;
  std::vector<double> measured;
  evaluation.interval.assign(pieces.size(), 0.0);
  for (std::size_t device = 0; device < pieces.size(); ++device) {
    if (!pieces[device].empty()) {
      Random random = Random::for_stream(seed, device);
      const ComputeMeasurement result =
          benchmark.measure(pieces[device], task.batch_size, task.optimizer, random);
      compute_ms[device] = result.forward_ms + result.backward_ms;
      evaluation.interval[device] = result.interval;
      measured.push_back(compute_ms[device]);
      predicted.push_back(evaluation.predicted.devices[device].compute_ms);
    }
    if (on_device) on_device(static_cast<int>(device) + 1);
  }
  evaluation.measured = simulator.cost(plan, compute_ms);
  const PredictionMetrics metrics = prediction_metrics(predicted, measured);
  evaluation.compute_mape = metrics.mape;
  evaluation.compute_tau = metrics.kendall_tau;
  return evaluation;
}

}  // namespace neuroshard
