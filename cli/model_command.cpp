// `neuroshard model`: lists cost models, shows what one was trained on, tests one on measured
// costs.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <filesystem>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "cli/commands.h"
#include "neuroshard/core/error.h"
#include "neuroshard/core/interconnect.h"
#include "neuroshard/cost/communication/communication_features.h"
#include "neuroshard/cost/communication/communication_model_io.h"
#include "neuroshard/cost/compute/compute_model_io.h"
#include "neuroshard/cost/model_catalog.h"
#include "neuroshard/io/json/json.h"
#include "neuroshard/report/text_table.h"
#include "neuroshard/train/compute/model_test.h"

namespace neuroshard::cli {

namespace {

void list() {
  TextTable table;
  table.add_column("name", TextTable::Align::left);
  table.add_column("kind", TextTable::Align::left);
  table.add_column("", TextTable::Align::left);
  table.add_column("origin", TextTable::Align::left);
  for (const ModelEntry& entry : list_models()) {
    table.add_row(
        {entry.name, entry.kind, entry.is_estimate ? "estimate" : "pre-trained", entry.origin});
  }
  fmt::print("{}", table.to_string());
}

void show_metrics(const std::map<std::string, double>& metrics) {
  for (const auto& [name, value] : metrics) fmt::print("{:<40}{:.6g}\n", name, value);
}

/// Effective rates and latencies in words.
std::string links_text(const Interconnect& interconnect) {
  std::string text = fmt::format("up to {} per host", interconnect.devices_per_host);
  if (interconnect.devices_per_host > 1) {
    text += fmt::format(" with {:.4g} GB/s and {:.4g} ms between them",
                        interconnect.effective_intra_host_gb_per_s(),
                        interconnect.intra_host_latency_ms);
  }
  return text + fmt::format("; a network card of {:.4g} GB/s and {:.4g} ms for {}",
                            interconnect.effective_card_gb_per_s(),
                            interconnect.inter_host_latency_ms,
                            interconnect.devices_per_card == 1
                                ? "each device"
                                : fmt::format("{}", interconnect.devices_per_card));
}

void show_communication_model(const CommunicationModelFile& model, const std::string& file) {
  const CommunicationModelInfo& info = model.info;
  fmt::print("name            {}\n", info.name);
  fmt::print("kind            communication\n");
  fmt::print("file            {}\n", file);
  fmt::print("sha256          {}\n", info.model_sha256);

  fmt::print("feature schema  {}\n", kCommunicationSchema);
  fmt::print("training data   sha256 {}\n", info.data_sha256);
  fmt::print("trained range   batch size {} to {}\n", info.min_batch_size, info.max_batch_size);
  for (const TrainedCluster& cluster : info.clusters) {
    fmt::print("interconnect    {}: {} to {} devices, {}\n", cluster.interconnect.name,
               cluster.min_world_size, cluster.max_world_size, links_text(cluster.interconnect));
  }
  show_metrics(info.metrics);
}

void show_compute_model(const std::shared_ptr<const NeuralComputeModel>& model,
                        const std::string& file) {
  const ComputeModelInfo& info = model->info();
  const TrainedRange& range = info.range;
  std::vector<std::string> optimizers;
  for (const Optimizer optimizer : range.optimizers) optimizers.emplace_back(to_string(optimizer));
  std::vector<std::string> types;
  for (const DataType type : range.data_types) types.emplace_back(to_string(type));
  fmt::print("name            {}\n", info.name);
  fmt::print("kind            compute\n");
  fmt::print("file            {}\n", file);
  fmt::print("sha256          {}\n", info.model_sha256);
  fmt::print("architecture    {}\n", to_string(model->architecture()));
  fmt::print("networks        {}\n", model->members().size());
  fmt::print("feature schema  {}\n", to_string(model->members().front().schema));
  fmt::print("hardware        {}\n", info.hardware);
  fmt::print("operator        {}\n", info.operator_info);
  fmt::print("training data   sha256 {}\n", info.data_sha256);
  fmt::print(
      "trained range   batch size {} to {}; {} to {} columns; up to {} pieces, {} rows, "
      "pooling factor {:.4g}; {}; {}\n",
      range.min_batch_size, range.max_batch_size, range.min_columns, range.max_columns,
      range.max_pieces, range.max_embeddings, range.max_pooling_factor, fmt::join(optimizers, ", "),
      fmt::join(types, ", "));
  show_metrics(info.metrics);
}

void show_file(const std::string& path) {
  const ModelFile file(path);
  if (file.kind() == "communication") {
    show_communication_model(communication_model_from(file, path), path);
  } else {
    show_compute_model(compute_model_from(file, path), path);
  }
}

void show(const std::string& name) {
  const std::string file = find_model_file(name);
  if (!file.empty()) {
    show_file(file);
    return;
  }
  for (const ModelEntry& entry : list_models()) {
    if (entry.name == name && !entry.is_estimate) {
      show_file(entry.origin);
      return;
    }
    if (entry.name != name && entry.name != std::string(kAnalyticPrefix) + name) continue;
    fmt::print("name    {}\nkind    {} (an estimate, not measured)\nsource  {}\n", entry.name,
               entry.kind, entry.origin);
    if (entry.kind == "communication") {
      const Interconnect& preset = find_interconnect(entry.name.substr(kAnalyticPrefix.size()));
      fmt::print("links   devices: {}\n", links_text(preset));
    }
    return;
  }
  throw InputError("model", "a file or a name that `neuroshard model list` shows",
                   "\"" + name + "\"");
}

struct TestOptions {
  std::string model;
  std::vector<std::string> costs;
  bool json = false;
};

void test(const TestOptions& options) {
  const CostModels models = load_cost_models({options.model}, Topology{});
  TextTable table;
  table.add_column("file", TextTable::Align::left);
  for (const char* column : {"samples", "MAE [ms]", "MAPE", "bias", "tau"}) {
    table.add_column(column, TextTable::Align::right);
  }
  Json::Array files;
  for (const std::string& path : options.costs) {
    const ModelTest result = test_compute_model(*models.compute, path);
    const PredictionMetrics& metrics = result.metrics;
    const std::string name = std::filesystem::path(path).filename();
    table.add_row({name, fmt::format("{}", metrics.count), fmt::format("{:.4f}", metrics.mae),
                   fmt::format("{:.1f}%", 100.0 * metrics.mape),
                   fmt::format("{:+.1f}%", 100.0 * result.bias),
                   fmt::format("{:.4f}", metrics.kendall_tau)});
    files.push_back(Json::Object{{"file", path},
                                 {"samples", static_cast<std::int64_t>(metrics.count)},
                                 {"mae", metrics.mae},
                                 {"mape", metrics.mape},
                                 {"bias", result.bias},
                                 {"kendall_tau", metrics.kendall_tau}});
  }
  if (options.json) {
    fmt::print("{}\n", to_line(Json(std::move(files))));
  } else {
    fmt::print("{}", table.to_string());
  }
}

}  // namespace

void add_model_command(CLI::App& app) {
  CLI::App* model = app.add_subcommand("model", "Pre-trained and analytic cost models");
  model->require_subcommand(1);
  model->add_subcommand("list", "Which models there are")->callback(list);
  auto name = std::make_shared<std::string>();
  CLI::App* command =
      model->add_subcommand("show", "What a model was trained on, and how good it is");
  command->add_option("model", *name, "Name or file")->required();
  command->callback([name] { show(*name); });
  auto options = std::make_shared<TestOptions>();
  CLI::App* tested =
      model->add_subcommand("test", "How well a model predicts measured computation costs");
  tested->add_option("model", options->model, "Name or file")->required();
  tested->add_option("costs", options->costs, "Files of measured computation costs (.jsonl[.gz])")
      ->required();
  tested->add_flag("--json", options->json, "Print the result as JSON");
  tested->callback([options] { test(*options); });
}

}  // namespace neuroshard::cli
