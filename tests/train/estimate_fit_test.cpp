// The fit of the physical estimate: it finds the weights that costs were made with, and keeps what
// bounds a prediction above 0.
#include "neuroshard/train/compute/estimate_fit.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "neuroshard/core/numbers/random.h"

namespace neuroshard {
namespace {

using Eigen::Index;
using Eigen::MatrixXd;
using Eigen::VectorXd;

/// Samples of 1 to 10 pieces, the first term, and of other terms that span orders of magnitude.
MatrixXd random_terms(Index terms, Index samples, Random& random) {
  MatrixXd result(terms, samples);
  for (Index sample = 0; sample < samples; ++sample) {
    result(0, sample) = static_cast<double>(random.integer(1, 10));
    for (Index term = 1; term < terms; ++term) {
      result(term, sample) = random.below(5) == 0 ? 0.0 : std::exp2(random.uniform(5.0, 25.0));
    }
  }
  return result;
}

VectorXd costs_of(const PhysicalEstimate& estimate, const MatrixXd& terms) {
  const VectorXd weights = Eigen::Map<const VectorXd>(
      estimate.weights_ms.data(), static_cast<Index>(estimate.weights_ms.size()));
  return (terms.transpose() * weights).array() + estimate.offset_ms;
}

TEST(EstimateFit, FindsTheWeightsThatCostsWereMadeWith) {
  Random random(3);
  for (int repeat = 0; repeat < 10; ++repeat) {
    PhysicalEstimate truth{.offset_ms = 0.02, .weights_ms = {}};
    truth.weights_ms = {0.004, 3e-6, 0.0, 2e-7, 5e-6, 0.0};
    const MatrixXd terms = random_terms(6, 300, random);
    const PhysicalEstimate fitted = fit_physical_estimate(terms, costs_of(truth, terms));
    ASSERT_EQ(fitted.weights_ms.size(), truth.weights_ms.size());
    EXPECT_NEAR(fitted.offset_ms, truth.offset_ms, 1e-3 * truth.offset_ms);
    for (std::size_t i = 0; i < truth.weights_ms.size(); ++i) {
      EXPECT_NEAR(fitted.weights_ms[i], truth.weights_ms[i], 1e-3 * truth.weights_ms[i] + 1e-11)
          << i;
    }
  }
}

TEST(EstimateFit, IsNearCostsThatScatter) {
  Random random(4);
  PhysicalEstimate truth{.offset_ms = 0.02, .weights_ms = {}};
  truth.weights_ms = {0.004, 3e-6, 5e-6};
  const MatrixXd terms = random_terms(3, 500, random);
  VectorXd costs = costs_of(truth, terms);
  for (double& cost : costs) cost *= std::exp(0.3 * random.normal());
  const VectorXd fitted = costs_of(fit_physical_estimate(terms, costs), terms);
  const VectorXd truly = costs_of(truth, terms);
  // A factor too high and one too low count alike, so the fit is in the middle of the scatter.
  EXPECT_NEAR((fitted.array() / truly.array()).log().mean(), 0.0, 0.05);
}

TEST(EstimateFit, AGranularityLeavesSmallCostsToThemselves) {
  // What no weight can tell: every cost below 1 ms is three times what it should be.
  Random random(8);
  PhysicalEstimate truth{.offset_ms = 0.001, .weights_ms = {}};
  truth.weights_ms = {0.002, 3e-6, 5e-6};
  const MatrixXd terms = random_terms(3, 500, random);
  const VectorXd wanted = costs_of(truth, terms);
  const VectorXd costs = (wanted.array() < 1.0).select(3.0 * wanted.array(), wanted.array());
  const auto error_of_large = [&](double granularity_ms) {
    const VectorXd fitted = costs_of(fit_physical_estimate(terms, costs, granularity_ms), terms);
    double sum = 0.0;
    for (Eigen::Index i = 0; i < costs.size(); ++i) {
      if (wanted[i] >= 1.0) sum += std::abs(std::log(fitted[i] / wanted[i]));
    }
    return sum;
  };
  EXPECT_GT((wanted.array() < 1.0).count(), 50);
  EXPECT_GT((wanted.array() >= 1.0).count(), 50);
  EXPECT_LT(error_of_large(10.0), 0.5 * error_of_large(0.0));
}

/// Largest |ln(weight / wanted weight)| of those above 0.
double largest_change(const PhysicalEstimate& estimate, const PhysicalEstimate& wanted) {
  double largest = 0.0;
  for (std::size_t i = 0; i < wanted.weights_ms.size(); ++i) {
    if (wanted.weights_ms[i] == 0.0) continue;
    largest = std::max(largest, std::abs(std::log(estimate.weights_ms[i] / wanted.weights_ms[i])));
  }
  return largest;
}

TEST(EstimateFit, AdaptsAsFarAsItsSamplesTell) {
  Random random(5);
  const PhysicalEstimate prior{.offset_ms = 0.02, .weights_ms = {0.004, 3e-6, 2e-7, 5e-6}};
  const PhysicalEstimate truth{.offset_ms = 0.03, .weights_ms = {0.004, 6e-6, 1e-7, 5e-6}};
  const MatrixXd many = random_terms(4, 400, random);
  EXPECT_LT(largest_change(adapted_estimate(many, costs_of(truth, many), prior, 0.35), truth),
            0.05);
  const MatrixXd few = random_terms(4, 3, random);
  EXPECT_LT(largest_change(adapted_estimate(few, costs_of(truth, few), prior, 100.0), prior), 0.01);
}

TEST(EstimateFit, AWeightThatThePriorLacksIsFound) {
  Random random(6);
  const PhysicalEstimate prior{.offset_ms = 0.02, .weights_ms = {0.004, 3e-6, 0.0}};
  const PhysicalEstimate truth{.offset_ms = 0.02, .weights_ms = {0.004, 3e-6, 4e-6}};
  const MatrixXd terms = random_terms(3, 400, random);
  const PhysicalEstimate adapted = adapted_estimate(terms, costs_of(truth, terms), prior, 0.35);
  EXPECT_NEAR(adapted.weights_ms[2], truth.weights_ms[2], 0.05 * truth.weights_ms[2]);
  // What no sample has stays as it was.
  MatrixXd without = terms;
  without.row(2).setZero();
  EXPECT_NEAR(adapted_estimate(without, costs_of(truth, without), prior, 0.35).weights_ms[2], 0.0,
              1e-12);
}

TEST(EstimateFit, WorkThatHardlyOccursKeepsItsWeight) {
  Random random(8);
  const PhysicalEstimate prior{.offset_ms = 0.02, .weights_ms = {0.004, 3e-6, 2e-6}};
  MatrixXd terms = random_terms(3, 150, random);
  terms.row(2).setZero();
  VectorXd costs = costs_of(prior, terms);
  // In three samples it is a hundredth of the cost, and they take half as long again for something
  // else: were it for this work, it would be fifty times as dear.
  for (const Index sample : {10, 60, 110}) {
    terms(2, sample) = 0.01 * costs[sample] / prior.weights_ms[2];
    costs[sample] *= 1.51;
  }
  for (const double strength : {0.35, 1.0}) {
    const PhysicalEstimate adapted = adapted_estimate(terms, costs, prior, strength);
    EXPECT_LT(adapted.weights_ms[2], 2.0 * prior.weights_ms[2]) << strength;
    EXPECT_GT(adapted.weights_ms[2], 0.5 * prior.weights_ms[2]) << strength;
  }
}

TEST(EstimateFit, NoWeightIsBelowZero) {
  Random random(5);
  const MatrixXd terms = random_terms(5, 100, random);
  VectorXd costs(100);
  for (double& cost : costs) cost = std::exp(random.normal());  // nothing to do with the terms
  const PhysicalEstimate fitted = fit_physical_estimate(terms, costs);
  for (const double weight : fitted.weights_ms) EXPECT_GE(weight, 0.0);
}

TEST(EstimateFit, OffsetAndPieceAreAlwaysAboveZero) {
  Random random(6);
  PhysicalEstimate truth;  // launches cost nothing at all
  truth.weights_ms = {0.0, 3e-6, 5e-6};
  const MatrixXd terms = random_terms(3, 200, random);
  const PhysicalEstimate fitted =
      fit_physical_estimate(terms, costs_of(truth, terms).array() + 1e-9);
  EXPECT_GT(fitted.offset_ms, 0.0);
  EXPECT_GT(fitted.weights_ms.front(), 0.0);
}

TEST(EstimateFit, FewerSamplesThanTermsWillDo) {
  Random random(7);
  PhysicalEstimate truth{.offset_ms = 0.1, .weights_ms = {}};
  truth.weights_ms.assign(20, 1e-6);
  const MatrixXd terms = random_terms(20, 8, random);
  const VectorXd costs = costs_of(truth, terms);
  const VectorXd fitted = costs_of(fit_physical_estimate(terms, costs), terms);
  // The least offset is a tenth of the cheapest sample.
  for (Index i = 0; i < costs.size(); ++i) EXPECT_NEAR(fitted[i] / costs[i], 1.0, 0.12);
}

TEST(EstimateFit, IsRoundedAsModelFilesAre) {
  Random random(8);
  PhysicalEstimate truth{.offset_ms = 0.1, .weights_ms = {}};
  truth.weights_ms = {0.01, 1.0 / 3.0};
  const MatrixXd terms = random_terms(2, 50, random);
  const PhysicalEstimate fitted = fit_physical_estimate(terms, costs_of(truth, terms));
  EXPECT_EQ(fitted.offset_ms, static_cast<double>(static_cast<float>(fitted.offset_ms)));
  for (const double weight : fitted.weights_ms) {
    EXPECT_EQ(weight, static_cast<double>(static_cast<float>(weight)));
  }
}

}  // namespace
}  // namespace neuroshard
