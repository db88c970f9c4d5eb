// `neuroshard plan`: finds a sharding plan and writes it.
#include <fmt/format.h>

#include <chrono>
#include <memory>
#include <string>
#include <vector>

#include "cli/commands.h"
#include "cli/options.h"
#include "cli/warnings.h"
#include "neuroshard/baselines/baselines.h"
#include "neuroshard/baselines/planner_catalog.h"
#include "neuroshard/core/error.h"
#include "neuroshard/core/units.h"
#include "neuroshard/cost/model_catalog.h"
#include "neuroshard/io/plan_io.h"
#include "neuroshard/io/task_io.h"
#include "neuroshard/report/plan_report.h"
#include "neuroshard/search/lower_bound.h"
#include "neuroshard/workload/workload_catalog.h"

namespace neuroshard::cli {

namespace {

struct PlanOptions {
  std::string task_file;
  std::string workload;
  std::uint64_t workload_seed = 0;
  int devices = 0;
  int local_devices = 0;
  std::string memory;
  std::int64_t batch_size = 0;
  std::string optimizer;
  std::vector<std::string> models;
  std::string algorithm = "neuroshard";
  std::string time_limit = "1s";
  PlannerOptions planner;
  bool baselines = false;
  bool json = false;
  std::string output;
};

/// Throws if an option that describes a task was given beside a task file.
void refuse_beside_file(const PlanOptions& options) {
  const std::pair<const char*, bool> given[] = {{"--devices", options.devices > 0},
                                                {"--local-devices", options.local_devices > 0},
                                                {"--memory", !options.memory.empty()},
                                                {"--batch-size", options.batch_size > 0},
                                                {"--optimizer", !options.optimizer.empty()}};
  for (const auto& [option, is_given] : given) {
    if (is_given) throw InputError(option, "--workload with it", "a task file");
  }
}

/// The task of the file, or of the workload and the devices.
Task task_of(const PlanOptions& options) {
  const bool from_file = !options.task_file.empty();
  if (from_file == !options.workload.empty()) {
    throw InputError("plan", "a task file or --workload", from_file ? "both" : "neither");
  }
  if (from_file) {
    refuse_beside_file(options);
    return read_task(options.task_file);
  }
  Workload workload = find_workload(options.workload, options.workload_seed);
  if (options.devices == 0) throw InputError("--devices", "the number of devices", "nothing");
  if (options.memory.empty()) throw InputError("--memory", "a size such as 80GiB", "nothing");
  Task task;
  task.batch_size = options.batch_size > 0 ? options.batch_size : workload.batch_size;
  task.optimizer = options.optimizer.empty() ? workload.optimizer
                                             : parse_optimizer(options.optimizer, "--optimizer");
  task.tables = std::move(workload.tables);
  task.topology.world_size = options.devices;
  task.topology.local_world_size =
      options.local_devices > 0 ? options.local_devices : options.devices;
  task.topology.memory_bytes.assign(options.devices, parse_bytes(options.memory, "--memory"));
  validate(task);
  return task;
}

Json models_json(const CostModels& models) {
  return Json::Object{
      {"compute", to_json(ModelReference{models.compute->name(), models.compute_sha256})},
      {"communication",
       to_json(ModelReference{models.communication->name(), models.communication_sha256})}};
}

Json search_json(const PlanOptions& options, const PlanningResult& result, double bound_ms) {
  return Json::Object{{"algorithm", options.algorithm},
                      {"seed", options.planner.seed},
                      {"plans_priced", result.stats.plans_priced},
                      {"states_expanded", result.stats.states_expanded},
                      {"head_evaluations", result.stats.head_evaluations},
                      {"pieces_encoded", result.stats.pieces_encoded},
                      {"lower_bound_ms", bound_ms},
                      {"wall_ms", result.stats.wall_ms}};
}

AlgorithmOutcome outcome_of(const Planner& planner, const Simulator& simulator,
                            const PlannerOptions& options) {
  AlgorithmOutcome outcome;
  outcome.algorithm = planner.name();
  const auto start = std::chrono::steady_clock::now();
  try {
    outcome.cost_ms = planner.plan(simulator, options).predicted.cost_ms;
    outcome.found = true;
  } catch (const InfeasibleError& error) {
    outcome.reason = error.what();
  }
  outcome.wall_ms =
      std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - start).count();
  return outcome;
}

std::string label(const std::string& name, bool is_estimate, bool is_simulated) {
  if (is_estimate) return name + " (an estimate, not measured)";
  return is_simulated ? name + " (of simulated all-to-alls)" : name;
}

void print_report(const PlanOptions& options, const Simulator& simulator,
                  const PlanningResult& result, double bound_ms) {
  const Task& task = simulator.task();
  fmt::print("{} tables on {} devices, batch {}, {}\n", task.tables.size(),
             task.topology.world_size, task.batch_size, to_string(task.optimizer));
  fmt::print("computation:   {}\n",
             label(simulator.compute().name(), simulator.compute().is_estimate(), false));
  fmt::print("communication: {}\n\n",
             label(simulator.communication().name(), simulator.communication().is_estimate(),
                   simulator.communication().is_simulated()));
  fmt::print("{}\n", plan_table(task, result.plan, result.predicted));
  fmt::print("{}\n", cuts_text(task, result.plan));
  fmt::print("{}: predicted cost {:.3f} ms, found in {}\n", options.algorithm,
             result.predicted.cost_ms, format_seconds(result.stats.wall_ms * 1e-3));
  if (bound_ms > 0.0) {
    fmt::print("no plan is predicted to cost less than {:.3f} ms: at most {:.1f}% to gain\n",
               bound_ms, 100.0 * (1.0 - bound_ms / result.predicted.cost_ms));
  }
  fmt::print("{}", disagreement_text(simulator.compute().num_members(),
                                     simulator.member_ranges(result.plan)));
  if (!options.baselines) return;
  std::vector<AlgorithmOutcome> outcomes{
      {std::string(options.algorithm), true, result.predicted.cost_ms, result.stats.wall_ms, ""}};
  for (const std::unique_ptr<Planner>& baseline : make_baselines()) {
    outcomes.push_back(outcome_of(*baseline, simulator, options.planner));
  }
  fmt::print("\n{}", outcomes_table(outcomes));
}

void run(PlanOptions& options) {
  options.planner.time_limit_seconds = parse_seconds(options.time_limit, "--time-limit");
  const std::unique_ptr<Planner> planner = find_planner(options.algorithm);
  const Task task = task_of(options);
  const CostModels models = load_cost_models(options.models, task.topology);
  const Simulator simulator(task, models.compute, models.communication);
  const PlanningResult result = planner->plan(simulator, options.planner);

  const double bound_ms = lower_bound_ms(simulator);

  const PlanDocument document{task, result.plan, result.predicted, models_json(models),
                              search_json(options, result, bound_ms)};
  if (!options.output.empty()) write_plan(document, options.output);
  warn_of_extrapolation(models, task);
  if (options.json) {
    fmt::print("{}", plan_text(document));
  } else {
    print_report(options, simulator, result, bound_ms);
    if (!options.output.empty()) fmt::print("\nwritten to {}\n", options.output);
  }
}

}  // namespace

void add_plan_command(CLI::App& app) {
  auto options = std::make_shared<PlanOptions>();
  CLI::App* command = app.add_subcommand("plan", "Find the sharding plan of lowest cost");
  command->add_option("task", options->task_file, "Task file (.json)");
  command->add_option("--workload", options->workload,
                      "Instead of a task file: a workload's tables");
  command->add_option("--workload-seed", options->workload_seed, "Seed of a generated workload")
      ->check(seed());
  command->add_option("--devices", options->devices, "With --workload: number of devices")
      ->check(integer_between(1, kMaxWorldSize));
  command
      ->add_option("--local-devices", options->local_devices,
                   "With --workload: devices per host; default all")
      ->check(integer_between(1, kMaxWorldSize));
  command->add_option("--memory", options->memory, "With --workload: memory per device");
  command
      ->add_option("--batch-size", options->batch_size,
                   "With --workload: samples over all devices; default the workload's")
      ->check(integer_between(1, kMaxBatchSize));
  command->add_option("--optimizer", options->optimizer,
                      "With --workload: sgd or rowwise_adagrad; default the workload's");
  command->add_option("--model", options->models,
                      "Cost model by name or file; once for computation, once for communication");
  command
      ->add_option("--algorithm", options->algorithm,
                   "neuroshard, beam-search (the paper's) or a baseline")
      ->capture_default_str();
  command->add_option("--time-limit", options->time_limit, "For improving the search's plan")
      ->capture_default_str();
  command->add_option("--threads", options->planner.num_threads, "0: one per core")
      ->check(integer_between(0, kMaxThreads))
      ->capture_default_str();
  add_improvement_options(*command, options->planner);
  command->add_option("--seed", options->planner.seed, "Where chance plays a part")
      ->check(seed())
      ->capture_default_str();
  command->add_flag("--baselines", options->baselines, "Show every baseline's plan cost beside it");
  command->add_flag("--json", options->json, "Print the plan as JSON");
  command->add_option("-o,--output", options->output, "Plan to write (.json)");
  command->callback([options] { run(*options); });
}

}  // namespace neuroshard::cli
