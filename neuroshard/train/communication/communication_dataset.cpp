// Training data from files of communication costs.
#include "neuroshard/train/communication/communication_dataset.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "neuroshard/core/error.h"
#include "neuroshard/core/random.h"
#include "neuroshard/io/checksum.h"
#include "neuroshard/io/interconnect_io.h"
#include "neuroshard/io/json/json_reader.h"
#include "neuroshard/train/communication/interconnect_fit.h"

namespace neuroshard {

namespace {

using Eigen::Index;

/// Times of 0 have no logarithm; no real all-to-all of several devices is as short.
constexpr double kShortestMs = 1e-6;

/// The header's rates; all five fields, or none.
bool has_links(const Json& hardware) { return hardware.find("inter_host_gb_per_s") != nullptr; }

class Builder {
 public:
  explicit Builder(CommunicationDataset& dataset) : dataset_(dataset) {
    dataset_.features.resize(static_cast<Index>(communication_feature_names().size()), 0);
    dataset_.first_device.push_back(0);
  }

  void add_file(const CommunicationCosts& costs, const std::string& cluster,
                const Interconnect& interconnect) {
    const CommunicationCostsHeader& header = costs.header;
    const Topology topology{.world_size = header.world_size,
                            .local_world_size = header.local_world_size};
    LinkSchedule schedule(interconnect, topology, header.batch_size,
                          element_bytes(header.data_type));
    dataset_.files.push_back({cluster, topology, header.batch_size, header.data_type});
    const auto devices = static_cast<Index>(2 * costs.samples.size()) * header.world_size;
    dataset_.features.conservativeResize(Eigen::NoChange, dataset_.features.cols() + devices);
    const std::vector<double> together(header.world_size, 0.0);
    for (const CommunicationCostSample& sample : costs.samples) {
      add(schedule, AllToAll::forward, sample, sample.start_ms, sample.forward_ms);
      add(schedule, AllToAll::backward, sample, together, sample.backward_ms);
      ++num_samples_;
    }
  }

 private:
  void add(LinkSchedule& schedule, AllToAll direction, const CommunicationCostSample& sample,
           const std::vector<double>& start_ms, const std::vector<double>& time_ms) {
    const std::vector<double> columns(sample.columns.begin(), sample.columns.end());
    communication_features(schedule, direction, columns, start_ms, features_);
    const int first = dataset_.first_device.back();
    const auto count = static_cast<int>(columns.size());
    dataset_.features.middleCols(first, count) = features_.values;
    const double last = features_.last_start_ms;
    const double earliest = *std::min_element(start_ms.begin(), start_ms.end());
    for (int d = 0; d < count; ++d) {
      dataset_.columns.push_back(static_cast<float>(columns[d]));
      dataset_.start_ms.push_back(static_cast<float>(start_ms[d] - earliest));
      const double rest = std::max(features_.ends_ms[d] - last, kShortestMs);
      dataset_.lag_ms.push_back(static_cast<float>(last - start_ms[d]));
      dataset_.rest_ms.push_back(static_cast<float>(rest));
      dataset_.time_ms.push_back(static_cast<float>(std::max(time_ms[d], kShortestMs)));
    }
    dataset_.first_device.push_back(first + count);
    dataset_.direction.push_back(direction);
    dataset_.sample.push_back(num_samples_);
    dataset_.file.push_back(static_cast<int>(dataset_.files.size()) - 1);
  }

  CommunicationDataset& dataset_;
  CommunicationFeatures features_;
  int num_samples_ = 0;
};

std::string cluster_name(const CommunicationCostsHeader& header) {
  return header.interconnect.empty() ? "measured" : header.interconnect;
}

struct CostsFile {
  std::string path;
  CommunicationCosts costs;
};

std::vector<CostsFile> read_files(const std::vector<std::string>& paths,
                                  const CommunicationDataset* training,
                                  CommunicationDataset& dataset) {
  std::vector<CostsFile> files;
  std::string checksums;
  for (const std::string& path : paths) {
    files.push_back({path, read_communication_costs(path)});
    const std::string checksum = sha256_file(path);
    checksums += checksum;
    const auto [other, is_new] = dataset.path_by_checksum.emplace(checksum, path);
    if (!is_new) throw InputError(path, "a file not given before", "the bytes of " + other->second);
    if (training != nullptr && training->path_by_checksum.contains(checksum)) {
      throw InputError(path, "a file that is not trained on",
                       "the bytes of " + training->path_by_checksum.at(checksum));
    }
    const CommunicationCosts& costs = files.back().costs;
    if (costs.samples.empty()) throw InputError(path, "measured samples", "none");
    if (costs.header.world_size < 2) {
      throw InputError(path + ": topology.world_size", "at least 2 devices",
                       fmt::format("{}", costs.header.world_size));
    }
  }
  dataset.info.data_sha256 = sha256_hex(checksums);
  return files;
}

/// The links of the clusters whose headers do not have them.
std::map<std::string, Interconnect> fitted_links(const std::vector<CostsFile>& files,
                                                 const CommunicationDataset* training) {
  std::map<std::string, std::vector<const CommunicationCosts*>> unknown;
  for (const CostsFile& file : files) {
    if (!has_links(file.costs.header.hardware)) {
      unknown[cluster_name(file.costs.header)].push_back(&file.costs);
    }
  }
  std::map<std::string, Interconnect> links;
  if (training != nullptr) {
    for (const TrainedCluster& cluster : training->info.clusters) {
      links[cluster.interconnect.name] = cluster.interconnect;
    }
  }
  for (const auto& [name, own] : unknown) {
    if (!links.contains(name)) links[name] = fit_interconnect(own);
  }
  return links;
}

/// Adds the file's cluster to the model's clusters, or widens the range of one that it has already.
void add_cluster(CommunicationModelInfo& info, const CommunicationCostsHeader& header,
                 const Interconnect& interconnect, const std::string& path) {
  const std::string name = cluster_name(header);
  const auto known =
      std::find_if(info.clusters.begin(), info.clusters.end(),
                   [&](const TrainedCluster& other) { return other.interconnect.name == name; });
  if (known == info.clusters.end()) {
    info.clusters.push_back({.interconnect = interconnect,
                             .hardware = to_line(header.hardware),
                             .min_world_size = header.world_size,
                             .max_world_size = header.world_size});
    info.clusters.back().interconnect.name = name;
    info.clusters.back().interconnect.devices_per_host = header.local_world_size;
    return;
  }
  if (!known->interconnect.has_links_of(interconnect)) {
    throw InputError(path + ": hardware",
                     fmt::format("the links that \"{}\" has in the files before it", name),
                     "others");
  }
  int& devices_per_host = known->interconnect.devices_per_host;
  devices_per_host = std::max(devices_per_host, header.local_world_size);
  known->min_world_size = std::min(known->min_world_size, header.world_size);
  known->max_world_size = std::max(known->max_world_size, header.world_size);
}

}  // namespace

CommunicationDataset load_communication_dataset(const std::vector<std::string>& paths,
                                                const CommunicationDataset* training) {
  CommunicationDataset dataset;
  Builder builder(dataset);
  const std::vector<CostsFile> files = read_files(paths, training, dataset);
  const std::map<std::string, Interconnect> fitted = fitted_links(files, training);
  CommunicationModelInfo& info = dataset.info;
  for (const CostsFile& file : files) {
    const CommunicationCostsHeader& header = file.costs.header;
    const Interconnect interconnect =
        has_links(header.hardware)
            ? links_from(JsonReader(header.hardware, file.path + ": hardware"))
            : fitted.at(cluster_name(header));
    const bool first = info.clusters.empty();
    info.min_batch_size =
        first ? header.batch_size : std::min(info.min_batch_size, header.batch_size);
    info.max_batch_size =
        first ? header.batch_size : std::max(info.max_batch_size, header.batch_size);
    add_cluster(info, header, interconnect, file.path);
    builder.add_file(file.costs, cluster_name(header), interconnect);
  }
  return dataset;
}

CommunicationSplit split_dataset(const CommunicationDataset& dataset, std::uint64_t seed) {
  std::vector<int> samples(dataset.size() == 0 ? 0 : dataset.sample.back() + 1);
  for (std::size_t i = 0; i < samples.size(); ++i) samples[i] = static_cast<int>(i);
  Random random(seed);
  random.shuffle(samples);
  const std::size_t tenth = samples.size() / 10;
  std::vector<int> part(samples.size(), 0);
  for (std::size_t i = 0; i < 2 * tenth; ++i) part[samples[i]] = i < tenth ? 1 : 2;
  CommunicationSplit split;
  for (int i = 0; i < dataset.size(); ++i) {
    const int use = part[dataset.sample[i]];
    (use == 0 ? split.training : use == 1 ? split.validation : split.test).push_back(i);
  }
  return split;
}

}  // namespace neuroshard
