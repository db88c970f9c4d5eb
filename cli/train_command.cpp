// `neuroshard train`: trains cost models on measured costs.
#include <fmt/format.h>

#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "cli/commands.h"
#include "cli/options/conventions.h"
#include "cli/options/options.h"
#include "cli/streams/output.h"
#include "cli/streams/progress.h"
#include "neuroshard/core/error.h"
#include "neuroshard/core/numbers/random.h"
#include "neuroshard/core/text/printable.h"
#include "neuroshard/cost/communication/communication_model_io.h"
#include "neuroshard/cost/compute/compute_model_io.h"
#include "neuroshard/cost/model_catalog.h"
#include "neuroshard/cost/model_files.h"
#include "neuroshard/io/file.h"
#include "neuroshard/io/json/json.h"
#include "neuroshard/io/output_files.h"
#include "neuroshard/paper/baselines_report.h"
#include "neuroshard/paper/communication_baselines.h"
#include "neuroshard/refine/range_sampling.h"
#include "neuroshard/report/page/training_page.h"
#include "neuroshard/report/training_report.h"
#include "neuroshard/train/communication/communication_trainer.h"
#include "neuroshard/train/compute/compute_trainer.h"
#include "neuroshard/train/compute/folder_speeds.h"
#include "neuroshard/train/training_io.h"

namespace neuroshard::cli {

namespace {

struct TrainComputeOptions {
  std::vector<std::string> costs;
  std::string architecture = "bounded-loads";
  std::string output;
  int members = 0;
  int epochs = 0;
  std::uint64_t seed = 0;
  int threads = 0;
  std::string name;
  std::string from;
  int expected_sets = 0;
  double learning_rate = 0.0;
  int batch_size = 0;
  double granularity_ms = 0.0;
  bool widest_piece = false;
  bool offset_per_optimizer = false;
  bool speed_per_folder = false;
  bool json = false;
  bool force = false;
  std::string report;
};

/// Shows each epoch on the line, which must outlive it.
std::function<void(const EpochStats&)> progress_on(ProgressLine& line) {
  return [&line](const EpochStats& epoch) { line.show(epoch_text(epoch)); };
}

/// The options that the training of every kind of model takes; `default_name` is in words.
template <typename Options>
void add_training_options(CLI::App& command, Options& options, const std::string& default_name) {
  command
      .add_option("--epochs", options.epochs,
                  "Largest number of epochs; 0: the architecture's default")
      ->check(integer_between(0, 1'000'000))
      ->capture_default_str();
  command
      .add_option("--seed", options.seed,
                  "Seed of the split, the initial weights and the order of samples")
      ->check(seed())
      ->capture_default_str();
  command.add_option("--threads", options.threads, "Number of threads; 0: one per core")
      ->check(integer_between(0, kMaxThreads))
      ->capture_default_str();
  command.add_option("--name", options.name, "Name that the file records; default " + default_name);
  command.add_flag("--json", options.json, "Print the result as JSON");
  add_output_file_option(command, options.output, options.force, "Model to write (.safetensors)")
      ->required();
  command
      .add_option("--report", options.report,
                  "Page to write (.html): predictions next to measurements, errors by cost, width, "
                  "batch and table, the learning curve")
      ->check(refused_dash);
}

/// Throws InputError now, not after the training, if the page may not or cannot be written.
template <typename Options>
void check_report(const Options& options, const std::vector<std::string>& costs) {
  if (options.report.empty()) return;
  refuse_output_that_is_input(options.report, costs, "--report");
  refuse_output_that_is_input(options.report, {options.output}, "--report");
  refuse_output_that_is_model(options.report, {options.from}, ModelsRead::named, "--report");
  check_output(options.report, options.force);
}

/// Unless told otherwise, a model is called what its file is.
template <typename Options>
std::string name_of(const Options& options) {
  return options.name.empty() ? std::filesystem::path(options.output).stem().string()
                              : options.name;
}

/// Throws InputError for a model of another kind or architecture.
std::shared_ptr<const NeuralComputeModel> bounded_model(const std::string& name) {
  auto model =
      std::dynamic_pointer_cast<const NeuralComputeModel>(load_named_models({name}, {}).compute);
  if (!model || model->architecture() != ComputeArchitecture::bounded_loads) {
    throw InputError("--from", "a trained computation model of bounded loads", name);
  }
  return model;
}

void run(const TrainComputeOptions& options) {
  refuse_output_that_is_input(options.output, options.costs);
  refuse_output_that_is_model(options.output, {options.from}, ModelsRead::named);
  const ComputeArchitecture architecture =
      compute_architecture_from_string(options.architecture, "--architecture");
  ComputeTrainingOptions training = architecture == ComputeArchitecture::published
                                        ? ComputeTrainingOptions::published()
                                        : ComputeTrainingOptions{};
  if (options.speed_per_folder && !options.from.empty()) {
    throw InputError("--speed-per-folder needs a training from nothing, got --from");
  }
  if (options.expected_sets > 0 && options.from.empty()) {
    throw InputError("--expected-sets needs a model to go on from, got no --from");
  }
  if (!options.from.empty() && architecture == ComputeArchitecture::published) {
    throw InputError("--from needs --architecture bounded-loads, got published");
  }
  if (!options.from.empty() && options.members > 0) {
    throw InputError("--members needs a training from nothing, got --from");
  }
  if (options.members > 0) training.members = options.members;
  if (!options.from.empty()) {
    training.initial = bounded_model(options.from);
    training.members = training.initial->num_members();
  }
  const bool own_loop = options.epochs > 0 || options.learning_rate > 0.0 || options.batch_size > 0;
  if (training.initial) training.loop = adaptations()[1].loop;
  if (options.epochs > 0) training.loop.epochs = options.epochs;
  if (options.learning_rate > 0.0) training.loop.learning_rate = options.learning_rate;
  if (options.batch_size > 0) training.loop.batch_size = options.batch_size;
  if (training.initial && own_loop) {
    training.adaptation = {adaptations()[1].prior_strength, training.loop};
  }
  if (options.granularity_ms > 0.0 && architecture == ComputeArchitecture::published) {
    throw InputError("--granularity-ms needs --architecture bounded-loads, got published");
  }
  if (options.widest_piece && architecture == ComputeArchitecture::published) {
    throw InputError("--widest-piece needs --architecture bounded-loads, got published");
  }
  if (options.offset_per_optimizer && architecture == ComputeArchitecture::published) {
    throw InputError("--offset-per-optimizer needs --architecture bounded-loads, got published");
  }
  training.granularity_ms = options.granularity_ms;
  training.has_widest_factors = options.widest_piece;
  training.has_optimizer_offsets = options.offset_per_optimizer;
  training.seed = options.seed;
  training.num_threads = options.threads;
  training.name = name_of(options);
  check_output(options.output, options.force);
  check_report(options, options.costs);
  ComputeDataset dataset = load_compute_dataset(options.costs, feature_schema_of(architecture));
  if (options.expected_sets > 0) {
    training.unmeasured = std::make_shared<const ComputeDataset>(
        sets_within(joined(training.initial->info().range, dataset.range), options.expected_sets,
                    mix64(options.seed + 1)));
  }
  ComputeTrainingResult result;
  {
    ProgressLine line;
    if (options.speed_per_folder) {
      divide_by_speeds(
          dataset, options.costs,
          folder_speeds(dataset, options.costs, options.seed, options.threads, progress_on(line)));
    }
    result = train_compute_model(dataset, training, progress_on(line));
  }
  check_output(options.output, options.force);  // another process may have made it meanwhile
  write_compute_model(*result.model, options.output);
  if (!options.report.empty()) {
    write_file(options.report,
               training_page(training_report_data(result, dataset, options.costs, options.seed,
                                                  printable(options.output))));
  }
  fmt::print("{}", options.json ? to_line(training_json(result, options.output)) + "\n"
                                : training_text(result, options.output));
}

void add_compute(CLI::App& train) {
  auto options = std::make_shared<TrainComputeOptions>();
  CLI::App* command = train.add_subcommand("compute", "Train a computation cost model");
  // No "-": they are read twice, for the model's checksum of its data too.
  command->add_option("costs", options->costs, "Files of measured computation costs (.jsonl[.gz])")
      ->required();
  command
      ->add_option("--architecture", options->architecture,
                   "bounded-loads, or published: the paper's network and training")
      ->capture_default_str();
  command
      ->add_option("--members", options->members,
                   "Networks of the ensemble; 0: the architecture's default")
      ->check(integer_between(0, kMaxMembers))
      ->capture_default_str();
  command->add_option("--from", options->from,
                      "Go on from this model, for example of another machine: adapts it");
  command
      ->add_option(
          "--expected-sets", options->expected_sets,
          "With --from: as many sets that nobody measured are trained on too, at the costs "
          "that are expected of them by the measured ones")
      ->check(integer_between(0, 1'000'000))
      ->capture_default_str();
  command
      ->add_option("--learning-rate", options->learning_rate,
                   "At the start; 0: the architecture's default")
      ->check(number_between(0.0, 1.0))
      ->capture_default_str();
  command
      ->add_option("--batch-size", options->batch_size,
                   "Samples of a step of training; 0: the architecture's default")
      ->check(integer_between(0, 1'000'000))
      ->capture_default_str();
  command
      ->add_option("--granularity-ms", options->granularity_ms,
                   "Errors of less than this count little: for GPUs, whose launches take that long")
      ->check(number_between(0.0, 1e6))
      ->capture_default_str();
  command->add_flag("--widest-piece", options->widest_piece,
                    "Costs also depend on the widest piece of a set, as those of FBGEMM's operator "
                    "on GPUs do");
  command->add_flag("--offset-per-optimizer", options->offset_per_optimizer,
                    "Running anything at all costs more with row-wise Adagrad, as with FBGEMM's "
                    "operator on CPUs");
  command->add_flag("--speed-per-folder", options->speed_per_folder,
                    "The files of each folder are of a host with a speed of its own: costs are "
                    "brought to the speed of the first folder");
  add_training_options(*command, *options, "the file's own");
  add_examples(*command, {"train compute costs.jsonl -o compute.safetensors",
                          "train compute mine.jsonl --from cpu-epyc-2core -o mine.safetensors"});
  command->callback([options] { run(*options); });
}

struct TrainCommunicationOptions {
  std::vector<std::string> costs;
  std::vector<std::string> held_out;
  std::string output;
  int epochs = 0;
  std::uint64_t seed = 0;
  int threads = 0;
  std::string name;
  std::string from;
  bool json = false;
  bool force = false;
  std::string report;
  bool baselines = false;
};

void print_result(const CommunicationTrainingResult& result,
                  const std::optional<CommunicationBaselines>& baselines,
                  const TrainCommunicationOptions& options) {
  if (options.json) {
    Json document = training_json(result, options.output);
    if (baselines) add_baselines(document, *baselines);
    fmt::print("{}\n", to_line(document));
  } else if (baselines) {
    fmt::print("{}{}", training_text(result, options.output, rivals_of(*baselines)),
               published_networks_text(*baselines));
  } else {
    fmt::print("{}", training_text(result, options.output));
  }
}

/// Adds all-reduces and partial sums to a model, whose all-to-alls stay as they are.
void extend(const TrainCommunicationOptions& options) {
  const ModelEntry entry = find_model(options.from);
  if (entry.kind != "communication" || entry.is_estimate) {
    throw InputError("--from", "a trained communication model", options.from);
  }
  if (options.baselines) throw InputError("--baselines needs all-to-alls, got --from");
  const CommunicationModelFile model =
      communication_model_from(ModelFile(entry.origin), entry.origin);
  check_output(options.output, options.force);
  const auto load = [&](const std::vector<std::string>& files, const CommunicationDataset* other) {
    return load_communication_dataset(files, other, model.info.clusters);
  };
  const CommunicationDataset dataset = load(options.costs, nullptr);
  ExtendedCommunicationModel extended = extend_communication_model(
      model.info, dataset, load(options.held_out, &dataset), options.seed);
  if (!options.name.empty()) extended.info.name = options.name;
  check_output(options.output, options.force);  // another process may have made it meanwhile
  write_communication_model(*model.network, extended.info, options.output);
  fmt::print("{}", options.json ? to_line(training_json(extended, options.output)) + "\n"
                                : collectives_text(extended.collectives));
}

void run(const TrainCommunicationOptions& options) {
  refuse_output_that_is_input(options.output, options.costs);
  refuse_output_that_is_input(options.output, options.held_out);
  refuse_output_that_is_model(options.output, {options.from}, ModelsRead::named);
  if (!options.from.empty()) {
    if (!options.report.empty()) throw InputError("--report needs all-to-alls, got --from");
    if (options.epochs > 0) throw InputError("--epochs needs all-to-alls, got --from");
    if (options.threads > 0) throw InputError("--threads needs all-to-alls, got --from");
    extend(options);
    return;
  }
  CommunicationTrainingOptions training;
  if (options.epochs > 0) training.loop.epochs = options.epochs;
  training.seed = options.seed;
  training.num_threads = options.threads;
  training.name = name_of(options);
  check_output(options.output, options.force);
  check_report(options, options.costs);
  check_report(options, options.held_out);
  const CommunicationDataset dataset = load_communication_dataset(options.costs);
  const CommunicationDataset held_out = load_communication_dataset(options.held_out, &dataset);
  CommunicationTrainingResult result;
  {
    ProgressLine line;
    result = train_communication_model(dataset, held_out, training, progress_on(line));
  }
  std::optional<CommunicationBaselines> baselines;
  if (options.baselines) {
    ProgressLine line;
    baselines = communication_baselines(
        dataset, held_out, {.seed = options.seed, .num_threads = options.threads},
        [&](int done, int all) {
          line.show(fmt::format("published network {} of {}", done, all));
        });
  }
  check_output(options.output, options.force);  // another process may have made it meanwhile
  write_communication_model(*result.network, result.info, options.output);
  if (!options.report.empty()) {
    write_file(options.report,
               training_page(training_report_data(result, options.costs, options.held_out,
                                                  printable(options.output))));
  }
  print_result(result, baselines, options);
}

void add_communication(CLI::App& train) {
  auto options = std::make_shared<TrainCommunicationOptions>();
  CLI::App* command = train.add_subcommand("communication", "Train a communication cost model");
  command
      ->add_option("costs", options->costs,
                   "Files of measured or simulated communication costs (.jsonl[.gz])")
      ->required();
  command->add_option("--held-out", options->held_out,
                      "Files to test on only: other numbers of devices, other clusters");
  command->add_option("--from", options->from,
                      "Go on from this model: keep its all-to-alls, and add the all-reduces and "
                      "partial sums that the files have");
  command->add_flag("--baselines", options->baselines,
                    "Also test the analytic model and the paper's networks, one per cluster and "
                    "number of devices, on the same data");
  add_training_options(*command, *options, "the file's own, with --from that model's");
  add_examples(*command, {"train communication communication.jsonl -o communication.safetensors"});
  command->callback([options] { run(*options); });
}

}  // namespace

void add_train_command(CLI::App& app) {
  CLI::App* train = app.add_subcommand("train", "Train cost models on measured costs");
  train->require_subcommand(1);
  add_compute(*train);
  add_communication(*train);
}

}  // namespace neuroshard::cli
