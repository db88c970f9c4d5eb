// Training data: reading of files, files that may not be mixed, and tables kept from training,
// which stay out of it.
#include "neuroshard/train/compute/compute_dataset.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <set>

#include "neuroshard/collect/compute/set_sampling.h"
#include "neuroshard/cost/compute/piece_work.h"
#include "neuroshard/io/checksum.h"
#include "neuroshard/train/compute/device_scatter.h"
#include "tests/io/io_test_util.h"
#include "tests/train/synthetic_costs.h"

namespace neuroshard {
namespace {

using testing::HasSubstr;
using testing_costs::kHeldOutShare;
using testing_costs::make_header;
using testing_costs::make_sample;
using testing_costs::tables_of_kind;
using testing_costs::write_costs;

class ComputeDatasetTest : public testing::Test {
 protected:
  std::string write(const std::string& name, const ComputeCostsHeader& header, int count = 50,
                    std::uint64_t seed = 1) {
    write_costs(folder_.file(name), header, count, seed);
    return folder_.file(name);
  }
  static ComputeDataset load(const std::vector<std::string>& paths) {
    return load_compute_dataset(paths, FeatureSchema::work);
  }

  TemporaryFolder folder_;
};

TEST_F(ComputeDatasetTest, ReadsFeaturesAndCostsOfEverySample) {
  const ComputeCostsHeader header = make_header();
  const std::string path = write("a.jsonl", header);
  const ComputeDataset dataset = load({path});
  const ComputeCosts costs = read_compute_costs(path);
  ASSERT_EQ(dataset.size(), costs.samples.size());
  std::vector<float> expected(feature_names(FeatureSchema::work).size());
  std::vector<double> terms(work_terms().size());
  PhysicalEstimate unit;  // before the fit, a piece costs 1 ms
  unit.weights_ms.assign(work_terms().size(), 0.0);
  unit.weights_ms.front() = 1.0;
  for (std::size_t i = 0; i < dataset.size(); ++i) {
    const ComputeCostSample& sample = costs.samples[i];
    EXPECT_DOUBLE_EQ(dataset.cost_ms[i], sample.forward_ms + sample.backward_ms);
    ASSERT_EQ(dataset.first_piece[i + 1] - dataset.first_piece[i],
              static_cast<int>(sample.pieces.size()));
    for (std::size_t s = 0; s < sample.pieces.size(); ++s) {
      const MeasuredTable& table = header.tables[sample.pieces[s].table];
      const TableStatistics statistics{table.num_embeddings, table.pooling_factor, table.data_type,
                                       table.reuse_histogram};
      const OperatorSettings settings{header.batch_size, header.optimizer};
      const std::int64_t columns = sample.pieces[s].num_columns;
      shard_features(FeatureSchema::work, statistics, columns, settings, unit, expected);
      const int at = dataset.first_piece[i] + static_cast<int>(s);
      const auto column = dataset.features.col(at);
      EXPECT_TRUE(std::equal(expected.begin(), expected.end(), column.begin()));
      write_work_terms(piece_work(statistics, columns, settings), statistics, settings, terms);
      for (std::size_t term = 0; term < terms.size(); ++term) {
        EXPECT_EQ(dataset.work(static_cast<Eigen::Index>(term), at),
                  static_cast<float>(terms[term]));
      }
    }
  }
  EXPECT_EQ(dataset.data_sha256, sha256_hex(sha256_file(path)));
  EXPECT_EQ(dataset.hardware, to_line(header.hardware));
  EXPECT_EQ(dataset.operator_info, to_line(header.operator_info));
}

TEST_F(ComputeDatasetTest, CostsAreThoseAtTheUsualSpeedOfTheReferenceSets) {
  ComputeCostsHeader header = make_header();
  const std::string plain = write("plain.jsonl", header, 20);
  header.reference_sets = "reference-1";
  header.batch_size = 2048;  // other samples
  const auto write_slower = [&](const char* name, int first, const std::vector<double>& slowness) {
    ComputeCostsWriter writer(folder_.file(name), header);
    for (std::size_t i = 0; i < slowness.size(); ++i) {
      ComputeCostSample sample =
          make_sample(header, {{0, 4 * (first + static_cast<int>(i))}}, static_cast<int>(i));
      sample.forward_ms *= slowness[i];
      sample.backward_ms *= slowness[i];
      sample.reference_ms = {2.0 * slowness[i], 8.0 * slowness[i]};
      writer.append(sample);
    }
    return folder_.file(name);
  };
  const ComputeDataset dataset =
      load({plain, write_slower("a.jsonl", 1, {1.0, 2.0, 4.0}), write_slower("b.jsonl", 4, {3.0})});
  // The median of 1, 2, 3 and 4 times the geometric mean of 2 and 8.
  EXPECT_THAT(dataset.reference_ms,
              testing::ElementsAre(testing::Pair("reference-1", testing::DoubleNear(10.0, 1e-9))));
  ASSERT_EQ(dataset.size(), 24u);
  for (int i = 0; i < 4; ++i) {
    const double cost = 2.5 * testing_costs::true_cost(header, {{0, 4 * (1 + i)}});
    EXPECT_NEAR(dataset.cost_ms[20 + static_cast<std::size_t>(i)], cost, 1e-9 * cost);
  }
  const ComputeDataset alone = load({plain});
  EXPECT_TRUE(alone.reference_ms.empty());
  for (std::size_t i = 0; i < 20; ++i) EXPECT_EQ(dataset.cost_ms[i], alone.cost_ms[i]);
}

TEST_F(ComputeDatasetTest, ASliceHasItsShareOfTheTable) {
  constexpr std::int64_t kBatch = 400;  // so that the hottest row has 400 lookups: bin 9
  MeasuredTable table{"t", 1000, 4.0, DataType::fp16, {}, 400.0, 0.25};
  table.reuse_histogram[0] = 0.995;
  table.reuse_histogram[9] = 0.005;
  const TableStatistics whole = measured_statistics(table, 1.0, kBatch);
  EXPECT_EQ(whole.num_embeddings, 1000);
  EXPECT_EQ(whole.distinct_rows, 400.0);
  EXPECT_EQ(whole.hottest_row_share, 0.25);
  const TableStatistics slice = measured_statistics(table, 0.1, kBatch);
  EXPECT_EQ(slice.num_embeddings, 100);
  EXPECT_DOUBLE_EQ(slice.pooling_factor, 0.4);
  EXPECT_DOUBLE_EQ(slice.distinct_rows, 40.0);
  EXPECT_EQ(slice.reuse_histogram[9], 0.005);
  EXPECT_EQ(slice.data_type, DataType::fp16);
  EXPECT_DOUBLE_EQ(slice.hottest_row_share, 0.5);  // two rows are as hot
  table.reuse_histogram[0] = 0.0;
  table.reuse_histogram[9] = 1.0;
  EXPECT_EQ(measured_statistics(table, 0.1, kBatch).hottest_row_share, 1.0);  // and no more
  table.distinct_rows.reset();
  table.hottest_row_share.reset();
  EXPECT_EQ(measured_statistics(table, 1.0, kBatch).distinct_rows, 0.0);  // not known
}

TEST_F(ComputeDatasetTest, TheEstimateIsSetForEveryPiece) {
  ComputeDataset dataset = load({write("a.jsonl", make_header())});
  const Eigen::MatrixXf before = dataset.features;
  PhysicalEstimate estimate;
  estimate.weights_ms.assign(work_terms().size(), 1e-5);
  set_estimate(estimate, dataset.work, dataset.features);
  for (Eigen::Index piece = 0; piece < dataset.features.cols(); ++piece) {
    const double expected = 1e-5 * dataset.work.col(piece).cast<double>().sum();
    const std::span<const float> features(dataset.features.col(piece).data(),
                                          static_cast<std::size_t>(dataset.features.rows()));
    EXPECT_NEAR(log_estimate(features), std::log(expected), 1e-5);
  }
  EXPECT_EQ(dataset.features.bottomRows(before.rows() - 1), before.bottomRows(before.rows() - 1));
}

TEST_F(ComputeDatasetTest, TheRangeCoversAllFiles) {
  ComputeCostsHeader second = make_header();
  second.batch_size = 4096;
  second.optimizer = Optimizer::rowwise_adagrad;
  second.tables[tables_of_kind(second, false)[0]].data_type = DataType::fp16;
  const ComputeDataset dataset =
      load({write("a.jsonl", make_header()), write("b.jsonl", second, 50, 2)});
  EXPECT_EQ(dataset.size(), 100u);
  EXPECT_EQ(dataset.first_piece.back(), dataset.features.cols());
  EXPECT_EQ(dataset.range.min_batch_size, 1024);
  EXPECT_EQ(dataset.range.max_batch_size, 4096);
  EXPECT_EQ(dataset.range.min_columns, 4);
  EXPECT_EQ(dataset.range.max_columns, 128);
  EXPECT_EQ(dataset.range.max_pieces, 6);
  EXPECT_THAT(dataset.range.optimizers,
              testing::ElementsAre(Optimizer::sgd, Optimizer::rowwise_adagrad));
  EXPECT_THAT(dataset.range.data_types, testing::ElementsAre(DataType::fp32, DataType::fp16));
}

TEST_F(ComputeDatasetTest, TheRangeLeavesOutTablesKeptFromTraining) {
  ComputeCostsHeader header = make_header();
  std::int64_t largest = 0;
  for (const int known : tables_of_kind(header, false)) {
    largest = std::max(largest, header.tables[known].num_embeddings);
  }
  header.tables[tables_of_kind(header, true)[0]].num_embeddings = 1000 * largest;
  const ComputeDataset dataset = load({write("a.jsonl", header)});
  EXPECT_GT(dataset.range.max_embeddings, 0);
  EXPECT_LE(dataset.range.max_embeddings, largest);
}

TEST_F(ComputeDatasetTest, RefusesFilesOfDifferentHardwareOrOperator) {
  const std::string first = write("a.jsonl", make_header());
  const auto refusal = [&](const char* part, const char* field, const Json& value) {
    ComputeCostsHeader other = make_header();
    Json& object = part == std::string("hardware") ? other.hardware : other.operator_info;
    object.set(field, value);
    const std::string path = folder_.file(fmt::format("{}-{}.jsonl", part, field));
    write_costs(path, other, 5);
    std::string message = input_error([&] { (void)load({first, path}); });
    EXPECT_THAT(message, testing::StartsWith(path + ": " + part + ": " + field + ": expected "));
    return message;
  };
  EXPECT_THAT(refusal("hardware", "name", "another processor"),
              HasSubstr("expected \"test processor\", as in the first file, got \"another "
                        "processor\""));
  EXPECT_THAT(refusal("hardware", "kind", "cuda"), HasSubstr("got \"cuda\""));
  EXPECT_THAT(refusal("hardware", "num_cores", 4), HasSubstr("got 4"));
  EXPECT_THAT(refusal("operator", "name", "other"), HasSubstr("got \"other\""));
  EXPECT_THAT(refusal("operator", "version", 2), HasSubstr("got 2"));
  EXPECT_THAT(refusal("operator", "num_threads", 1), HasSubstr("got 1"));
}

TEST_F(ComputeDatasetTest, RefusesAFileThatDoesNotSayItsHardware) {
  const std::string first = write("a.jsonl", make_header());
  ComputeCostsHeader silent = make_header();
  silent.hardware = Json::Object{{"kind", "cpu"}};
  const std::string second = write("b.jsonl", silent);
  EXPECT_THAT(input_error([&] {
                (void)load({first, second});
              }),
              HasSubstr("expected \"test processor\", as in the first file, got nothing"));
  EXPECT_THAT(input_error([&] {
                (void)load({second, first});
              }),
              HasSubstr("expected nothing, as in the first file, got \"test processor\""));
}

TEST_F(ComputeDatasetTest, RefusesFilesWithoutSamples) {
  const std::string path = folder_.file("empty.jsonl");
  ComputeCostsWriter(path, make_header()).sync();
  EXPECT_EQ(input_error([&] { (void)load({path}); }),
            path + ": expected measured samples, got none");
  EXPECT_EQ(input_error([&] { (void)load({}); }), "costs: expected measured samples, got none");
}

TEST_F(ComputeDatasetTest, RefusesTheSameSamplesTwice) {
  const std::string path = write("a.jsonl", make_header());
  const std::string copy = folder_.file("copy.jsonl");
  write_file(copy, read_file(path));
  EXPECT_EQ(input_error([&] {
              (void)load({path, path});
            }),
            path + ": expected a file not given before, got the bytes of " + path);
  EXPECT_EQ(input_error([&] {
              (void)load({path, copy});
            }),
            copy + ": expected a file not given before, got the bytes of " + path);
}

TEST_F(ComputeDatasetTest, TheSplitIsDisjointAndComplete) {
  const ComputeDataset dataset = load({write("a.jsonl", make_header(), 207)});
  const DatasetSplit split = split_dataset(dataset, 3);
  std::vector<int> all;
  for (const auto* part :
       {&split.training, &split.validation, &split.unseen_combinations, &split.unseen_tables}) {
    all.insert(all.end(), part->begin(), part->end());
  }
  std::sort(all.begin(), all.end());
  std::vector<int> expected(dataset.size());
  std::iota(expected.begin(), expected.end(), 0);
  EXPECT_EQ(all, expected);
  EXPECT_EQ(split.unseen_tables.size(), 41u);  // every fifth
  EXPECT_EQ(split.validation.size(), 16u);     // a tenth of the other 166
  EXPECT_EQ(split.unseen_combinations.size(), 16u);
  EXPECT_EQ(split.training.size(), 134u);
  EXPECT_EQ(split_dataset(dataset, 3).training, split.training);
  EXPECT_NE(split_dataset(dataset, 4).training, split.training);
}

TEST_F(ComputeDatasetTest, EqualPiecesOfASetCount) {
  const ComputeCostsHeader header = make_header();
  const std::vector<int> known = tables_of_kind(header, false);
  const Piece a{known[0], 16};
  const Piece b{known[1], 16};
  const std::string path = folder_.file("a.jsonl");
  {
    ComputeCostsWriter writer(path, header);
    std::int64_t index = 0;
    for (const std::vector<Piece>& pieces : std::vector<std::vector<Piece>>{
             {a}, {a, a}, {a, a, b}, {b}, {b, b}, {a, b, b}, {b, a, a}}) {
      writer.append(make_sample(header, pieces, index++));
    }
  }
  EXPECT_THAT(load({path}).same_as, testing::ElementsAre(0, 1, 2, 3, 4, 5, 2));
}

/// The same sets, measured again: both files are given.
TEST_F(ComputeDatasetTest, ASetThatWasMeasuredTwiceIsInOnePartOfTheSplit) {
  const ComputeCostsHeader header = make_header();
  const std::string first = write("a.jsonl", header, 207);
  const std::string again = folder_.file("again.jsonl");
  std::vector<ComputeCostSample> samples = read_compute_costs(first).samples;
  {
    ComputeCostsWriter writer(again, header);
    for (ComputeCostSample& sample : samples) {
      std::reverse(sample.pieces.begin(), sample.pieces.end());  // in whatever order
      sample.forward_ms *= 1.1;
      writer.append(sample);
    }
  }
  const ComputeDataset once = load({first});
  const ComputeDataset twice = load({first, again});
  ASSERT_EQ(twice.size(), 2 * once.size());
  EXPECT_EQ(twice.num_known(), once.num_known());
  const DatasetSplit split = split_dataset(twice, 3);
  const DatasetSplit of_once = split_dataset(once, 3);
  const auto size = static_cast<int>(once.size());
  const auto expect_both = [&](const std::vector<int>& part, const std::vector<int>& one) {
    std::vector<int> sets;
    for (const int sample : part) sets.push_back(sample % size);
    std::sort(sets.begin(), sets.end());
    std::vector<int> expected = one;
    expected.insert(expected.end(), one.begin(), one.end());
    std::sort(expected.begin(), expected.end());
    EXPECT_EQ(sets, expected);
  };
  expect_both(split.training, of_once.training);
  expect_both(split.validation, of_once.validation);
  expect_both(split.unseen_combinations, of_once.unseen_combinations);
  std::set<int> sets;
  std::size_t changes = 1;
  for (std::size_t i = 0; i < split.training.size(); ++i) {
    sets.insert(twice.same_as[split.training[i]]);
    if (i > 0) changes += twice.same_as[split.training[i]] != twice.same_as[split.training[i - 1]];
  }
  EXPECT_EQ(changes, sets.size());  // one after the other
}

/// Fails if a sample that training or its validation sees has a table that was to be kept from it.
void expect_no_held_out_table(const DatasetSplit& split,
                              const std::vector<ComputeCostSample>& samples,
                              const ComputeCostsHeader& header) {
  for (const auto* part : {&split.training, &split.validation, &split.unseen_combinations}) {
    for (const int i : *part) {
      for (const Piece& piece : samples[i].pieces) {
        EXPECT_FALSE(is_held_out(header.tables[piece.table].name, kHeldOutShare))
            << "sample " << i << ", " << header.tables[piece.table].name;
      }
    }
  }
  for (const int i : split.unseen_tables) {
    for (const Piece& piece : samples[i].pieces) {
      EXPECT_TRUE(is_held_out(header.tables[piece.table].name, kHeldOutShare)) << "sample " << i;
    }
  }
}

TEST_F(ComputeDatasetTest, HeldOutTablesAreNeverInTraining) {
  const ComputeCostsHeader header = make_header();
  ASSERT_GT(tables_of_kind(header, true).size(), 2u);
  ASSERT_GT(tables_of_kind(header, false).size(), 2u);
  const std::string path = write("a.jsonl", header, 120);
  expect_no_held_out_table(split_dataset(load({path}), 0), read_compute_costs(path).samples,
                           header);
}

TEST_F(ComputeDatasetTest, HeldOutTablesAreNeverInTrainingIfAnotherFileHeldNoneOut) {
  const ComputeCostsHeader header = make_header();
  const std::string first = write("a.jsonl", header, 60);
  const std::string second = write("b.jsonl", make_header(20, 0.0), 60, 2);
  std::vector<ComputeCostSample> samples = read_compute_costs(first).samples;
  const std::vector<ComputeCostSample> more = read_compute_costs(second).samples;
  samples.insert(samples.end(), more.begin(), more.end());
  expect_no_held_out_table(split_dataset(load({first, second}), 0), samples, header);
}

TEST_F(ComputeDatasetTest, ASampleOfBothKindsOfTablesIsOfNoUse) {
  const ComputeCostsHeader header = make_header();
  const std::string path = write("a.jsonl", header, 60);
  {
    ComputeCostsWriter writer(path, header);
    writer.append(make_sample(
        header, {{tables_of_kind(header, true)[0], 8}, {tables_of_kind(header, false)[0], 8}}, 60));
  }
  const DatasetSplit split = split_dataset(load({path}), 0);
  expect_no_held_out_table(split, read_compute_costs(path).samples, header);
  EXPECT_EQ(split.training.size() + split.validation.size() + split.unseen_combinations.size() +
                split.unseen_tables.size(),
            60u);
}

TEST_F(ComputeDatasetTest, UnmeasuredSetsAreSamplesOfTheSameFeaturesWithoutCosts) {
  const ComputeCostsHeader header = make_header();
  const std::string path = write("a.jsonl", header);
  const ComputeDataset measured = load({path});
  UnmeasuredSets group;
  group.settings = {.batch_size = header.batch_size, .optimizer = header.optimizer};
  for (const MeasuredTable& table : header.tables) {
    group.tables.push_back(measured_statistics(table, 1.0, header.batch_size));
  }
  for (const ComputeCostSample& sample : read_compute_costs(path).samples) {
    group.sets.push_back(sample.pieces);
  }
  const ComputeDataset unmeasured = dataset_of({group}, FeatureSchema::work);
  EXPECT_EQ(unmeasured.features, measured.features);
  EXPECT_EQ(unmeasured.work, measured.work);
  EXPECT_EQ(unmeasured.first_piece, measured.first_piece);
  EXPECT_EQ(unmeasured.widest, measured.widest);
  EXPECT_EQ(unmeasured.cost_ms, std::vector<double>(measured.size(), 0.0));
  EXPECT_EQ(unmeasured.num_known(), measured.size());
  EXPECT_EQ(dataset_of({}, FeatureSchema::work).size(), 0u);
}

TEST_F(ComputeDatasetTest, SetsOfPlansHaveTheirPlaces) {
  ComputeCostsHeader planned = make_header();
  planned.sampling->set("kind", kPlannedSetsKind);
  const std::string first = write("a.jsonl", planned, 20, 1);
  const std::string others = write("b.jsonl", make_header(), 10, 2);
  const std::string second = write("c.jsonl", planned, 20, 3);
  const ComputeDataset dataset = load({first, others, second});
  ASSERT_EQ(dataset.planned_place.size(), 50u);
  for (int i = 0; i < 20; ++i) {
    EXPECT_EQ(dataset.planned_place[i], dataset.planned_place[0] + i);
    EXPECT_EQ(dataset.planned_place[30 + i], dataset.planned_place[30] + i);
  }
  EXPECT_EQ(dataset.planned_place[0] % kPlannedBlock, 0);
  EXPECT_EQ(dataset.planned_place[30] % kPlannedBlock, 0);
  // Far from those of the other file.
  EXPECT_GT(dataset.planned_place[30], dataset.planned_place[19] + kPlannedBlock);
  for (int i = 20; i < 30; ++i) EXPECT_EQ(dataset.planned_place[i], -1);
}

TEST_F(ComputeDatasetTest, AppendedSamplesFollowWithTheirCosts) {
  const std::string first = write("a.jsonl", make_header(), 20, 1);
  const std::string second = write("b.jsonl", make_header(), 30, 2);
  const ComputeDataset other = load({second});
  ComputeDataset dataset = load({first});
  append(dataset, other, std::vector<double>(other.size(), 7.0));
  const ComputeDataset both = load({first, second});
  EXPECT_EQ(dataset.features, both.features);
  EXPECT_EQ(dataset.work, both.work);
  EXPECT_EQ(dataset.first_piece, both.first_piece);
  EXPECT_EQ(dataset.widest, both.widest);
  EXPECT_EQ(dataset.held_out, both.held_out);
  EXPECT_EQ(dataset.mixed, both.mixed);
  ASSERT_EQ(dataset.size(), 50u);
  EXPECT_EQ(dataset.cost_ms[19], both.cost_ms[19]);
  EXPECT_EQ(dataset.cost_ms[20], 7.0);
  EXPECT_EQ(dataset.same_as[20], 20);
  EXPECT_EQ(dataset.planned_place.size(), 50u);
}

}  // namespace
}  // namespace neuroshard
