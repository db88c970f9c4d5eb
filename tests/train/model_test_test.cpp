// A model against measured costs: errors and bias are those that were put in, and samples whose two
// measurements disagree are left out before anything is predicted.
#include "neuroshard/train/compute/model_test.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <filesystem>

#include "neuroshard/collect/compute/set_sampling.h"
#include "neuroshard/core/error.h"
#include "neuroshard/core/numbers/random.h"
#include "tests/io/io_test_util.h"
#include "tests/train/synthetic_costs.h"

namespace neuroshard {
namespace {

/// Predicts `factor` of the true cost of make_header()'s tables.
class Formula : public ComputeCostModel {
 public:
  explicit Formula(double factor) : factor_(factor) {}
  [[nodiscard]] std::string name() const override { return "formula"; }
  [[nodiscard]] std::size_t state_size() const override { return 2; }
  void encode(const TableStatistics& table, std::int64_t num_columns,
              const OperatorSettings& settings, std::span<double> contribution) const override {
    const double lookups = static_cast<double>(settings.batch_size) * table.pooling_factor;
    contribution[0] = 1.0;
    contribution[1] = 2e-6 * lookups * static_cast<double>(num_columns);
  }
  void costs_with(std::span<const double> states, std::span<const double> piece,
                  std::span<double> costs) const override {
    ASSERT_TRUE(piece.empty());
    for (std::size_t i = 0; i < costs.size(); ++i) {
      costs[i] = factor_ * (0.05 + 0.02 * states[2 * i] + states[2 * i + 1]);
    }
  }

 private:
  double factor_;
};

TEST(ModelTest, ReportsTheErrorAndItsDirection) {
  const TemporaryFolder folder;
  const std::string path = folder.file("costs.jsonl");
  testing_costs::write_costs(path, testing_costs::make_header(), 40);
  const ModelTest exact = test_compute_model(Formula(1.0), path);
  EXPECT_EQ(exact.metrics.count, 40u);
  EXPECT_NEAR(exact.metrics.mape, 0.0, 1e-9);
  EXPECT_NEAR(exact.bias, 0.0, 1e-9);
  EXPECT_NEAR(exact.metrics.kendall_tau.value(), 1.0, 1e-9);
  const ModelTest low = test_compute_model(Formula(0.8), path);
  EXPECT_NEAR(low.metrics.mape, 0.2, 1e-9);
  EXPECT_NEAR(low.bias, 0.25, 1e-9);
}

TEST(ModelTest, NamesEverySampleWithBothCosts) {
  const TemporaryFolder folder;
  const std::string path = folder.file("costs.jsonl");
  const ComputeCostsHeader header = testing_costs::make_header();
  testing_costs::write_costs(path, header, 10);
  const std::vector<ComputeCostSample> samples = read_compute_costs(path).samples;
  const ModelTest test = test_compute_model(Formula(2.0), path);
  ASSERT_EQ(test.samples.size(), 10u);
  for (std::size_t i = 0; i < samples.size(); ++i) {
    EXPECT_EQ(test.samples[i].id, samples[i].info.id);
    const double cost = testing_costs::true_cost(header, samples[i].pieces);
    EXPECT_NEAR(test.samples[i].measured_ms, cost, 1e-9 * cost);
    EXPECT_NEAR(test.samples[i].predicted_ms, 2.0 * cost, 1e-9 * cost);
  }
  EXPECT_EQ(test.left_out, 0u);
}

TEST(ModelTest, ASampleWithoutNumberIsItsLine) {
  const TemporaryFolder folder;
  const std::string path = folder.file("costs.jsonl");
  const ComputeCostsHeader header = testing_costs::make_header();
  ComputeCostSample sample = testing_costs::make_sample(header, {{0, 8}}, 0);
  sample.info.id.reset();
  {
    ComputeCostsWriter writer(path, header);
    writer.append(sample);
    writer.append(sample);
  }
  const ModelTest test = test_compute_model(Formula(1.0), path);
  EXPECT_EQ(test.samples[0].id, 2);
  EXPECT_EQ(test.samples[1].id, 3);
}

TEST(ModelTest, ASliceIsPricedAsOne) {
  const TemporaryFolder folder;
  const std::string path = folder.file("costs.jsonl");
  const ComputeCostsHeader header = testing_costs::make_header();
  const double lookups = 1024.0 * header.tables[0].pooling_factor;
  {
    ComputeCostsWriter writer(path, header);
    ComputeCostSample sample = testing_costs::make_sample(header, {{0, 64, 0.25}}, 0);
    sample.forward_ms = sample.backward_ms = 0.5 * (0.07 + 2e-6 * 64.0 * 0.25 * lookups);
    writer.append(sample);
  }
  EXPECT_NEAR(test_compute_model(Formula(1.0), path).metrics.mape, 0.0, 1e-9);
}

TEST(ModelTest, CostsAreBroughtToTheUsualSpeedWhereItIsGiven) {
  const TemporaryFolder folder;
  const std::string path = folder.file("costs.jsonl");
  ComputeCostsHeader header = testing_costs::make_header();
  header.reference_sets = "reference-1";
  {
    ComputeCostsWriter writer(path, header);
    for (int i = 0; i < 3; ++i) {  // the machine is slower by half each time
      ComputeCostSample sample = testing_costs::make_sample(header, {{0, 64}}, i);
      const double slowness = std::pow(1.5, i);
      sample.forward_ms *= slowness;
      sample.backward_ms *= slowness;
      sample.reference_ms = {2.0 * slowness, 8.0 * slowness};
      writer.append(sample);
    }
  }
  const auto ratios = [&](const ModelTestOptions& options) {
    std::vector<double> found;
    for (const TestedSample& sample : test_compute_model(Formula(1.0), path, options).samples) {
      found.push_back(sample.measured_ms / sample.predicted_ms);
    }
    return found;
  };
  using testing::DoubleNear;
  EXPECT_THAT(ratios({}), testing::ElementsAre(DoubleNear(1.0, 1e-9), DoubleNear(1.5, 1e-9),
                                               DoubleNear(2.25, 1e-9)));
  // Of 2 and 8 the geometric mean is 4.
  EXPECT_THAT(ratios({.usual = UsualSpeed{{"reference-1", 4.0}}}),
              testing::Each(DoubleNear(1.0, 1e-9)));
  EXPECT_THAT(ratios({.usual = UsualSpeed{{"reference-1", 6.0}}}),
              testing::Each(DoubleNear(1.5, 1e-9)));
  EXPECT_EQ(input_error([&] {
              ratios({.usual = UsualSpeed{{"others", 6.0}}});
            }),
            path + ": reference_sets: expected others, got reference-1");
  const std::string without = folder.file("without.jsonl");
  testing_costs::write_costs(without, testing_costs::make_header(), 3);
  EXPECT_EQ(input_error([&] {
              (void)test_compute_model(Formula(1.0), without,
                                       {.usual = UsualSpeed{{"reference-1", 4.0}}});
            }),
            without + ": reference_sets: expected those of the model's samples, got none");
}

/// Two files of the same samples, the second's times multiplied by a factor for each sample.
class ModelTestAgain : public testing::Test {
 protected:
  void write(const std::vector<double>& factors) {
    testing_costs::write_costs(first_, header_, static_cast<int>(factors.size()));
    std::filesystem::remove(second_);
    ComputeCostsWriter writer(second_, header_);
    for (std::size_t i = 0; i < factors.size(); ++i) {
      if (factors[i] == 0.0) continue;  // not measured again
      ComputeCostSample sample = samples()[i];
      sample.forward_ms *= factors[i];
      sample.backward_ms *= factors[i];
      writer.append(sample);
    }
  }
  [[nodiscard]] std::vector<ComputeCostSample> samples() const {
    return read_compute_costs(first_).samples;
  }

  TemporaryFolder folder_;
  std::string first_ = folder_.file("first.jsonl");
  std::string second_ = folder_.file("second.jsonl");
  ComputeCostsHeader header_ = testing_costs::make_header();
};

TEST_F(ModelTestAgain, PairsThatDisagreeAreLeftOut) {
  write({1.0, 1.14, 1.16, 1.0 / 1.14, 1.0 / 1.16, 0.0, 1.0});
  const ModelTest test = test_compute_model(Formula(1.0), first_, {.again = second_});
  EXPECT_EQ(test.left_out, 3u);
  ASSERT_EQ(test.samples.size(), 4u);
  EXPECT_EQ(test.samples[1].id, 1);
  EXPECT_EQ(test.samples[2].id, 3);
  EXPECT_EQ(test.samples[3].id, 6);
  // Of two measurements the geometric mean counts.
  EXPECT_NEAR(test.samples[1].measured_ms / test.samples[1].predicted_ms, std::sqrt(1.14), 1e-9);
  EXPECT_NEAR(test.samples[2].measured_ms / test.samples[2].predicted_ms, std::sqrt(1.0 / 1.14),
              1e-9);
}

TEST_F(ModelTestAgain, WhatIsLeftOutDoesNotDependOnTheModel) {
  write({1.0, 1.3, 1.1, 0.7, 1.0});
  for (const double factor : {0.01, 1.0, 100.0}) {
    const ModelTest test = test_compute_model(Formula(factor), first_, {.again = second_});
    EXPECT_EQ(test.left_out, 2u);
    EXPECT_EQ(test.samples.size(), 3u);
  }
}

TEST_F(ModelTestAgain, TheOrderOfLinesDoesNotMatter) {
  write({1.0, 1.1, 1.1});
  std::vector<ComputeCostSample> measured = read_compute_costs(second_).samples;
  std::reverse(measured.begin(), measured.end());
  std::filesystem::remove(second_);
  {
    ComputeCostsWriter writer(second_, header_);
    for (const ComputeCostSample& sample : measured) writer.append(sample);
  }
  EXPECT_EQ(test_compute_model(Formula(1.0), first_, {.again = second_}).left_out, 0u);
}

TEST_F(ModelTestAgain, RefusesMeasurementsOfSomethingElse) {
  write({1.0, 1.0});
  const auto refusal = [&] {
    return input_error([&] { (void)test_compute_model(Formula(1.0), first_, {.again = second_}); });
  };
  std::filesystem::remove(second_);
  {
    ComputeCostsWriter writer(second_, header_);
    ComputeCostSample other = samples()[1];
    other.pieces.front().num_columns += 4;
    writer.append(other);
  }
  EXPECT_EQ(refusal(),
            second_ + ": sample 1: expected the pieces of the first measurement, got others");
  std::filesystem::remove(second_);
  ComputeCostsHeader header = header_;
  header.batch_size *= 2;
  testing_costs::write_costs(second_, header, 2);
  EXPECT_EQ(refusal(), second_ +
                           ": expected the batch size, optimizer and tables of the first "
                           "measurement, got others");
}

TEST_F(ModelTestAgain, RefusesPairsThatAllDisagree) {
  write({2.0, 2.0});
  EXPECT_EQ(
      input_error([&] { (void)test_compute_model(Formula(1.0), first_, {.again = second_}); }),
      first_ + ": expected measured samples, got none");
}

TEST(ModelTest, FilesAreJoinedSampleBySample) {
  const TemporaryFolder folder;
  std::vector<FileTest> tests;
  for (const int count : {30, 10}) {
    const std::string path = folder.file(fmt::format("{}.jsonl", count));
    testing_costs::write_costs(path, testing_costs::make_header(), count,
                               static_cast<std::uint64_t>(count));
    tests.push_back({path, test_compute_model(Formula(count == 30 ? 1.0 : 1.5), path)});
  }
  tests[1].result.left_out = 2;
  const ModelTest all = joined(tests);
  EXPECT_EQ(all.metrics.count, 40u);
  EXPECT_EQ(all.left_out, 2u);
  EXPECT_NEAR(all.metrics.mape, 0.125, 1e-9);  // not the mean of 0 and 0.5
  EXPECT_NEAR(all.metrics.percentile_95, 0.5, 1e-9);
  EXPECT_NEAR(all.bias, 0.0, 1e-9);
  EXPECT_EQ(joined({}).metrics.count, 0u);
}

TEST(ModelTest, RefusesAFileWithoutSamples) {
  const TemporaryFolder folder;
  const std::string path = folder.file("costs.jsonl");
  testing_costs::write_costs(path, testing_costs::make_header(), 0);
  try {
    (void)test_compute_model(Formula(1.0), path);
    FAIL();
  } catch (const InputError& error) {
    EXPECT_EQ(std::string(error.what()), path + ": expected measured samples, got none");
  }
}

TEST(ModelTest, SetsOfPlansTellHowFarDevicesDiffer) {
  const TemporaryFolder folder;
  const std::string path = folder.file("plans.jsonl");
  for (const bool is_of_plans : {false, true}) {
    ComputeCostsHeader header = testing_costs::make_header();
    if (is_of_plans) header.sampling->set("kind", kPlannedSetsKind);
    std::filesystem::remove(path);
    ComputeCostsWriter writer(path, header);
    Random random(3);
    for (int set = 0; set < 800; ++set) {
      // Plans of four devices with as many columns of one table, another for each plan.
      ComputeCostSample sample =
          testing_costs::make_sample(header, {{set / 4 % 20, 4 * (1 + set / 80)}}, set);
      const double factor = std::exp(0.1 * random.normal());
      sample.forward_ms *= factor;
      sample.backward_ms *= factor;
      writer.append(sample);
    }
    const std::vector<FileTest> tests{{path, test_compute_model(Formula(0.7), path)}};
    const auto scatter = device_scatter(tests);
    ASSERT_EQ(scatter.has_value(), is_of_plans);
    if (!scatter) continue;
    EXPECT_NEAR(scatter->scatter, 0.1, 0.015);
    EXPECT_GE(scatter->pairs, 600u);
  }
}

}  // namespace
}  // namespace neuroshard
