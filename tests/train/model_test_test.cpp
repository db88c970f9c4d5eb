// A model against measured costs: errors and bias are those that were put in.
#include "neuroshard/train/compute/model_test.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "neuroshard/core/error.h"
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
  [[nodiscard]] std::vector<std::string> outside_range(const Task& task) const override {
    (void)task;
    return {};
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

}  // namespace
}  // namespace neuroshard
