// The published communication networks, trained as published, and the analytic model.
#include "neuroshard/paper/communication_baselines.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <limits>
#include <map>
#include <mutex>
#include <numeric>
#include <tuple>

#include "neuroshard/core/interconnect.h"
#include "neuroshard/cost/communication/analytic_communication.h"

namespace neuroshard {

namespace {

using Eigen::Index;
using Eigen::MatrixXf;
using Eigen::VectorXf;

const std::vector<int> kPublishedLayers{128, 64, 32, 16};
/// Marks a time that a set of networks cannot predict.
constexpr double kNoAnswer = std::numeric_limits<double>::quiet_NaN();

/// The all-to-alls that share a network.
struct Group {
  std::vector<int> training;
  std::vector<int> validation;
  std::vector<int> test;
};

/// Cluster, devices, devices per host, direction.
using GroupKey = std::tuple<std::string, int, int, AllToAll>;

std::map<GroupKey, Group> groups_of(const CommunicationDataset& dataset,
                                    const CommunicationSplit& split) {
  std::map<GroupKey, Group> groups;
  const auto add = [&](const std::vector<int>& samples, std::vector<int> Group::*part) {
    for (const int sample : samples) {
      const CommunicationFile& file = dataset.files[dataset.file[sample]];
      const GroupKey key{file.cluster, file.topology.world_size, file.topology.local_world_size,
                         dataset.direction[sample]};
      (groups[key].*part).push_back(sample);
    }
  };
  add(split.training, &Group::training);
  add(split.validation, &Group::validation);
  add(split.test, &Group::test);
  return groups;
}

/// One of the published networks: devices' bytes and starts in, devices' times out.
class PublishedNetwork {
 public:
  PublishedNetwork(const CommunicationDataset& dataset, const Group& group, Random& random)
      : dataset_(dataset), group_(group), random_(random), layers_(make_layers()) {
    MatrixXf inputs;
    MatrixXf targets;
    read(group.training, inputs, targets);
    mean_ = inputs.rowwise().mean();
    const VectorXf deviation =
        ((inputs.colwise() - mean_).array().square().rowwise().mean().sqrt());
    scale_ = (deviation.array() > 1e-6F).select(deviation.cwiseInverse(), 0.0F);
    unit_ms_ = targets.mean();
  }

  void train(const TrainingLoopOptions& options) {
    TrainingSubject subject;
    subject.parameters = &parameters_;
    subject.samples = group_.training;
    subject.loss_and_gradients = [this](std::span<const int> samples, Parameters& gradients) {
      return loss_and_gradients(samples, gradients);
    };
    subject.validation_mape = [this] {
      std::vector<double> predicted;
      std::vector<double> measured;
      predict(group_.validation, predicted);
      for (const int sample : group_.validation) {
        const auto first = dataset_.time_ms.begin() + dataset_.first_device[sample];
        measured.insert(measured.end(), first, first + num_devices());
      }
      return prediction_metrics(predicted, measured).mape;
    };
    ThreadPool own(1);  // networks are trained in parallel
    (void)run_training_loop(subject, options, random_, own, {});
  }

  /// Appends the times of the samples' devices [ms].
  void predict(std::span<const int> samples, std::vector<double>& times_ms) const {
    MatrixXf inputs;
    MatrixXf targets;
    read(samples, inputs, targets);
    DenseActivations activations;
    layers_.forward(parameters_, standardised(inputs), activations);
    for (const float value : activations.output.reshaped()) times_ms.push_back(value * unit_ms_);
  }

 private:
  [[nodiscard]] int num_devices() const {
    const int sample = group_.training.front();
    return dataset_.first_device[sample + 1] - dataset_.first_device[sample];
  }

  DenseLayers make_layers() {
    std::vector<int> outputs = kPublishedLayers;
    outputs.push_back(num_devices());
    return {2 * num_devices(), outputs, false, random_, parameters_};
  }

  /// Columns are samples; below the megabytes that each device sends the starts.
  void read(std::span<const int> samples, MatrixXf& inputs, MatrixXf& targets) const {
    const Index devices = num_devices();
    inputs.resize(2 * devices, static_cast<Index>(samples.size()));
    targets.resize(devices, static_cast<Index>(samples.size()));
    for (Index i = 0; i < inputs.cols(); ++i) {
      const int sample = samples[i];
      const CommunicationFile& file = dataset_.files[dataset_.file[sample]];
      const auto column_megabytes =
          static_cast<float>(element_bytes(file.data_type) * file.batch_size) * 1e-6F;
      for (Index d = 0; d < devices; ++d) {
        const Index at = dataset_.first_device[sample] + d;
        inputs(d, i) = dataset_.columns[at] * column_megabytes;
        inputs(devices + d, i) = dataset_.start_ms[at];
        targets(d, i) = dataset_.time_ms[at];
      }
    }
  }

  [[nodiscard]] MatrixXf standardised(const MatrixXf& inputs) const {
    return ((inputs.colwise() - mean_).array().colwise() * scale_.array()).matrix();
  }

  double loss_and_gradients(std::span<const int> samples, Parameters& gradients) const {
    MatrixXf inputs;
    MatrixXf targets;
    read(samples, inputs, targets);
    DenseActivations activations;
    layers_.forward(parameters_, standardised(inputs), activations);
    const MatrixXf error = activations.output - targets / unit_ms_;
    gradients.resize(parameters_.size());
    const float per_device = 1.0F / static_cast<float>(num_devices());
    (void)layers_.backward(parameters_, activations, 2.0F * per_device * error, gradients);
    return error.squaredNorm() * per_device;
  }

  const CommunicationDataset& dataset_;
  const Group& group_;
  Random& random_;
  Parameters parameters_;
  DenseLayers layers_;
  VectorXf mean_;
  VectorXf scale_;
  float unit_ms_ = 1.0F;
};

/// Times of the samples by the analytic model; kNoAnswer where there is no preset.
void predict_analytically(const CommunicationDataset& dataset, int sample,
                          std::vector<double>& times_ms) {
  const CommunicationFile& file = dataset.files[dataset.file[sample]];
  const auto presets = interconnects();
  const auto preset = std::find_if(presets.begin(), presets.end(), [&](const Interconnect& other) {
    return other.name == file.cluster;
  });
  const int first = dataset.first_device[sample];
  const int count = dataset.first_device[sample + 1] - first;
  std::vector<double> times(count, kNoAnswer);
  if (preset != presets.end()) {
    const AnalyticCommunicationModel model(*preset);
    // The model is of fp32.
    const double width = static_cast<double>(element_bytes(file.data_type)) / 4.0;
    std::vector<double> columns;
    for (int d = 0; d < count; ++d) columns.push_back(dataset.columns[first + d] * width);
    const std::vector<double> start(dataset.start_ms.begin() + first,
                                    dataset.start_ms.begin() + first + count);
    if (dataset.direction[sample] == AllToAll::forward) {
      model.forward(file.topology, file.batch_size, columns, start, times);
    } else {
      model.backward(file.topology, file.batch_size, columns, times);
    }
  }
  times_ms.insert(times_ms.end(), times.begin(), times.end());
}

/// Of the samples that got an answer.
CommunicationMetrics metrics_of_answers(const CommunicationDataset& dataset,
                                        const std::vector<int>& samples,
                                        const std::function<std::vector<double>(int)>& predict) {
  std::vector<int> answered;
  std::vector<double> times;
  for (const int sample : samples) {
    const std::vector<double> own = predict(sample);
    if (own.empty() || std::isnan(own.front())) continue;
    answered.push_back(sample);
    times.insert(times.end(), own.begin(), own.end());
  }
  return communication_metrics(dataset, answered, times);
}

CommunicationMetrics analytic_metrics(const CommunicationDataset& dataset,
                                      const std::vector<int>& samples) {
  return metrics_of_answers(dataset, samples, [&](int sample) {
    std::vector<double> times;
    predict_analytically(dataset, sample, times);
    return times;
  });
}

}  // namespace

CommunicationBaselines communication_baselines(
    const CommunicationDataset& dataset, const CommunicationDataset& held_out,
    const CommunicationBaselineOptions& options,
    const std::function<void(int done, int all)>& on_network) {
  const auto start = std::chrono::steady_clock::now();
  const CommunicationSplit split = split_dataset(dataset, options.seed);
  CommunicationBaselines result;
  result.analytic_unseen_placements = analytic_metrics(dataset, split.test);
  std::vector<int> all(held_out.size());
  std::iota(all.begin(), all.end(), 0);
  result.analytic_held_out = analytic_metrics(held_out, all);

  // Those that can be trained, tuned and tested.
  std::vector<Group> groups;
  for (auto& [key, group] : groups_of(dataset, split)) {
    if (!group.training.empty() && !group.validation.empty() && !group.test.empty()) {
      groups.push_back(std::move(group));
    }
  }
  std::map<int, std::vector<double>> by_sample;
  std::mutex mutex;
  int done = 0;
  ThreadPool pool(options.num_threads);
  pool.for_each(groups.size(), [&](std::size_t g, int) {
    Random random = Random::for_stream(options.seed, 2 + g);
    PublishedNetwork network(dataset, groups[g], random);
    network.train(options.loop);
    std::map<int, std::vector<double>> predicted;
    for (const int sample : groups[g].test) {
      network.predict(std::span(&sample, 1), predicted[sample]);
    }
    const std::lock_guard lock(mutex);
    by_sample.merge(predicted);
    if (on_network) on_network(++done, static_cast<int>(groups.size()));
  });
  result.published_networks = static_cast<int>(groups.size());
  result.published_unseen_placements =
      metrics_of_answers(dataset, split.test, [&](int sample) { return by_sample[sample]; });
  result.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  return result;
}

}  // namespace neuroshard
