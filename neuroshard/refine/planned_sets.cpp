// Random tasks, their plans and the devices' sets.
#include "neuroshard/refine/planned_sets.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <bit>
#include <optional>
#include <set>
#include <string>
#include <utility>

#include "neuroshard/core/error.h"
#include "neuroshard/core/machine/parallel.h"
#include "neuroshard/core/numbers/random.h"
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

/// One of this many tasks is planned for its copies.
constexpr std::uint64_t kTasksPerCopies = 4;
constexpr std::size_t kKindOfCopies = 2;
constexpr std::array<int, 4> kDevicesOfCopies{2, 4, 8, 16};
/// Samples of all devices together of which models have seen the like.
constexpr std::int64_t kMostSamplesOfCopies = std::int64_t{1} << 17;
/// Numbers of these tasks, beyond those of all others.
constexpr std::uint64_t kFirstTaskOfCopies = std::uint64_t{1} << 40;

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

std::vector<Piece> copies_of(const Task& task, const ShardingPlan& plan) {
  std::vector<Piece> copies;
  for (const int table : plan.replicated_tables) {
    copies.push_back({table, task.tables[table].embedding_dim});
  }
  return copies;
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
  int without_plan = 0;  // tasks in a row
  while (place >= sets_.size()) {
    const std::size_t before = sets_.size();
    plan_next();
    without_plan = sets_.size() > before ? 0 : without_plan + 1;
    if (without_plan == kMostWithoutPlan) {
      throw InfeasibleError(
          fmt::format("none of {} tasks drawn in a row has a plan with a set that is small enough",
                      kMostWithoutPlan));
    }
  }
  return sets_[place];
}

struct PlannedSets::DrawnTask {
  std::uint64_t number = 0;
  std::size_t kind = 0;
  int devices = 1;
  std::int64_t batch_size = 1;
  bool cuts_columns_alone = false;
};

void PlannedSets::plan_next() {
  const std::uint64_t task = next_task_++;
  const std::uint64_t round = task / kTasksPerCopies;
  if (task % kTasksPerCopies == kTasksPerCopies - 1) {
    int devices = kDevicesOfCopies[round % kDevicesOfCopies.size()];
    while (devices > 2 && options_.batch_size * devices > kMostSamplesOfCopies) devices /= 2;
    if (options_.batch_size * devices > kMaxBatchSize) return;
    const auto found = planned({.number = kFirstTaskOfCopies + round,
                                .kind = kKindOfCopies,
                                .devices = devices,
                                .batch_size = options_.batch_size * devices});
    if (found) add_copies(*found);
    return;
  }
  const std::uint64_t number = task - round;
  const auto found =
      planned({.number = number,
               .kind = number / kDevices.size() % kKinds.size(),
               .devices = kDevices[number % kDevices.size()],
               .batch_size = options_.batch_size,
               .cuts_columns_alone = number / (kDevices.size() * kKinds.size()) % 3 == 2});
  if (found) add_devices(*found, number);
}

std::optional<PlannedSets::Planned> PlannedSets::planned(const DrawnTask& drawn) const {
  const TaskKind& kind = kKinds[drawn.kind];
  const Workload& pool = options_.pools[(drawn.number + options_.seed) % options_.pools.size()];
  TaskGeneratorOptions generator{.max_dim = options_.max_dim,
                                 .num_devices = drawn.devices,
                                 .local_devices = kind.local_devices,
                                 .own_dims = options_.own_dims,
                                 .interconnect = kind.interconnect,
                                 .memory_bytes = ample_memory(pool, options_),
                                 .batch_size = drawn.batch_size,
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
    task = generate_task(pool, generator, drawn.number);
  } catch (const InputError&) {
    if (options_.pools.size() == 1) throw;
    // Few tables, one of which needs more than all others have room for: the next pool.
    return std::nullopt;
  }
  const AllCores unpinned;  // what measures the sets may have this thread on a core of its own
  const Simulator simulator(std::move(task), model_, communication_[drawn.kind]);
  PlannerOptions planner = options_of_measured_plans();
  planner.seed = options_.seed;
  planner.num_threads = options_.num_threads;
  if (drawn.cuts_columns_alone) {
    planner.cuts = {.columns = true, .rows = false, .replicas = false};
  }
  try {
    return Planned{simulator.task(), NeuroShardPlanner().plan(simulator, planner).plan};
  } catch (const InfeasibleError&) {
    return std::nullopt;
  }
}

bool PlannedSets::is_small_enough(const std::vector<Piece>& pieces, const Task& task) const {
  double bytes = 0.0;
  for (const Piece& piece : pieces) {
    bytes += pass_bytes(task.tables[piece.table], piece, options_.batch_size);
  }
  return bytes <= options_.max_pass_bytes;
}

std::vector<Piece> PlannedSets::of_all_pools(std::vector<Piece> pieces, const Task& task) const {
  for (Piece& piece : pieces) piece.table = places_.at(task.tables[piece.table].name);
  std::sort(pieces.begin(), pieces.end());
  return pieces;
}

void PlannedSets::add_devices(const Planned& planned, std::uint64_t number) {
  // Devices with slices of the same tables have the same pieces: measured once, they say as much.
  std::vector<std::vector<Piece>> devices;
  std::set<std::vector<Piece>> known;
  for (std::vector<Piece>& pieces : sets_of_devices(planned.task, planned.plan)) {
    if (pieces.empty() || !is_small_enough(pieces, planned.task)) continue;
    pieces = of_all_pools(std::move(pieces), planned.task);
    if (known.insert(pieces).second) devices.push_back(std::move(pieces));
  }
  Random random = Random::for_stream(mix64(options_.seed), number);
  while (devices.size() > static_cast<std::size_t>(options_.max_sets_of_plan)) {
    devices.erase(devices.begin() + static_cast<std::ptrdiff_t>(random.below(devices.size())));
  }
  for (std::vector<Piece>& pieces : devices) sets_.push_back(std::move(pieces));
}

void PlannedSets::add_copies(const Planned& planned) {
  std::vector<Piece> copies = copies_of(planned.task, planned.plan);
  if (copies.empty() || !is_small_enough(copies, planned.task)) return;
  sets_.push_back(of_all_pools(std::move(copies), planned.task));
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
  sampling.given_kind = kPlannedSetsKind;
  sampling.given_by = model.identity;
  sampling.given_has_copies = true;
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
