// Reading and writing of computation cost models.
#include "neuroshard/cost/compute/compute_model_io.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <string_view>

#include "neuroshard/core/error.h"
#include "neuroshard/cost/compute/network_bounds.h"
#include "neuroshard/cost/compute/piece_work.h"
#include "neuroshard/io/checksum.h"
#include "neuroshard/io/json/json.h"
#include "neuroshard/io/json/json_reader.h"

namespace neuroshard {

namespace {

Json range_json(const TrainedRange& range) {
  Json::Array optimizers;
  for (const Optimizer optimizer : range.optimizers) optimizers.emplace_back(to_string(optimizer));
  Json::Array data_types;
  for (const DataType type : range.data_types) data_types.emplace_back(to_string(type));
  return Json::Object{{"min_batch_size", range.min_batch_size},
                      {"max_batch_size", range.max_batch_size},
                      {"min_columns", range.min_columns},
                      {"max_columns", range.max_columns},
                      {"min_embeddings", range.min_embeddings},
                      {"max_embeddings", range.max_embeddings},
                      {"min_pooling_factor", range.min_pooling_factor},
                      {"max_pooling_factor", range.max_pooling_factor},
                      {"max_hits_per_row", range.max_hits_per_row},
                      {"max_pieces", range.max_pieces},
                      {"optimizers", std::move(optimizers)},
                      {"data_types", std::move(data_types)}};
}

/// What `parse` makes of each text of a list: at least one, as those who sample within the range
/// rely on. `noun` and `names` say in errors what is expected: "optimizer", "sgd or
/// rowwise_adagrad".
template <typename T>
std::vector<T> values_from_json(const JsonReader& reader,
                                std::optional<T> (*parse)(std::string_view), const char* noun,
                                const char* names) {
  if (reader.array_size() == 0) reader.fail(fmt::format("at least one {}", noun));
  std::vector<T> values;
  for (std::size_t i = 0; i < reader.array_size(); ++i) {
    const JsonReader element = reader.element(i);
    const std::optional<T> value = parse(element.text());
    if (!value) element.fail(names);
    values.push_back(*value);
  }
  return values;
}

/// No largest value is below the smallest.
TrainedRange range_from_json(const JsonReader& reader) {
  TrainedRange range;
  range.min_batch_size = reader.field("min_batch_size").integer(1);
  range.max_batch_size = reader.field("max_batch_size").integer(range.min_batch_size);
  range.min_columns = reader.field("min_columns").integer(1);
  range.max_columns = reader.field("max_columns").integer(range.min_columns);
  range.min_embeddings = reader.field("min_embeddings").integer(1);
  range.max_embeddings = reader.field("max_embeddings").integer(range.min_embeddings);
  range.min_pooling_factor = reader.field("min_pooling_factor").number();
  const JsonReader max_pooling_factor = reader.field("max_pooling_factor");
  range.max_pooling_factor = max_pooling_factor.number();
  if (range.max_pooling_factor < range.min_pooling_factor) {
    max_pooling_factor.fail(fmt::format("a number of at least {}", range.min_pooling_factor));
  }
  range.max_hits_per_row = reader.field("max_hits_per_row").number();
  range.max_pieces = static_cast<int>(reader.field("max_pieces").integer(1, 1 << 30));
  range.optimizers = values_from_json<Optimizer>(reader.field("optimizers"), optimizer_from_string,
                                                 "optimizer", "sgd or rowwise_adagrad");
  range.data_types = values_from_json<DataType>(reader.field("data_types"), data_type_from_string,
                                                "data type", "fp32 or fp16");
  return range;
}

/// Where a member's tensors are: a single network's without prefix.
std::string member_prefix(std::size_t member, std::size_t count) {
  return count == 1 ? "" : fmt::format("members.{}.", member);
}

PhysicalEstimate estimate_from(const ModelFile& file) {
  PhysicalEstimate estimate;
  for (const float weight : file.vector("estimate.weights", work_terms().size())) {
    estimate.weights_ms.push_back(static_cast<double>(weight));
  }
  estimate.offset_ms = static_cast<double>(file.vector("estimate.offset", 1)[0]);
  file.expect_no_negative("estimate.weights");
  if (!(estimate.weights_ms.front() > 0.0)) {
    file.fail("estimate.weights[0]", "a number above 0", fmt::format("{}", estimate.weights_ms[0]));
  }
  if (!(estimate.offset_ms > 0.0)) {
    file.fail("estimate.offset", "a number above 0", fmt::format("{}", estimate.offset_ms));
  }
  return estimate;
}

ComputeNetwork network_from(const ModelFile& file, const std::string& path,
                            const std::string& prefix) {
  ComputeNetwork network;
  network.architecture = compute_architecture_from_string(file.metadata("architecture"),
                                                          path + ": __metadata__.architecture");
  network.schema = feature_schema_from_string(file.metadata("feature_schema"),
                                              path + ": __metadata__.feature_schema");
  const bool loads = network.architecture == ComputeArchitecture::bounded_loads;
  const FeatureSchema schema = loads ? FeatureSchema::work : FeatureSchema::published;
  if (network.schema != schema) {
    throw InputError(path + ": __metadata__.feature_schema",
                     fmt::format("\"{}\" with this architecture", to_string(schema)),
                     fmt::format("\"{}\"", to_string(network.schema)));
  }
  const std::size_t num_features = feature_names(network.schema).size();
  network.feature_mean = file.vector("feature_mean", num_features);
  network.feature_scale = file.vector("feature_scale", num_features);
  int inputs = static_cast<int>(num_features);
  const auto layer = [&](int i) { return fmt::format("{}encoder.{}", prefix, i); };
  for (int i = 0; file.has(layer(i) + ".weight"); ++i) {
    const bool last = !file.has(layer(i + 1) + ".weight");
    if (last && loads) inputs += static_cast<int>(num_features);
    network.encoder.push_back(file.layer(layer(i), inputs));
    inputs = network.encoder.back().outputs;
  }
  if (network.encoder.empty()) file.fail(layer(0) + ".weight", "a tensor", "none");
  network.head = file.layer(prefix + "head", inputs);
  network.head_output = file.vector(prefix + "head_output", network.head.outputs);
  if (loads) network.linear = file.vector(prefix + "linear", inputs);
  network.offset = file.vector(prefix + "offset", 1)[0];
  const std::string of_adagrad = prefix + "rowwise_adagrad_offset";
  if (loads && file.has(of_adagrad)) {
    network.rowwise_adagrad_offset = file.vector(of_adagrad, 1)[0];
  }
  const std::string widest = prefix + "widest_factors";
  if (loads && file.has(widest)) {
    network.widest_factors = file.vector(widest, kWidestClasses);
    float before = kLeastWidestFactor;
    for (std::size_t i = 0; i < kWidestClasses; ++i) {
      const float factor = network.widest_factors[i];
      if (!(factor >= before && factor <= 1.0F)) {
        file.fail(fmt::format("{}[{}]", widest, i), fmt::format("a number from {} to 1", before),
                  fmt::format("{}", factor));
      }
      before = factor;
    }
    if (before != 1.0F) {
      file.fail(fmt::format("{}[{}]", widest, kWidestClasses - 1), "1", fmt::format("{}", before));
    }
  }
  if (loads) {
    // Which keeps costs positive and never lets them fall when a piece is added.
    for (const char* name : {"head.weight", "head_output", "linear", "offset"}) {
      file.expect_no_negative(prefix + name);
    }
    network.estimate = estimate_from(file);
    if (const std::string wrong = broken_bound(network); !wrong.empty()) {
      // All members share the standardisation.
      const std::string tensor = wrong == "feature_scale" ? wrong : prefix + wrong;
      file.fail(tensor, "weights that keep the model's bounds", "others");
    }
  }
  return network;
}

std::vector<ComputeNetwork> members_from(const ModelFile& file, const std::string& path) {
  const std::size_t numbered = file.count_numbered("members");
  if (numbered == 1) file.fail("members", "two or more networks", "one");
  const std::size_t count = std::max<std::size_t>(numbered, 1);
  std::vector<ComputeNetwork> members;
  for (std::size_t m = 0; m < count; ++m) {
    members.push_back(network_from(file, path, member_prefix(m, count)));
    if (members.back().widest_factors.empty() != members.front().widest_factors.empty()) {
      file.fail(member_prefix(m, count) + "widest_factors", "a tensor of all networks or of none",
                "of some");
    }
    if (members.back().rowwise_adagrad_offset.has_value() !=
        members.front().rowwise_adagrad_offset.has_value()) {
      file.fail(member_prefix(m, count) + "rowwise_adagrad_offset",
                "a tensor of all networks or of none", "of some");
    }
  }
  return members;
}

/// Of models whose samples had reference sets.
std::map<std::string, double> references_from(const ModelFile& file) {
  std::map<std::string, double> reference_ms;
  if (!file.has_metadata("reference_ms")) return reference_ms;
  const Json object = file.json("reference_ms");
  JsonReader(object, file.place("reference_ms"))
      .for_each_field([&](const std::string& name, const JsonReader& value) {
        reference_ms[name] = value.number();
        if (!(reference_ms[name] > 0.0)) value.fail("a number above 0");
      });
  return reference_ms;
}

void add_estimate(TensorFile& file, const PhysicalEstimate& estimate) {
  file.tensors["estimate.weights"] =
      vector_tensor(std::vector<float>(estimate.weights_ms.begin(), estimate.weights_ms.end()));
  file.tensors["estimate.offset"] = vector_tensor({static_cast<float>(estimate.offset_ms)});
}

void add_network(TensorFile& file, const ComputeNetwork& network, const std::string& prefix) {
  for (std::size_t i = 0; i < network.encoder.size(); ++i) {
    add_layer(file, fmt::format("{}encoder.{}", prefix, i), network.encoder[i]);
  }
  add_layer(file, prefix + "head", network.head);
  file.tensors[prefix + "head_output"] = vector_tensor(network.head_output);
  if (!network.linear.empty()) file.tensors[prefix + "linear"] = vector_tensor(network.linear);
  file.tensors[prefix + "offset"] = vector_tensor({network.offset});
  if (network.rowwise_adagrad_offset) {
    file.tensors[prefix + "rowwise_adagrad_offset"] =
        vector_tensor({*network.rowwise_adagrad_offset});
  }
  if (!network.widest_factors.empty()) {
    file.tensors[prefix + "widest_factors"] = vector_tensor(network.widest_factors);
  }
}

}  // namespace

void write_compute_model(const NeuralComputeModel& model, const std::string& path) {
  const ComputeNetwork& network = model.members().front();
  const ComputeModelInfo& info = model.info();
  TensorFile file;
  file.metadata = {{"format", kModelFormat},
                   {"kind", "compute"},
                   {"name", info.name},
                   {"architecture", std::string(to_string(network.architecture))},
                   {"feature_schema", std::string(to_string(network.schema))},
                   {"hardware", info.hardware},
                   {"operator", info.operator_info},
                   {"training_data_sha256", info.data_sha256},
                   {"range", to_line(range_json(info.range))},
                   {"metrics", to_line(to_json(info.metrics))}};
  if (!info.reference_ms.empty())
    file.metadata["reference_ms"] = to_line(to_json(info.reference_ms));
  // One standardisation serves all members.
  file.tensors["feature_mean"] = vector_tensor(network.feature_mean);
  file.tensors["feature_scale"] = vector_tensor(network.feature_scale);
  if (network.architecture == ComputeArchitecture::bounded_loads) {
    add_estimate(file, network.estimate);
  }
  for (std::size_t m = 0; m < model.members().size(); ++m) {
    add_network(file, model.members()[m], member_prefix(m, model.members().size()));
  }
  write_tensors(file, path);
}

std::shared_ptr<const NeuralComputeModel> read_compute_model(const std::string& path) {
  return compute_model_from(ModelFile(path), path);
}

std::shared_ptr<const NeuralComputeModel> compute_model_from(const ModelFile& file,
                                                             const std::string& path,
                                                             const std::string& name) {
  file.expect("kind", "compute");
  ComputeModelInfo info;
  info.name = file.metadata("name");
  if (!name.empty()) info.name = name;
  info.hardware = file.metadata("hardware");
  info.operator_info = file.metadata("operator");
  info.data_sha256 = file.metadata("training_data_sha256");
  info.model_sha256 = sha256_file(path);
  for (const char* key : {"hardware", "operator"}) (void)file.json(key);
  const Json range = file.json("range");
  info.range = range_from_json(JsonReader(range, file.place("range")));
  info.metrics = file.numbers("metrics");
  info.reference_ms = references_from(file);
  return std::make_shared<NeuralComputeModel>(members_from(file, path), std::move(info));
}

}  // namespace neuroshard
