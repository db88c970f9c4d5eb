// Training data from files of communication costs.
#include "neuroshard/train/communication/communication_dataset.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "neuroshard/core/error.h"
#include "neuroshard/core/interconnect.h"
#include "neuroshard/core/numbers/random.h"
#include "neuroshard/io/checksum.h"
#include "neuroshard/io/interconnect_io.h"
#include "neuroshard/io/json/json_reader.h"
#include "neuroshard/train/communication/interconnect_fit.h"

namespace neuroshard {

namespace {

using Eigen::Index;

/// Nor has that of a device that ends with the last start: it has nothing to send or receive.
constexpr double kSmallestShare = 1e-6;

/// The header's rates; all five fields, or none.
bool has_links(const Json& hardware) { return hardware.find("inter_host_gb_per_s") != nullptr; }

class Builder {
 public:
  explicit Builder(CommunicationDataset& dataset) : dataset_(dataset) {
    dataset_.contexts.resize(static_cast<Index>(kNumContextFeatures), 0);
    dataset_.rests_ms.resize(static_cast<Index>(kNumLastEnds), 0);
    dataset_.first_device.push_back(0);
  }

  void add_file(const CommunicationCosts& costs, const std::string& cluster,
                const Interconnect& interconnect) {
    const CommunicationCostsHeader& header = costs.header;
    const Topology topology{.world_size = header.world_size,
                            .local_world_size = header.local_world_size};
    RendezvousSchedule schedule(interconnect, topology, header.batch_size,
                                element_bytes(header.data_type));
    dataset_.files.push_back({cluster, topology, header.batch_size, header.data_type});
    const Index all_to_alls = dataset_.size() + 2 * static_cast<Index>(costs.samples.size());
    dataset_.contexts.conservativeResize(Eigen::NoChange, all_to_alls);
    dataset_.rests_ms.conservativeResize(Eigen::NoChange, all_to_alls);
    const CommunicationContext forward =
        communication_context(interconnect, topology, AllToAll::forward);
    const CommunicationContext backward =
        communication_context(interconnect, topology, AllToAll::backward);
    const std::vector<double> together(header.world_size, 0.0);
    for (const CommunicationCostSample& sample : costs.samples) {
      const std::vector<double> columns(sample.columns.begin(), sample.columns.end());
      schedule.forward(columns, sample.start_ms, ends_);
      add(schedule.links(), AllToAll::forward, forward, columns, sample.start_ms,
          sample.forward_ms);
      schedule.backward(columns, ends_);
      add(schedule.links(), AllToAll::backward, backward, columns, together, sample.backward_ms);
      ++num_samples_;
    }
  }

 private:
  /// The all-to-all whose ends are in ends_.
  void add(LinkSchedule& links, AllToAll direction, const CommunicationContext& context,
           const std::vector<double>& columns, const std::vector<double>& start_ms,
           const std::vector<double>& time_ms) {
    const Index at = dataset_.size();
    dataset_.contexts.col(at) =
        Eigen::Map<const Eigen::VectorXf>(context.data(), static_cast<Index>(context.size()));
    for (std::size_t k = 0; k < kNumLastEnds; ++k) {
      dataset_.rests_ms(static_cast<Index>(k), at) =
          static_cast<float>(std::max(ends_.rests_ms[k], kShortestMs));
    }
    link_ends_.resize(columns.size());
    links.ends(columns, start_ms, link_ends_);
    const double earliest = *std::min_element(start_ms.begin(), start_ms.end());
    for (std::size_t d = 0; d < columns.size(); ++d) {
      dataset_.columns.push_back(static_cast<float>(columns[d]));
      dataset_.start_ms.push_back(static_cast<float>(start_ms[d] - earliest));
      dataset_.lag_ms.push_back(static_cast<float>(ends_.last_start_ms - start_ms[d]));
      dataset_.share.push_back(static_cast<float>(std::max(ends_.shares[d], kSmallestShare)));
      dataset_.links_ms.push_back(static_cast<float>(link_ends_[d] - start_ms[d]));
      dataset_.time_ms.push_back(static_cast<float>(std::max(time_ms[d], kShortestMs)));
    }
    dataset_.first_device.push_back(dataset_.first_device.back() +
                                    static_cast<int>(columns.size()));
    dataset_.direction.push_back(direction);
    dataset_.sample.push_back(num_samples_);
    dataset_.file.push_back(static_cast<int>(dataset_.files.size()) - 1);
  }

  CommunicationDataset& dataset_;
  AllToAllEnds ends_;
  std::vector<double> link_ends_;
  int num_samples_ = 0;
};

std::string cluster_name(const CommunicationCostsHeader& header) {
  return header.interconnect.empty() ? kUnnamedCluster : header.interconnect;
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
    if (costs.samples.empty() && costs.collectives.empty())
      throw InputError(path, "measured samples", "none");
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
                                                 const CommunicationDataset* training,
                                                 const std::vector<TrainedCluster>& known) {
  std::map<std::string, std::vector<const CommunicationCosts*>> unknown;
  for (const CostsFile& file : files) {
    if (!has_links(file.costs.header.hardware) && !file.costs.samples.empty()) {
      unknown[cluster_name(file.costs.header)].push_back(&file.costs);
    }
  }
  std::map<std::string, Interconnect> links;
  for (const TrainedCluster& cluster : known) {
    links[cluster.interconnect.name] = cluster.interconnect;
  }
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

/// Throws InputError if the file's links are not those that its cluster has in the files before it,
/// of whatever they hold.
void require_same_links(std::map<std::string, Interconnect>& links_by_cluster,
                        const std::string& name, const Interconnect& interconnect,
                        const std::string& path) {
  const auto [known, is_new] = links_by_cluster.emplace(name, interconnect);
  if (is_new || known->second.has_links_of(interconnect)) return;
  throw InputError(path + ": hardware",
                   fmt::format("the links that \"{}\" has in the files before it", name), "others");
}

/// Adds the file's cluster to the model's clusters, or widens the range of one that it has already.
void add_cluster(CommunicationModelInfo& info, const CommunicationCostsHeader& header,
                 const Interconnect& interconnect) {
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
  int& devices_per_host = known->interconnect.devices_per_host;
  devices_per_host = std::max(devices_per_host, header.local_world_size);
  known->min_world_size = std::min(known->min_world_size, header.world_size);
  known->max_world_size = std::max(known->max_world_size, header.world_size);
}

Interconnect links_of(const CostsFile& file, const std::map<std::string, Interconnect>& fitted) {
  const CommunicationCostsHeader& header = file.costs.header;
  if (has_links(header.hardware)) {
    return links_from(JsonReader(header.hardware, file.path + ": hardware"));
  }
  const auto found = fitted.find(cluster_name(header));
  if (found == fitted.end()) {
    throw InputError(file.path,
                     fmt::format("all-to-alls of \"{}\" too, to which its links are fitted",
                                 cluster_name(header)),
                     "none");
  }
  return found->second;
}

void add_collectives(const CostsFile& file, const Interconnect& interconnect,
                     std::vector<CollectiveObservation>& collectives) {
  const CommunicationCostsHeader& header = file.costs.header;
  for (const CollectiveCostSample& sample : file.costs.collectives) {
    CollectiveObservation line;
    line.kind = sample.kind;
    line.cluster = cluster_name(header);
    line.interconnect = interconnect;
    line.topology.world_size = header.world_size;
    line.topology.local_world_size = header.local_world_size;
    line.is_simulated = has_links(header.hardware);
    line.bytes = static_cast<double>(sample.bytes);
    line.ms = *std::max_element(sample.ms.begin(), sample.ms.end());
    collectives.push_back(std::move(line));
  }
}

}  // namespace

CommunicationDataset load_communication_dataset(const std::vector<std::string>& paths,
                                                const CommunicationDataset* training,
                                                const std::vector<TrainedCluster>& known) {
  CommunicationDataset dataset;
  Builder builder(dataset);
  const std::vector<CostsFile> files = read_files(paths, training, dataset);
  const std::map<std::string, Interconnect> fitted = fitted_links(files, training, known);
  CommunicationModelInfo& info = dataset.info;
  std::map<std::string, Interconnect> links_by_cluster;
  for (const TrainedCluster& cluster : known) {
    links_by_cluster.emplace(cluster.interconnect.name, cluster.interconnect);
  }
  for (const CostsFile& file : files) {
    const CommunicationCostsHeader& header = file.costs.header;
    const Interconnect interconnect = links_of(file, fitted);
    require_same_links(links_by_cluster, cluster_name(header), interconnect, file.path);
    add_collectives(file, interconnect, dataset.collectives);
    if (file.costs.samples.empty()) continue;
    const bool first = info.clusters.empty();
    info.min_batch_size =
        first ? header.batch_size : std::min(info.min_batch_size, header.batch_size);
    info.max_batch_size =
        first ? header.batch_size : std::max(info.max_batch_size, header.batch_size);
    add_cluster(info, header, interconnect);
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
