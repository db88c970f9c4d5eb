// Pieces taken away, and other tasks planned again.
#include "neuroshard/decide/explanation.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <memory>
#include <mutex>
#include <tuple>
#include <utility>

#include "neuroshard/core/error.h"
#include "neuroshard/core/machine/parallel.h"
#include "neuroshard/core/slowest_device.h"
#include "neuroshard/core/table_pins.h"
#include "neuroshard/core/units.h"
#include "neuroshard/cost/communication/faster_links.h"
#include "neuroshard/decide/planning_again.h"
#include "neuroshard/decide/priced_pieces.h"
#include "neuroshard/plan/collected_warnings.h"
#include "neuroshard/plan/plan_task.h"
#include "neuroshard/plan/plan_warnings.h"

namespace neuroshard {

namespace {

/// Of a device's memory, of which less is free where it counts as full.
constexpr double kFull = 0.95;
constexpr std::int64_t kMostMemory = std::int64_t{1} << 60;

/// What is planned again.
struct Question {
  std::string change;
  Task task;
  std::shared_ptr<const CommunicationCostModel> communication;
  Cuts cuts;
  /// Whether each plan of the task as it is may be an answer, at the same cost.
  bool takes_same_plans = false;
};

/// Devices that are asked for in addition: one, or a host of several.
int num_more_devices(const Topology& topology) {
  const bool one_host = topology.local_world_size == topology.world_size;
  return one_host ? 1 : topology.local_world_size;
}

Task with_more_devices(Task task) {
  Topology& topology = task.topology;
  const bool one_host = topology.local_world_size == topology.world_size;
  topology.world_size += num_more_devices(topology);
  if (one_host) topology.local_world_size = topology.world_size;
  topology.memory_bytes.resize(topology.world_size, topology.memory_bytes.back());
  return task;
}

std::string more_devices_text(const Task& task) {
  const Topology& topology = task.topology;
  if (topology.local_world_size == topology.world_size) return "one device more";
  return fmt::format("one host more, of {}", format_count(topology.local_world_size, "device"));
}

std::vector<Question> questions(const PricedPlan& priced, const Explanation& explanation,
                                const Cuts& cuts) {
  const Task& task = priced.document.task;
  const auto& communication = priced.models.communication;
  std::vector<Question> result;
  const auto ask = [&](std::string change, Task other) -> Question& {
    return result.emplace_back(Question{std::move(change), std::move(other), communication, cuts});
  };
  ask("the same task planned again", task);
  Task roomy = task;
  for (std::int64_t& bytes : roomy.topology.memory_bytes) bytes = std::min(2 * bytes, kMostMemory);
  ask("twice the memory on every device", std::move(roomy)).takes_same_plans = true;
  if (task.topology.world_size + num_more_devices(task.topology) <= kMaxWorldSize) {
    ask(more_devices_text(task), with_more_devices(task));
  }
  if (auto faster = with_faster_links(*communication, 2.0);
      faster != nullptr && task.topology.world_size > 1) {
    ask("links of twice the rate", task).communication = std::move(faster);
  }
  if (!explanation.tables.empty()) {
    const std::string& name = explanation.tables.front().table;
    const int number = find_table(task, name, "table");
    const std::int64_t dim = task.tables[number].embedding_dim;
    if (dim % (2 * kColumnGranularity) == 0) {
      Task narrower = task;
      narrower.tables[number].embedding_dim = dim / 2;
      ask(fmt::format("table \"{}\" with {} columns instead of {}", name, dim / 2, dim),
          std::move(narrower));
    }
  }
  if (!(cuts == Cuts{})) {
    Question& all = ask("all cuts that the task allows", task);
    all.cuts = Cuts{};
    all.takes_same_plans = true;
  }
  return result;
}

Alternative answer(const Question& question, const PricedPlan& priced, PlannerOptions options) {
  Alternative result;
  result.change = question.change;
  options.cuts = question.cuts;
  try {
    const Simulator simulator(question.task, priced.models.compute, question.communication);
    const PlanningResult planned = planned_again(simulator, priced.document, options);
    CostModels models = priced.models;
    models.communication = question.communication;
    result.cost_ms = planned.predicted.cost_ms;
    result.warnings = prediction_warnings(models, simulator, planned.plan, planned.predicted,
                                          simulator.member_ranges(planned.plan));
    result.found = true;
  } catch (const InfeasibleError& error) {
    result.reason = error.what();
  } catch (const InputError& error) {  // e.g. a table that may not be so narrow
    result.reason = error.what();
  }
  return result;
}

/// The search of a larger space may end at a plan that costs more; the smaller one's is in it.
void take_same_plans(const std::vector<Question>& asked, std::vector<Alternative>& answers) {
  const Alternative& same = answers.front();
  if (!same.found) return;
  for (std::size_t i = 1; i < asked.size(); ++i) {
    Alternative& answer = answers[i];
    if (!asked[i].takes_same_plans || (answer.found && answer.cost_ms <= same.cost_ms)) continue;
    answer.found = true;
    answer.cost_ms = same.cost_ms;
    answer.warnings = same.warnings;
    answer.reason.clear();
  }
}

Bottleneck bottleneck_of(const DeviceCost& device, double waiting_ms) {
  const double communication_ms = device.forward_comm_ms + device.backward_comm_ms - waiting_ms;
  if (device.all_reduce_ms > std::max(device.compute_ms, communication_ms)) {
    return Bottleneck::all_reduce;
  }
  return communication_ms > device.compute_ms ? Bottleneck::communication : Bottleneck::computation;
}

void describe_slowest(const PricedPlan& priced, Explanation& result) {
  const PlanCost& cost = *priced.document.predicted;
  const double last_ms = last_entered_ms(cost.devices);
  result.num_devices = static_cast<int>(cost.devices.size());
  result.slowest_device = static_cast<int>(slowest_device(cost.devices));
  result.equally_slow = equally_slow(cost.devices);
  result.slowest = cost.devices[result.slowest_device];
  result.bottleneck = bottleneck_of(result.slowest, last_ms - entered_ms(result.slowest));
  for (const DeviceCost& device : cost.devices) {
    result.mean_compute_ms += device.compute_ms / static_cast<double>(cost.devices.size());
    result.waiting_ms = std::max(result.waiting_ms, last_ms - entered_ms(device));
  }
  const std::vector<std::int64_t>& capacity = priced.document.task.topology.memory_bytes;
  for (std::size_t d = 0; d < cost.devices.size(); ++d) {
    if (static_cast<double>(cost.devices[d].memory_bytes) >
        kFull * static_cast<double>(capacity[d])) {
      result.full_devices.push_back(static_cast<int>(d));
    }
  }
}

}  // namespace

std::string to_string(Bottleneck bottleneck) {
  switch (bottleneck) {
    case Bottleneck::computation:
      return "computation";
    case Bottleneck::communication:
      return "communication";
    default:
      return "all-reduce";
  }
}

Explanation explain_plan(const PlanDocument& document, const ExplainRequest& request,
                         const std::string& file) {
  const PlannerOptions options = short_search(document, request.seconds_per_planning);
  const PricedPlan priced = price_plan(document, {request.models}, file);
  const PricedPieces pieces(priced);
  Explanation result;
  result.warnings = priced.warnings;
  result.notes = priced.notes;
  result.cost_ms = priced.document.predicted->cost_ms;
  result.lower_bound_ms = priced.lower_bound_ms;
  result.bound_scope = bound_scope(document);
  result.models = priced.models;
  describe_slowest(priced, result);
  result.replica_compute_ms = pieces.replicas().compute_ms;
  result.tables = pieces.parts_on(result.slowest_device);

  const std::vector<Question> asked = questions(priced, result, options.cuts);
  result.alternatives.resize(asked.size());
  std::mutex mutex;
  std::size_t num_done = 0;
  ThreadPool pool(request.num_threads);
  pool.for_each(asked.size(), [&](std::size_t i, int) {
    result.alternatives[i] = answer(asked[i], priced, options);
    const std::lock_guard lock(mutex);
    ++num_done;
    if (request.progress) request.progress(num_done, asked.size());
  });
  take_same_plans(asked, result.alternatives);
  std::vector<std::string> known = priced.warnings;
  for (const Alternative& other : result.alternatives) {
    std::ranges::move(further_warnings(other.change, other.warnings, known),
                      std::back_inserter(result.warnings));
  }
  std::stable_sort(result.alternatives.begin() + 1, result.alternatives.end(),
                   [](const Alternative& a, const Alternative& b) {
                     return std::tuple(!a.found, a.cost_ms) < std::tuple(!b.found, b.cost_ms);
                   });
  return result;
}

TableExplanation explain_table(const PlanDocument& document, const std::string& table,
                               const ExplainRequest& request, const std::string& file) {
  const int number = find_table(document.task, table, file + ": --table");
  const PricedPlan priced = price_plan(document, {request.models, false}, file);
  const PricedPieces pieces(priced);
  const Table& of = document.task.tables[number];
  const std::vector<int>& copies = document.plan.replicated_tables;
  TableExplanation result;
  result.warnings = priced.warnings;
  result.notes = priced.notes;
  result.table = table;
  result.num_embeddings = of.num_embeddings;
  result.embedding_dim = of.embedding_dim;
  result.pooling_factor = of.pooling_factor;
  result.cost_ms = priced.document.predicted->cost_ms;
  const std::vector<DeviceCost>& costs = priced.document.predicted->devices;
  result.num_devices = static_cast<int>(costs.size());
  result.slowest_device = static_cast<int>(slowest_device(costs));
  result.equally_slow = equally_slow(costs);
  result.models = priced.models;
  result.is_replicated = std::find(copies.begin(), copies.end(), number) != copies.end();
  if (result.is_replicated) {
    result.less_plan_ms = pieces.less_without_copies(number);
    std::vector<int> others = copies;
    std::erase(others, number);
    result.all_reduce_ms = pieces.simulator().replica_cost(copies).all_reduce_ms -
                           pieces.simulator().replica_cost(others).all_reduce_ms;
    return result;
  }
  result.less_plan_ms =
      pieces.less_without([&](const Shard& shard) { return shard.table == number; });
  std::vector<int> devices;
  for (const Shard& shard : document.plan.shards) {
    if (shard.table == number) devices.push_back(shard.device);
  }
  std::sort(devices.begin(), devices.end());
  devices.erase(std::unique(devices.begin(), devices.end()), devices.end());
  for (const int device : devices) result.parts.push_back(pieces.part(number, device));
  return result;
}

}  // namespace neuroshard
