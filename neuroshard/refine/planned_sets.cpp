// Random tasks, their plans and the devices' sets.
#include "neuroshard/refine/planned_sets.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <bit>
#include <set>
#include <string>
#include <utility>

#include "neuroshard/core/error.h"
#include "neuroshard/core/parallel.h"
#include "neuroshard/core/random.h"
#include "neuroshard/cost/model_catalog.h"
#include "neuroshard/cost/simulator.h"
#include "neuroshard/search/neuroshard_planner.h"
#include "neuroshard/workload/generate/task_generator.h"

namespace neuroshard {

namespace {

/// Tasks without a plan in a row before their memory is called too tight.
constexpr int kMostWithoutPlan = 100;
constexpr double kLeastMemory = 0x1p36;
constexpr double kMostMemory = 0x1p60;  // of a device, in a task
constexpr std::array<int, 5> kDevices{1, 2, 4, 8, 16};
constexpr int kFewestTablesOfADevice = 3;

/// What decides a task's plan: computation, memory, or communication.
struct TaskKind {
  const char* interconnect;
  bool has_tight_memory;
  int local_devices;  ///< 0: all on one host
};
constexpr std::array<TaskKind, 3> kKinds{{
    {"pcie4", false, 0},
    {"pcie4", true, 0},
    {"ethernet-25g", false, 1},
}};

/// Bytes of each device that suffice for any of a pool's tables.
std::int64_t ample_memory(const Workload& pool, const PlannedSetsOptions& options) {
  double all = 0.0;
  for (const Table& table : pool.tables) {
    const std::int64_t dim = options.own_dims ? table.embedding_dim : options.max_dim;
    all += static_cast<double>(shard_bytes(table, dim, options.optimizer));
  }
  return static_cast<std::int64_t>(std::clamp(all, kLeastMemory, kMostMemory));
}

}  // namespace

PlannerOptions options_of_measured_plans() {
  return {.time_limit_seconds = 86'400.0,
          .steps = 30'000,
          .improvement = ImprovementSchedule::brief,
          .least_gain = 0.0};
}

std::vector<std::vector<Piece>> sets_of_devices(const Task& task, const ShardingPlan& plan) {
  std::vector<std::vector<Piece>> sets(task.topology.world_size);
  for (const Shard& shard : plan.shards) sets[shard.device].push_back(piece_of(task, shard));
  return sets;
}

PlannedSets::PlannedSets(PlannedSetsOptions options, std::shared_ptr<const ComputeCostModel> model)
    : options_(std::move(options)), model_(std::move(model)) {
  for (const TaskKind& kind : kKinds) {
    Topology topology;
    topology.interconnect = kind.interconnect;
    communication_.push_back(load_named_models({kind.interconnect}, topology).communication);
  }
  for (const Workload& pool : options_.pools) {
    for (const Table& table : pool.tables) {
      const auto place = static_cast<int>(places_.size());
      places_[table.name] = place;
    }
  }
}

std::vector<Piece> PlannedSets::set(std::int64_t id) {
  const auto place = static_cast<std::size_t>(id);
  for (int draws = 0; place >= sets_.size(); ++draws) {
    const std::size_t before = sets_.size();
    plan_next();
    if (sets_.size() > before) draws = 0;
    if (draws == kMostWithoutPlan) {
      throw InfeasibleError(
          fmt::format("none of {} tasks drawn in a row has a plan with a set that is small enough",
                      kMostWithoutPlan));
    }
  }
  return sets_[place];
}

void PlannedSets::plan_next() {
  const std::uint64_t number = next_task_++;
  const std::uint64_t kind_number = number / kDevices.size() % kKinds.size();
  const TaskKind& kind = kKinds[kind_number];
  const Workload& pool = options_.pools[(number + options_.seed) % options_.pools.size()];
  TaskGeneratorOptions generator{.max_dim = options_.max_dim,
                                 .num_devices = kDevices[number % kDevices.size()],
                                 .local_devices = kind.local_devices,
                                 .own_dims = options_.own_dims,
                                 .interconnect = kind.interconnect,
                                 .memory_bytes = ample_memory(pool, options_),
                                 .batch_size = options_.batch_size,
                                 .optimizer = options_.optimizer,
                                 .seed = options_.seed};
  const auto available = static_cast<int>(pool.tables.size());
  generator.min_tables =
      std::min({available, kFewestTablesOfADevice * generator.num_devices, options_.max_tables});
  generator.max_tables = std::min(
      {available, options_.max_tables_of_device * generator.num_devices, options_.max_tables});
  if (kind.has_tight_memory) {
    generator.min_fill = 0.9;
    generator.max_fill = 0.98;
  }
  Task task;
  try {
    task = generate_task(pool, generator, number);
  } catch (const InputError&) {
    if (options_.pools.size() == 1) throw;
    return;  // few tables, one of which needs more than all others have room for: the next pool
  }
  const AllCores unpinned;  // what measures the sets may have this thread on a core of its own
  const Simulator simulator(std::move(task), model_, communication_[kind_number]);
  PlannerOptions planner = options_of_measured_plans();
  planner.seed = options_.seed;
  planner.num_threads = options_.num_threads;
  if (number / (kDevices.size() * kKinds.size()) % 3 == 2) {
    planner.cuts = {.columns = true, .rows = false, .replicas = false};
  }
  ShardingPlan plan;
  try {
    plan = NeuroShardPlanner().plan(simulator, planner).plan;
  } catch (const InfeasibleError&) {
    return;
  }
  add_sets(simulator.task(), plan, number);
}

void PlannedSets::add_sets(const Task& task, const ShardingPlan& plan, std::uint64_t number) {
  std::vector<std::vector<Piece>> devices = sets_of_devices(task, plan);
  std::erase_if(devices, [&](const std::vector<Piece>& pieces) {
    double bytes = 0.0;
    for (const Piece& piece : pieces) {
      bytes += pass_bytes(task.tables[piece.table], piece, task.batch_size);
    }
    return pieces.empty() || bytes > options_.max_pass_bytes;
  });
  for (std::vector<Piece>& pieces : devices) {
    for (Piece& piece : pieces) piece.table = places_.at(task.tables[piece.table].name);
    std::sort(pieces.begin(), pieces.end());
  }
  // Devices with slices of the same tables have the same pieces: measured once, they say as much.
  std::set<std::vector<Piece>> of_plan;
  std::erase_if(devices, [&](const auto& pieces) { return !of_plan.insert(pieces).second; });
  Random random = Random::for_stream(mix64(options_.seed), number);
  while (devices.size() > static_cast<std::size_t>(options_.max_sets_of_plan)) {
    devices.erase(devices.begin() + static_cast<std::ptrdiff_t>(random.below(devices.size())));
  }
  for (std::vector<Piece>& pieces : devices) sets_.push_back(std::move(pieces));
}

PlanningModel find_planning_model(const std::string& name) {
  CostModels models = load_named_models({name}, {});
  if (!models.compute) throw InputError("--planned-by", "a computation model", name);
  // An analytic model has no file, and its name says all.
  return {std::move(models.compute), models.compute_sha256.empty() ? name : models.compute_sha256};
}

void use_planned_sets(ComputeSamplingOptions& sampling, PlannedSetsOptions options,
                      const PlanningModel& model) {
  const std::int64_t max_dim = options.own_dims ? kUsualGivenMaxDim : options.max_dim;
  const auto sets = std::make_shared<PlannedSets>(std::move(options), model.compute);
  sampling.sampling = SetSampling::given;
  sampling.given = [sets](std::int64_t id) { return sets->set(id); };
  sampling.given_kind = "plans";
  sampling.given_by = model.identity;
  sampling.given_max_dim = max_dim;
  sampling.candidates = 1;
}

void use_planned_sets(ComputeSamplingOptions& sampling, const PlanningModel& model,
                      int num_threads) {
  std::erase_if(sampling.tables, [&](const Table& table) {
    return is_held_out(table.name, sampling.held_out_share);
  });
  const std::int64_t widest = *std::max_element(sampling.dims.begin(), sampling.dims.end());
  PlannedSetsOptions options{
      .pools = {{.name = sampling.workload, .tables = sampling.tables}},
      .max_dim = static_cast<std::int64_t>(std::bit_floor(static_cast<std::uint64_t>(widest))),
      .batch_size = sampling.batch_size,
      .optimizer = sampling.optimizer,
      .seed = sampling.seed,
      .num_threads = num_threads};
  use_planned_sets(sampling, std::move(options), model);
}

}  // namespace neuroshard
