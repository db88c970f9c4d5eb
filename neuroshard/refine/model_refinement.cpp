// Rounds of planning, measuring and training.
#include "neuroshard/refine/model_refinement.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <map>
#include <optional>
#include <utility>

#include "neuroshard/collect/compute/speed_controls.h"
#include "neuroshard/core/error.h"
#include "neuroshard/core/random.h"
#include "neuroshard/cost/compute/compute_model_io.h"
#include "neuroshard/cost/simulator.h"
#include "neuroshard/io/compute_costs_io.h"
#include "neuroshard/search/neuroshard_planner.h"

namespace neuroshard {

namespace {

constexpr const char* kModelEnding = "model.safetensors";
constexpr const char* kCostsEnding = "jsonl";

std::string file_of(const RefinementOptions& options, int round, const char* ending) {
  return fmt::format("{}/round-{}.{}", options.folder, round, ending);
}

/// Share of the tables that the shipped collector keeps from training.
constexpr double kHeldOutShare = 0.1;
/// Draws of a task that has a plan before the memory is called too tight.
constexpr int kMaxDraws = 100;

/// A plan with the places of its devices' sets among those to be measured.
struct ProposedPlan {
  Task task;
  ShardingPlan plan;
  std::vector<std::int64_t> set_of_device;  ///< -1 for a device without pieces
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
    for (const Table& table : options.workload.tables) {
      if (is_held_out(table.name, kHeldOutShare)) continue;
      table_numbers_[table.name] = static_cast<int>(pool_.tables.size());
      pool_.tables.push_back(table);
    }
    pool_.name = options.workload.name;
    if (options.planner.steps == 0) throw InputError("steps", "a number of steps", "0");
    std::error_code error;
    std::filesystem::create_directories(options.folder, error);
    if (error) throw InputError(options.folder, "a folder to write to", error.message());
  }

  RefinementResult run() {
    RefinementResult result;
    std::vector<double> drifts;
    for (int round = 0; round < options_.num_rounds && !result.agreed; ++round) {
      const auto model = model_of(round, drifts, result);
      result.rounds.push_back(measure_round(round, *model, drifts));
      if (callbacks_.on_round) callbacks_.on_round(result.rounds.back());
      result.agreed = result.rounds.back().mean_gap <= options_.tolerance;
    }
    result.last = train(result.rounds.size(), drifts);
    return result;
  }

 private:
  [[nodiscard]] std::string file(int round, const char* ending) const {
    return file_of(options_, round, ending);
  }

  /// Trains on the given costs and on those measured in the first `rounds` rounds.
  ComputeTrainingResult train(std::size_t rounds, const std::vector<double>& drifts) {
    std::vector<std::string> files = options_.costs;
    for (std::size_t i = 0; i < rounds; ++i)
      files.push_back(file(static_cast<int>(i), kCostsEnding));
    ComputeDataset dataset =
        load_compute_dataset(files, feature_schema_of(options_.training.architecture));
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
    return read_compute_model(path);
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
        return {simulator.task(), planner.plan(simulator, options_.planner).plan, {}};
      } catch (const InfeasibleError&) {
        continue;
      }
    }
    throw InfeasibleError(fmt::format("none of {} tasks drawn in a row has a plan", kMaxDraws));
  }

  /// The devices' sets of pieces, added to those to be measured; equal ones once.
  void add_sets(ProposedPlan& proposed, GivenPieceSets& given) {
    std::vector<std::vector<Piece>> devices(proposed.task.topology.world_size);
    for (const Shard& shard : proposed.plan.shards) {
      Piece piece = piece_of(proposed.task, shard);
      piece.table = table_numbers_.at(proposed.task.tables[shard.table].name);
      devices[shard.device].push_back(piece);
    }
    std::map<std::vector<Piece>, std::int64_t> known;
    for (std::vector<Piece>& pieces : devices) {
      if (pieces.empty()) {
        proposed.set_of_device.push_back(-1);
        continue;
      }
      std::sort(pieces.begin(), pieces.end());
      const auto [place, is_new] =
          known.try_emplace(pieces, static_cast<std::int64_t>(given.sets.size()));
      if (is_new) given.sets.push_back(pieces);
      proposed.set_of_device.push_back(place->second);
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
    GivenPieceSets given;
    given.tables = pool_.tables;
    std::vector<ProposedPlan> plans;
    for (int i = 0; i < options_.tasks_per_round; ++i) {
      plans.push_back(propose(round, i, shared));
    }
    given.batch_size = plans.front().task.batch_size;
    given.optimizer = plans.front().task.optimizer;
    for (ProposedPlan& plan : plans) add_sets(plan, given);
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
    given.in_flight = static_cast<int>(std::min<std::size_t>(given.sets.size(), kMostInFlight));
    const std::string path = file(round, kCostsEnding);
    const ComputeBackendFactory backend =
        options_.backend ? *options_.backend : cpu_backend(options_.benchmark, given.in_flight);
    if (!is_complete(path, given)) {
      collect_compute_costs(given, backend, path, callbacks_.on_sample);
    }

    std::vector<std::optional<double>> measured(given.sets.size());
    for (const ComputeCostSample& sample : read_compute_costs(path).samples) {
      measured.at(sample.info.id.value()) = sample.forward_ms + sample.backward_ms;
    }
    std::vector<double> ratios;
    for (const Control& control : controls) {
      if (measured[control.set]) ratios.push_back(*measured[control.set] / control.cost_ms);
    }
    RefinementRound result = judge(shared, plans, measured);
    result.round = round;
    result.sets = static_cast<int>(plan_sets);
    result.drift = median_drift(ratios);
    drifts.push_back(result.drift);
    return result;
  }

  RefinementRound judge(const std::shared_ptr<const ComputeCostModel>& model,
                        const std::vector<ProposedPlan>& plans,
                        const std::vector<std::optional<double>>& measured) const {
    RefinementRound result;
    std::vector<double> predicted_devices;
    std::vector<double> measured_devices;
    for (const ProposedPlan& proposed : plans) {
      const Simulator simulator(proposed.task, model, communication_);
      const PlanCost predicted = simulator.cost(proposed.plan);
      std::vector<double> compute_ms(predicted.devices.size(), 0.0);
      bool complete = true;  // a set for which the machine had no memory is recorded as skipped
      for (std::size_t d = 0; d < compute_ms.size(); ++d) {
        const std::int64_t set = proposed.set_of_device[d];
        if (set < 0) continue;
        complete = complete && measured[set].has_value();
        if (!complete) break;
        compute_ms[d] = *measured[set];
        predicted_devices.push_back(predicted.devices[d].compute_ms);
        measured_devices.push_back(compute_ms[d]);
      }
      if (!complete) continue;
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
    paths.push_back(file_of(options, round, kModelEnding));
    paths.push_back(file_of(options, round, kCostsEnding));
  }
  return paths;
}

RefinementResult refine_model(const RefinementOptions& options,
                              const std::shared_ptr<const CommunicationCostModel>& communication,
                              const RefinementCallbacks& callbacks) {
  return Refinement(options, communication, callbacks).run();
}

}  // namespace neuroshard
