// Merging of cost files: every sample once, in order, from a single collection.
#include "neuroshard/io/compute_costs_merge.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "neuroshard/core/error.h"
#include "neuroshard/io/compute_costs_io.h"
#include "tests/io/io_test_util.h"

namespace neuroshard {
namespace {

using testing::HasSubstr;

ComputeCostsHeader header(std::int64_t batch_size = 64) {
  ComputeCostsHeader result;
  result.batch_size = batch_size;
  result.tables = {{"t0", 1000, 1.5, DataType::fp32, {}}};
  result.tables[0].reuse_histogram[0] = 1.0;
  return result;
}

ComputeCostSample sample(std::int64_t index, double forward_ms) {
  return {{{0, 64}}, forward_ms, 1.0, {index, 7, 0.01}};
}

/// A file of samples whose forward time is their number plus `offset`, and one skipped.
std::string write(const std::string& path, const std::vector<std::int64_t>& indices,
                  std::int64_t skipped, double offset = 1.0, std::int64_t batch_size = 64) {
  ComputeCostsWriter writer(path, header(batch_size));
  for (const std::int64_t index : indices) {
    writer.append(sample(index, static_cast<double>(index) + offset));
  }
  writer.append(SkippedSample{skipped, "out of device memory"});
  return path;
}

TEST(ComputeCostsMerge, SamplesOfAllFilesInTheirOrder) {
  const TemporaryFolder folder;
  const std::string a = write(folder.file("a.jsonl"), {4, 0, 8}, 2);
  const std::string b = write(folder.file("b.jsonl"), {3, 1}, 5);
  for (const char* name : {"all.jsonl", "all.jsonl.gz"}) {
    const MergedCosts merged = merge_compute_costs({a, b}, folder.file(name));
    EXPECT_EQ(merged.samples, 5);
    EXPECT_EQ(merged.skipped, 2);
    EXPECT_EQ(merged.repeated, 0);
    const ComputeCosts all = read_compute_costs(folder.file(name));
    std::vector<std::int64_t> indices;
    for (const ComputeCostSample& each : all.samples) {
      indices.push_back(*each.info.id);
      EXPECT_EQ(each.forward_ms, static_cast<double>(indices.back()) + 1.0);
    }
    EXPECT_THAT(indices, testing::ElementsAre(0, 1, 3, 4, 8));
    EXPECT_EQ(all.skipped.size(), 2U);
  }
}

TEST(ComputeCostsMerge, OfARepeatedSampleTheFirstFilesCounts) {
  const TemporaryFolder folder;
  const std::string a = write(folder.file("a.jsonl"), {0, 1}, 2);
  const std::string b = write(folder.file("b.jsonl"), {1, 3}, 2, 50.0);
  const MergedCosts merged = merge_compute_costs({a, b}, folder.file("all.jsonl"));
  EXPECT_EQ(merged.samples, 3);
  EXPECT_EQ(merged.repeated, 2);
  EXPECT_EQ(read_compute_costs(folder.file("all.jsonl")).samples[1].forward_ms, 2.0);
}

TEST(ComputeCostsMerge, ALineThatWasCutIsLeftOut) {
  const TemporaryFolder folder;
  const std::string a = write(folder.file("a.jsonl"), {0, 1}, 2);
  write_file(a, read_file(a) + R"({"shards": [[0, 6)");
  EXPECT_EQ(merge_compute_costs({a}, folder.file("all.jsonl")).samples, 2);
}

TEST(ComputeCostsMerge, RefusesAnotherNumberOfReferenceTimes) {
  const TemporaryFolder folder;
  const auto write_with = [&](const char* name, std::int64_t index, std::vector<double> times) {
    ComputeCostsHeader own = header();
    own.reference_sets = "some";
    ComputeCostSample measured = sample(index, 1.0);
    measured.reference_ms = std::move(times);
    ComputeCostsWriter writer(folder.file(name), own);
    writer.append(measured);
    return folder.file(name);
  };
  const std::string a = write_with("a.jsonl", 0, {1.0, 2.0});
  const std::string b = write_with("b.jsonl", 1, {1.0});
  EXPECT_EQ(input_error([&] {
              (void)merge_compute_costs({a, b}, folder.file("all.jsonl"));
            }),
            b + ": reference_ms: expected 2 times, as in the first file, got 1");
}

TEST(ComputeCostsMerge, RefusesFilesOfDifferentCollections) {
  const TemporaryFolder folder;
  const std::string a = write(folder.file("a.jsonl"), {0}, 2);
  const std::string b = write(folder.file("b.jsonl"), {1}, 2, 1.0, 128);
  try {
    merge_compute_costs({a, b}, folder.file("all.jsonl"));
    FAIL() << "merged";
  } catch (const InputError& error) {
    EXPECT_THAT(error.what(),
                HasSubstr("b.jsonl: line 1: batch_size: expected 64 as in the first"));
  }
  EXPECT_THROW(merge_compute_costs({a, folder.file("missing")}, folder.file("all.jsonl")),
               InputError);
  write_file(
      folder.file("unnumbered.jsonl"),
      read_file(a) + R"({"shards": [[0, 4]], "forward_ms": 1.0, "backward_ms": 1.0})" + "\n");
  EXPECT_THROW(merge_compute_costs({folder.file("unnumbered.jsonl")}, folder.file("all.jsonl")),
               InputError);
}

}  // namespace
}  // namespace neuroshard
