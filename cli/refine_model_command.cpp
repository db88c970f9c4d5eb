// `neuroshard refine-model`: measures the search's plans, and trains on them.
#include <fmt/format.h>

#include <cstdio>
#include <memory>
#include <string>
#include <tuple>
#include <vector>

#include "cli/commands.h"
#include "cli/options/conventions.h"
#include "cli/options/gpu_options.h"
#include "cli/options/options.h"
#include "cli/streams/output.h"
#include "cli/streams/progress.h"
#include "neuroshard/core/error.h"
#include "neuroshard/core/units.h"
#include "neuroshard/cost/compute/compute_model_io.h"
#include "neuroshard/cost/model_catalog.h"
#include "neuroshard/cost/model_files.h"
#include "neuroshard/evaluate/plan_evaluation.h"
#include "neuroshard/io/output_files.h"
#include "neuroshard/refine/model_refinement.h"
#include "neuroshard/refine/refinement_io.h"
#include "neuroshard/report/collection_report.h"
#include "neuroshard/report/refinement_report.h"
#include "neuroshard/report/training_report.h"
#include "neuroshard/workload/workload.h"

namespace neuroshard::cli {

namespace {

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
  bool force = false;
  std::string output;
  BackendOptions measuring;
};

/// What prices the all-to-alls of the tasks' plans.
std::shared_ptr<const CommunicationCostModel> communication_model(const RefineOptions& options) {
  const RefinementOptions& refinement = options.refinement;
  Topology topology;
  topology.world_size = topology.local_world_size = refinement.devices.front();
  topology.interconnect = refinement.tasks.interconnect;
  const CostModels models = load_cost_models(options.models, topology);
  if (!models.compute_is_default) {  // the one that is trained here takes its place
    throw InputError("--model", "a communication model",
                     models.compute_file.empty() ? models.compute->name() : models.compute_file);
  }
  return models.communication;
}

void run(RefineOptions& options) {
  RefinementOptions& refinement = options.refinement;
  for (const auto& inputs : {refinement.costs, refinement_files(refinement)}) {
    refuse_output_that_is_input(options.output, inputs);
  }
  std::vector<std::string> read = options.models;
  read.push_back(refinement.tasks.interconnect);
  refuse_output_that_is_model(options.output, read, ModelsRead::named);
  for (const std::string& file : refinement_files(refinement)) {
    refuse_output_that_is_input(file, refinement.costs, "--folder");
    refuse_output_that_is_model(file, read, ModelsRead::named, "--folder");
  }
  TaskGeneratorOptions& tasks = refinement.tasks;
  refinement.workload = find_workload(options.workload, options.workload_seed);
  std::tie(tasks.min_tables, tasks.max_tables) = parse_range(options.tables, "--tables");
  std::tie(tasks.min_fill, tasks.max_fill) = parse_shares(options.fill, "--fill");
  tasks.memory_bytes = parse_bytes(options.memory, "--memory");
  tasks.optimizer = parse_optimizer(options.optimizer, "--optimizer");
  options.measuring.cpu.arena_bytes = parse_bytes(options.arena, "--arena");
  Task of_workload;
  of_workload.tables = refinement.workload.tables;
  options.measuring.cpu.data_type = arena_data_type(of_workload);
  // --threads plan and train too: GPUs need none that measure.
  if (!options.measuring.on_gpus()) {
    options.measuring.cpu.num_threads = refinement.planner.num_threads;
  }
  refinement.benchmark = options.measuring.cpu;
  // Without a backend, each round makes one of its own: a CPU's description includes the number of
  // sets in flight, which differs from round to round.
  if (const ComputeBackendFactory chosen = chosen_backend(options.measuring, 1);
      options.measuring.on_gpus()) {
    refinement.backend = chosen;
  }
  refinement.planner.seed = tasks.seed;
  refinement.training.seed = tasks.seed;
  refinement.training.num_threads = refinement.planner.num_threads;
  if (options.members > 0) refinement.training.members = options.members;
  if (options.epochs > 0) refinement.training.loop.epochs = options.epochs;
  check_output(options.output, options.force);
  const auto communication = communication_model(options);

  RefinementResult result;
  {
    ProgressLine line;
    RefinementCallbacks callbacks;
    callbacks.on_epoch = [&](const EpochStats& epoch) { line.show(epoch_text(epoch)); };
    callbacks.on_sample = [&](const CollectionProgress& progress) {
      line.show(collection_progress_text(progress, "sets"));
    };
    if (!options.json) {
      callbacks.on_round = [](const RefinementRound& round) {
        wipe_progress();
        fmt::print("{}{}", round.round == 0 ? refinement_heading() : "",
                   refinement_round_line(round));
        (void)std::fflush(stdout);  // rounds take minutes
      };
    }
    result = refine_model(refinement, communication, callbacks);
  }
  check_output(options.output, options.force);  // another process may have made it meanwhile
  write_compute_model(*result.last.model, options.output);
  fmt::print("{}", options.json ? to_line(refinement_json(result, options.output)) + "\n"
                                : refinement_text(result, refinement.tolerance, options.output));
}

}  // namespace

void add_refine_model_command(CLI::App& app) {
  auto options = std::make_shared<RefineOptions>();
  RefinementOptions& refinement = options->refinement;
  CLI::App* command = app.add_subcommand(
      "refine-model", "Train a computation cost model on the search's own plans, measured here");
  command
      ->add_option("costs", refinement.costs, "Files of measured computation costs to start from")
      ->required();
  command
      ->add_option("--folder", refinement.folder,
                   "Folder for measured costs and models: a run that was stopped goes on")
      ->required();
  command->add_option("--workload", options->workload, "Tables of the tasks")
      ->capture_default_str();
  command->add_option("--workload-seed", options->workload_seed, "Seed of a generated workload")
      ->check(seed())
      ->capture_default_str();
  command->add_option("--rounds", refinement.num_rounds, "Largest number of rounds")
      ->check(integer_between(1, 1000))
      ->capture_default_str();
  command->add_option("--tasks", refinement.tasks_per_round, "Plans made and measured in a round")
      ->check(integer_between(1, 10'000))
      ->capture_default_str();
  command
      ->add_option("--controls", refinement.controls,
                   "Old samples measured again in a round, to track the change of the machine's "
                   "speed")
      ->check(integer_between(0, 10'000))
      ->capture_default_str();
  command
      ->add_option(
          "--tolerance", refinement.tolerance,
          "Ends once the mean gap between a round's predicted and measured costs is at most this "
          "share")
      ->check(number_between(0.0, 1.0))
      ->capture_default_str();
  command
      ->add_option("--devices", refinement.devices,
                   "Devices of the tasks, which alternate, separated by commas or spaces")
      ->delimiter(',')
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
  command->add_option("--interconnect", refinement.tasks.interconnect, "Interconnect of the tasks")
      ->capture_default_str();
  add_models_option(*command, options->models, "Communication cost model by name or file");
  command->add_option("--members", options->members, "Networks of the ensemble; 0: the default")
      ->check(integer_between(0, kMaxMembers));
  command->add_option("--epochs", options->epochs, "Largest number of epochs; 0: the default")
      ->check(integer_between(0, 1'000'000));
  command->add_option("--arena", options->arena, "Memory to take for the tables")
      ->capture_default_str();
  add_backend_options(*command, options->measuring);
  command
      ->add_option("--threads", refinement.planner.num_threads,
                   "Number of threads; 0: one per core")
      ->check(integer_between(0, kMaxThreads))
      ->capture_default_str();
  add_improvement_options(*command, refinement.planner, false);
  command->add_option("--seed", refinement.tasks.seed, "Seed of tasks, plans, batches and training")
      ->check(seed())
      ->capture_default_str();
  command->add_flag("--json", options->json, "Print the result as JSON");
  add_output_file_option(*command, options->output, options->force, "Model to write (.safetensors)")
      ->required();
  command->add_option("--name", refinement.training.name, "Name of the model");
  add_examples(*command, {"refine-model costs.jsonl --folder rounds -o refined.safetensors"});
  command->callback([options] { run(*options); });
}

}  // namespace neuroshard::cli
