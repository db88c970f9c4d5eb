// Rounds of planning, measuring and training.
#include "neuroshard/refine/model_refinement.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <map>
#include <optional>
#include <set>
#include <utility>

#include "neuroshard/collect/compute/speed_controls.h"
#include "neuroshard/core/error.h"
#include "neuroshard/core/numbers/random.h"
#include "neuroshard/cost/compute/compute_model_io.h"
#include "neuroshard/cost/simulator.h"
#include "neuroshard/io/compute_costs_io.h"
#include "neuroshard/refine/planned_sets.h"
#include "neuroshard/search/neuroshard_planner.h"
#include "neuroshard/train/compute/compute_dataset.h"
#include "neuroshard/workload/reuse/index_distribution.h"

namespace neuroshard {

namespace {

constexpr const char* kModelEnding = "model.safetensors";
constexpr const char* kCostsEnding = "jsonl";

std::string file_of_round(const RefinementOptions& options, int round, const std::string& ending) {
  return fmt::format("{}/round-{}.{}", options.folder, round, ending);
}

/// Of a round's sets of replicated tables: a file has one batch size.
std::string copies_ending(std::int64_t batch_size) {
  return fmt::format("copies-{}.{}", batch_size, kCostsEnding);
}

/// The batch sizes of which devices look up replicated tables.
std::set<std::int64_t> copies_batch_sizes(const RefinementOptions& options) {
  std::set<std::int64_t> sizes;
  if (!options.planner.cuts.replicas) return sizes;
  for (const int devices : options.devices) {
    Task task;
    task.batch_size = options.tasks.batch_size;
    if (task.batch_size == 0) task.batch_size = options.workload.batch_size;  // as generate_task
    task.topology.world_size = devices;
    if (devices > 1) sizes.insert(replica_batch_size(task));
  }
  return sizes;
}

/// Draws of a task that has a plan before the memory is called too tight.
constexpr int kMaxDraws = 100;

/// A plan with the places of its devices' sets among those to be measured.
struct ProposedPlan {
  Task task;
  ShardingPlan plan;
  std::vector<std::int64_t> set_of_device;  ///< -1 for a device without pieces
  /// Of the replicated tables: among those of their batch size; -1 without any.
  std::int64_t set_of_copies = -1;
};

/// Sets of a round with their file: of pieces, or of copies of whole tables.
struct MeasuredSets {
  GivenPieceSets given;
  std::map<std::vector<Piece>, std::int64_t> known;  ///< equal ones are measured once
  std::vector<std::optional<double>> cost_ms;        ///< once they are measured

  std::int64_t add(std::vector<Piece> pieces) {
    std::sort(pieces.begin(), pieces.end());
    const auto [place, is_new] =
        known.try_emplace(pieces, static_cast<std::int64_t>(given.sets.size()));
    if (is_new) given.sets.push_back(std::move(pieces));
    return place->second;
  }
};

/// A sample of the training data that is measured again.
struct Control {
  std::int64_t set = 0;
  double cost_ms = 0.0;  ///< as it was
};

/// All given sets stand in the file: nothing is left to measure, on whatever machine that was.
/// Throws InputError if the file has other sets, for example because another version of the search
/// made the plans.
bool is_complete(const std::string& path, const GivenPieceSets& given) {
  std::error_code error;
  if (!std::filesystem::exists(path, error)) return false;
  if (std::filesystem::is_empty(path, error)) return false;  // it ended before the first line
  const ComputeCosts costs = read_compute_costs(path);
  if (costs.header.sampling != given.origin || costs.header.batch_size != given.batch_size ||
      costs.header.optimizer != given.optimizer) {
    return false;  // the collector reports the difference
  }
  for (const ComputeCostSample& sample : costs.samples) {
    const auto id = static_cast<std::size_t>(sample.info.id.value_or(-1));
    if (id >= given.sets.size() || sample.pieces != given.sets[id]) {
      throw InputError(fmt::format("{}: sample {}", path, sample.info.id.value_or(-1)),
                       "the pieces of this run's plans", "others");
    }
  }
  return costs.samples.size() + costs.skipped.size() == given.sets.size();
}

class Refinement {
 public:
  Refinement(const RefinementOptions& options,
             std::shared_ptr<const CommunicationCostModel> communication,
             const RefinementCallbacks& callbacks)
      : options_(options), communication_(std::move(communication)), callbacks_(callbacks) {
    const double held_out = largest_held_out_share(options.costs);
    for (const Table& table : options.workload.tables) {
      if (is_held_out(table.name, held_out)) continue;
      table_numbers_[table.name] = static_cast<int>(pool_.tables.size());
      pool_.tables.push_back(table);
    }
    pool_.name = options.workload.name;
    pool_.batch_size = options.workload.batch_size;
    if (options.planner.steps == 0) throw InputError("steps", "at least 1", "0");
    require_measurable(0);
    std::error_code error;
    std::filesystem::create_directories(options.folder, error);
    if (error) throw InputError(options.folder, "a folder to write to", error.message());
  }

  RefinementResult run() {
    RefinementResult result;
    std::vector<double> drifts;
    for (int round = 0; round < options_.num_rounds && !result.agreed; ++round) {
      require_measurable(round);
      const auto model = model_of(round, drifts, result);
      result.rounds.push_back(measure_round(round, *model, drifts));
      const RefinementRound& last = result.rounds.back();
      if (last.plans == 0) {
        throw MachineError(fmt::format(
            "round {}: no plan was measured: the sets of a device of each did not fit into memory",
            round));
      }
      if (callbacks_.on_round) callbacks_.on_round(last);
      result.agreed = last.mean_gap <= options_.tolerance;
    }
    result.last = train(result.rounds.size(), drifts);
    return result;
  }

 private:
  [[nodiscard]] std::string file(int round, const std::string& ending) const {
    return file_of_round(options_, round, ending);
  }

  /// Throws InputError if what is measured here could not be trained on with the given costs.
  void require_this_machines() const {
    if (options_.costs.empty()) return;
    const BackendDescription here =
        (options_.backend ? *options_.backend : cpu_backend(options_.benchmark, 1)).description;
    require_same_origin(read_compute_costs(options_.costs.front()).header, here.hardware,
                        here.operator_info, "this machine");
  }

  /// The same for a round of which nothing is measured yet: now, not after minutes of training.
  void require_measurable(int round) const {
    std::error_code error;
    if (!std::filesystem::exists(file(round, kCostsEnding), error)) require_this_machines();
  }

  /// The given costs and those measured in the first `rounds` rounds.
  [[nodiscard]] std::vector<std::string> files_of(std::size_t rounds) const {
    std::vector<std::string> files = options_.costs;
    for (std::size_t i = 0; i < rounds; ++i) {
      const int round = static_cast<int>(i);
      files.push_back(file(round, kCostsEnding));
      for (const std::int64_t batch_size : copies_batch_sizes(options_)) {
        std::string copies = file(round, copies_ending(batch_size));
        std::error_code error;  // plans of the round may have none of this size
        if (std::filesystem::exists(copies, error)) files.push_back(std::move(copies));
      }
    }
    return files;
  }

  /// Trains on these.
  ComputeTrainingResult train(std::size_t rounds, const std::vector<double>& drifts) {
    ComputeDataset dataset =
        load_compute_dataset(files_of(rounds), feature_schema_of(options_.training.architecture));
    const std::size_t given = rounds > 0 ? dataset.first_sample[options_.costs.size()] : 0;
    const double drift = median_drift(drifts);
    for (std::size_t i = 0; i < given; ++i) dataset.cost_ms[i] *= drift;
    return train_compute_model(dataset, options_.training, callbacks_.on_epoch);
  }

  std::shared_ptr<const NeuralComputeModel> model_of(int round, const std::vector<double>& drifts,
                                                     const RefinementResult& result) {
    const std::string path = file(round, kModelEnding);
    std::error_code error;
    if (!std::filesystem::exists(path, error)) {
      write_compute_model(*train(result.rounds.size(), drifts).model, path);
    }
    auto model = read_compute_model(path);
    if (model->info().data_sha256 != training_data_sha256(files_of(result.rounds.size()))) {
      throw InputError(path, "a model trained on the given costs and those of the rounds before",
                       "one trained on others");
    }
    return model;
  }

  Task task_of(int round, int number, int draw) const {
    TaskGeneratorOptions generator = options_.tasks;
    generator.num_devices = options_.devices[number % options_.devices.size()];
    generator.local_devices = std::min(generator.local_devices, generator.num_devices);
    if (number / static_cast<int>(options_.devices.size()) % 2 == 0) {
      generator.min_fill = generator.max_fill = 0.0;
    }
    const std::uint64_t index =
        (static_cast<std::uint64_t>(round) * options_.tasks_per_round + number) * kMaxDraws + draw;
    return generate_task(pool_, generator, index);
  }

  /// A task's plan; tasks too tight for any are drawn again.
  ProposedPlan propose(int round, int number,
                       const std::shared_ptr<const ComputeCostModel>& model) const {
    const NeuroShardPlanner planner;
    for (int draw = 0; draw < kMaxDraws; ++draw) {
      const Simulator simulator(task_of(round, number, draw), model, communication_);
      try {
        return {simulator.task(), planner.plan(simulator, options_.planner).plan, {}, -1};
      } catch (const InfeasibleError&) {
        continue;
      }
    }
    throw InfeasibleError(fmt::format("none of {} tasks drawn in a row has a plan", kMaxDraws));
  }

  [[nodiscard]] int table_number(const ProposedPlan& proposed, int table) const {
    return table_numbers_.at(proposed.task.tables[table].name);
  }

  /// The devices' sets of pieces, added to those to be measured.
  void add_sets(ProposedPlan& proposed, MeasuredSets& sets) const {
    std::vector<std::vector<Piece>> devices = sets_of_devices(proposed.task, proposed.plan);
    for (std::vector<Piece>& pieces : devices) {
      for (Piece& piece : pieces) piece.table = table_number(proposed, piece.table);
    }
    sets.known.clear();  // a plan's own alone, as they were before other plans'
    for (std::vector<Piece>& pieces : devices) {
      proposed.set_of_device.push_back(pieces.empty() ? -1 : sets.add(std::move(pieces)));
    }
  }

  /// Its replicated tables, which each device looks up for its share of the batch, likewise.
  void add_copies(int round, ProposedPlan& proposed,
                  std::map<std::int64_t, MeasuredSets>& copies) const {
    if (proposed.plan.replicated_tables.empty()) return;
    const std::int64_t batch_size = replica_batch_size(proposed.task);
    MeasuredSets& sets = copies[batch_size];
    GivenPieceSets& given = sets.given;
    if (given.sets.empty()) {
      for (const Table& table : pool_.tables) {
        given.tables.push_back(for_any_batch_size(table, proposed.task.batch_size));
      }
      given.batch_size = batch_size;
      given.optimizer = proposed.task.optimizer;
      given.seed = mix64(options_.tasks.seed + static_cast<std::uint64_t>(round) +
                         static_cast<std::uint64_t>(batch_size));
    }
    std::vector<Piece> pieces = copies_of(proposed.task, proposed.plan);
    for (Piece& piece : pieces) piece.table = table_number(proposed, piece.table);
    proposed.set_of_copies = sets.add(std::move(pieces));
  }

  /// Measures what the file does not have, and reads it.
  void measure(const std::string& path, MeasuredSets& sets) const {
    GivenPieceSets& given = sets.given;
    given.in_flight = static_cast<int>(std::min<std::size_t>(given.sets.size(), kMostInFlight));
    const ComputeBackendFactory backend =
        options_.backend ? *options_.backend : cpu_backend(options_.benchmark, given.in_flight);
    if (!is_complete(path, given)) {
      require_this_machines();  // other files of the round may have been measured elsewhere
      collect_compute_costs(given, backend, path, callbacks_.on_sample);
    }
    sets.cost_ms.resize(given.sets.size());
    for (const ComputeCostSample& sample : read_compute_costs(path).samples) {
      sets.cost_ms.at(sample.info.id.value()) = sample.forward_ms + sample.backward_ms;
    }
  }

  /// Samples of the training data with the tasks' batch size, optimizer and tables.
  std::vector<Control> add_controls(int round, GivenPieceSets& given) const {
    std::vector<Control> controls;
    for (SpeedControl& control :
         SpeedControls(options_.costs, pool_.tables)
             .draw(given.batch_size, given.optimizer, static_cast<std::size_t>(options_.controls),
                   Random::for_stream(mix64(options_.tasks.seed), round))) {
      controls.push_back({static_cast<std::int64_t>(given.sets.size()), control.cost_ms});
      given.sets.push_back(std::move(control.pieces));
    }
    return controls;
  }

  RefinementRound measure_round(int round, const NeuralComputeModel& model,
                                std::vector<double>& drifts) {
    const auto shared = std::make_shared<NeuralComputeModel>(model);
    MeasuredSets sets;
    GivenPieceSets& given = sets.given;
    given.tables = pool_.tables;
    std::vector<ProposedPlan> plans;
    for (int i = 0; i < options_.tasks_per_round; ++i) {
      plans.push_back(propose(round, i, shared));
    }
    given.batch_size = plans.front().task.batch_size;
    given.optimizer = plans.front().task.optimizer;
    std::map<std::int64_t, MeasuredSets> copies;
    for (ProposedPlan& plan : plans) {
      add_sets(plan, sets);
      add_copies(round, plan, copies);
    }
    const auto plan_sets = static_cast<std::int64_t>(given.sets.size());
    const std::vector<Control> controls = add_controls(round, given);
    given.origin = Json::Object{{"workload", pool_.name},
                                {"refinement_round", round},
                                {"model_sha256", model.info().model_sha256},
                                {"seed", options_.tasks.seed},
                                {"plans", options_.tasks_per_round},
                                {"plan_sets", plan_sets},
                                {"controls", static_cast<std::int64_t>(controls.size())}};
    given.seed = mix64(options_.tasks.seed + static_cast<std::uint64_t>(round));
    measure(file(round, kCostsEnding), sets);
    std::size_t sets_of_copies = 0;
    for (auto& [batch_size, of_size] : copies) {
      of_size.given.origin = given.origin;
      of_size.given.origin.set("copies_of_batch_size", batch_size);
      measure(file(round, copies_ending(batch_size)), of_size);
      sets_of_copies += of_size.given.sets.size();
    }
    std::vector<double> ratios;
    for (const Control& control : controls) {
      if (sets.cost_ms[control.set]) ratios.push_back(*sets.cost_ms[control.set] / control.cost_ms);
    }
    RefinementRound result = judge(shared, plans, sets, copies);
    result.round = round;
    result.sets = static_cast<int>(plan_sets) + static_cast<int>(sets_of_copies);
    result.drift = median_drift(ratios);
    drifts.push_back(result.drift);
    return result;
  }

  /// Computation of each device: its pieces' and its copies'. Nothing if the machine had no memory
  /// for a set, which is recorded as skipped.
  static std::optional<std::vector<double>> measured_ms(
      const ProposedPlan& proposed, const MeasuredSets& sets,
      const std::map<std::int64_t, MeasuredSets>& copies) {
    double copies_ms = 0.0;
    if (proposed.set_of_copies >= 0) {
      const std::optional<double>& measured =
          copies.at(replica_batch_size(proposed.task)).cost_ms[proposed.set_of_copies];
      if (!measured) return std::nullopt;
      copies_ms = *measured;
    }
    std::vector<double> result;
    for (const std::int64_t set : proposed.set_of_device) {
      if (set >= 0 && !sets.cost_ms[set]) return std::nullopt;
      result.push_back(copies_ms + (set < 0 ? 0.0 : *sets.cost_ms[set]));
    }
    return result;
  }

  RefinementRound judge(const std::shared_ptr<const ComputeCostModel>& model,
                        const std::vector<ProposedPlan>& plans, const MeasuredSets& sets,
                        const std::map<std::int64_t, MeasuredSets>& copies) const {
    RefinementRound result;
    std::vector<double> predicted_devices;
    std::vector<double> measured_devices;
    for (const ProposedPlan& proposed : plans) {
      const Simulator simulator(proposed.task, model, communication_);
      const PlanCost predicted = simulator.cost(proposed.plan);
      const std::optional<std::vector<double>> measured = measured_ms(proposed, sets, copies);
      if (!measured) continue;
      const std::vector<double>& compute_ms = *measured;
      for (std::size_t d = 0; d < compute_ms.size(); ++d) {
        if (compute_ms[d] <= 0.0) continue;
        predicted_devices.push_back(predicted.devices[d].compute_ms);
        measured_devices.push_back(compute_ms[d]);
      }
      const double ratio =
          predicted.cost_ms / simulator.cost(proposed.plan, compute_ms).cost_ms - 1.0;
      result.bias += ratio;
      result.mean_gap += std::abs(ratio);
      ++result.plans;
    }
    result.bias /= std::max(result.plans, 1);
    result.mean_gap /= std::max(result.plans, 1);
    result.devices = prediction_metrics(predicted_devices, measured_devices);
    return result;
  }

  static constexpr std::size_t kMostInFlight = 300;

  const RefinementOptions& options_;
  std::shared_ptr<const CommunicationCostModel> communication_;
  const RefinementCallbacks& callbacks_;
  Workload pool_;  ///< without the tables kept from training
  std::map<std::string, int> table_numbers_;
};

}  // namespace

std::vector<std::string> refinement_files(const RefinementOptions& options) {
  std::vector<std::string> paths;
  for (int round = 0; round < options.num_rounds; ++round) {
    paths.push_back(file_of_round(options, round, kModelEnding));
    paths.push_back(file_of_round(options, round, kCostsEnding));
    for (const std::int64_t batch_size : copies_batch_sizes(options)) {
      paths.push_back(file_of_round(options, round, copies_ending(batch_size)));
    }
  }
  return paths;
}

RefinementResult refine_model(const RefinementOptions& options,
                              const std::shared_ptr<const CommunicationCostModel>& communication,
                              const RefinementCallbacks& callbacks) {
  return Refinement(options, communication, callbacks).run();
}

}  // namespace neuroshard
