// `neuroshard refine-model`: measures what the search proposes, and trains on it.
#include <fmt/format.h>

#include <memory>
#include <string>
#include <tuple>
#include <vector>

#include "cli/commands.h"
#include "cli/gpu_options.h"
#include "cli/options.h"
#include "cli/progress.h"
#include "cli/training_report.h"
#include "neuroshard/core/error.h"
#include "neuroshard/core/units.h"
#include "neuroshard/cost/compute/compute_model_io.h"
#include "neuroshard/cost/model_catalog.h"
#include "neuroshard/evaluate/plan_evaluation.h"
#include "neuroshard/refine/model_refinement.h"
#include "neuroshard/workload/workload_catalog.h"

namespace neuroshard::cli {

namespace {

/// Steps of the improvement of each plan: plans must not depend on the clock.
constexpr std::int64_t kDefaultSteps = 30'000;
/// Longer than any plan takes.
constexpr double kNoTimeLimit = 86'400.0;

struct RefineOptions {
  RefinementOptions refinement;
  std::string workload = "dlrm-2021";
  std::uint64_t workload_seed = 0;
  std::string tables = "10:60";
  std::string memory = "8GiB";
  std::string fill = "0.9:0.98";
  std::string arena = "4GiB";
  std::string optimizer = "sgd";
  std::vector<std::string> models;
  int members = 0;
  int epochs = 0;
  bool json = false;
  std::string output;
  BackendOptions measuring;
};

Json round_json(const RefinementRound& round) {
  return Json::Object{{"round", round.round}, {"plans", round.plans},
                      {"sets", round.sets},   {"mean_gap", round.mean_gap},
                      {"bias", round.bias},   {"devices", metrics_json(round.devices)},
                      {"drift", round.drift}};
}

void print_round(const RefinementRound& round) {
  if (round.round == 0) {
    fmt::print("{:>5}{:>7}{:>7}{:>12}{:>9}{:>15}{:>14}{:>17}\n", "round", "plans", "sets",
               "plans' gap", "bias", "devices' MAPE", "devices' tau", "machine's drift");
  }
  fmt::print("{:>5}{:>7}{:>7}{:>11.1f}%{:>+8.1f}%{:>14.1f}%{:>14.3f}{:>+16.1f}%\n", round.round,
             round.plans, round.sets, 100.0 * round.mean_gap, 100.0 * round.bias,
             100.0 * round.devices.mape, round.devices.kendall_tau, 100.0 * (round.drift - 1.0));
  (void)std::fflush(stdout);  // rounds take minutes
}

void print_result(const RefineOptions& options, const RefinementResult& result) {
  if (options.json) {
    Json::Array rounds;
    for (const RefinementRound& round : result.rounds) rounds.push_back(round_json(round));
    const Json document =
        Json::Object{{"model", options.output},
                     {"agreed", result.agreed},
                     {"rounds", std::move(rounds)},
                     {"unseen_combinations", metrics_json(result.last.unseen_combinations)},
                     {"unseen_tables", metrics_json(result.last.unseen_tables)}};
    fmt::print("{}\n", to_line(document));
    return;
  }
  fmt::print("{}: {}\n\n",
             result.rounds.size() == 1 ? "1 round" : fmt::format("{} rounds", result.rounds.size()),
             result.agreed ? fmt::format("new plans cost what is predicted within {:.1f}%",
                                         100.0 * options.refinement.tolerance)
                           : fmt::format("new plans still differ by more than {:.1f}%",
                                         100.0 * options.refinement.tolerance));
  print_metrics_heading("samples");
  print_metrics("training", result.last.training);
  print_metrics("unseen combinations", result.last.unseen_combinations);
  print_metrics("unseen tables", result.last.unseen_tables);
  fmt::print("written to {}\n", options.output);
}

void run(RefineOptions& options) {
  RefinementOptions& refinement = options.refinement;
  TaskGeneratorOptions& tasks = refinement.tasks;
  refinement.workload = find_workload(options.workload, options.workload_seed);
  std::tie(tasks.min_tables, tasks.max_tables) = parse_range(options.tables, "--tables");
  std::tie(tasks.min_fill, tasks.max_fill) = parse_shares(options.fill, "--fill");
  tasks.memory_bytes = parse_bytes(options.memory, "--memory");
  tasks.optimizer = parse_optimizer(options.optimizer, "--optimizer");
  if (tasks.interconnect.empty()) tasks.interconnect = "pcie4";
  options.measuring.cpu.arena_bytes = parse_bytes(options.arena, "--arena");
  Task of_workload;
  of_workload.tables = refinement.workload.tables;
  options.measuring.cpu.data_type = arena_data_type(of_workload);
  refinement.benchmark = options.measuring.cpu;
  // A CPU's description names the sets in flight, which each round has a number of.
  if (const ComputeBackendFactory chosen = chosen_backend(options.measuring, 1);
      options.measuring.on_gpus()) {
    refinement.backend = chosen;
  }
  refinement.planner.time_limit_seconds = kNoTimeLimit;
  refinement.planner.seed = tasks.seed;
  refinement.training.seed = tasks.seed;
  refinement.training.num_threads = refinement.planner.num_threads;
  if (options.members > 0) refinement.training.members = options.members;
  if (options.epochs > 0) refinement.training.loop.epochs = options.epochs;
  require_writable(options.output);
  Topology topology;
  topology.world_size = topology.local_world_size = refinement.devices.front();
  topology.interconnect = tasks.interconnect;
  const CostModels models = load_cost_models(options.models, topology);

  RefinementResult result;
  {
    ProgressLine line;
    RefinementCallbacks callbacks;
    callbacks.on_epoch =
        progress_on(line, refinement.training.loop.epochs * refinement.training.members);
    callbacks.on_sample = [&](const CollectionProgress& progress) {
      line.show(fmt::format("{} of {} sets measured, {} left", progress.done, progress.requested,
                            format_seconds(progress.seconds_left)));
    };
    if (!options.json) callbacks.on_round = print_round;
    result = refine_model(refinement, models.communication, callbacks);
  }
  write_compute_model(*result.last.model, options.output);
  print_result(options, result);
}

}  // namespace

void add_refine_model_command(CLI::App& app) {
  auto options = std::make_shared<RefineOptions>();
  RefinementOptions& refinement = options->refinement;
  refinement.planner.steps = kDefaultSteps;
  refinement.tasks.batch_size = 4096;
  CLI::App* command = app.add_subcommand(
      "refine-model", "Train a computation cost model on the search's own plans, measured here");
  command
      ->add_option("costs", refinement.costs, "Files of measured computation costs to start from")
      ->required();
  command
      ->add_option("--folder", refinement.folder,
                   "Folder of what is measured: a run that was stopped goes on")
      ->required();
  command->add_option("--workload", options->workload, "Tables of the tasks")
      ->capture_default_str();
  command->add_option("--workload-seed", options->workload_seed, "Seed of a generated workload")
      ->check(seed())
      ->capture_default_str();
  command->add_option("--rounds", refinement.num_rounds, "At the most")
      ->check(integer_between(1, 1000))
      ->capture_default_str();
  command->add_option("--tasks", refinement.tasks_per_round, "Plans made and measured in a round")
      ->check(integer_between(1, 10'000))
      ->capture_default_str();
  command
      ->add_option("--controls", refinement.controls,
                   "Old samples measured again in a round, to know what the machine's speed has "
                   "changed by")
      ->check(integer_between(0, 10'000))
      ->capture_default_str();
  command
      ->add_option("--tolerance", refinement.tolerance,
                   "Ends once a round's plans cost what was predicted within this share")
      ->check(CLI::Range(0.0, 1.0))
      ->capture_default_str();
  command->add_option("--devices", refinement.devices, "Devices of the tasks, in turns")
      ->check(integer_between(1, kMaxWorldSize))
      ->capture_default_str();
  command->add_option("--tables", options->tables, "Tables of a task, as MIN:MAX")
      ->capture_default_str();
  command->add_option("--max-dim", refinement.tasks.max_dim, "Largest dimension, a power of two")
      ->check(integer_between(kColumnGranularity, kMaxEmbeddingDim))
      ->capture_default_str();
  command->add_option("--memory", options->memory, "Memory of each device")->capture_default_str();
  command
      ->add_option("--fill", options->fill,
                   "Share of all memory that every second task's tables take, as MIN:MAX")
      ->capture_default_str();
  command->add_option("--batch-size", refinement.tasks.batch_size, "Samples over all devices")
      ->check(integer_between(1, kMaxBatchSize))
      ->capture_default_str();
  command->add_option("--optimizer", options->optimizer, "sgd or rowwise_adagrad")
      ->capture_default_str();
  command->add_option("--interconnect", refinement.tasks.interconnect,
                      "Of the tasks; default pcie4");
  command->add_option("--model", options->models, "Communication cost model by name or file");
  command->add_option("--members", options->members, "Networks of the ensemble; 0: the default")
      ->check(integer_between(0, kMaxMembers));
  command->add_option("--epochs", options->epochs, "At the most; 0: the default")
      ->check(integer_between(0, 1'000'000));
  command->add_option("--arena", options->arena, "Memory to take for the tables")
      ->capture_default_str();
  add_backend_options(*command, options->measuring);
  command->add_option("--threads", refinement.planner.num_threads, "0: one per core")
      ->check(integer_between(0, kMaxThreads))
      ->capture_default_str();
  add_improvement_options(*command, refinement.planner);
  command->add_option("--seed", refinement.tasks.seed, "Of tasks, plans, batches and training")
      ->check(seed())
      ->capture_default_str();
  command->add_flag("--json", options->json, "Print the result as JSON");
  command->add_option("-o,--output", options->output, "Model to write (.safetensors)")->required();
  command->add_option("--name", refinement.training.name, "Name of the model");
  command->callback([options] { run(*options); });
}

}  // namespace neuroshard::cli
