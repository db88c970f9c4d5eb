// The training of the communication cost model.
#include "neuroshard/train/communication/communication_trainer.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>
#include <span>
#include <utility>

#include "neuroshard/core/error.h"
#include "neuroshard/train/communication/trainable_communication_network.h"
#include "neuroshard/train/standardisation.h"

namespace neuroshard {

namespace {

using Eigen::Index;
using Eigen::VectorXf;

/// Fewer samples cannot be split into training, validation and test.
constexpr int kFewestSamples = 30;

AllToAllBatch make_batch(const CommunicationDataset& dataset, std::span<const int> samples,
                         const Standardisation& standard) {
  const auto count = static_cast<Index>(samples.size());
  AllToAllBatch batch;
  batch.contexts.resize(dataset.contexts.rows(), count);
  batch.rests_ms.resize(dataset.rests_ms.rows(), count);
  batch.first_device.push_back(0);
  for (Index i = 0; i < count; ++i) {
    const int sample = samples[static_cast<std::size_t>(i)];
    batch.contexts.col(i) =
        (dataset.contexts.col(sample) - standard.mean).cwiseProduct(standard.scale);
    batch.rests_ms.col(i) = dataset.rests_ms.col(sample);
    batch.first_device.push_back(batch.first_device.back() + dataset.first_device[sample + 1] -
                                 dataset.first_device[sample]);
  }
  for (VectorXf* values : {&batch.lag_ms, &batch.share, &batch.target_ms}) {
    values->resize(batch.first_device.back());
  }
  for (std::size_t i = 0; i < samples.size(); ++i) {
    const int from = dataset.first_device[samples[i]];
    for (int to = batch.first_device[i], d = from; to < batch.first_device[i + 1]; ++to, ++d) {
      batch.lag_ms[to] = dataset.lag_ms[d];
      batch.share[to] = dataset.share[d];
      batch.target_ms[to] = dataset.time_ms[d];
    }
  }
  return batch;
}

/// Of the contexts, which have one column for each all-to-all.
Standardisation standardise_contexts(const CommunicationDataset& dataset,
                                     const std::vector<int>& samples) {
  std::vector<int> columns(static_cast<std::size_t>(dataset.size()) + 1);
  std::iota(columns.begin(), columns.end(), 0);
  return standardise(dataset.contexts, columns, samples);
}

class Trainer {
 public:
  Trainer(const CommunicationDataset& dataset, const CommunicationTrainingOptions& options)
      : dataset_(dataset),
        options_(options),
        split_(split_dataset(dataset, options.seed)),
        standard_(standardise_contexts(dataset, split_.training)),
        random_(Random::for_stream(options.seed, 1)),
        network_(static_cast<int>(dataset.contexts.rows()), random_),
        pool_(options.num_threads) {}

  CommunicationTrainingResult run(const CommunicationDataset& held_out,
                                  const std::function<void(const EpochStats&)>& on_epoch) {
    TrainingSubject subject;
    subject.parameters = &network_.parameters();
    subject.samples = split_.training;
    subject.loss_and_gradients = [this](std::span<const int> samples, Parameters& gradients) {
      return network_.loss_and_gradients(make_batch(dataset_, samples, standard_), gradients);
    };
    subject.validation_mape = [this] {
      const CommunicationMetrics validation = metrics(dataset_, split_.validation);
      return 0.5 * (validation.forward.mape + validation.backward.mape);
    };
    TrainingLoopResult loop = run_training_loop(subject, options_.loop, random_, pool_, on_epoch);
    CommunicationTrainingResult result;
    result.best_epoch = loop.best_epoch;
    result.epochs = std::move(loop.epochs);
    result.seconds = loop.seconds;
    result.training = metrics(dataset_, split_.training);
    result.validation = metrics(dataset_, split_.validation);
    result.unseen_placements = metrics(dataset_, split_.test);
    result.links_unseen_placements = metrics_of_links(dataset_, split_.test);
    std::vector<int> all(held_out.size());
    std::iota(all.begin(), all.end(), 0);
    result.held_out = metrics(held_out, all);
    result.links_held_out = metrics_of_links(held_out, all);
    result.network =
        std::make_shared<CommunicationNetwork>(network_.exported(standard_.mean, standard_.scale));
    result.info = info(result);
    return result;
  }

 private:
  /// `predict` gives the times of a block of all-to-alls, device by device.
  template <typename Predict>
  CommunicationMetrics metrics_of(const CommunicationDataset& dataset,
                                  const std::vector<int>& samples, const Predict& predict) {
    constexpr std::size_t kBlock = 64;
    const std::size_t blocks = (samples.size() + kBlock - 1) / kBlock;
    std::vector<VectorXf> predicted(blocks);
    pool_.for_each(blocks, [&](std::size_t block, int) {
      const std::size_t first = block * kBlock;
      predicted[block] =
          predict(std::span(samples).subspan(first, std::min(kBlock, samples.size() - first)));
    });
    std::vector<double> times;
    for (const VectorXf& block : predicted) times.insert(times.end(), block.begin(), block.end());
    return communication_metrics(dataset, samples, times);
  }

  CommunicationMetrics metrics(const CommunicationDataset& dataset,
                               const std::vector<int>& samples) {
    return metrics_of(dataset, samples, [&](std::span<const int> block) {
      return network_.predict(make_batch(dataset, block, standard_));
    });
  }

  CommunicationMetrics metrics_of_links(const CommunicationDataset& dataset,
                                        const std::vector<int>& samples) {
    return metrics_of(dataset, samples, [&](std::span<const int> block) {
      std::vector<float> times;
      for (const int sample : block) {
        times.insert(times.end(), dataset.links_ms.begin() + dataset.first_device[sample],
                     dataset.links_ms.begin() + dataset.first_device[sample + 1]);
      }
      return VectorXf(Eigen::Map<const VectorXf>(times.data(), static_cast<Index>(times.size())));
    });
  }

  [[nodiscard]] CommunicationModelInfo info(const CommunicationTrainingResult& result) const {
    CommunicationModelInfo info = dataset_.info;
    info.name = options_.name.empty() ? "communication" : options_.name;
    const auto add = [&](const std::string& set, const CommunicationMetrics& metrics) {
      const auto add_direction = [&](const char* direction, const PredictionMetrics& values) {
        if (values.count == 0) return;
        const std::string prefix = fmt::format("{}.{}.", set, direction);
        info.metrics[prefix + "devices"] = static_cast<double>(values.count);
        info.metrics[prefix + "mape"] = values.mape;
        info.metrics[prefix + "kendall_tau"] = values.kendall_tau.value_or(0.0);
      };
      add_direction("forward", metrics.forward);
      add_direction("backward", metrics.backward);
    };
    add("training", result.training);
    add("validation", result.validation);
    add("unseen_placements", result.unseen_placements);
    add("held_out", result.held_out);
    info.metrics["best_epoch"] = result.best_epoch;
    info.metrics["seed"] = static_cast<double>(options_.seed);
    return info;
  }

  const CommunicationDataset& dataset_;
  CommunicationTrainingOptions options_;
  CommunicationSplit split_;
  Standardisation standard_;
  Random random_;
  TrainableCommunicationNetwork network_;
  ThreadPool pool_;
};

void require_known_clusters(const CollectiveFit& fit, const CommunicationModelInfo& info) {
  for (const auto& [name, weights] : fit.clusters) {
    const bool is_known = std::any_of(
        info.clusters.begin(), info.clusters.end(),
        [&, &wanted = name](const auto& known) { return known.interconnect.name == wanted; });
    if (!is_known) {
      throw InputError("costs", fmt::format("all-to-alls of \"{}\" too", name),
                       "all-reduces or partial sums alone");
    }
  }
}

}  // namespace

ExtendedCommunicationModel extend_communication_model(const CommunicationModelInfo& model,
                                                      const CommunicationDataset& dataset,
                                                      const CommunicationDataset& held_out,
                                                      std::uint64_t seed) {
  if (dataset.size() > 0) {
    throw InputError("costs", "all-reduces and partial sums alone, to keep the model's all-to-alls",
                     fmt::format("{} samples of all-to-alls", dataset.size() / 2));
  }
  if (dataset.collectives.empty()) throw InputError("costs", "all-reduces or partial sums", "none");
  ExtendedCommunicationModel extended{
      model, fit_collectives(dataset.collectives, held_out.collectives, seed)};
  require_known_clusters(extended.collectives, model);
  add_to_model(extended.collectives, extended.info);
  extended.info.collectives_sha256 = dataset.info.data_sha256;
  return extended;
}

CommunicationTrainingResult train_communication_model(
    const CommunicationDataset& dataset, const CommunicationDataset& held_out,
    const CommunicationTrainingOptions& options,
    const std::function<void(const EpochStats&)>& on_epoch) {
  // First, as it takes no time to find a mistake.
  CollectiveFit collectives =
      fit_collectives(dataset.collectives, held_out.collectives, options.seed);
  require_known_clusters(collectives, dataset.info);
  const int samples = dataset.size() / 2;
  if (samples < kFewestSamples) {
    throw InputError("costs", fmt::format("at least {} samples to train on", kFewestSamples),
                     fmt::format("{}", samples));
  }
  CommunicationTrainingResult result = Trainer(dataset, options).run(held_out, on_epoch);
  add_to_model(collectives, result.info);
  result.collectives = std::move(collectives);
  result.held_out_clusters = held_out.info.clusters;
  return result;
}

}  // namespace neuroshard
