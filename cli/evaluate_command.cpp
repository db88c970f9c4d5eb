// `neuroshard evaluate`: a plan on this machine, under mpirun or on a simulated cluster, beside its
// prediction.
#include <fmt/format.h>

#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "cli/commands.h"
#include "cli/evaluate_on_cluster.h"
#include "cli/evaluate_under_mpirun.h"
#include "cli/gpu_options.h"
#include "cli/options.h"
#include "cli/progress.h"
#include "cli/warnings.h"
#include "neuroshard/collect/communication/mpi_transport.h"
#include "neuroshard/core/error.h"
#include "neuroshard/core/units.h"
#include "neuroshard/cost/model_catalog.h"
#include "neuroshard/evaluate/plan_evaluation.h"
#include "neuroshard/io/checksum.h"
#include "neuroshard/io/plan_io.h"
#include "neuroshard/report/text_table.h"

namespace neuroshard::cli {

namespace {

struct EvaluateOptions {
  std::string plan;
  std::vector<std::string> models;
  std::string arena = "4GiB";
  std::string platform;
  std::uint64_t seed = 0;
  bool json = false;
  BackendOptions measuring;
};

/// The models that the plan was made with, unless others are asked for.
std::vector<std::string> models_of(const PlanDocument& document, const EvaluateOptions& options) {
  if (!options.models.empty()) return options.models;
  std::vector<std::string> names;
  for (const char* kind : {"compute", "communication"}) {
    const Json* reference = document.model.find(kind);
    const Json* name = reference == nullptr ? nullptr : reference->find("name");
    if (name != nullptr && name->text() != nullptr) names.push_back(*name->text());
  }
  return names;
}

Json devices_json(const PlanEvaluation& evaluation) {
  Json::Array devices;
  for (std::size_t d = 0; d < evaluation.measured.devices.size(); ++d) {
    devices.push_back(
        Json::Object{{"predicted_compute_ms", evaluation.predicted.devices[d].compute_ms},
                     {"measured_compute_ms", evaluation.measured.devices[d].compute_ms},
                     {"interval", evaluation.interval[d]},
                     {"predicted_total_ms", evaluation.predicted.devices[d].total_ms()},
                     {"measured_total_ms", evaluation.measured.devices[d].total_ms()}});
  }
  return devices;
}

void print_table(const PlanEvaluation& evaluation) {
  TextTable table;
  for (const char* title : {"device", "predicted ms", "measured ms", "+-", "error",
                            "predicted total", "measured total"}) {
    table.add_column(title);
  }
  table.add_column("", TextTable::Align::left);
  for (std::size_t d = 0; d < evaluation.measured.devices.size(); ++d) {
    const DeviceCost& predicted = evaluation.predicted.devices[d];
    const DeviceCost& measured = evaluation.measured.devices[d];
    const double error =
        measured.compute_ms > 0.0 ? predicted.compute_ms / measured.compute_ms - 1.0 : 0.0;
    table.add_row({fmt::format("{}", d), fmt::format("{:.3f}", predicted.compute_ms),
                   fmt::format("{:.3f}", measured.compute_ms),
                   fmt::format("{:.1f}%", 100.0 * evaluation.interval[d]),
                   fmt::format("{:+.1f}%", 100.0 * error),
                   fmt::format("{:.3f}", predicted.total_ms()),
                   fmt::format("{:.3f}", measured.total_ms()),
                   measured.total_ms() >= evaluation.measured.cost_ms ? "<- slowest" : ""});
  }
  fmt::print("{}\n", table.to_string());
  fmt::print("computation: mean error {:.1f}%, rank correlation (tau) {:.3f}\n",
             100.0 * evaluation.compute_mape, evaluation.compute_tau);
  fmt::print("plan cost: predicted {:.3f} ms, with measured computation {:.3f} ms ({:+.1f}%)\n",
             evaluation.predicted.cost_ms, evaluation.measured.cost_ms,
             100.0 * (evaluation.predicted.cost_ms / evaluation.measured.cost_ms - 1.0));
}

/// Every device's computation on this machine, one after the other; communication as predicted.
void evaluate_here(const Simulator& simulator, const ShardingPlan& plan,
                   const EvaluateOptions& options) {
  // Before threads are pinned to cores, which the process then seems to have fewer of.
  const ComputeBackendFactory factory = chosen_backend(options.measuring, 1);
  const std::string difference = measurement_difference(simulator.compute(), factory.description);
  const std::unique_ptr<ComputeBackend> backend = factory.make();
  PlanEvaluation evaluation;
  {
    ProgressLine line;
    const auto show = [&](int devices_done) {
      line.show(fmt::format("{} of {} devices measured", devices_done,
                            simulator.task().topology.world_size));
    };
    const SimulatedPlan simulated{&simulator, &plan};
    evaluation = evaluate_plans({&simulated, 1}, *backend, options.seed, show).front();
  }
  warn_of_measurement_difference(simulator.compute(), difference);  // a refusal is one line
  if (options.json) {
    const Json result = Json::Object{{"predicted_ms", evaluation.predicted.cost_ms},
                                     {"measured_ms", evaluation.measured.cost_ms},
                                     {"compute_mape", evaluation.compute_mape},
                                     {"compute_tau", evaluation.compute_tau},
                                     {"devices", devices_json(evaluation)}};
    fmt::print("{}\n", to_line(result));
  } else {
    print_table(evaluation);
  }
}

void run(EvaluateOptions& options) {
  const PlanDocument document = read_plan(options.plan);
  const std::vector<std::string> found = violations(document.task, document.plan);
  if (!found.empty()) {
    throw InfeasibleError(fmt::format("{}: not valid: {}", options.plan, found.front()));
  }
  const CostModels models = load_cost_models(models_of(document, options), document.task.topology);
  const Simulator simulator(document.task, models.compute, models.communication);
  if (options.models.empty()) warn_of_other_models(document, models);
  if (!options.platform.empty()) {
    if (started_by_mpirun()) {
      throw InputError("--platform", "one process, which simulates all devices", "mpirun");
    }
    evaluate_on_cluster(simulator, document.plan, options.platform, options.json);
    return;
  }
  options.measuring.cpu.arena_bytes = parse_bytes(options.arena, "--arena");
  options.measuring.cpu.data_type = arena_data_type(document.task);
  if (started_by_mpirun()) {
    std::optional<CudaBackendOptions> cuda;
    if (options.measuring.on_gpus()) cuda = cuda_options(options.measuring);
    evaluate_under_mpirun(simulator, document.plan,
                          {options.measuring.cpu, std::move(cuda), options.seed,
                           sha256_file(options.plan), options.json});
  } else {
    evaluate_here(simulator, document.plan, options);
  }
}

}  // namespace

void add_evaluate_command(CLI::App& app) {
  auto options = std::make_shared<EvaluateOptions>();
  CLI::App* command = app.add_subcommand(
      "evaluate",
      "Measure a plan's computation on this machine, on the CPU or on GPUs; under "
      "mpirun, with one process per device, its real iterations");
  command->add_option("plan", options->plan, "Plan file (.json)")->required();
  command->add_option("--model", options->models, "Cost models; default those of the plan");
  command->add_option("--platform", options->platform,
                      "Measure nothing: simulate the all-to-alls on this cluster (a name as of "
                      "collect communication, or a SimGrid platform file)");
  command->add_option("--arena", options->arena, "Memory to take for the tables")
      ->capture_default_str()
      ->excludes("--platform");
  add_backend_options(*command, options->measuring)->excludes("--platform");
  add_thread_option(*command, options->measuring)->excludes("--platform");
  command->get_option("--gpus")->excludes("--platform");
  command->add_option("--seed", options->seed, "Seed of the batches")
      ->check(seed())
      ->capture_default_str()
      ->excludes("--platform");
  command->add_flag("--json", options->json, "Print the result as JSON");
  command->callback([options] { run(*options); });
}

}  // namespace neuroshard::cli
