// Cost models as text.
#include "neuroshard/report/model_report.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <filesystem>
#include <map>
#include <memory>

#include "neuroshard/core/interconnect.h"
#include "neuroshard/core/text/printable.h"
#include "neuroshard/cost/communication/communication_context.h"
#include "neuroshard/cost/communication/communication_model_io.h"
#include "neuroshard/cost/compute/compute_model_io.h"
#include "neuroshard/report/text_table.h"
#include "neuroshard/report/training_report.h"

namespace neuroshard {

namespace {

/// With its unit, which the metric's name tells.
std::string metric_value(const std::string& name, double value) {
  if (name.ends_with("mape")) return fmt::format("{:.3g}%", 100.0 * value);
  if (name.ends_with("mae")) return fmt::format("{:.6g} ms", value);
  if (name.ends_with("mse")) return fmt::format("{:.6g} ms^2", value);
  return fmt::format("{:.6g}", value);
}

std::string metrics_text(const std::map<std::string, double>& metrics) {
  std::string text;
  for (const auto& [name, value] : metrics) {
    text += fmt::format("{:<40}{}\n", printable(name), metric_value(name, value));
  }
  return text;
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

std::string cluster_text(const TrainedCluster& cluster) {
  const CollectiveWeights& learned = cluster.collectives;
  const char* collectives =
      learned.all_reduce.empty() && learned.partial_sums.empty()
          ? "; all-reduces by the links' rates, partial sums by the memory's"
      : learned.partial_sums.empty() ? "; with all-reduces, partial sums by the memory's rate"
      : learned.all_reduce.empty()   ? "; with partial sums, all-reduces by the links' rates"
                                     : "; with all-reduces and partial sums";
  return fmt::format(
      "interconnect    {}{}: {} to {} devices, {}{}\n", printable(cluster.interconnect.name),
      is_simulated(cluster) ? fmt::format(", {}", kSimulatedText) : "", cluster.min_world_size,
      cluster.max_world_size, links_text(cluster.interconnect), collectives);
}

std::string communication_model_text(const CommunicationModelFile& model, const std::string& file) {
  const CommunicationModelInfo& info = model.info;
  std::string text = fmt::format(
      "name            {}\n"
      "kind            communication\n"
      "file            {}\n"
      "sha256          {}\n"
      "feature schema  {}\n"
      "training data   sha256 {}\n"
      "trained range   batch size {} to {}\n",
      printable(info.name), printable(file), info.model_sha256, kCommunicationSchema,
      printable(info.data_sha256), info.min_batch_size, info.max_batch_size);
  if (!info.collectives_sha256.empty()) {
    text += fmt::format("all-reduces     sha256 {}\n", printable(info.collectives_sha256));
  }
  for (const TrainedCluster& cluster : info.clusters) text += cluster_text(cluster);
  return text + metrics_text(info.metrics);
}

std::string range_text(const TrainedRange& range) {
  std::vector<std::string> optimizers;
  for (const Optimizer optimizer : range.optimizers) optimizers.emplace_back(to_string(optimizer));
  std::vector<std::string> types;
  for (const DataType type : range.data_types) types.emplace_back(to_string(type));
  return fmt::format(
      "trained range   batch size {} to {}; {} to {} columns; {} to {} rows; pooling factor {:.4g} "
      "to {:.4g}; up to {} pieces, {:.4g} lookups per distinct row; {}; {}\n",
      range.min_batch_size, range.max_batch_size, range.min_columns, range.max_columns,
      range.min_embeddings, range.max_embeddings, range.min_pooling_factor,
      range.max_pooling_factor, range.max_pieces, range.max_hits_per_row,
      fmt::join(optimizers, ", "), fmt::join(types, ", "));
}

/// What a set's widest piece does to its loads, if anything; the mean of the networks.
std::string widest_text(const NeuralComputeModel& model) {
  if (!model.has_widest_factors()) return "";
  const std::vector<double> factors = model.mean_widest_factors();
  std::vector<std::string> classes;
  for (std::size_t number = 0; number < factors.size(); ++number) {
    const bool last = number == kWidestPiece.size();
    classes.push_back(
        fmt::format("{:.2f} {}", factors[number],
                    last ? "if wider" : fmt::format("up to {}", kWidestPiece[number])));
  }
  return fmt::format("widest piece    of a device, its columns: its loads times {}\n",
                     fmt::join(classes, ", "));
}

/// What running anything at all costs with each optimizer, if that differs; the mean of the
/// networks.
std::string offsets_text(const NeuralComputeModel& model) {
  if (!model.has_optimizer_offsets()) return "";
  return fmt::format(
      "optimizers      running anything at all takes {:.4f} ms with sgd, {:.4f} ms with "
      "rowwise_adagrad\n",
      model.mean_offset_ms(Optimizer::sgd), model.mean_offset_ms(Optimizer::rowwise_adagrad));
}

/// At which speed of a machine its costs are.
std::string usual_speed_text(const ComputeModelInfo& info) {
  std::string text;
  for (const auto& [name, ms] : info.reference_ms) {
    text += fmt::format("reference sets  {:.4f} ms, of {}\n", ms, printable(name));
  }
  return text;
}

std::string compute_model_text(const NeuralComputeModel& model, const std::string& file) {
  const ComputeModelInfo& info = model.info();
  return fmt::format(
             "name            {}\n"
             "kind            compute\n"
             "file            {}\n"
             "sha256          {}\n"
             "architecture    {}\n"
             "networks        {}\n"
             "feature schema  {}\n"
             "hardware        {}\n"
             "operator        {}\n"
             "training data   sha256 {}\n",
             printable(info.name), printable(file), info.model_sha256,
             to_string(model.architecture()), model.members().size(),
             to_string(model.members().front().schema), printable(info.hardware),
             printable(info.operator_info), printable(info.data_sha256)) +
         range_text(info.range) + widest_text(model) + offsets_text(model) +
         usual_speed_text(info) + metrics_text(info.metrics);
}

}  // namespace

std::string models_table(const std::vector<ModelEntry>& models) {
  TextTable table;
  for (const char* title : {"name", "kind", "", "origin"}) {
    table.add_column(title, TextTable::Align::left);
  }
  for (const ModelEntry& entry : models) {
    table.add_row({entry.name, entry.kind, std::string(source_text(entry)), entry.origin});
  }
  return table.to_string();
}

std::string model_text(const ModelEntry& entry) {
  if (entry.is_estimate) {
    std::string text =
        fmt::format("name    {}\nkind    {} (an estimate, not measured)\nsource  {}\n", entry.name,
                    entry.kind, entry.origin);
    if (entry.kind != "communication") return text;
    const std::string preset = entry.name.substr(kAnalyticPrefix.size());
    return text + fmt::format("links   devices: {}\n", links_text(find_interconnect(preset)));
  }
  const ModelFile file(entry.origin);
  if (file.kind() == "communication") {
    return communication_model_text(communication_model_from(file, entry.origin), entry.origin);
  }
  return compute_model_text(*compute_model_from(file, entry.origin), entry.origin);
}

namespace {

std::vector<std::string> test_row(const std::string& name, const ModelTest& test) {
  const auto percent = [](double share) { return fmt::format("{:.1f}%", 100.0 * share); };
  const PredictionMetrics& metrics = test.metrics;
  return {name,
          fmt::format("{}", metrics.count),
          fmt::format("{}", test.left_out),
          fmt::format("{:.4f}", metrics.mae),
          percent(metrics.mape),
          percent(metrics.median),
          percent(metrics.percentile_95),
          fmt::format("{:.2f}x", metrics.largest_factor),
          fmt::format("{:+.1f}%", 100.0 * test.bias),
          tau_text(metrics.kendall_tau, 4)};
}

}  // namespace

std::string model_tests_table(std::span<const FileTest> tests) {
  TextTable table;
  table.add_column("file", TextTable::Align::left);
  for (const char* title :
       {"samples", "left out", "MAE [ms]", "MAPE", "median", "95%", "worst", "bias", "tau"}) {
    table.add_column(title);
  }
  for (const auto& [path, test, kind] : tests) {
    const std::string name = std::filesystem::path(path).filename();
    table.add_row(test_row(kind.empty() ? name : fmt::format("{}: {}", name, kind), test));
  }
  // Of the kinds of communication apart.
  std::map<std::string, std::vector<FileTest>> by_kind;
  for (const FileTest& test : tests) by_kind[test.kind].push_back(test);
  for (const auto& [kind, of_kind] : by_kind) {
    if (of_kind.size() < 2) continue;
    table.add_row(test_row(kind.empty() ? "all" : "all: " + kind, joined(of_kind)));
  }
  return table.to_string() + scatter_text(device_scatter(tests));
}

}  // namespace neuroshard
