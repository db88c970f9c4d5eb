// Measured or simulated all-to-alls as training data: what the schedule says of them, times, the
// split.
#pragma once

#include <Eigen/Core>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "neuroshard/cost/communication/neural_communication_model.h"
#include "neuroshard/io/communication_costs_io.h"
#include "neuroshard/train/communication/collective_fit.h"

namespace neuroshard {

/// The properties that all all-to-alls of a file share.
struct CommunicationFile {
  std::string cluster;  ///< name of its interconnect
  Topology topology;
  std::int64_t batch_size = 0;
  DataType data_type = DataType::fp32;
};

/// All-to-alls, forward and backward ones, of one or several clusters and numbers of devices.
struct CommunicationDataset {
  Eigen::MatrixXf contexts;         ///< features x all-to-alls, not standardised
  Eigen::MatrixXf rests_ms;         ///< AllToAllEnds::rests_ms x all-to-alls
  std::vector<int> first_device;    ///< all-to-all i has devices [first_device[i], [i + 1])
  std::vector<float> columns;       ///< sum of columns on each device
  std::vector<float> start_ms;      ///< of each device after the earliest
  std::vector<float> lag_ms;        ///< of each device behind the last one's start
  std::vector<float> share;         ///< of each device: AllToAllEnds::shares
  std::vector<float> links_ms;      ///< from its own entry to its own end, by LinkSchedule alone
  std::vector<float> time_ms;       ///< measured, from its own entry to its own end
  std::vector<AllToAll> direction;  ///< of each all-to-all
  std::vector<int> sample;          ///< of each all-to-all: both of a sample are on one side
  std::vector<int> file;            ///< of each all-to-all: an index into `files`
  std::vector<CommunicationFile> files;
  std::vector<CollectiveObservation> collectives;  ///< all-reduces and additions of partial sums
  CommunicationModelInfo info;                     ///< clusters, range and checksum
  std::map<std::string, std::string> path_by_checksum;  ///< of the files

  [[nodiscard]] int size() const { return static_cast<int>(direction.size()); }
};

/// A cluster's links are those in its files' headers. If the headers have none, because the cluster
/// is real or described by the user, its links are those of the cluster of that name in `training`,
/// or of `known`, or else are fitted to all its all-to-alls. Throws InputError if a file is
/// malformed, empty, given twice or one of `training`'s, if two files, or a file and `known`, give
/// a cluster of a name different links, or if there are no all-to-alls to fit links to.
[[nodiscard]] CommunicationDataset load_communication_dataset(
    const std::vector<std::string>& paths, const CommunicationDataset* training = nullptr,
    const std::vector<TrainedCluster>& known = {});

struct CommunicationSplit {  ///< indices of all-to-alls
  std::vector<int> training;
  std::vector<int> validation;
  std::vector<int> test;
};

/// 80/10/10 of the samples.
[[nodiscard]] CommunicationSplit split_dataset(const CommunicationDataset& dataset,
                                               std::uint64_t seed);

}  // namespace neuroshard
