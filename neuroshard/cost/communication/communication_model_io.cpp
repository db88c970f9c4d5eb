// Reading and writing of communication cost models.
#include "neuroshard/cost/communication/communication_model_io.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <optional>
#include <utility>
#include <vector>

#include "neuroshard/core/error.h"
#include "neuroshard/core/interconnect.h"
#include "neuroshard/cost/communication/communication_context.h"
#include "neuroshard/io/checksum.h"
#include "neuroshard/io/interconnect_io.h"
#include "neuroshard/io/json/json.h"
#include "neuroshard/io/json/json_reader.h"

namespace neuroshard {

namespace {

constexpr const char* kArchitecture = "rendezvous-mixture";
constexpr const char* kCollectivesSha256 = "collectives_data_sha256";

/// Nothing for a model that has not learned them.
void set_weights(Json& json, const char* key, const std::vector<double>& weights) {
  if (!weights.empty()) json.set(key, Json::Array(weights.begin(), weights.end()));
}

/// `fewest` weights or `most`.
std::vector<double> weights_from(const JsonReader& cluster, const char* key, std::size_t fewest,
                                 std::size_t most) {
  const std::optional<JsonReader> field = cluster.optional_field(key);
  if (!field) return {};
  const std::size_t count = field->array_size();
  if (count != fewest && count != most) {
    field->fail(fmt::format("{} or {} weights", fewest, most));
  }
  std::vector<double> weights;
  for (std::size_t i = 0; i < count; ++i) {
    const JsonReader weight = field->element(i);
    // So that costs never fall when there are more bytes, and stay numbers.
    if (!(weight.number() >= 0.0 && weight.number() <= kMostCollectiveWeight)) {
      weight.fail(fmt::format("a weight between 0 and {}", kMostCollectiveWeight));
    }
    weights.push_back(weight.number());
  }
  return weights;
}

Json clusters_json(const std::vector<TrainedCluster>& clusters) {
  Json::Array array;
  for (const TrainedCluster& cluster : clusters) {
    const Interconnect& interconnect = cluster.interconnect;
    Json json = Json::Object{{"name", interconnect.name},
                             {"hardware", cluster.hardware},
                             {"max_local_world_size", interconnect.devices_per_host},
                             {"min_world_size", cluster.min_world_size},
                             {"max_world_size", cluster.max_world_size}};
    set_links(json, interconnect);
    set_weights(json, "all_reduce", cluster.collectives.all_reduce);
    set_weights(json, "partial_sums", cluster.collectives.partial_sums);
    array.push_back(std::move(json));
  }
  return array;
}

int count(const JsonReader& object, const char* key) {
  return static_cast<int>(object.field(key).integer(1, 1 << 30));
}

std::vector<TrainedCluster> clusters_from(const JsonReader& reader) {
  std::vector<TrainedCluster> clusters;
  for (std::size_t i = 0; i < reader.array_size(); ++i) {
    const JsonReader element = reader.element(i);
    const JsonReader hardware = element.field("hardware");
    hardware.check([&] { (void)parse_json(hardware.text(), "text"); });
    TrainedCluster cluster{.interconnect = links_from(element),
                           .hardware = hardware.text(),
                           .min_world_size = count(element, "min_world_size"),
                           .max_world_size = count(element, "max_world_size")};
    if (cluster.max_world_size < cluster.min_world_size) {
      element.field("max_world_size")
          .fail(fmt::format("an integer of at least {}", cluster.min_world_size));
    }
    cluster.collectives = {
        weights_from(element, "all_reduce", kNumLinkAllReduceTerms, kNumAllReduceTerms),
        weights_from(element, "partial_sums", kNumPlainPartialSumTerms, kNumPartialSumTerms)};
    cluster.interconnect.name = element.field("name").text();
    for (const TrainedCluster& other : clusters) {
      if (other.interconnect.name == cluster.interconnect.name) {
        element.field("name").fail("a name that no other cluster has");
      }
    }
    cluster.interconnect.devices_per_host = count(element, "max_local_world_size");
    clusters.push_back(std::move(cluster));
  }
  if (clusters.empty()) reader.fail("at least one cluster");
  return clusters;
}

Json range_json(const CommunicationModelInfo& info) {
  return Json::Object{{"min_batch_size", info.min_batch_size},
                      {"max_batch_size", info.max_batch_size}};
}

void read_range(const JsonReader& reader, CommunicationModelInfo& info) {
  info.min_batch_size = reader.field("min_batch_size").integer(1);
  info.max_batch_size = reader.field("max_batch_size").integer(info.min_batch_size);
}

/// NAME.0, NAME.1, ...
std::vector<DenseLayer> layers_from(const ModelFile& file, const std::string& name, int inputs) {
  std::vector<DenseLayer> layers;
  while (file.has(fmt::format("{}.{}.weight", name, layers.size()))) {
    layers.push_back(file.layer(fmt::format("{}.{}", name, layers.size()), inputs));
    inputs = layers.back().outputs;
  }
  if (layers.empty()) file.fail(name + ".0.weight", "a tensor", "none");
  return layers;
}

CommunicationNetwork network_from(const ModelFile& file) {
  CommunicationNetwork network;
  network.feature_mean = file.vector("feature_mean", kNumContextFeatures);
  network.feature_scale = file.vector("feature_scale", kNumContextFeatures);
  network.layers = layers_from(file, "layers", static_cast<int>(kNumContextFeatures));
  const int outputs = network.layers.back().outputs;
  if (outputs != static_cast<int>(kNumLastEnds)) {
    file.fail(fmt::format("layers.{}.weight", network.layers.size() - 1),
              fmt::format("{} outputs", kNumLastEnds), fmt::format("{}", outputs));
  }
  return network;
}

/// Models before this architecture predicted lower costs for more columns: they are not read.
void require_architecture(const ModelFile& file) {
  if (file.metadata("architecture") == "link-delays") {
    file.fail("__metadata__.architecture",
              fmt::format("\"{}\" (train the model again, on the same costs)", kArchitecture),
              "\"link-delays\", of an earlier version");
  }
  file.expect("architecture", kArchitecture);
  file.expect("feature_schema", std::string(kCommunicationSchema));
}

}  // namespace

std::shared_ptr<const NeuralCommunicationModel> CommunicationModelFile::of_cluster(
    const std::string& name, const std::string& place) const {
  if (name.empty() && info.clusters.size() == 1) {
    return std::make_shared<NeuralCommunicationModel>(network, info, 0);
  }
  const std::string wanted = name.empty() ? kUnnamedCluster : name;
  std::vector<std::string> names;
  for (std::size_t i = 0; i < info.clusters.size(); ++i) {
    if (info.clusters[i].interconnect.name == wanted) {
      return std::make_shared<NeuralCommunicationModel>(network, info, i);
    }
    names.push_back(info.clusters[i].interconnect.name);
  }
  throw InputError(place, fmt::format("an interconnect of the model: {}", fmt::join(names, ", ")),
                   fmt::format("\"{}\"", name));
}

CommunicationModelFile communication_model_from(const ModelFile& file, const std::string& path) {
  file.expect("kind", "communication");
  require_architecture(file);
  CommunicationModelFile model;
  model.info.name = file.metadata("name");
  model.info.data_sha256 = file.metadata("training_data_sha256");
  if (file.has_metadata(kCollectivesSha256)) {
    model.info.collectives_sha256 = file.metadata(kCollectivesSha256);
  }
  model.info.model_sha256 = sha256_file(path);
  const Json clusters = file.json("clusters");
  const std::string clusters_place = file.place("clusters");
  model.info.clusters = clusters_from(JsonReader(clusters, clusters_place));
  const Json range = file.json("range");
  const std::string range_place = file.place("range");
  read_range(JsonReader(range, range_place), model.info);
  model.info.metrics = file.numbers("metrics");
  model.network = std::make_shared<CommunicationNetwork>(network_from(file));
  return model;
}

void write_communication_model(const CommunicationNetwork& network,
                               const CommunicationModelInfo& info, const std::string& path) {
  TensorFile file;
  file.metadata = {{"format", kModelFormat},
                   {"kind", "communication"},
                   {"name", info.name},
                   {"architecture", kArchitecture},
                   {"feature_schema", std::string(kCommunicationSchema)},
                   {"training_data_sha256", info.data_sha256},
                   {"clusters", to_line(clusters_json(info.clusters))},
                   {"range", to_line(range_json(info))},
                   {"metrics", to_line(to_json(info.metrics))}};
  if (!info.collectives_sha256.empty()) {
    file.metadata[kCollectivesSha256] = info.collectives_sha256;
  }
  file.tensors["feature_mean"] = vector_tensor(network.feature_mean);
  file.tensors["feature_scale"] = vector_tensor(network.feature_scale);
  for (std::size_t i = 0; i < network.layers.size(); ++i) {
    add_layer(file, fmt::format("layers.{}", i), network.layers[i]);
  }
  write_tensors(file, path);
}

}  // namespace neuroshard
