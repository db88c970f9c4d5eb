// Reading and writing of computation cost models.
#include "neuroshard/cost/compute_model_io.h"

#include <fmt/format.h>

#include "neuroshard/core/error.h"
#include "neuroshard/io/checksum.h"
#include "neuroshard/io/json.h"
#include "neuroshard/io/json_reader.h"
#include "neuroshard/io/safetensors.h"

namespace neuroshard {

namespace {

/// Row-major (as files have it) from column-major, or back with the sides exchanged.
std::vector<float> transposed(const std::vector<float>& values, int rows, int columns) {
  std::vector<float> result(values.size());
  for (int row = 0; row < rows; ++row) {
    for (int column = 0; column < columns; ++column) {
      result[static_cast<std::size_t>(row) * columns + column] =
          values[static_cast<std::size_t>(column) * rows + row];
    }
  }
  return result;
}

Tensor vector_tensor(const std::vector<float>& values) {
  return {{static_cast<std::int64_t>(values.size())}, values};
}

void add_layer(TensorFile& file, const std::string& name, const DenseLayer& layer) {
  file.tensors[name + ".weight"] = {{layer.outputs, layer.inputs},
                                    transposed(layer.weights, layer.outputs, layer.inputs)};
  file.tensors[name + ".bias"] = vector_tensor(layer.bias);
}

Json range_json(const TrainedRange& range) {
  Json::Array optimizers;
  for (const Optimizer optimizer : range.optimizers) optimizers.emplace_back(to_string(optimizer));
  Json::Array data_types;
  for (const DataType type : range.data_types) data_types.emplace_back(to_string(type));
  return Json::Object{
      {"min_batch_size", range.min_batch_size}, {"max_batch_size", range.max_batch_size},
      {"min_columns", range.min_columns},       {"max_columns", range.max_columns},
      {"max_embeddings", range.max_embeddings}, {"max_pooling_factor", range.max_pooling_factor},
      {"max_pieces", range.max_pieces},         {"optimizers", std::move(optimizers)},
      {"data_types", std::move(data_types)}};
}

TrainedRange range_from_json(const JsonReader& reader) {
  TrainedRange range;
  range.min_batch_size = reader.field("min_batch_size").integer(1);
  range.max_batch_size = reader.field("max_batch_size").integer(1);
  range.min_columns = reader.field("min_columns").integer(1);
  range.max_columns = reader.field("max_columns").integer(1);
  range.max_embeddings = reader.field("max_embeddings").integer(1);
  range.max_pooling_factor = reader.field("max_pooling_factor").number();
  range.max_pieces = static_cast<int>(reader.field("max_pieces").integer(1, 1 << 30));
  const JsonReader optimizers = reader.field("optimizers");
  for (std::size_t i = 0; i < optimizers.array_size(); ++i) {
    const JsonReader element = optimizers.element(i);
    const auto optimizer = optimizer_from_string(element.text());
    if (!optimizer) element.fail("sgd or rowwise_adagrad");
    range.optimizers.push_back(*optimizer);
  }
  const JsonReader types = reader.field("data_types");
  for (std::size_t i = 0; i < types.array_size(); ++i) {
    const JsonReader element = types.element(i);
    const auto type = data_type_from_string(element.text());
    if (!type) element.fail("fp32 or fp16");
    range.data_types.push_back(*type);
  }
  return range;
}

Json metrics_json(const std::map<std::string, double>& metrics) {
  Json::Object object;
  for (const auto& [name, value] : metrics) object.push_back({name, value});
  return object;
}

/// A model file under examination: its entries by name, with errors that name file and entry.
class ModelFile {
 public:
  explicit ModelFile(const std::string& path) : path_(path), file_(read_tensors(path)) {}

  [[nodiscard]] const std::string& metadata(const std::string& key) const {
    const auto entry = file_.metadata.find(key);
    if (entry == file_.metadata.end()) fail("__metadata__." + key, "an entry", "none");
    return entry->second;
  }

  void expect(const std::string& key, const std::string& value) const {
    if (metadata(key) != value) {
      fail("__metadata__." + key, "\"" + value + "\"", describe(Json(metadata(key))));
    }
  }

  [[nodiscard]] const Tensor& tensor(const std::string& name, std::size_t dimensions) const {
    const auto entry = file_.tensors.find(name);
    if (entry == file_.tensors.end()) fail(name, "a tensor", "none");
    if (entry->second.shape.size() != dimensions) {
      fail(name, fmt::format("{} dimensions", dimensions),
           fmt::format("{}", entry->second.shape.size()));
    }
    return entry->second;
  }

  [[nodiscard]] bool has(const std::string& name) const { return file_.tensors.contains(name); }

  [[nodiscard]] std::vector<float> vector(const std::string& name, std::size_t size) const {
    const Tensor& found = tensor(name, 1);
    if (found.values.size() != size) {
      fail(name, fmt::format("{} elements", size), fmt::format("{}", found.values.size()));
    }
    return found.values;
  }

  [[nodiscard]] DenseLayer layer(const std::string& name, int inputs) const {
    const Tensor& weight = tensor(name + ".weight", 2);
    if (weight.shape[1] != inputs) {
      fail(name + ".weight", fmt::format("{} inputs", inputs), fmt::format("{}", weight.shape[1]));
    }
    const auto outputs = static_cast<int>(weight.shape[0]);
    return {inputs, outputs, transposed(weight.values, inputs, outputs),
            vector(name + ".bias", outputs)};
  }

  /// Fails if one of the values of a tensor is negative.
  void expect_no_negative(const std::string& name) const {
    for (const float value : file_.tensors.at(name).values) {
      if (value < 0.0F) fail(name, "no value below 0", fmt::format("{}", value));
    }
  }

  [[noreturn]] void fail(const std::string& place, const std::string& expected,
                         const std::string& actual) const {
    throw InputError(path_ + ": " + place, expected, actual);
  }

 private:
  std::string path_;
  TensorFile file_;
};

ComputeNetwork network_from(const ModelFile& file, const std::string& path) {
  ComputeNetwork network;
  network.architecture = compute_architecture_from_string(file.metadata("architecture"),
                                                          path + ": __metadata__.architecture");
  network.schema = feature_schema_from_string(file.metadata("feature_schema"),
                                              path + ": __metadata__.feature_schema");
  const bool loads = network.architecture == ComputeArchitecture::resource_loads;
  const std::size_t num_features = feature_names(network.schema).size();
  network.feature_mean = file.vector("feature_mean", num_features);
  network.feature_scale = file.vector("feature_scale", num_features);
  int inputs = static_cast<int>(num_features);
  for (int i = 0; file.has(fmt::format("encoder.{}.weight", i)); ++i) {
    const bool last = !file.has(fmt::format("encoder.{}.weight", i + 1));
    if (last && loads) inputs += static_cast<int>(num_features);
    network.encoder.push_back(file.layer(fmt::format("encoder.{}", i), inputs));
    inputs = network.encoder.back().outputs;
  }
  if (network.encoder.empty()) file.fail("encoder.0.weight", "a tensor", "none");
  network.head = file.layer("head", inputs);
  network.head_output = file.vector("head_output", network.head.outputs);
  if (loads) network.linear = file.vector("linear", inputs);
  network.offset = file.vector("offset", 1)[0];
  if (loads) {  // what makes its costs positive and never fall when a piece is added
    for (const char* name : {"head.weight", "head_output", "linear", "offset"}) {
      file.expect_no_negative(name);
    }
  }
  return network;
}

}  // namespace

void write_compute_model(const NeuralComputeModel& model, const std::string& path) {
  const ComputeNetwork& network = model.network();
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
                   {"metrics", to_line(metrics_json(info.metrics))}};
  file.tensors["feature_mean"] = vector_tensor(network.feature_mean);
  file.tensors["feature_scale"] = vector_tensor(network.feature_scale);
  for (std::size_t i = 0; i < network.encoder.size(); ++i) {
    add_layer(file, fmt::format("encoder.{}", i), network.encoder[i]);
  }
  add_layer(file, "head", network.head);
  file.tensors["head_output"] = vector_tensor(network.head_output);
  if (!network.linear.empty()) file.tensors["linear"] = vector_tensor(network.linear);
  file.tensors["offset"] = vector_tensor({network.offset});
  write_tensors(file, path);
}

std::shared_ptr<const NeuralComputeModel> read_compute_model(const std::string& path) {
  const ModelFile file(path);
  file.expect("format", kModelFormat);
  file.expect("kind", "compute");
  ComputeModelInfo info;
  info.name = file.metadata("name");
  info.hardware = file.metadata("hardware");
  info.operator_info = file.metadata("operator");
  info.data_sha256 = file.metadata("training_data_sha256");
  info.model_sha256 = sha256_file(path);
  for (const char* key : {"hardware", "operator"}) {
    (void)parse_json(file.metadata(key), path + ": __metadata__." + key);
  }
  const std::string range_place = path + ": __metadata__.range";
  const Json range = parse_json(file.metadata("range"), range_place);
  info.range = range_from_json(JsonReader(range, range_place));
  const std::string metrics_place = path + ": __metadata__.metrics";
  const Json metrics = parse_json(file.metadata("metrics"), metrics_place);
  JsonReader(metrics, metrics_place)
      .for_each_field([&](const std::string& name, const JsonReader& value) {
        info.metrics[name] = value.number();
      });
  return std::make_shared<NeuralComputeModel>(network_from(file, path), std::move(info));
}

}  // namespace neuroshard
