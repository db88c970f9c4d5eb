// The network in training: its predictions and gradients against the formula in double precision,
// and that inference predicts what training did.
#include "neuroshard/train/compute/trainable_network.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <numbers>

#include "neuroshard/cost/compute/network_bounds.h"
#include "neuroshard/cost/compute/neural_compute_model.h"
#include "neuroshard/cost/compute/piece_work.h"
#include "tests/cost/arbitrary_network.h"
#include "tests/train/double_precision.h"

namespace neuroshard {
namespace {

using Eigen::Index;
using Eigen::MatrixXd;
using Eigen::MatrixXf;
using Eigen::VectorXd;
using testing_train::DoubleParameters;
using testing_train::in_double;
using testing_train::numeric_gradient;

constexpr auto kBoundedLoads = ComputeArchitecture::bounded_loads;
constexpr auto kPublishedSums = ComputeArchitecture::published;
constexpr int kFeatures = 6;
constexpr std::size_t kLayers = 3;

/// Feature 0 is the logarithm of the estimate, four of the six grow with the work.
NetworkShape small_shape(ComputeArchitecture architecture) {
  NetworkShape shape{architecture, kFeatures, {7, 5, 4}, 6};
  shape.num_growing_features = 4;
  shape.estimate_mean = -1.0F;
  shape.estimate_scale = 0.5F;
  shape.estimate_offset_ms = 0.05F;
  return shape;
}

/// What a bounded network may have besides.
struct Extras {
  bool widest_factors = false;
  bool optimizer_offsets = false;
};

/// The same, with factors of the widest piece that are not 1, and an offset of row-wise Adagrad's.
TrainableNetwork small_network(ComputeArchitecture architecture, Extras extras, Random& random) {
  NetworkShape shape = small_shape(architecture);
  shape.has_widest_factors = extras.widest_factors;
  shape.has_optimizer_offsets = extras.optimizer_offsets;
  TrainableNetwork network(shape, random);
  if (extras.optimizer_offsets) network.parameters()[2 * kLayers + 5](0, 0) = 0.4F;
  if (extras.widest_factors) {
    MatrixXf& factors = network.parameters().back();
    for (Index i = 0; i < factors.size(); ++i) {
      factors(i, 0) = -0.1F * static_cast<float>(factors.size() - 1 - i);
    }
  }
  return network;
}

/// Samples of 1, 2, 3, ... pieces.
PieceBatch random_batch(int samples, Random& random) {
  PieceBatch batch;
  batch.first_piece.push_back(0);
  for (int i = 0; i < samples; ++i) {
    batch.first_piece.push_back(batch.first_piece.back() + 1 + i % 4);
  }
  batch.features = MatrixXf::NullaryExpr(kFeatures, batch.first_piece.back(),
                                         [&] { return static_cast<float>(random.normal()); });
  // As feature 0 is standardised.
  const NetworkShape shape = small_shape(kBoundedLoads);
  batch.log_estimate =
      (batch.features.row(0).transpose().array() / shape.estimate_scale + shape.estimate_mean) *
      std::numbers::ln2_v<float>;
  batch.target = Eigen::VectorXf::NullaryExpr(
      samples, [&] { return static_cast<float>(random.uniform(0.2, 3.0)); });
  for (int i = 0; i < samples; ++i) {
    batch.widest.push_back(static_cast<std::size_t>(i) % kWidestClasses);
    batch.rowwise_adagrad.push_back(i % 3 == 1);
  }
  return batch;
}

VectorXd encode(ComputeArchitecture architecture, const DoubleParameters& p,
                const VectorXd& features, double log_estimate) {
  VectorXd hidden = features;
  for (std::size_t layer = 0; layer < kLayers; ++layer) {
    const bool loads = architecture == kBoundedLoads && layer + 1 == kLayers;
    VectorXd input = hidden;
    if (loads) {
      input.resize(hidden.size() + features.size());
      input << hidden, features;
    }
    const VectorXd output = p[2 * layer] * input + p[2 * layer + 1].col(0);
    if (!loads) {
      hidden = output.cwiseMax(0.0);
      continue;
    }
    const VectorXd bounded =
        kLogLoadBound * ((output.array() - log_estimate) / kLogLoadBound).tanh() + log_estimate;
    hidden = bounded.array().exp();
  }
  return hidden;
}

/// What the head's biases are multiplied by: from 0.03 to 300 ms, evenly on a logarithmic scale.
VectorXd threshold_units(Index count) {
  return VectorXd::LinSpaced(count, std::log(0.03), std::log(300.0)).array().exp();
}

double reference_cost(ComputeArchitecture architecture, Extras extras, const DoubleParameters& p,
                      const PieceBatch& batch, Index sample) {
  VectorXd sum = VectorXd::Zero(p[2 * kLayers].cols());
  for (int i = batch.first_piece[sample]; i < batch.first_piece[sample + 1]; ++i) {
    sum += encode(architecture, p, batch.features.col(i).cast<double>(), batch.log_estimate[i]);
  }
  if (extras.widest_factors) {
    sum *= std::exp(p.back()(static_cast<Index>(batch.widest[sample]), 0));
  }
  double offset = p[2 * kLayers + 4](0, 0);
  if (extras.optimizer_offsets && batch.rowwise_adagrad[sample]) {
    offset *= std::exp(p[2 * kLayers + 5](0, 0));
  }
  VectorXd bias = p[2 * kLayers + 1].col(0);
  if (architecture == kBoundedLoads) bias = bias.cwiseProduct(threshold_units(bias.size()));
  const VectorXd hidden = (p[2 * kLayers] * sum + bias).cwiseMax(0.0);
  return hidden.dot(p[2 * kLayers + 2].col(0)) + sum.dot(p[2 * kLayers + 3].col(0)) + offset;
}

double reference_compute_loss(ComputeArchitecture architecture, Extras extras,
                              const DoubleParameters& p, const PieceBatch& batch, Loss loss) {
  double sum = 0.0;
  for (Index sample = 0; sample < batch.size(); ++sample) {
    const double cost = reference_cost(architecture, extras, p, batch, sample);
    const double target = batch.target[sample];
    const double difference = loss == Loss::squared_error
                                  ? cost - target
                                  : std::log(std::max(cost, 1e-5) + batch.granularity) -
                                        std::log(target + batch.granularity);
    sum += difference * difference;
  }
  return sum;
}

/// Moves every parameter away from where it starts, some of which are 0, keeping constraints.
void disturb(TrainableNetwork& network, Random& random) {
  for (MatrixXf& parameter : network.parameters()) {
    parameter = parameter.unaryExpr(
        [&](float value) { return value + static_cast<float>(random.uniform(-0.1, 0.2)); });
  }
  network.project();
}

/// Of some of the cases.
Extras extras_of(ComputeArchitecture architecture, int seed) {
  const bool bounded = architecture == kBoundedLoads;
  return {.widest_factors = bounded && seed > 2, .optimizer_offsets = bounded && seed % 2 == 0};
}

class TrainableNetworkTest
    : public testing::TestWithParam<std::tuple<ComputeArchitecture, Loss, int>> {};

TEST_P(TrainableNetworkTest, GradientsAreTheSlopesOfTheLoss) {
  const auto [architecture, loss, seed] = GetParam();
  Random random(static_cast<std::uint64_t>(seed));
  TrainableNetwork network = small_network(architecture, extras_of(architecture, seed), random);
  disturb(network, random);
  // The published network has no linear term: its parameter stays 0.
  const std::size_t linear = 2 * kLayers + 3;
  if (architecture == kPublishedSums) network.parameters()[linear].setZero();
  PieceBatch batch = random_batch(9, random);
  if (seed % 2 == 0) batch.granularity = 0.7F;
  const DoubleParameters p = in_double(network.parameters());
  std::vector<MatrixXf> gradients;
  const double value = network.loss_and_gradients(batch, loss, gradients);
  EXPECT_NEAR(value,
              reference_compute_loss(architecture, extras_of(architecture, seed), p, batch, loss),
              1e-4 * (1.0 + value));
  ASSERT_EQ(gradients.size(), p.size());
  for (std::size_t at = 0; at < p.size(); ++at) {
    if (architecture == kPublishedSums && at == linear) {
      EXPECT_EQ(gradients[at].cwiseAbs().maxCoeff(), 0.0F);
      continue;
    }
    const auto loss_of = [&, of = architecture, extras = extras_of(architecture, seed),
                          by = loss](const DoubleParameters& moved) {
      return reference_compute_loss(of, extras, moved, batch, by);
    };
    const MatrixXd expected = numeric_gradient(p, at, loss_of);
    const double scale = expected.cwiseAbs().maxCoeff() + 1e-3;
    const double error = (gradients[at].cast<double>() - expected).cwiseAbs().maxCoeff();
    EXPECT_LT(error, 2e-4 * scale) << "parameter " << at;
  }
}

TEST_P(TrainableNetworkTest, PredictionsFollowTheFormula) {
  const auto [architecture, loss, seed] = GetParam();
  Random random(static_cast<std::uint64_t>(seed));
  TrainableNetwork network = small_network(architecture, extras_of(architecture, seed), random);
  disturb(network, random);
  const PieceBatch batch = random_batch(12, random);
  const Eigen::VectorXf predicted = network.predict(batch);
  for (Index i = 0; i < batch.size(); ++i) {
    const double expected = reference_cost(architecture, extras_of(architecture, seed),
                                           in_double(network.parameters()), batch, i);
    EXPECT_NEAR(predicted[i], expected, 1e-5 * (1.0 + std::abs(expected)));
  }
}

INSTANTIATE_TEST_SUITE_P(All, TrainableNetworkTest,
                         testing::Combine(testing::Values(kBoundedLoads, kPublishedSums),
                                          testing::Values(Loss::squared_error,
                                                          Loss::squared_log_error),
                                          testing::Range(1, 5)));

/// Features of no meaning but their number, as a network for inference has.
NetworkShape real_shape(const PhysicalEstimate& estimate) {
  NetworkShape shape;
  shape.num_features = static_cast<int>(feature_names(FeatureSchema::work).size());
  shape.num_growing_features = static_cast<int>(num_growing_features(FeatureSchema::work));
  shape.encoder = {12, 8, 4};
  shape.head = 10;
  shape.estimate_mean = 8.0F;
  shape.estimate_scale = 0.1F;
  shape.estimate_offset_ms = static_cast<float>(estimate.offset_ms);
  return shape;
}

ComputeNetwork exported(const TrainableNetwork& network, const PhysicalEstimate& estimate) {
  const auto features = static_cast<Index>(feature_names(FeatureSchema::work).size());
  ComputeNetwork result =
      network.exported(FeatureSchema::work, Eigen::VectorXf::Constant(features, 8.0F),
                       Eigen::VectorXf::Constant(features, 0.1F), 1.0F);
  result.estimate = estimate;
  return result;
}

TEST(TrainableNetwork, BeginsWithinItsBounds) {
  for (std::uint64_t seed = 0; seed < 20; ++seed) {
    Random random(seed);
    const PhysicalEstimate estimate = testing_networks::random_estimate(seed);
    const NetworkShape shape = real_shape(estimate);
    TrainableNetwork network(shape, random);
    EXPECT_EQ(broken_bound(exported(network, estimate)), "");
    PieceBatch batch = random_batch(50, random);
    batch.features = MatrixXf::NullaryExpr(shape.num_features, batch.first_piece.back(),
                                           [&] { return static_cast<float>(random.normal()); });
    network.spread_units(batch);
    EXPECT_EQ(broken_bound(exported(network, estimate)), "");
  }
}

TEST(TrainableNetwork, EveryHiddenUnitBeginsAtWorkForAPartOfThePieces) {
  for (std::uint64_t seed = 0; seed < 20; ++seed) {
    Random random(seed);
    const NetworkShape shape = small_shape(kBoundedLoads);
    TrainableNetwork network(shape, random);
    // Features far from 0, of which many units would see one side only.
    PieceBatch batch = random_batch(400, random);
    batch.features.array() += 3.0F;
    network.spread_units(batch);
    MatrixXf input = batch.features;
    for (std::size_t layer = 0; layer + 1 < kLayers; ++layer) {
      const MatrixXf& weights = network.parameters()[2 * layer];
      MatrixXf output = weights * input;
      output.colwise() += network.parameters()[2 * layer + 1].col(0);
      const Index rising = (output.rows() + 1) / 2;
      for (Index unit = 0; unit < output.rows(); ++unit) {
        const bool rises = unit < rising;
        const double place = (static_cast<double>(rises ? unit : unit - rising) + 0.5) /
                             static_cast<double>(rises ? rising : output.rows() - rising);
        const double off = static_cast<double>((output.row(unit).array() <= 0.0F).count()) /
                           static_cast<double>(output.cols());
        EXPECT_NEAR(off, 0.05 + 0.85 * place, 0.01) << seed << ", " << layer << ", " << unit;
        EXPECT_GE(weights.row(unit).head(1)(0) * (rises ? 1.0F : -1.0F), 0.0F);
      }
      input = output.cwiseMax(0.0F);
    }
    // The loads of all pieces are still the estimate, by their geometric mean.
    const MatrixXf& last = network.parameters()[2 * (kLayers - 1)];
    const Index features = last.cols() - kFeatures;
    const Eigen::VectorXf mean_u =
        (last.leftCols(features) * input + last.rightCols(kFeatures) * batch.features)
            .rowwise()
            .mean() +
        network.parameters()[2 * (kLayers - 1) + 1].col(0);
    Random again(seed);
    const TrainableNetwork before(shape, again);
    const Eigen::VectorXf mean_before =
        (before.parameters()[2 * (kLayers - 1)].rightCols(kFeatures) * batch.features)
            .rowwise()
            .mean() +
        before.parameters()[2 * (kLayers - 1) + 1].col(0);
    EXPECT_LT((mean_u - mean_before).cwiseAbs().maxCoeff(), 1e-3F) << seed;
  }
}

TEST(TrainableNetwork, PiecesThatAreAllAlikeCanBeBegunWith) {
  for (std::uint64_t seed = 0; seed < 20; ++seed) {
    Random random(seed);
    TrainableNetwork network(small_shape(kBoundedLoads), random);
    PieceBatch batch = random_batch(7, random);
    batch.features.colwise() = Eigen::VectorXf(batch.features.col(0).array() + 3.0F);
    network.spread_units(batch);
    for (const MatrixXf& parameter : network.parameters()) {
      EXPECT_LT(parameter.cwiseAbs().maxCoeff(), 1e3F) << seed;
    }
  }
}

TEST(TrainableNetwork, TheLinearPartLeavesRoomForTheHiddenUnitsWhileTrainedFromNothing) {
  Random random(2);
  TrainableNetwork network(small_shape(kBoundedLoads), random);
  MatrixXf& linear = network.parameters()[2 * kLayers + 3];
  EXPECT_NEAR(linear.sum(), 0.8F, 1e-2F);
  linear.setConstant(1.0F);
  network.project();
  EXPECT_NEAR(linear.sum(), 0.8F, 1e-5F);
  // One that goes on may have learned a steeper one.
  const PhysicalEstimate estimate = testing_networks::random_estimate(2);
  ComputeNetwork steep = testing_networks::random_network(kBoundedLoads, 2);
  std::fill(steep.linear.begin(), steep.linear.end(),
            1.4F / static_cast<float>(steep.linear.size()));
  TrainableNetwork goes_on(steep, 1.0);
  goes_on.project();
  EXPECT_NEAR(goes_on.parameters()[2 * steep.encoder.size() + 3].sum(), 1.4F, 1e-5F);
}

TEST(TrainableNetwork, StepsOfTheHeadAreSmaller) {
  Random random(2);
  EXPECT_EQ(TrainableNetwork(small_shape(kBoundedLoads), random).step_sizes(),
            (std::vector<float>{1, 1, 1, 1, 1, 1, 0.1F, 1, 0.03F, 0.03F, 0.003F}));
  EXPECT_EQ(TrainableNetwork(small_shape(kPublishedSums), random).step_sizes(),
            std::vector<float>(11, 1.0F));
}

TEST(TrainableNetwork, FactorsOfTheWidestPieceRiseToOne) {
  Random random(3);
  TrainableNetwork network = small_network(kBoundedLoads, {.widest_factors = true}, random);
  MatrixXf& factors = network.parameters().back();
  factors.col(0) << -9.0F, -0.5F, -0.8F, 0.3F, -0.1F, 0.2F;
  network.project();
  MatrixXf expected(kWidestClasses, 1);
  expected.col(0) << std::log(kLeastWidestFactor), -0.8F, -0.8F, -0.1F, -0.1F, 0.0F;
  EXPECT_EQ(factors, expected);
  const PhysicalEstimate estimate = testing_networks::random_estimate(3);
  const std::vector<float> written = exported(network, estimate).widest_factors;
  ASSERT_EQ(written.size(), kWidestClasses);
  EXPECT_FLOAT_EQ(written.front(), kLeastWidestFactor);
  EXPECT_FLOAT_EQ(written[3], std::exp(-0.1F));
  EXPECT_EQ(written.back(), 1.0F);
  // A network that goes on has them, whatever its speed.
  ComputeNetwork known = testing_networks::random_network(kBoundedLoads, 3);
  known.widest_factors = written;
  const TrainableNetwork goes_on(known, 2.0);
  EXPECT_FLOAT_EQ(goes_on.parameters().back()(1, 0), -0.8F);
}

TEST(TrainableNetwork, AdagradsOffsetIsNoLessThanSgdsAndWithinABoundOfTheEstimates) {
  Random random(3);
  TrainableNetwork network = small_network(kBoundedLoads, {.optimizer_offsets = true}, random);
  MatrixXf& ratio = network.parameters().back();
  const float offset = network.parameters()[2 * kLayers + 4](0, 0);
  const PhysicalEstimate estimate = testing_networks::random_estimate(3);
  EXPECT_FLOAT_EQ(exported(network, estimate).rowwise_adagrad_offset.value(),
                  offset * std::exp(0.4F));
  ratio(0, 0) = -0.5F;
  network.project();
  EXPECT_EQ(ratio(0, 0), 0.0F);
  EXPECT_EQ(exported(network, estimate).rowwise_adagrad_offset, offset);
  ratio(0, 0) = 9.0F;
  network.project();
  const float most = small_shape(kBoundedLoads).estimate_offset_ms * 4.0F;
  EXPECT_FLOAT_EQ(exported(network, estimate).rowwise_adagrad_offset.value(), most);
  // A network that goes on has it, whatever its speed.
  ComputeNetwork known = testing_networks::random_network(kBoundedLoads, 3);
  known.rowwise_adagrad_offset = 1.25F * known.offset;
  const TrainableNetwork goes_on(known, 2.0);
  EXPECT_FLOAT_EQ(goes_on.parameters().back()(0, 0), std::log(1.25F));
}

TEST(TrainableNetwork, ProjectionBringsAnyParametersIntoTheirBounds) {
  for (std::uint64_t seed = 0; seed < 50; ++seed) {
    Random random(seed);
    const PhysicalEstimate estimate = testing_networks::random_estimate(seed);
    NetworkShape shape = real_shape(estimate);
    if (seed % 5 == 4) shape.encoder = {4};
    TrainableNetwork network(shape, random);
    const double size = std::exp2(random.uniform(-6.0, 6.0));
    for (MatrixXf& parameter : network.parameters()) {
      parameter = parameter.unaryExpr(
          [&](float value) { return value + static_cast<float>(size * random.normal()); });
    }
    network.project();
    const ComputeNetwork result = exported(network, estimate);
    EXPECT_EQ(broken_bound(result), "") << seed;
    for (const float value : result.linear) EXPECT_GE(value, 0.0F);
    for (const float value : result.head_output) EXPECT_GE(value, 0.0F);
    for (const float value : result.head.weights) EXPECT_GE(value, 0.0F);
    // Once is enough.
    const std::vector<MatrixXf> once = network.parameters();
    network.project();
    for (std::size_t at = 0; at < once.size(); ++at) {
      const float change = (network.parameters()[at] - once[at]).cwiseAbs().maxCoeff();
      EXPECT_LE(change, 1e-5F * (1.0F + once[at].cwiseAbs().maxCoeff())) << seed << ", " << at;
    }
  }
}

TEST(TrainableNetwork, ProjectionLeavesWhatIsWithinItsBounds) {
  Random random(3);
  TrainableNetwork network(small_shape(kBoundedLoads), random);
  const std::vector<MatrixXf> before = network.parameters();
  network.project();
  for (std::size_t at = 0; at < before.size(); ++at) {
    EXPECT_EQ(network.parameters()[at], before[at]) << at;
  }
}

TEST(TrainableNetwork, ProjectionLeavesThePublishedNetworkAlone) {
  Random random(1);
  TrainableNetwork published(small_shape(kPublishedSums), random);
  for (MatrixXf& parameter : published.parameters()) parameter.setConstant(-1.0F);
  published.project();
  for (const MatrixXf& parameter : published.parameters()) EXPECT_EQ(parameter.maxCoeff(), -1.0F);
}

/// Real pieces, their features standardised by `mean` and `scale`, all in one sample.
struct RealPieces {
  std::vector<TableStatistics> tables;
  std::vector<std::int64_t> columns;
  OperatorSettings settings{1024, Optimizer::sgd};
};

RealPieces real_pieces(Random& random) {
  RealPieces pieces;
  for (int i = 0; i < 5; ++i) {
    TableStatistics table{
        random.integer(10, 100'000), random.uniform(0.5, 20.0), DataType::fp32, {}};
    table.reuse_histogram[random.below(kReuseBins)] = 1.0;
    pieces.tables.push_back(table);
    pieces.columns.push_back(std::int64_t{4} << random.below(6));
  }
  return pieces;
}

PieceBatch as_batch(const RealPieces& pieces, FeatureSchema schema,
                    const PhysicalEstimate& estimate, const Eigen::VectorXf& mean,
                    const Eigen::VectorXf& scale) {
  PieceBatch batch;
  batch.first_piece = {0, static_cast<int>(pieces.tables.size())};
  batch.target = Eigen::VectorXf::Ones(1);
  batch.features.resize(mean.size(), batch.first_piece.back());
  batch.log_estimate.resize(batch.features.cols());
  for (Index i = 0; i < batch.features.cols(); ++i) {
    std::vector<float> features(static_cast<std::size_t>(mean.size()));
    shard_features(schema, pieces.tables[i], pieces.columns[i], pieces.settings, estimate,
                   features);
    batch.log_estimate[i] = static_cast<float>(log_estimate(features));
    batch.features.col(i) = (Eigen::Map<const Eigen::VectorXf>(features.data(), mean.size()) - mean)
                                .cwiseProduct(scale);
  }
  return batch;
}

class ExportTest : public testing::TestWithParam<ComputeArchitecture> {};

TEST_P(ExportTest, InferencePredictsWhatTrainingDid) {
  const FeatureSchema schema =
      GetParam() == kPublishedSums ? FeatureSchema::published : FeatureSchema::work;
  const auto features = static_cast<Index>(feature_names(schema).size());
  Random random(8);
  for (int repeat = 0; repeat < 20; ++repeat) {
    const PhysicalEstimate estimate = testing_networks::random_estimate(random());
    NetworkShape shape = real_shape(estimate);
    shape.architecture = GetParam();
    shape.num_features = static_cast<int>(features);
    TrainableNetwork network(shape, random);
    disturb(network, random);
    if (GetParam() == kPublishedSums) network.parameters()[2 * kLayers + 3].setZero();
    const Eigen::VectorXf mean = Eigen::VectorXf::Constant(features, 8.0F);
    const Eigen::VectorXf scale = Eigen::VectorXf::Constant(features, 0.1F);
    const RealPieces pieces = real_pieces(random);
    const double trained = network.predict(as_batch(pieces, schema, estimate, mean, scale))[0];
    ComputeNetwork inference = network.exported(schema, mean, scale, 2.5F);
    inference.estimate = estimate;
    const NeuralComputeModel model(inference, {});
    std::vector<double> state(model.state_size(), 0.0);
    for (std::size_t i = 0; i < pieces.tables.size(); ++i) {
      std::vector<double> piece(model.state_size());
      model.encode(pieces.tables[i], pieces.columns[i], pieces.settings, piece);
      for (std::size_t k = 0; k < state.size(); ++k) state[k] += piece[k];
    }
    const double expected = std::max(2.5 * trained, 0.0);
    EXPECT_NEAR(model.cost(state), expected, 1e-4 * (1.0 + expected));
  }
}

INSTANTIATE_TEST_SUITE_P(Architectures, ExportTest, testing::Values(kBoundedLoads, kPublishedSums));

}  // namespace
}  // namespace neuroshard
