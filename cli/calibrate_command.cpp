// `neuroshard calibrate`: adapts a computation cost model to this machine.
#include <fmt/format.h>

#include <filesystem>
#include <memory>
#include <string>

#include "cli/commands.h"
#include "cli/options/conventions.h"
#include "cli/options/gpu_options.h"
#include "cli/options/options.h"
#include "cli/streams/output.h"
#include "cli/streams/progress.h"
#include "cli/streams/warnings.h"
#include "neuroshard/core/error.h"
#include "neuroshard/core/units.h"
#include "neuroshard/cost/compute/compute_model_io.h"
#include "neuroshard/cost/model_catalog.h"
#include "neuroshard/cost/model_files.h"
#include "neuroshard/evaluate/plan_evaluation.h"
#include "neuroshard/io/output_files.h"
#include "neuroshard/refine/calibration.h"
#include "neuroshard/report/calibration_report.h"
#include "neuroshard/report/collection_report.h"
#include "neuroshard/report/training_report.h"

namespace neuroshard::cli {

namespace {

struct CalibrateOptions {
  CalibrationOptions calibration;
  std::string model;
  std::string time_limit = "10min";
  std::string arena = "4GiB";
  std::string output;
  bool json = false;
  bool force = false;
  BackendOptions measuring;
};

void run(CalibrateOptions& options) {
  CalibrationOptions& calibration = options.calibration;
  calibration.model = std::dynamic_pointer_cast<const NeuralComputeModel>(
      load_named_models({options.model}, Topology{}).compute);
  if (!calibration.model ||
      calibration.model->architecture() != ComputeArchitecture::bounded_loads) {
    throw InputError("--model", "a trained computation model of bounded loads", options.model);
  }
  calibration.name = std::filesystem::path(options.output).stem().string();
  if (calibration.folder.empty()) calibration.folder = options.output + ".costs";
  calibration.time_limit_seconds = parse_seconds(options.time_limit, "--time-limit");
  refuse_output_that_is_model(options.output, {options.model}, ModelsRead::named);
  refuse_output_that_is_input(options.output, calibration_files(calibration));
  for (const std::string& file : calibration_files(calibration)) {
    refuse_output_that_is_model(file, {options.model}, ModelsRead::named, "--folder");
  }
  check_output(options.output, options.force);
  if (options.force) calibration.replaced_model = options.output;
  options.measuring.cpu.arena_bytes = parse_bytes(options.arena, "--arena");
  // Halves in pairs are ordinary fp32 values too.
  options.measuring.cpu.data_type = DataType::fp16;
  options.measuring.cpu.repetitions = calibration_repetitions();
  calibration.backend = chosen_backend(options.measuring, kCalibrationInFlight);
  calibration.has_reference_sets = !options.measuring.on_gpus();
  calibration.num_threads = options.measuring.cpu.num_threads;
  // Another machine is what calibration is for; another operator may be a mistake.
  print_warnings(
      measuring_warnings(*calibration.model,
                         operator_difference(*calibration.model, calibration.backend.description)));
  CalibrationResult result;
  {
    ProgressLine line;
    result = calibrate(
        calibration,
        [&](const CollectionProgress& progress) { line.show(collection_progress_text(progress)); },
        [&](const EpochStats& epoch) { line.show(epoch_text(epoch)); });
  }
  check_output(options.output, options.force);  // another process may have made it meanwhile
  write_compute_model(*result.model, options.output);
  fmt::print("{}", options.json ? to_line(calibration_json(result, options.output)) + "\n"
                                : calibration_text(result, options.output));
}

}  // namespace

void add_calibrate_command(CLI::App& app) {
  auto options = std::make_shared<CalibrateOptions>();
  CLI::App* command =
      app.add_subcommand("calibrate", "Adapt a computation cost model to this machine in minutes");
  command->add_option("--model", options->model, "Computation model, by name or file")->required();
  command
      ->add_option("--time-limit", options->time_limit,
                   "Time for measuring and training; samples that have begun are finished")
      ->capture_default_str();
  command->add_option("--samples", options->calibration.samples, "Samples to measure, at the most")
      ->check(integer_between(kFewestTrainingSamples, 1'000'000))
      ->capture_default_str();
  command->add_option("--folder", options->calibration.folder,
                      "Folder of the measured costs; a run that was stopped goes on there. "
                      "Default: the output's path and \".costs\"");
  command->add_option("--arena", options->arena, "Memory to take for the tables")
      ->capture_default_str();
  command->add_option("--seed", options->calibration.seed, "Seed of the tables and sets measured")
      ->check(seed())
      ->capture_default_str();
  add_backend_options(*command, options->measuring);
  add_thread_option(*command, options->measuring);
  command->add_flag("--json", options->json, "Print the result as JSON");
  add_output_file_option(*command, options->output, options->force, "Model to write (.safetensors)")
      ->required();
  add_examples(*command,
               {"calibrate --model cpu-epyc-2core -o mine.safetensors",
                "calibrate --model cpu-epyc-2core --time-limit 3min -o mine.safetensors"});
  command->callback([options] { run(*options); });
}

}  // namespace neuroshard::cli
