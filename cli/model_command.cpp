// `neuroshard model`: lists cost models, shows what one was trained on, tests one on measured
// costs.
#include <fmt/format.h>

#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "cli/commands.h"
#include "cli/options/conventions.h"
#include "cli/options/options.h"
#include "cli/streams/output.h"
#include "neuroshard/core/error.h"
#include "neuroshard/core/text/printable.h"
#include "neuroshard/cost/communication/communication_model_io.h"
#include "neuroshard/cost/compute/neural_compute_model.h"
#include "neuroshard/cost/model_catalog.h"
#include "neuroshard/cost/model_description.h"
#include "neuroshard/cost/model_files.h"
#include "neuroshard/io/file.h"
#include "neuroshard/io/json/json.h"
#include "neuroshard/io/output_files.h"
#include "neuroshard/report/model_report.h"
#include "neuroshard/train/communication/communication_model_test.h"
#include "neuroshard/train/compute/model_test.h"
#include "neuroshard/train/training_io.h"

namespace neuroshard::cli {

namespace {

struct ModelOptions {
  std::string model;
  std::vector<std::string> costs;
  std::vector<std::string> again;
  std::string samples;
  bool json = false;
  bool names = false;
  bool at_usual_speed = false;
  bool force = false;
};

/// Those of models that can be used, as a shell completes them.
void list_names() {
  for (const ModelEntry& model : list_models()) {
    if (model.kind != "unreadable") fmt::print("{}\n", printable(model.name));
  }
}

void list(const ModelOptions& options) {
  if (options.names) {
    list_names();
    return;
  }
  fmt::print("{}", options.json ? to_document(model_list_json()) : models_table(list_models()));
}

void show(const ModelOptions& options) {
  const ModelEntry model = find_model(options.model);
  fmt::print("{}", options.json ? to_document(model_json(model)) : model_text(model));
}

/// That of the model's costs, if it is asked for.
std::optional<UsualSpeed> usual_speed_of(const ComputeCostModel& model,
                                         const ModelOptions& options) {
  if (!options.at_usual_speed) return std::nullopt;
  const auto* neural = dynamic_cast<const NeuralComputeModel*>(&model);
  if (neural == nullptr || neural->info().reference_ms.empty()) {
    throw InputError("--at-usual-speed", "a model whose samples had reference sets", options.model);
  }
  return neural->info().reference_ms;
}

/// Every file on its own.
std::vector<FileTest> tests_of(const ModelOptions& options) {
  std::vector<FileTest> tests;
  const ModelEntry entry = find_model(options.model);
  if (entry.kind == "communication" && !entry.is_estimate) {
    if (!options.again.empty()) throw InputError("--again needs a computation model");
    if (options.at_usual_speed) throw InputError("--at-usual-speed needs a computation model");
    const CommunicationModelFile model =
        communication_model_from(ModelFile(entry.origin), entry.origin);
    for (const std::string& file : options.costs) {
      for (FileTest& test : test_communication_model(model, file)) tests.push_back(std::move(test));
    }
    return tests;
  }
  const CostModels models = load_named_models({options.model}, Topology{});
  if (!models.compute) {
    throw InputError("model", "a computation model, or one that learned all-to-alls",
                     options.model);
  }
  ModelTestOptions test{.usual = usual_speed_of(*models.compute, options)};
  for (std::size_t i = 0; i < options.costs.size(); ++i) {
    if (!options.again.empty()) test.again = options.again[i];
    tests.push_back(
        {options.costs[i], test_compute_model(*models.compute, options.costs[i], test)});
  }
  return tests;
}

void test(const ModelOptions& options) {
  if (!options.again.empty() && options.again.size() != options.costs.size()) {
    throw InputError("--again",
                     fmt::format("as many files as were given, {}", options.costs.size()),
                     fmt::format("{}", options.again.size()));
  }
  if (!options.samples.empty()) {
    std::vector<std::string> inputs = options.costs;
    inputs.insert(inputs.end(), options.again.begin(), options.again.end());
    refuse_output_that_is_input(options.samples, inputs, "--samples");
    refuse_output_that_is_model(options.samples, {options.model}, ModelsRead::named, "--samples");
    check_output(options.samples, options.force);
  }
  const std::vector<FileTest> tests = tests_of(options);
  if (!options.samples.empty()) write_file(options.samples, tested_samples_lines(tests));
  fmt::print("{}", options.json ? to_line(model_tests_json(options.model, tests)) + "\n"
                                : model_tests_table(tests));
}

/// A subcommand with its --json.
CLI::App* add(CLI::App& model, const char* name, const char* help, void (*run)(const ModelOptions&),
              const std::shared_ptr<ModelOptions>& options) {
  CLI::App* command = model.add_subcommand(name, help);
  command->add_flag("--json", options->json, "Print the result as JSON");
  command->callback([run, options] { run(*options); });
  return command;
}

}  // namespace

void add_model_command(CLI::App& app) {
  CLI::App* model = app.add_subcommand("model", "Pre-trained and analytic cost models");
  model->require_subcommand(1);
  auto options = std::make_shared<ModelOptions>();
  CLI::App* listed = add(*model, "list", "List all models", list, options);
  listed
      ->add_flag("--names", options->names,
                 "Print the names alone, one a line, of all that can be used")
      ->excludes(option_named(*listed, "json"));
  add_examples(*listed, {"model list", "model list --json"});
  CLI::App* shown =
      add(*model, "show", "Show a model's training data and test metrics", show, options);
  shown->add_option("model", options->model, "Name or file")->required();
  add_examples(*shown, {"model show cpu-xeon-2core", "model show mine.safetensors"});
  CLI::App* tested = add(*model, "test", "Test a cost model on measured costs", test, options);
  tested->add_option("model", options->model, "Name or file")->required();
  add_input_option(*tested, "costs", options->costs,
                   "Files of measured costs of the model's kind (.jsonl[.gz])")
      ->required();
  tested->add_option("--again", options->again,
                     "The same samples measured a second time, file by file: pairs that differ by "
                     "more than 15 % are left out");
  tested->add_flag("--at-usual-speed", options->at_usual_speed,
                   "Bring each measured cost to the speed that the model's costs are of, as the "
                   "reference sets tell that were measured with it");
  tested
      ->add_option("--samples", options->samples,
                   "File for every sample's predicted and measured cost (.jsonl)")
      ->check(refused_dash);
  tested->add_flag("--force", options->force,
                   "Replace a file for --samples that is measured data, a journal or a model");
  add_examples(*tested, {"model test cpu-xeon-2core costs.jsonl",
                         "model test mine.safetensors first.jsonl --again second.jsonl"});
}

}  // namespace neuroshard::cli
