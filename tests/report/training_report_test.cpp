// Metrics as text: per cent and units, no lines for empty parts, and plurals; and the lines of
// collections and refinements.
#include "neuroshard/report/training_report.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "neuroshard/report/check_report.h"
#include "neuroshard/report/collection_report.h"
#include "neuroshard/report/model_report.h"
#include "neuroshard/report/refinement_report.h"

namespace neuroshard {
namespace {

using testing::HasSubstr;
using testing::Not;

PredictionMetrics metrics(std::size_t count) {
  PredictionMetrics metrics;
  metrics.count = count;
  metrics.mse = 0.25;
  metrics.mae = 0.5;
  metrics.mape = 0.0375;
  metrics.kendall_tau = 0.98;
  return metrics;
}

TEST(MetricsTable, LeavesOutRowsOfNothing) {
  PredictionMetrics constant = metrics(1);
  constant.kendall_tau.reset();
  const std::vector<MetricsRow> rows{
      {"training", metrics(12)}, {"unseen tables", {}}, {"validation", constant}};
  EXPECT_EQ(
      metrics_table("samples", rows),
      "                                 samples  MSE [ms^2]  MAE [ms]      MAPE          tau\n"
      "training                              12      0.2500    0.5000     3.75%       0.9800\n"
      "validation                             1      0.2500    0.5000     3.75%  not "
      "defined\n");
}

TEST(TrainingText, CountsNetworks) {
  ComputeTrainingResult result;
  result.training = metrics(12);
  result.best_epochs = {7};
  result.seconds = 2.0;
  EXPECT_THAT(training_text(result, "m.safetensors"),
              HasSubstr("m.safetensors: 1 network, best epoch 7, 2.00 s\n"));
  EXPECT_THAT(training_text(result, "m.safetensors"), testing::Not(HasSubstr("planned alike")));
  result.scatter = {0.0325, 60};
  EXPECT_THAT(training_text(result, "m.safetensors"),
              HasSubstr("devices that are planned alike differ by 3.2%, by 60 pairs of devices of "
                        "one plan\nm.safetensors: "));
  result.best_epochs = {7, 9};
  EXPECT_THAT(training_text(result, "m.safetensors"),
              HasSubstr("m.safetensors: 2 networks, best epochs 7, 9, 2.00 s\n"));
}

TEST(TrainingText, RivalsStandBelowTheModel) {
  CommunicationTrainingResult result;
  result.unseen_placements = result.links_unseen_placements = {metrics(4), metrics(4)};
  result.best_epoch = 3;
  result.epochs.resize(5);
  const std::vector<RivalMetrics> rivals{{"analytic", {metrics(4), metrics(4)}, {}}};
  const std::string text = training_text(result, "c.safetensors", rivals);
  EXPECT_LT(text.find("unseen placements, forward"), text.find("  analytic, forward"));
  EXPECT_THAT(text, Not(HasSubstr("held-out")));  // there were no such files
  EXPECT_THAT(text, HasSubstr("c.safetensors: best epoch 3 of 5, "));
}

TEST(RefinementText, SaysWhatGapAndBiasAre) {
  RefinementRound round;
  round.devices = metrics(8);
  EXPECT_EQ(refinement_heading().size(), refinement_round_line(round).size());
  RefinementResult result;
  result.rounds = {round};
  const std::string text = refinement_text(result, 0.05, "m.safetensors");
  EXPECT_THAT(text, HasSubstr("gap: mean of |predicted/measured - 1|"));
  EXPECT_THAT(text, HasSubstr("1 round: new plans still differ by more than 5.0%\n"));
}

TEST(CollectionText, Plurals) {
  EXPECT_EQ(collected_text("c.jsonl", 1), "c.jsonl: 1 sample measured\n");
  EXPECT_EQ(collected_text("c.jsonl", 0), "c.jsonl: 0 samples measured\n");
  EXPECT_EQ(merged_text("c.jsonl", {2, 0, 1}),
            "c.jsonl: 2 samples, 0 skipped, 1 repetition of a sample left out\n");
}

TEST(CheckText, SaysWhatIsValid) {
  PlanDocument document;
  document.task.tables.resize(1);
  document.task.topology.world_size = 1;
  document.plan.shards.resize(2);
  EXPECT_EQ(check_text("p.json", document, {}), "p.json: valid: 2 shards of 1 table on 1 device\n");
  EXPECT_EQ(check_text("p.json", document, {"a", "b"}), "p.json: a\np.json: b\n");
  EXPECT_EQ(to_line(check_json("p.json", {"a"})),
            R"({"format": "neuroshard/check/1", "plan": "p.json", "valid": false, )"
            R"("violations": ["a"]})");
}

TEST(ModelTestsTable, ErrorsArePerCent) {
  FileTest test{"folder/costs.jsonl", {metrics(60), 0.012, 3, {}}};
  test.result.metrics.median = 0.025;
  test.result.metrics.percentile_95 = 0.125;
  test.result.metrics.largest_factor = 1.75;
  EXPECT_EQ(
      model_tests_table({&test, 1}),
      "file         samples  left out  MAE [ms]  MAPE  median    95%  worst   bias     tau\n"
      "costs.jsonl       60         3    0.5000  3.8%    2.5%  12.5%  1.75x  +1.2%  0.9800\n");
}

TEST(ModelTestsTable, SeveralFilesAreSummedUpSampleBySample) {
  FileTest first{"a.jsonl", {metrics(1), 0.0, 1, {{0, 1.0, 1.0}}}};
  FileTest second{"b.jsonl", {metrics(1), 0.0, 2, {{0, 3.0, 2.0}}}};
  const std::vector<FileTest> tests{first, second};
  const std::string text = model_tests_table(tests);
  const std::string all = text.substr(text.rfind("all"));
  EXPECT_THAT(all, HasSubstr(" 2 "));
  EXPECT_THAT(all, HasSubstr(" 3 "));
  EXPECT_THAT(all, HasSubstr(" 25.0%"));
  EXPECT_THAT(all, HasSubstr(" 1.50x"));
}

}  // namespace
}  // namespace neuroshard
