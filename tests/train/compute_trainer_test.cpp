// Training from end to end on costs that follow a formula: it learns them, and the same seed gives
// the same model bit for bit on any number of threads.
#include "neuroshard/train/compute/compute_trainer.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <memory>
#include <numeric>

#include "neuroshard/core/error.h"
#include "neuroshard/core/numbers/random.h"
#include "neuroshard/cost/compute/network_bounds.h"
#include "tests/io/io_test_util.h"
#include "tests/train/synthetic_costs.h"

namespace neuroshard {
namespace {

constexpr auto kLoads = ComputeArchitecture::bounded_loads;
constexpr auto kPublished = ComputeArchitecture::published;

ComputeDataset synthetic_dataset(ComputeArchitecture architecture, int count) {
  const TemporaryFolder folder;
  testing_costs::write_costs(folder.file("costs.jsonl"), testing_costs::make_header(), count);
  return load_compute_dataset({folder.file("costs.jsonl")}, feature_schema_of(architecture));
}

ComputeTrainingOptions options_for(ComputeArchitecture architecture, int epochs) {
  ComputeTrainingOptions options =
      architecture == kPublished ? ComputeTrainingOptions::published() : ComputeTrainingOptions{};
  options.loop.epochs = epochs;
  options.loop.batch_size = 32;
  options.members = 1;
  options.num_threads = 1;
  options.seed = 7;
  options.name = "synthetic";
  return options;
}

/// All parameters in one list.
std::vector<float> weights(const ComputeTrainingResult& result) {
  std::vector<float> all;
  const auto add = [&](const std::vector<float>& values) {
    all.insert(all.end(), values.begin(), values.end());
  };
  for (const ComputeNetwork& network : result.model->members()) {
    add(network.feature_mean);
    add(network.feature_scale);
    for (const DenseLayer& layer : network.encoder) {
      add(layer.weights);
      add(layer.bias);
    }
    add(network.head.weights);
    add(network.head.bias);
    add(network.head_output);
    add(network.linear);
    add({network.offset});
    add({network.estimate.weights_ms.begin(), network.estimate.weights_ms.end()});
  }
  return all;
}

class ComputeTrainerTest : public testing::TestWithParam<ComputeArchitecture> {};

TEST_P(ComputeTrainerTest, LearnsTheCostsAndReportsWhatItDid) {
  const ComputeDataset dataset = synthetic_dataset(GetParam(), 600);
  int epochs_seen = 0;
  const ComputeTrainingResult result =
      train_compute_model(dataset, options_for(GetParam(), 40),
                          [&](const EpochStats& epoch) { EXPECT_EQ(epoch.epoch, ++epochs_seen); });
  ASSERT_EQ(result.epochs.size(), static_cast<std::size_t>(epochs_seen));
  EXPECT_LT(result.validation.mape, 0.5 * result.epochs.front().validation_mape);
  EXPECT_LT(result.validation.mape, 0.2);
  EXPECT_LT(result.unseen_combinations.mape, 0.25);
  EXPECT_GT(result.unseen_combinations.kendall_tau.value(), 0.85);
  EXPECT_LT(result.epochs.back().training_loss, result.epochs.front().training_loss);
  // The model is that of the best epoch.
  for (const EpochStats& epoch : result.epochs) {
    EXPECT_LE(result.validation.mape, epoch.validation_mape);
  }
  EXPECT_EQ(result.validation.mape, result.epochs[result.best_epochs.front() - 1].validation_mape);
  EXPECT_EQ(result.training.count, 384u);
  EXPECT_EQ(result.validation.count, 48u);
  EXPECT_EQ(result.unseen_combinations.count, 48u);
  EXPECT_EQ(result.unseen_tables.count, 120u);
}

TEST(ComputeTrainer, AGranularityIsToldApartAndTestsLargeSamplesAlone) {
  const ComputeDataset dataset = synthetic_dataset(ComputeArchitecture::bounded_loads, 400);
  ComputeTrainingOptions options = options_for(ComputeArchitecture::bounded_loads, 10);
  const ComputeTrainingResult usual = train_compute_model(dataset, options);
  EXPECT_FALSE(usual.large_samples.has_value());
  EXPECT_FALSE(usual.model->info().metrics.contains("granularity_ms"));
  std::vector<double> costs = dataset.cost_ms;
  std::nth_element(costs.begin(), costs.begin() + 200, costs.end());
  options.granularity_ms = costs[200];
  const ComputeTrainingResult result = train_compute_model(dataset, options);
  EXPECT_NE(weights(result), weights(usual));
  ASSERT_TRUE(result.large_samples.has_value());
  const LargeSampleMetrics& large = *result.large_samples;
  EXPECT_EQ(large.from_ms, options.granularity_ms);
  for (const auto& [of_large, of_all] : {std::pair{large.validation, result.validation},
                                         {large.unseen_combinations, result.unseen_combinations},
                                         {large.unseen_tables, result.unseen_tables}}) {
    EXPECT_GT(of_large.count, 0u);
    EXPECT_LT(of_large.count, of_all.count);
  }
  EXPECT_EQ(result.model->info().metrics.at("granularity_ms"), options.granularity_ms);
  EXPECT_EQ(result.model->info().metrics.at("unseen_tables.large.mape"), large.unseen_tables.mape);
}

TEST(ComputeTrainer, LearnsWhatTheWidestPieceDoesToAllOthers) {
  ComputeDataset dataset = synthetic_dataset(kLoads, 600);
  const std::vector<double> planted{0.5, 0.7, 1.0};  // no set has more than 128 columns
  for (std::size_t i = 0; i < dataset.size(); ++i) {
    dataset.cost_ms[i] = 0.05 + planted[dataset.widest[i]] * (dataset.cost_ms[i] - 0.05);
  }
  ComputeTrainingOptions options = options_for(kLoads, 150);
  const ComputeTrainingResult without = train_compute_model(dataset, options);
  EXPECT_FALSE(without.model->has_widest_factors());
  options.has_widest_factors = true;
  const ComputeTrainingResult with = train_compute_model(dataset, options);
  const std::vector<float>& factors = with.model->members().front().widest_factors;
  ASSERT_EQ(factors.size(), kWidestClasses);
  EXPECT_NEAR(factors[0] / factors[2], planted[0], 0.05);
  EXPECT_NEAR(factors[1] / factors[2], planted[1], 0.05);
  EXPECT_LT(with.unseen_combinations.mape, 0.5 * without.unseen_combinations.mape);
  // They are learned by a model that goes on from one without, and go on themselves.
  options.initial = without.model;
  options.adaptation = adaptations().back();
  options.adaptation->loop.epochs = 100;
  const ComputeTrainingResult adapted = train_compute_model(dataset, options);
  const std::vector<float>& learned = adapted.model->members().front().widest_factors;
  ASSERT_EQ(learned.size(), kWidestClasses);
  EXPECT_NEAR(learned[0] / learned[2], planted[0], 0.1);
  options.has_widest_factors = false;
  options.initial = with.model;
  EXPECT_TRUE(train_compute_model(dataset, options).model->has_widest_factors());
}

TEST(ComputeTrainer, LearnsWhatRowwiseAdagradHasMoreOfAnOffset) {
  constexpr double kMore = 0.2;
  const TemporaryFolder folder;
  std::vector<std::string> files;
  for (const Optimizer optimizer : {Optimizer::sgd, Optimizer::rowwise_adagrad}) {
    ComputeCostsHeader header = testing_costs::make_header();
    header.optimizer = optimizer;
    files.push_back(folder.file(fmt::format("{}.jsonl", to_string(optimizer))));
    testing_costs::write_costs(files.back(), header, 300);
  }
  ComputeDataset dataset = load_compute_dataset(files, FeatureSchema::work);
  ASSERT_EQ(std::count(dataset.rowwise_adagrad.begin(), dataset.rowwise_adagrad.end(), true), 300);
  for (std::size_t i = 0; i < dataset.size(); ++i) {
    dataset.cost_ms[i] = 0.1 + dataset.cost_ms[i] + (dataset.rowwise_adagrad[i] ? kMore : 0.0);
  }
  ComputeTrainingOptions options = options_for(kLoads, 300);
  const ComputeTrainingResult without = train_compute_model(dataset, options);
  EXPECT_FALSE(without.model->has_optimizer_offsets());
  options.has_optimizer_offsets = true;
  const ComputeTrainingResult with = train_compute_model(dataset, options);
  const auto rise = [](const ComputeTrainingResult& result) {
    return result.model->mean_offset_ms(Optimizer::rowwise_adagrad) -
           result.model->mean_offset_ms(Optimizer::sgd);
  };
  // A part of it is in the pieces' costs, which know the optimizer too.
  EXPECT_GT(rise(with), 0.5 * kMore);
  EXPECT_LT(rise(with), 1.1 * kMore);
  EXPECT_LT(with.unseen_combinations.mape, without.unseen_combinations.mape);
  // It is learned by a model that goes on from one without, and goes on itself.
  options.initial = without.model;
  options.adaptation = adaptations().back();
  options.adaptation->loop.epochs = 100;
  EXPECT_GT(rise(train_compute_model(dataset, options)), 0.0);
  options.has_optimizer_offsets = false;
  options.initial = with.model;
  EXPECT_TRUE(train_compute_model(dataset, options).model->has_optimizer_offsets());
}

TEST_P(ComputeTrainerTest, TheModelCarriesWhereItIsFrom) {
  const ComputeDataset dataset = synthetic_dataset(GetParam(), 50);
  const ComputeTrainingResult result = train_compute_model(dataset, options_for(GetParam(), 1));
  const ComputeModelInfo& info = result.model->info();
  EXPECT_EQ(info.name, "synthetic");
  EXPECT_EQ(info.hardware, dataset.hardware);
  EXPECT_EQ(info.data_sha256, dataset.data_sha256);
  EXPECT_EQ(info.range.max_batch_size, 1024);
  EXPECT_EQ(info.metrics.at("unseen_tables.mape"), result.unseen_tables.mape);
  EXPECT_EQ(info.metrics.at("unseen_combinations.kendall_tau"),
            result.unseen_combinations.kendall_tau);
  EXPECT_EQ(info.metrics.at("seed"), 7.0);
  EXPECT_EQ(result.model->architecture(), GetParam());
}

TEST(ComputeTrainer, AModelTellsNoErrorWhereNothingWasTested) {
  const ComputeDataset dataset = synthetic_dataset(kLoads, 50);
  ComputeTrainingOptions options = options_for(kLoads, 1);
  options.has_test = false;
  const ComputeTrainingResult result = train_compute_model(dataset, options);
  const auto& metrics = result.model->info().metrics;
  EXPECT_EQ(metrics.at("unseen_combinations.samples"), 0.0);
  for (const char* metric : {"mse", "mae", "mape", "kendall_tau"}) {
    EXPECT_FALSE(metrics.contains(fmt::format("unseen_combinations.{}", metric))) << metric;
    EXPECT_TRUE(metrics.contains(fmt::format("unseen_tables.{}", metric))) << metric;
  }
}

TEST_P(ComputeTrainerTest, IsTheSameBitForBitOnAnyNumberOfThreads) {
  const ComputeDataset dataset = synthetic_dataset(GetParam(), 80);
  ComputeTrainingOptions options = options_for(GetParam(), 4);
  const ComputeTrainingResult first = train_compute_model(dataset, options);
  EXPECT_EQ(weights(train_compute_model(dataset, options)), weights(first));
  for (const int threads : {2, 5}) {
    options.num_threads = threads;
    const ComputeTrainingResult other = train_compute_model(dataset, options);
    EXPECT_EQ(weights(other), weights(first));
    EXPECT_EQ(other.unseen_tables.mape, first.unseen_tables.mape);
  }
  options.seed = 8;
  EXPECT_NE(weights(train_compute_model(dataset, options)), weights(first));
}

TEST_P(ComputeTrainerTest, AnEnsembleIsTrainedMemberByMember) {
  const ComputeDataset dataset = synthetic_dataset(GetParam(), 80);
  ComputeTrainingOptions options = options_for(GetParam(), 3);
  const ComputeTrainingResult single = train_compute_model(dataset, options);
  options.members = 3;
  std::vector<int> epochs;
  int most_epochs = 0;
  const ComputeTrainingResult result =
      train_compute_model(dataset, options, [&](const EpochStats& epoch) {
        epochs.push_back(epoch.epoch);
        most_epochs = epoch.most_epochs;
      });
  EXPECT_EQ(epochs, (std::vector<int>{1, 2, 3, 4, 5, 6, 7, 8, 9}));
  EXPECT_EQ(most_epochs, 9);
  EXPECT_EQ(result.best_epochs.size(), 3u);
  ASSERT_EQ(result.model->num_members(), 3);
  const auto& members = result.model->members();
  // The first is the one that training without ensemble gives; the others differ.
  EXPECT_EQ(members[0].head.weights, single.model->members()[0].head.weights);
  EXPECT_NE(members[1].head.weights, members[0].head.weights);
  EXPECT_NE(members[2].head.weights, members[1].head.weights);
  EXPECT_EQ(members[2].feature_mean, members[0].feature_mean);
}

TEST_P(ComputeTrainerTest, StopsWhenNothingGetsBetter) {
  const ComputeDataset dataset = synthetic_dataset(GetParam(), 50);
  ComputeTrainingOptions options = options_for(GetParam(), 20);
  options.loop.learning_rate = 0.0;  // the first epoch is the best
  options.loop.patience = 3;
  const ComputeTrainingResult result = train_compute_model(dataset, options);
  EXPECT_EQ(result.best_epochs, std::vector<int>{1});
  EXPECT_EQ(result.epochs.size(), 4u);
}

INSTANTIATE_TEST_SUITE_P(Architectures, ComputeTrainerTest, testing::Values(kLoads, kPublished));

TEST(ComputeTrainer, HiddenUnitsBeginSpreadOverTheSamples) {
  const ComputeDataset dataset = synthetic_dataset(kLoads, 80);
  ComputeTrainingOptions options = options_for(kLoads, 1);
  options.loop.learning_rate = 0.0;
  const ComputeTrainingResult result = train_compute_model(dataset, options);
  const ComputeNetwork& network = result.model->members().front();
  for (std::size_t layer = 0; layer + 1 < network.encoder.size(); ++layer) {
    const std::vector<float>& bias = network.encoder[layer].bias;
    const auto [least, most] = std::minmax_element(bias.begin(), bias.end());
    EXPECT_LT(*least + 0.5F, *most) << layer;  // all are 0 otherwise
  }
}

TEST(ComputeTrainer, EveryMemberKeepsItsBoundsAroundOneEstimate) {
  const ComputeDataset dataset = synthetic_dataset(kLoads, 80);
  ComputeTrainingOptions options = options_for(kLoads, 5);
  options.members = 3;
  options.loop.learning_rate = 0.1;  // large steps, into what is not allowed
  const ComputeTrainingResult result = train_compute_model(dataset, options);
  for (const ComputeNetwork& member : result.model->members()) {
    EXPECT_EQ(broken_bound(member), "");
    EXPECT_EQ(member.estimate.weights_ms, result.model->members()[0].estimate.weights_ms);
    EXPECT_GT(member.estimate.offset_ms, 0.0);
    EXPECT_GT(member.estimate.weights_ms.front(), 0.0);
  }
}

/// The test parts of a split must not tell the fit anything.
TEST(ComputeTrainer, TheEstimateIsFittedToTrainingSamplesAlone) {
  ComputeDataset dataset = synthetic_dataset(kLoads, 80);
  const ComputeTrainingOptions options = options_for(kLoads, 1);
  const auto estimate_of = [&] {
    return train_compute_model(dataset, options).model->members()[0].estimate.weights_ms;
  };
  const std::vector<double> before = estimate_of();
  const DatasetSplit split = split_dataset(dataset, options.seed);
  for (const auto* part : {&split.validation, &split.unseen_combinations, &split.unseen_tables}) {
    for (const int sample : *part) dataset.cost_ms[sample] *= 3.0;
  }
  EXPECT_EQ(estimate_of(), before);
}

/// A model of 400 samples of the formula, and 100 samples of a machine on which they cost this.
class Adapting : public testing::Test {
 protected:
  ComputeTrainingResult adapted(const std::function<double(double cost_ms, int pieces)>& cost,
                                int num_threads = 1) {
    ComputeDataset dataset = synthetic_dataset(kLoads, 100);
    for (std::size_t i = 0; i < dataset.size(); ++i) {
      const int pieces = dataset.first_piece[i + 1] - dataset.first_piece[i];
      dataset.cost_ms[i] = cost(dataset.cost_ms[i], pieces);
    }
    ComputeTrainingOptions options = options_for(kLoads, 1);
    options.initial = initial_;
    options.num_threads = num_threads;
    return train_compute_model(dataset, options, [&](const EpochStats& epoch) {
      EXPECT_EQ(epoch.epoch, last_.epoch + 1);
      EXPECT_LE(epoch.epoch, epoch.most_epochs);
      last_ = epoch;
    });
  }

  EpochStats last_;  ///< reported

  std::shared_ptr<const NeuralComputeModel> initial_ =
      train_compute_model(synthetic_dataset(kLoads, 400), options_for(kLoads, 60)).model;
};

TEST_F(Adapting, ASlowerMachineChangesTheModelLittle) {
  const auto slower = [](double cost_ms, int) { return 1.3 * cost_ms; };
  const ComputeTrainingResult result = adapted(slower);
  EXPECT_LT(result.unseen_combinations.mape, 0.1);
  EXPECT_EQ(broken_bound(result.model->members().front()), "");
  // The ways that are tried count: three, each on five parts of the samples, and the one taken.
  EXPECT_GT(last_.epoch, 5 * (100 + 100 + 300));
  EXPECT_EQ(last_.epoch, last_.most_epochs);
  last_ = {};
  EXPECT_EQ(weights(result), weights(adapted(slower, 3)));
}

TEST_F(Adapting, AnotherOperatorChangesItMore) {
  const auto other = [](double cost_ms, int pieces) { return 0.3 * cost_ms + 2.0 * pieces; };
  const ComputeTrainingResult result = adapted(other);
  ASSERT_TRUE(result.adaptation);
  EXPECT_LT(result.adaptation->prior_strength, adaptations().front().prior_strength);
  EXPECT_LT(result.unseen_combinations.mape, 0.1);
  EXPECT_EQ(broken_bound(result.model->members().front()), "");
}

TEST_F(Adapting, SetsOfExpectedCostsAreTrainedOnButCountInNoMetric) {
  ComputeDataset dataset = synthetic_dataset(kLoads, 60);
  for (double& cost_ms : dataset.cost_ms) cost_ms *= 1.3;
  ComputeTrainingOptions options = options_for(kLoads, 1);
  options.initial = initial_;
  options.unmeasured = std::make_shared<const ComputeDataset>(synthetic_dataset(kLoads, 100));
  int epochs = 0;
  const auto count = [&](const EpochStats& epoch) { epochs = epoch.epoch; };
  const ComputeTrainingResult result = train_compute_model(dataset, options, count);
  // Two ways are tried on five parts of the samples, and one is taken.
  EXPECT_EQ(epochs, 5 * (100 + 100) + 100);
  const DatasetSplit split = split_dataset(dataset, options.seed);
  EXPECT_EQ(result.training.count, split.training.size());
  EXPECT_EQ(result.validation.count, split.validation.size());
  EXPECT_EQ(result.model->info().metrics.at("expected.samples"), 100.0);
  EXPECT_EQ(result.model->info().range.max_pieces, dataset.range.max_pieces);
  EXPECT_EQ(result.model->info().data_sha256, dataset.data_sha256);
  EXPECT_LT(result.unseen_tables.mape, 0.1);
  EXPECT_EQ(broken_bound(result.model->members().front()), "");
  options.num_threads = 3;
  EXPECT_EQ(weights(train_compute_model(dataset, options)), weights(result));
  // They are in the training: without them, or with others, the model is another.
  options.unmeasured = std::make_shared<const ComputeDataset>(synthetic_dataset(kLoads, 60));
  EXPECT_NE(weights(train_compute_model(dataset, options)), weights(result));
}

/// As if the sets were those of plans whose devices cost the same, with this scatter.
void make_planned(ComputeDataset& dataset, double scatter) {
  std::vector<std::size_t> by_cost(dataset.size());
  std::iota(by_cost.begin(), by_cost.end(), 0U);
  std::sort(by_cost.begin(), by_cost.end(),
            [&](std::size_t a, std::size_t b) { return dataset.cost_ms[a] < dataset.cost_ms[b]; });
  Random random(11);
  for (std::size_t place = 0; place < by_cost.size(); ++place) {
    dataset.planned_place[by_cost[place]] = static_cast<std::int64_t>(place);
    dataset.cost_ms[by_cost[place]] *= std::exp(scatter * random.normal());
  }
}

TEST_F(Adapting, FindsHowFarDevicesThatArePlannedAlikeDiffer) {
  ComputeDataset dataset = synthetic_dataset(kLoads, 200);
  EXPECT_EQ(dataset.planned_place, std::vector<std::int64_t>(dataset.size(), -1));
  ComputeTrainingOptions options = options_for(kLoads, 1);
  options.initial = initial_;
  EXPECT_FALSE(train_compute_model(dataset, options).scatter);
  make_planned(dataset, 0.1);
  const ComputeTrainingResult result = train_compute_model(dataset, options);
  ASSERT_TRUE(result.scatter);
  EXPECT_GT(result.scatter->scatter, 0.07);
  EXPECT_LT(result.scatter->scatter, 0.14);
  EXPECT_EQ(result.model->scatter(), result.scatter->scatter);
  EXPECT_EQ(result.model->info().metrics.at("devices.pairs"),
            static_cast<double>(result.scatter->pairs));
  options.num_threads = 3;
  EXPECT_EQ(train_compute_model(dataset, options).scatter->scatter, result.scatter->scatter);
}

// Too few sets to tell: what the model knew of the same operator is known still.
TEST_F(Adapting, KeepsTheScatterThatItsOwnSamplesDoNotTell) {
  ComputeModelInfo info = initial_->info();
  info.metrics[kScatterMetric] = 0.0625;
  ComputeTrainingOptions options = options_for(kLoads, 1);
  options.initial = std::make_shared<NeuralComputeModel>(initial_->members(), std::move(info));
  const ComputeDataset dataset = synthetic_dataset(kLoads, 60);
  EXPECT_EQ(train_compute_model(dataset, options).model->scatter(), 0.0);  // another operator
  options.keeps_range = true;
  const ComputeTrainingResult result = train_compute_model(dataset, options);
  EXPECT_FALSE(result.scatter);
  EXPECT_EQ(result.model->scatter(), 0.0625);
}

// Four blocks of neighbours are fewer than the parts that samples are divided into.
TEST_F(Adapting, ChoosesByThePartsThatThereAre) {
  ComputeDataset dataset = synthetic_dataset(kLoads, 40);
  const double machine = 1.3;
  for (std::size_t i = 0; i < dataset.size(); ++i) {
    dataset.cost_ms[i] = 0.3 * machine * dataset.cost_ms[i] +
                         2.0 * (dataset.first_piece[i + 1] - dataset.first_piece[i]);
    dataset.planned_place[i] = static_cast<std::int64_t>(i) % 32;
  }
  ComputeTrainingOptions options = options_for(kLoads, 1);
  options.initial = initial_;
  const ComputeTrainingResult result = train_compute_model(dataset, options);
  // Of another operator: not the way for the same machine, which is taken where nothing was tried.
  EXPECT_LT(result.adaptation->prior_strength, adaptations().front().prior_strength);
}

// What it was trained on, a model knows too well where there is little of it.
TEST(ComputeTrainer, TakesTheScatterFromItsOwnSamplesWhereTheyAreMany) {
  ComputeDataset few = synthetic_dataset(kLoads, 400);
  make_planned(few, 0.1);
  EXPECT_FALSE(train_compute_model(few, options_for(kLoads, 3)).scatter);
  ComputeDataset many = synthetic_dataset(kLoads, 1000);
  make_planned(many, 0.1);
  const ComputeTrainingResult result = train_compute_model(many, options_for(kLoads, 40));
  ASSERT_TRUE(result.scatter);
  EXPECT_GT(result.scatter->scatter, 0.07);
  EXPECT_LT(result.scatter->scatter, 0.16);
}

TEST(ComputeTrainer, RefusesTooFewSamples) {
  const ComputeDataset dataset = synthetic_dataset(kLoads, 35);  // 28 of them known
  EXPECT_EQ(input_error([&] { (void)train_compute_model(dataset, options_for(kLoads, 1)); }),
            "costs: expected at least 30 samples to train on, got 28");
}

TEST(ComputeTrainer, RefusesToCallAnythingAModel) {
  ComputeDataset dataset = synthetic_dataset(kLoads, 60);
  // Relative to the mean cost these are 0 as floats, whose logarithm is no number.
  for (std::size_t i = 0; i < dataset.size(); i += 2) dataset.cost_ms[i] = 1e-300;
  EXPECT_EQ(
      input_error([&] { (void)train_compute_model(dataset, options_for(kLoads, 2)); }),
      "costs: expected costs that the network can be trained on, got a validation error that is no "
      "finite number in every epoch");
}

TEST(ComputeTrainer, PublishedOptionsAreThePapers) {
  const ComputeTrainingOptions options = ComputeTrainingOptions::published();
  EXPECT_EQ(options.architecture, kPublished);
  EXPECT_EQ(options.loop.batch_size, 512);
  EXPECT_EQ(options.loop.learning_rate, 1e-3);
  EXPECT_EQ(feature_schema_of(kPublished), FeatureSchema::published);
  EXPECT_EQ(feature_schema_of(kLoads), FeatureSchema::work);
}

}  // namespace
}  // namespace neuroshard
