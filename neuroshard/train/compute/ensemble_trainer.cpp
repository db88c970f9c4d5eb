// The training loop of each network, the figures of all of them, and the model that they are.
#include "neuroshard/train/compute/ensemble_trainer.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <iterator>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>

#include "neuroshard/core/machine/parallel.h"
#include "neuroshard/core/numbers/median.h"
#include "neuroshard/core/numbers/random.h"
#include "neuroshard/cost/compute/trained_range.h"
#include "neuroshard/train/compute/dataset_batch.h"
#include "neuroshard/train/compute/estimate_fit.h"
#include "neuroshard/train/standardisation.h"

namespace neuroshard {

namespace {

using Eigen::Index;
using Eigen::MatrixXf;
using Eigen::VectorXf;

/// A network's first weights are fitted to this many training samples, or to fewer that have this
/// many pieces together.
constexpr std::size_t kFirstSamples = 1024;
constexpr int kFirstPieces = 32'768;
class EnsembleTrainer {
  using Clock = std::chrono::steady_clock;

 public:
  EnsembleTrainer(const ComputeDataset& dataset, const ComputeTrainingOptions& options,
                  DatasetSplit split)
      : dataset_(dataset),
        options_(options),
        split_(std::move(split)),
        features_(dataset.features),
        num_measured_(dataset.size() -
                      (options.initial && options.unmeasured ? options.unmeasured->size() : 0)),
        pool_(options.num_threads),
        start_(Clock::now()) {
    if (options.initial) {
      begin_with(*options.initial, *options.adaptation);
      return;
    }
    if (options.architecture == ComputeArchitecture::bounded_loads) {
      estimate_ = fitted_estimate();
      set_estimate(estimate_, dataset.work, features_);
    } else {
      double sum = 0.0;
      for (const int sample : split_.training) sum += dataset.cost_ms[sample];
      scale_ = sum / static_cast<double>(split_.training.size());
    }
    standard_ = standardise(features_, dataset.first_piece, split_.training);
  }

  /// `unseen`: costs of planned sets by trainings that did not see them; empty: there were none.
  ComputeTrainingResult run(EpochReport& report, std::vector<PlannedCost> unseen = {}) {
    report.expect(options_.members * options_.loop.epochs);
    ComputeTrainingResult result;
    std::vector<TrainableNetwork> members = train_members(result, report);
    result.seconds = seconds();
    result.training = metrics(members, measured_of(split_.training), pool_);
    result.validation = metrics(members, measured_of(split_.validation), pool_);
    result.unseen_combinations = metrics(members, split_.unseen_combinations, pool_);
    result.unseen_tables = metrics(members, split_.unseen_tables, pool_);
    if (options_.granularity_ms > 0.0) {
      const auto of_large = [&](const std::vector<int>& samples) {
        return metrics(members, large_samples(measured_of(samples)), pool_);
      };
      result.large_samples = {options_.granularity_ms, of_large(split_.validation),
                              of_large(split_.unseen_combinations), of_large(split_.unseen_tables)};
    }
    result.scatter = device_scatter(std::move(unseen));
    if (!result.scatter && measured_of(split_.training).size() > kManySamples) {
      result.scatter = device_scatter(planned_costs(members, every_sample()));
    }
    result.model = make_model(members, result);
    result.adaptation = options_.adaptation;
    result.speeds = dataset_.speeds;
    return result;
  }

  /// Trains, and returns the mean of |ln(predicted / measured)| over `samples`; the planned ones
  /// are added to `unseen`.
  double error_on(const std::vector<int>& samples, EpochReport& report,
                  std::vector<PlannedCost>& unseen) {
    ComputeTrainingResult result;
    const std::vector<TrainableNetwork> members = train_members(result, report);
    const std::vector<double> predicted = predictions(members, samples, pool_);
    add_planned(samples, predicted, unseen);
    double sum = 0.0;
    for (std::size_t i = 0; i < samples.size(); ++i) {
      sum += std::abs(std::log((predicted[i] + options_.granularity_ms) /
                               (dataset_.cost_ms[samples[i]] + options_.granularity_ms)));
    }
    return sum / static_cast<double>(samples.size());
  }

 private:
  /// Takes over the model's standardisation, and its estimate, made as slow as this machine is and
  /// then fitted to the samples.
  void begin_with(const NeuralComputeModel& model, const Adaptation& adaptation) {
    options_.loop = adaptation.loop;
    const ComputeNetwork& network = model.members().front();
    estimate_ = network.estimate;
    set_estimate(estimate_, dataset_.work, features_);
    standard_ = standardisation_of(model);
    std::vector<TrainableNetwork> members;
    for (const ComputeNetwork& member : model.members()) members.emplace_back(member, 1.0);
    std::vector<double> ratios;
    const std::vector<double> predicted = predictions(members, split_.training, pool_);
    for (std::size_t i = 0; i < predicted.size(); ++i) {
      ratios.push_back(dataset_.cost_ms[split_.training[i]] / predicted[i]);
    }
    // Over the sets of expected costs as well as those that were measured.
    speed_ = static_cast<double>(static_cast<float>(median(std::move(ratios))));
    for (double& weight : estimate_.weights_ms) weight *= speed_;
    estimate_.offset_ms *= speed_;
    const auto [terms, cost_ms] = work_of(measured_of(split_.training));
    estimate_ = adapted_estimate(terms, cost_ms, estimate_, adaptation.prior_strength,
                                 options_.granularity_ms);
    set_estimate(estimate_, dataset_.work, features_);
    standard_.mean[0] += static_cast<float>(std::log2(speed_));
  }

  [[nodiscard]] PhysicalEstimate fitted_estimate() const {
    const auto [terms, cost_ms] = work_of(split_.training);
    return fit_physical_estimate(terms, cost_ms, options_.granularity_ms);
  }

  /// Summed terms (terms x samples) and costs of the samples.
  [[nodiscard]] std::pair<Eigen::MatrixXd, Eigen::VectorXd> work_of(
      const std::vector<int>& samples) const {
    const auto count = static_cast<Index>(samples.size());
    Eigen::MatrixXd terms = Eigen::MatrixXd::Zero(dataset_.work.rows(), count);
    Eigen::VectorXd cost_ms(count);
    for (Index i = 0; i < count; ++i) {
      const int sample = samples[static_cast<std::size_t>(i)];
      for (int p = dataset_.first_piece[sample]; p < dataset_.first_piece[sample + 1]; ++p) {
        terms.col(i) += dataset_.work.col(p).cast<double>();
      }
      cost_ms[i] = dataset_.cost_ms[sample];
    }
    return {std::move(terms), std::move(cost_ms)};
  }

  [[nodiscard]] NetworkShape shape() const {
    NetworkShape shape;
    shape.architecture = options_.architecture;
    shape.num_features = static_cast<int>(dataset_.features.rows());
    shape.num_growing_features = static_cast<int>(num_growing_features(dataset_.schema));
    shape.estimate_mean = standard_.mean[0];
    shape.estimate_scale = standard_.scale[0];
    shape.estimate_offset_ms = static_cast<float>(estimate_.offset_ms);
    shape.has_widest_factors = options_.has_widest_factors;
    shape.has_optimizer_offsets = options_.has_optimizer_offsets;
    if (options_.architecture == ComputeArchitecture::published) {
      shape.encoder = {128, 32};
      shape.head = 64;
    }
    return shape;
  }

  [[nodiscard]] Loss loss() const {
    return options_.architecture == ComputeArchitecture::published ? Loss::squared_error
                                                                   : Loss::squared_log_error;
  }

  [[nodiscard]] double seconds() const {
    return std::chrono::duration<double>(Clock::now() - start_).count();
  }

  /// Members are trained in parallel, one per thread: a step of a single member has serial parts,
  /// and at its end threads wait for the last one. Further threads share a member's steps.
  std::vector<TrainableNetwork> train_members(ComputeTrainingResult& result, EpochReport& report) {
    const int at_once = std::max(1, std::min(options_.members, pool_.num_threads()));
    std::vector<std::unique_ptr<ThreadPool>> pools;
    for (int worker = 0; worker < at_once; ++worker) {
      pools.push_back(std::make_unique<ThreadPool>(std::max(1, pool_.num_threads() / at_once)));
    }
    std::vector<std::optional<TrainableNetwork>> networks(options_.members);
    std::vector<TrainingLoopResult> loops(options_.members);
    ThreadPool workers(at_once);
    workers.for_each(options_.members, [&](std::size_t member, int worker) {
      networks[member] = train_member(static_cast<int>(member), *pools[worker], loops[member],
                                      [&](const EpochStats& stats) { report.add(stats); });
    });
    std::vector<TrainableNetwork> members;
    for (int member = 0; member < options_.members; ++member) {
      members.push_back(std::move(*networks[member]));
      result.best_epochs.push_back(loops[member].best_epoch);
      result.epochs.insert(result.epochs.end(), loops[member].epochs.begin(),
                           loops[member].epochs.end());
    }
    return members;
  }

  /// The initial model's network, as slow as this machine is and with its estimate.
  [[nodiscard]] TrainableNetwork adapted_network(int member) const {
    ComputeNetwork network = options_.initial->members()[member];
    network.estimate.offset_ms = estimate_.offset_ms / speed_;
    if (options_.has_widest_factors && network.widest_factors.empty()) {
      network.widest_factors.assign(kWidestClasses, 1.0F);
    }
    if (options_.has_optimizer_offsets && !network.rowwise_adagrad_offset) {
      network.rowwise_adagrad_offset = network.offset;
    }
    return {network, speed_};
  }

  [[nodiscard]] std::span<const int> first_samples() const {
    std::size_t count = 0;
    int pieces = 0;
    while (count < std::min(kFirstSamples, split_.training.size())) {
      const int sample = split_.training[count];
      pieces += dataset_.first_piece[sample + 1] - dataset_.first_piece[sample];
      if (count > 0 && pieces > kFirstPieces) break;
      ++count;
    }
    return std::span(split_.training).first(count);
  }

  /// Members differ in their first weights and in the order of the samples.
  TrainableNetwork train_member(int member, ThreadPool& pool, TrainingLoopResult& loop,
                                const std::function<void(const EpochStats&)>& on_epoch) {
    Random random = Random::for_stream(options_.seed, 1 + static_cast<std::uint64_t>(member));
    TrainableNetwork network =
        options_.initial ? adapted_network(member) : TrainableNetwork(shape(), random);
    TrainingSubject subject;
    if (!options_.initial) {
      network.spread_units(make_batch(dataset_, features_, first_samples(), standard_, scale_));
      subject.step_sizes = network.step_sizes();
    }
    subject.parameters = &network.parameters();
    subject.samples = split_.training;
    subject.loss_and_gradients = [&](std::span<const int> samples, Parameters& gradients) {
      PieceBatch batch = make_batch(dataset_, features_, samples, standard_, scale_);
      batch.granularity = static_cast<float>(options_.granularity_ms);
      return network.loss_and_gradients(batch, loss(), gradients);
    };
    subject.project = [&] { network.project(); };
    subject.validation_mape = [&] {
      return relative_error({&network, 1}, split_.validation, pool);
    };
    loop = run_training_loop(subject, options_.loop, random, pool, on_epoch);
    return network;
  }

  /// Of the mean of the members.
  [[nodiscard]] std::vector<double> predictions(std::span<const TrainableNetwork> members,
                                                const std::vector<int>& samples,
                                                ThreadPool& pool) const {
    return predicted_costs(members, dataset_, features_, samples, standard_, scale_, pool);
  }

  [[nodiscard]] PredictionMetrics metrics(std::span<const TrainableNetwork> members,
                                          const std::vector<int>& samples, ThreadPool& pool) const {
    std::vector<double> measured;
    for (const int sample : samples) measured.push_back(dataset_.cost_ms[sample]);
    return prediction_metrics(predictions(members, samples, pool), measured);
  }

  /// MAPE; with a granularity, that of costs which are all higher by as much.
  [[nodiscard]] double relative_error(std::span<const TrainableNetwork> members,
                                      const std::vector<int>& samples, ThreadPool& pool) const {
    const std::vector<double> predicted = predictions(members, samples, pool);
    double sum = 0.0;
    for (std::size_t i = 0; i < samples.size(); ++i) {
      const double cost_ms = dataset_.cost_ms[samples[i]];
      sum += std::abs(predicted[i] - cost_ms) / (cost_ms + options_.granularity_ms);
    }
    return sum / static_cast<double>(samples.size());
  }

  /// Without the sets whose costs are expected only.
  [[nodiscard]] std::vector<int> measured_of(const std::vector<int>& samples) const {
    std::vector<int> measured;
    std::copy_if(samples.begin(), samples.end(), std::back_inserter(measured),
                 [&](int sample) { return static_cast<std::size_t>(sample) < num_measured_; });
    return measured;
  }

  /// Of all parts of the split, those that were measured.
  [[nodiscard]] std::vector<int> every_sample() const {
    std::vector<int> all;
    for (const std::vector<int>* part : {&split_.training, &split_.validation,
                                         &split_.unseen_combinations, &split_.unseen_tables}) {
      const std::vector<int> measured = measured_of(*part);
      all.insert(all.end(), measured.begin(), measured.end());
    }
    return all;
  }

  [[nodiscard]] std::vector<PlannedCost> planned_costs(std::span<const TrainableNetwork> members,
                                                       const std::vector<int>& samples) {
    std::vector<int> planned;
    std::copy_if(samples.begin(), samples.end(), std::back_inserter(planned),
                 [&](int sample) { return dataset_.planned_place[sample] >= 0; });
    std::vector<PlannedCost> costs;
    add_planned(planned, predictions(members, planned, pool_), costs);
    return costs;
  }

  /// Those that were measured and are not below the granularity.
  void add_planned(const std::vector<int>& samples, const std::vector<double>& predicted,
                   std::vector<PlannedCost>& costs) const {
    for (std::size_t i = 0; i < samples.size(); ++i) {
      const int sample = samples[i];
      if (dataset_.planned_place[sample] < 0 || dataset_.cost_ms[sample] < options_.granularity_ms)
        continue;
      costs.push_back({dataset_.planned_place[sample], predicted[i], dataset_.cost_ms[sample]});
    }
  }

  /// Those that cost at least as much as the granularity.
  [[nodiscard]] std::vector<int> large_samples(const std::vector<int>& samples) const {
    std::vector<int> large;
    std::copy_if(samples.begin(), samples.end(), std::back_inserter(large),
                 [&](int sample) { return dataset_.cost_ms[sample] >= options_.granularity_ms; });
    return large;
  }

  [[nodiscard]] std::shared_ptr<const NeuralComputeModel> make_model(
      std::span<const TrainableNetwork> members, const ComputeTrainingResult& result) const {
    ComputeModelInfo info;
    info.name = options_.name.empty() ? "compute" : options_.name;
    info.hardware = dataset_.hardware;
    info.operator_info = dataset_.operator_info;
    info.data_sha256 = dataset_.data_sha256;
    info.range = dataset_.range;
    if (options_.initial && options_.keeps_range) {
      info.range = joined(options_.initial->info().range, dataset_.range);
    }
    const auto add = [&](const std::string& set, const PredictionMetrics& metrics) {
      info.metrics[set + ".samples"] = static_cast<double>(metrics.count);
      if (metrics.count == 0) return;  // no error is known, which is not an error of 0
      info.metrics[set + ".mse"] = metrics.mse;
      info.metrics[set + ".mae"] = metrics.mae;
      info.metrics[set + ".mape"] = metrics.mape;
      info.metrics[set + ".kendall_tau"] = metrics.kendall_tau.value_or(0.0);
    };
    add("training", result.training);
    add("validation", result.validation);
    add("unseen_combinations", result.unseen_combinations);
    add("unseen_tables", result.unseen_tables);
    if (num_measured_ < dataset_.size()) {
      info.metrics["expected.samples"] = static_cast<double>(dataset_.size() - num_measured_);
    }
    if (result.scatter) {
      info.metrics[kScatterMetric] = result.scatter->scatter;
      info.metrics["devices.pairs"] = static_cast<double>(result.scatter->pairs);
    } else if (options_.initial && options_.keeps_range && options_.initial->scatter() > 0.0) {
      info.metrics[kScatterMetric] = options_.initial->scatter();  // of the same operator
    }
    info.metrics["seed"] = static_cast<double>(options_.seed);
    if (result.large_samples) {
      info.metrics["granularity_ms"] = options_.granularity_ms;
      add("validation.large", result.large_samples->validation);
      add("unseen_combinations.large", result.large_samples->unseen_combinations);
      add("unseen_tables.large", result.large_samples->unseen_tables);
    }
    info.reference_ms = dataset_.reference_ms;
    for (std::size_t folder = 0; folder < dataset_.speeds.size(); ++folder) {
      info.metrics[fmt::format("speed.{}", folder + 1)] = dataset_.speeds[folder].speed;
    }
    std::vector<ComputeNetwork> networks;
    for (const TrainableNetwork& member : members) {
      networks.push_back(member.exported(dataset_.schema, standard_.mean, standard_.scale,
                                         static_cast<float>(scale_)));
      networks.back().estimate = estimate_;
    }
    return std::make_shared<NeuralComputeModel>(std::move(networks), std::move(info));
  }

  const ComputeDataset& dataset_;
  ComputeTrainingOptions options_;
  DatasetSplit split_;
  MatrixXf features_;  ///< with the fitted estimate
  PhysicalEstimate estimate_;
  Standardisation standard_;
  std::size_t num_measured_;  ///< the first samples; others' costs are expected
  ThreadPool pool_;
  Clock::time_point start_;
  double speed_ = 1.0;  ///< of an initial model's costs, to make them this machine's
  double scale_ = 1.0;  ///< of the published network: the mean measured cost [ms]
};

}  // namespace

ComputeTrainingResult train_ensemble(const ComputeDataset& dataset,
                                     const ComputeTrainingOptions& options, DatasetSplit split,
                                     EpochReport& report, std::vector<PlannedCost> unseen) {
  return EnsembleTrainer(dataset, options, std::move(split)).run(report, std::move(unseen));
}

double error_of_ensemble(const ComputeDataset& dataset, const ComputeTrainingOptions& options,
                         DatasetSplit split, const std::vector<int>& left_out, EpochReport& report,
                         std::vector<PlannedCost>& unseen) {
  return EnsembleTrainer(dataset, options, std::move(split)).error_on(left_out, report, unseen);
}

}  // namespace neuroshard
