// `neuroshard evaluate`: a plan on this machine, under mpirun or on a simulated cluster, with its
// prediction.
#include <fmt/format.h>

#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "cli/commands.h"
#include "cli/options/conventions.h"
#include "cli/options/gpu_options.h"
#include "cli/options/options.h"
#include "cli/streams/output.h"
#include "cli/streams/progress.h"
#include "cli/streams/warnings.h"
#include "neuroshard/collect/communication/mpi_transport.h"
#include "neuroshard/core/error.h"
#include "neuroshard/core/units.h"
#include "neuroshard/cost/model_files.h"
#include "neuroshard/evaluate/distributed/cluster_evaluation.h"
#include "neuroshard/evaluate/distributed/process_evaluation.h"
#include "neuroshard/evaluate/evaluation_file.h"
#include "neuroshard/evaluate/evaluation_io.h"
#include "neuroshard/evaluate/plan_evaluation.h"
#include "neuroshard/io/checksum.h"
#include "neuroshard/io/output_files.h"
#include "neuroshard/io/plan_io.h"
#include "neuroshard/plan/plan_models.h"
#include "neuroshard/plan/plan_task.h"
#include "neuroshard/plan/plan_warnings.h"
#include "neuroshard/report/evaluation_report.h"
#include "neuroshard/report/planning_report.h"

namespace neuroshard::cli {

namespace {

struct EvaluateOptions {
  std::string plan;
  std::vector<std::string> models;
  std::string arena = "4GiB";
  std::string platform;
  std::uint64_t seed = 0;
  bool check = false;
  bool has_reference_sets = false;
  bool json = false;
  bool force = false;
  std::string output;
  BackendOptions measuring;
  Json model = Json::Object{};         ///< as of models_json
  std::vector<std::string> warnings;   ///< of the models, printed once there is a result
  std::vector<std::string> notes;      ///< likewise
  std::vector<std::string> unlearned;  ///< as of unlearned_costs
};

/// Writes and prints an evaluation of the document's plan; `measuring` are warnings of how it was
/// measured.
void finish(const EvaluateOptions& options, const PlanDocument& document, Json evaluation,
            const std::string& text, std::vector<std::string> measuring = {}) {
  std::vector<std::string>& warnings = measuring;
  warnings.insert(warnings.end(), options.warnings.begin(), options.warnings.end());
  const Json json = of_plan(std::move(evaluation), document, options.model, warnings);
  write_output(options.output, to_document(json));
  print_notes(options.notes);
  print_warnings(warnings);
  if (is_standard_output(options.output)) return;
  if (options.json) {
    fmt::print("{}\n", to_line(json));
  } else {
    fmt::print("{}{}{}", text, unlearned_text(options.unlearned), written_text(options.output));
  }
}

/// Every device's computation on this machine, one after the other; communication as predicted.
void evaluate_here(const Simulator& simulator, const PlanDocument& document,
                   const EvaluateOptions& options) {
  // Before threads are pinned to cores, which the process then seems to have fewer of.
  const ComputeBackendFactory factory = chosen_backend(options.measuring, 1);
  const std::string difference = measurement_difference(simulator.compute(), factory.description);
  std::optional<SpeedReference> reference;
  if (options.has_reference_sets) {
    reference = speed_reference(simulator.compute(), factory.description);
  }
  const std::unique_ptr<ComputeBackend> backend = factory.make();
  const SimulatedPlan simulated{&simulator, &document.plan};
  const std::string sets = format_count(num_measured_sets({&simulated, 1}), "set");
  PlanEvaluation evaluation;
  {
    ProgressLine line;
    const auto show = [&](int sets_done) {
      line.show(fmt::format("{} of {} measured", sets_done, sets));
    };
    evaluation = evaluate_plans({&simulated, 1}, *backend, options.seed, show, {},
                                reference ? &*reference : nullptr)
                     .front();
  }
  finish(options, document, to_json(evaluation), evaluation_text(evaluation),
         measuring_warnings(simulator.compute(), difference, simulator.task().tables));
}

/// Real iterations among the processes that mpirun has started, of which process 0 prints.
void evaluate_under_mpirun(const Simulator& simulator, const PlanDocument& document,
                           const EvaluateOptions& options) {
  std::optional<CudaBackendOptions> cuda = chosen_gpus(options.measuring);
  std::optional<ProcessEvaluation> evaluation;
  {
    ProgressLine line;
    evaluation = evaluate_among_processes(
        simulator, document.plan,
        {options.measuring.cpu, std::move(cuda), options.seed, sha256_file(options.plan)},
        [&](int iterations) { line.show(format_count(iterations, "iteration")); });
  }
  if (!evaluation) return;
  std::vector<std::string> measuring =
      measuring_warnings(simulator.compute(), evaluation->difference, simulator.task().tables);
  if (evaluation->oversubscribed) measuring.emplace_back(kOversubscribed);
  finish(options, document,
         measured_iterations_json(evaluation->predicted, evaluation->measured,
                                  evaluation->oversubscribed),
         measured_iterations_text(evaluation->predicted, evaluation->measured),
         std::move(measuring));
}

/// Real values in place of times.
void check_under_mpirun(const Simulator& simulator, const ShardingPlan& plan,
                        const EvaluateOptions& options) {
  if (!started_by_mpirun()) {
    throw InputError("--check needs processes, started by mpirun, one per device");
  }
  if (chosen_gpus(options.measuring)) throw InputError("--check needs --backend cpu, got cuda");
  const std::optional<ValueCheck> check = check_among_processes(
      simulator.task(), plan,
      {options.measuring.cpu, std::nullopt, options.seed, sha256_file(options.plan)});
  if (!check) return;
  fmt::print("{}", options.json ? to_line(to_json(*check)) + "\n" : value_check_text(*check));
  if (!check->agrees()) {
    throw InfeasibleError("plan: expected the values of whole tables on one device, got others");
  }
}

void evaluate_on_cluster(const Simulator& simulator, const PlanDocument& document,
                         const EvaluateOptions& options) {
  if (started_by_mpirun()) {
    throw InputError("--platform needs one process, which simulates all devices, got mpirun");
  }
  const PlanCost predicted = simulator.cost(document.plan);
  const PlanIterations simulated = simulate_plan(simulator.task(), predicted, options.platform,
                                                 additions_of({&simulator, &document.plan}));
  finish(options, document, simulated_iteration_json(predicted, simulated),
         simulated_iteration_text(predicted, simulated));
}

void run(EvaluateOptions& options) {
  refuse_output_that_is_input(options.output, {options.plan, options.platform});
  refuse_output_that_is_model(options.output, options.models, ModelsRead::named_or_default);
  if (is_standard_input(options.plan) && started_by_mpirun()) {
    throw InputError("plan", "a file under mpirun, which every process reads", "standard input");
  }
  const PlanDocument document = read_plan(options.plan);
  refuse_output_that_is_model(options.output, recorded_models(document.model), ModelsRead::named);
  check_output(options.output, options.force);
  require_valid(document, options.plan);
  const ModelsOfPlan found = models_of_plan(document, options.models, options.plan);
  const Simulator simulator(document.task, found.models.compute, found.models.communication);
  options.warnings = prediction_warnings(found.models, simulator, document.plan);
  options.warnings.insert(options.warnings.end(), found.changes.begin(), found.changes.end());
  options.notes = found.notes;
  options.unlearned = unlearned_costs(*found.models.communication, document.plan);
  options.model = models_json(found.models);
  print_models_used(found.models);
  if (!options.platform.empty()) {
    evaluate_on_cluster(simulator, document, options);
    return;
  }
  if (options.has_reference_sets && (started_by_mpirun() || options.measuring.on_gpus())) {
    throw InputError("--reference-sets goes with --backend cpu and one process");
  }
  options.measuring.cpu.arena_bytes = parse_bytes(options.arena, "--arena");
  options.measuring.cpu.data_type = arena_data_type(document.task);
  if (options.check) {
    check_under_mpirun(simulator, document.plan, options);
  } else if (started_by_mpirun()) {
    evaluate_under_mpirun(simulator, document, options);
  } else {
    evaluate_here(simulator, document, options);
  }
}

}  // namespace

void add_evaluate_command(CLI::App& app) {
  auto options = std::make_shared<EvaluateOptions>();
  CLI::App* command = app.add_subcommand(
      "evaluate",
      "Measure a plan's computation on this machine, on the CPU or on GPUs; under "
      "mpirun, with one process per device, its real iterations");
  add_input_option(*command, "plan", options->plan, "Plan file (.json)")->required();
  add_models_option(*command, options->models, "Cost models; default those of the plan");
  CLI::Option* platform = command->add_option(
      "--platform", options->platform,
      "Measure nothing: simulate the all-to-alls on this cluster (a name as of collect "
      "communication, or a SimGrid platform file)");
  command
      ->add_option("--arena", options->arena,
                   "Memory to take for the tables; under mpirun, each process also takes three "
                   "times the size in fp32 of the tables of which it has copies")
      ->capture_default_str()
      ->excludes(platform);
  add_backend_options(*command, options->measuring)->excludes(platform);
  add_thread_option(*command, options->measuring)->excludes(platform);
  option_named(*command, "gpus")->excludes(platform);
  command->add_option("--seed", options->seed, "Seed of the batches")
      ->check(seed())
      ->capture_default_str()
      ->excludes(platform);
  CLI::Option* check = command->add_flag(
      "--check", options->check,
      "Under mpirun, measure nothing: run the plan with real values, and compare pooled outputs "
      "and "
      "updated weights with those of whole tables on one device; exit code 1 if they differ");
  check->excludes(platform);
  command
      ->add_flag("--reference-sets", options->has_reference_sets,
                 "Also run, in every round, the reference sets that the model's samples were "
                 "measured next to, and show the plan's cost at the speed that the model's costs "
                 "are of; needs the --arena and --threads of these samples")
      ->excludes(platform)
      ->excludes(check);
  command->add_flag("--json", options->json, "Print the result as JSON");
  add_output_option(*command, options->output, options->force,
                    "Evaluation to write (.json), which report --evaluation shows")
      ->excludes(check);
  add_examples(*command, {"evaluate plan.json -o evaluation.json",
                          "evaluate plan.json --platform a100-nvswitch"});
  command->callback([options] { run(*options); });
}

}  // namespace neuroshard::cli
