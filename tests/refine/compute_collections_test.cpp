// The files that one request for computation costs stands for.
#include "neuroshard/refine/compute_collections.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "neuroshard/core/error.h"

namespace neuroshard {
namespace {

using testing::HasSubstr;

CollectionRequest make_request() {
  CollectionRequest request;
  request.sampling.workload = "dlrm-2021";
  request.sampling.seed = 5;
  request.sampling.candidates = 8;
  request.workload_seed = 3;
  request.batch_sizes = {512, 4096};
  request.optimizers = {Optimizer::sgd, Optimizer::rowwise_adagrad};
  request.num_samples = 10;
  request.path = "costs-b{batch_size}-{optimizer}.jsonl";
  return request;
}

std::string refusal_of(const CollectionRequest& request) {
  try {
    (void)compute_collections(request);
  } catch (const InputError& error) {
    return error.what();
  }
  return "";
}

TEST(ComputeCollections, EachBatchSizeAndOptimizerHasAFileWithSeedsOfItsOwn) {
  const std::vector<ComputeCollection> files = compute_collections(make_request());
  ASSERT_EQ(files.size(), 4u);
  EXPECT_EQ(files[0].path, "costs-b512-sgd.jsonl");
  EXPECT_EQ(files[1].path, "costs-b512-rowwise_adagrad.jsonl");
  EXPECT_EQ(files[3].path, "costs-b4096-rowwise_adagrad.jsonl");
  for (std::size_t i = 0; i < files.size(); ++i) {
    EXPECT_EQ(files[i].num_samples, 10);
    EXPECT_EQ(files[i].sampling.seed, 5 + i);
    EXPECT_EQ(files[i].sampling.batch_size, i < 2 ? 512 : 4096);
    EXPECT_EQ(files[i].sampling.candidates, 1);  // without a model to choose by
  }
  // Tables of other seeds.
  EXPECT_NE(files[0].sampling.tables[0].num_embeddings, files[1].sampling.tables[0].num_embeddings);
}

TEST(ComputeCollections, OneFileNeedsNothingInItsName) {
  CollectionRequest request = make_request();
  request.batch_sizes = {512};
  request.optimizers = {Optimizer::sgd};
  request.data_type = DataType::fp16;
  request.path = "costs.jsonl";
  const std::vector<ComputeCollection> files = compute_collections(request);
  ASSERT_EQ(files.size(), 1u);
  EXPECT_EQ(files[0].path, "costs.jsonl");
  for (const Table& table : files[0].sampling.tables) EXPECT_EQ(table.data_type, DataType::fp16);
}

TEST(ComputeCollections, EveryFieldOfThePathIsFilled) {
  CollectionRequest request = make_request();
  request.path = "{optimizer}/b{batch_size}/{batch_size}-{optimizer}.jsonl";
  const std::vector<ComputeCollection> files = compute_collections(request);
  ASSERT_EQ(files.size(), 4u);
  EXPECT_EQ(files[0].path, "sgd/b512/512-sgd.jsonl");
  EXPECT_EQ(files[3].path, "rowwise_adagrad/b4096/4096-rowwise_adagrad.jsonl");
}

TEST(ComputeCollections, SetsOfPlansSayWhoMadeThem) {
  CollectionRequest request = make_request();
  request.planned_by = "analytic-cpu";
  request.num_threads = 1;
  const std::vector<ComputeCollection> files = compute_collections(request);
  ASSERT_EQ(files.size(), 4u);
  for (const ComputeCollection& file : files) {
    EXPECT_EQ(file.sampling.sampling, SetSampling::given);
    EXPECT_EQ(file.sampling.given_kind, "plans");
    EXPECT_EQ(file.sampling.given_by, "analytic-cpu");
  }
  EXPECT_NE(files[0].sampling.given(3), files[1].sampling.given(3));
  request.planned_by = "ethernet-25g";
  EXPECT_EQ(refusal_of(request), "--planned-by: expected a computation model, got ethernet-25g");
  request.planned_by = "analytic-cpu";
  request.least_sure = "cpu-xeon-2core";
  EXPECT_EQ(refusal_of(request),
            "--least-sure: expected none with --sets plans, got cpu-xeon-2core");
}

TEST(ComputeCollections, RefusesFilesThatCannotBeToldApart) {
  CollectionRequest request = make_request();
  request.path = "costs-{batch_size}.jsonl";
  EXPECT_EQ(refusal_of(request),
            "--output: expected {optimizer} in the name, as there are several, got "
            "costs-{batch_size}.jsonl");
  request = make_request();
  request.batch_sizes = {512, 512};
  EXPECT_THAT(refusal_of(request), HasSubstr("expected each value once, got costs-b512-sgd.jsonl "
                                             "twice"));
  request = make_request();
  request.least_sure = "analytic-cpu";
  EXPECT_EQ(refusal_of(request),
            "--least-sure: expected a computation model of several networks, got analytic-cpu");
}

}  // namespace
}  // namespace neuroshard
