// Predictions of every sample of the training's files, and their errors by what they are of.
#include "neuroshard/report/page/training_data.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <set>
#include <utility>

#include "neuroshard/core/error.h"
#include "neuroshard/core/units.h"
#include "neuroshard/io/communication_costs_io.h"
#include "neuroshard/io/compute_costs_io.h"
#include "neuroshard/train/communication/communication_model_test.h"
#include "neuroshard/train/compute/model_test.h"

namespace neuroshard {

namespace {

/// Sums of the errors of groups, by name.
class Groups {
 public:
  void add(const std::string& name, double predicted_ms, double measured_ms) {
    if (!(measured_ms > 0.0)) return;
    GroupErrors& group = by_name_[name];
    const double error = predicted_ms / measured_ms - 1.0;
    ++group.samples;
    group.mape += std::abs(error);
    group.bias += error;
  }

  [[nodiscard]] std::vector<GroupErrors> means() const {
    std::vector<GroupErrors> groups;
    for (const auto& [name, sums] : by_name_) {
      const auto count = static_cast<double>(sums.samples);
      groups.push_back({name, sums.samples, sums.mape / count, sums.bias / count});
    }
    return groups;
  }

 private:
  std::map<std::string, GroupErrors> by_name_;
};

void keep_metrics(std::vector<PartMetrics>& parts) {
  std::erase_if(parts, [](const PartMetrics& part) { return part.metrics.count == 0; });
}

/// Samples at equal distances, so that there are not too many.
void set_samples(std::vector<PredictedSample> samples, TrainingReportData& data) {
  data.num_samples = samples.size();
  const std::size_t step = (samples.size() + kMaxShownSamples - 1) / kMaxShownSamples;
  for (std::size_t i = 0; i < samples.size(); i += std::max<std::size_t>(step, 1)) {
    data.samples.push_back(samples[i]);
  }
}

/// The part of the split that each sample of a dataset is in; -1: none.
std::vector<int> split_of_samples(const ComputeDataset& dataset, std::uint64_t seed) {
  const DatasetSplit split = split_dataset(dataset, seed);
  std::vector<int> parts(dataset.size(), -1);
  int part = 0;
  for (const auto* indices :
       {&split.training, &split.validation, &split.unseen_combinations, &split.unseen_tables}) {
    for (const int index : *indices) parts[static_cast<std::size_t>(index)] = part;
    ++part;
  }
  return parts;
}

/// How many samples the dataset has of file number `file`.
std::size_t samples_of_file(const ComputeDataset& dataset, std::size_t file) {
  const std::size_t next = file + 1;
  const std::size_t end =
      next < dataset.first_sample.size() ? dataset.first_sample[next] : dataset.size();
  return end - dataset.first_sample[file];
}

/// Throws InputError for a file that has lost samples. One that has gained some, as of a collection
/// that goes on, still begins with those that were trained on.
void require_samples(const std::string& path, std::size_t trained_on, std::size_t found) {
  if (found >= trained_on) return;
  throw InputError(path,
                   fmt::format("the {} that were trained on",
                               format_count(static_cast<std::int64_t>(trained_on), "sample")),
                   fmt::format("{}", found));
}

double mean_width(const ComputeCostSample& sample) {
  double columns = 0.0;
  for (const Piece& piece : sample.pieces) columns += static_cast<double>(piece.num_columns);
  return columns / static_cast<double>(sample.pieces.size());
}

bool has_cluster(const CommunicationModelFile& model, const std::string& name) {
  return std::any_of(model.info.clusters.begin(), model.info.clusters.end(),
                     [&](const auto& cluster) { return cluster.interconnect.name == name; });
}

void add_file(const CommunicationModelFile& model, const std::string& path,
              const std::string& suffix, std::map<std::string, int>& parts, Groups& groups,
              std::vector<PredictedSample>& samples) {
  const CommunicationCostsHeader header = read_communication_costs(path).header;
  // All-reduces and partial sums alone, of a cluster whose links no all-to-all gives.
  if (!header.interconnect.empty() && !has_cluster(model, header.interconnect)) return;
  const std::string group =
      fmt::format("{}, {} devices", header.interconnect.empty() ? path : header.interconnect,
                  header.world_size);
  for (const FileTest& test : test_communication_model(model, path)) {
    const int part =
        parts.emplace(test.kind + suffix, static_cast<int>(parts.size())).first->second;
    for (const TestedSample& sample : test.result.samples) {
      samples.push_back({sample.predicted_ms, sample.measured_ms, part, header.batch_size, 0.0});
      groups.add(group + ": " + test.kind, sample.predicted_ms, sample.measured_ms);
    }
  }
}

}  // namespace

TrainingReportData training_report_data(const ComputeTrainingResult& result,
                                        const ComputeDataset& dataset,
                                        const std::vector<std::string>& paths, std::uint64_t seed,
                                        const std::string& model) {
  TrainingReportData data;
  data.model = model;
  data.kind = "compute";
  data.metrics = {{"training", result.training},
                  {"validation", result.validation},
                  {"unseen combinations", result.unseen_combinations},
                  {"unseen tables", result.unseen_tables}};
  for (const PartMetrics& part : data.metrics) data.parts.push_back(part.name);
  keep_metrics(data.metrics);
  data.epochs = result.epochs;
  data.best_epochs = result.best_epochs;
  data.group_title = "table";
  const std::vector<int> parts = split_of_samples(dataset, seed);
  Groups groups;
  std::vector<PredictedSample> samples;
  for (std::size_t file = 0; file < paths.size(); ++file) {
    const std::size_t count = samples_of_file(dataset, file);
    if (count == 0) continue;
    const ComputeCosts costs = read_compute_costs(paths[file]);
    require_samples(paths[file], count, costs.samples.size());
    const ModelTest test = test_compute_model(*result.model, paths[file]);
    require_samples(paths[file], count, test.samples.size());
    for (std::size_t i = 0; i < count; ++i) {
      const double predicted_ms = test.samples[i].predicted_ms;
      const std::size_t number = dataset.first_sample[file] + i;
      const double measured_ms = dataset.cost_ms[number];  // brought to the first folder's speed
      const int part = parts[number];
      if (part < 0) continue;
      samples.push_back(
          {predicted_ms, measured_ms, part, costs.header.batch_size, mean_width(costs.samples[i])});
      std::set<int> tables;
      for (const Piece& piece : costs.samples[i].pieces) {
        if (!tables.insert(piece.table).second) continue;
        groups.add(costs.header.tables[static_cast<std::size_t>(piece.table)].name, predicted_ms,
                   measured_ms);
      }
    }
  }
  set_samples(std::move(samples), data);
  data.groups = groups.means();
  return data;
}

TrainingReportData training_report_data(const CommunicationTrainingResult& result,
                                        const std::vector<std::string>& paths,
                                        const std::vector<std::string>& held_out,
                                        const std::string& model) {
  TrainingReportData data;
  data.model = model;
  data.kind = "communication";
  data.metrics = {{"training, forward", result.training.forward},
                  {"training, backward", result.training.backward},
                  {"validation, forward", result.validation.forward},
                  {"validation, backward", result.validation.backward},
                  {"unseen placements, forward", result.unseen_placements.forward},
                  {"unseen placements, backward", result.unseen_placements.backward},
                  {"held out, forward", result.held_out.forward},
                  {"held out, backward", result.held_out.backward}};
  keep_metrics(data.metrics);
  data.epochs = result.epochs;
  data.best_epochs = {result.best_epoch};
  data.group_title = "cluster and number of devices";
  CommunicationModelFile file{result.network, result.info};
  for (const TrainedCluster& cluster : result.held_out_clusters) {
    if (!has_cluster(file, cluster.interconnect.name)) file.info.clusters.push_back(cluster);
  }
  std::map<std::string, int> parts;
  Groups groups;
  std::vector<PredictedSample> samples;
  for (const std::string& path : paths) add_file(file, path, "", parts, groups, samples);
  for (const std::string& path : held_out) {
    add_file(file, path, " (held out)", parts, groups, samples);
  }
  data.parts.resize(parts.size());
  for (const auto& [name, part] : parts) data.parts[static_cast<std::size_t>(part)] = name;
  set_samples(std::move(samples), data);
  data.groups = groups.means();
  return data;
}

}  // namespace neuroshard
