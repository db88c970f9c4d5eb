// Several processes that share a collection, and failures of the backend.
#include "neuroshard/collect/compute/process_group.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <set>

#include "neuroshard/core/error.h"
#include "neuroshard/io/compute_costs_io.h"
#include "neuroshard/io/compute_costs_merge.h"
#include "tests/collect/tiny_collection.h"
#include "tests/io/io_test_util.h"

namespace neuroshard {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;
using testing_collection::tiny_sampling;

TEST(ProcessGroup, IsOneProcessUnlessMpirunSaysOtherwise) {
  ASSERT_EQ(process_group().size, 1);
  setenv("OMPI_COMM_WORLD_RANK", "5", 1);
  setenv("OMPI_COMM_WORLD_SIZE", "8", 1);
  setenv("OMPI_COMM_WORLD_LOCAL_RANK", "1", 1);
  setenv("OMPI_COMM_WORLD_LOCAL_SIZE", "4", 1);
  const ProcessGroup group = process_group();
  for (const char* name : {"RANK", "SIZE", "LOCAL_RANK", "LOCAL_SIZE"}) {
    unsetenv((std::string("OMPI_COMM_WORLD_") + name).c_str());
  }
  EXPECT_EQ(group.rank, 5);
  EXPECT_EQ(group.size, 8);
  EXPECT_EQ(path_of_rank("a/costs.jsonl", group), "a/costs.rank-5.jsonl");
  EXPECT_EQ(path_of_rank("a/costs.jsonl", {}), "a/costs.jsonl");
  EXPECT_THAT(share_of_devices(group, 8), ElementsAre(1, 5));
  EXPECT_THAT(share_of_devices(group, 4), ElementsAre(1));
  EXPECT_THAT(share_of_devices(group, 1), IsEmpty());
}

/// Answers at once: a set's time is its number, every seventh has no memory, and from `lost_at` on
/// there is no device any more.
class FakeDevice final : public MeasuringDevice {
 public:
  explicit FakeDevice(std::int64_t lost_at) : lost_at_(lost_at) {}

  std::unique_ptr<PreparedSet> prepare(const PieceSet& set) override {
    if (set.id >= lost_at_) throw MachineError("cuda: kernels: the device may be lost");
    if (set.id % 7 == 6) {
      throw OutOfMemory("device memory: expected 9 GiB free, got 8 GiB");
    }
    return std::make_unique<Prepared>(static_cast<double>(set.id) + 1.0);
  }
  [[nodiscard]] std::int64_t bytes_between_passes() const override { return 0; }
  std::int64_t disturb_caches(std::int64_t bytes) override { return bytes; }
  [[nodiscard]] RepetitionOptions repetitions() const override {
    return {.warm_ups = 0, .min_repetitions = 1};
  }

 private:
  class Prepared final : public PreparedSet {
   public:
    explicit Prepared(double ms) : ms_(ms) {}
    std::future<double> forward() override { return known_time(ms_); }
    std::future<double> backward() override { return known_time(1.0); }
    [[nodiscard]] std::int64_t bytes_touched() const override { return 0; }

   private:
    double ms_;
  };

  std::int64_t lost_at_;
};

ComputeBackendFactory fake(std::int64_t lost_at = 1'000) {
  return {{Json::Object{{"kind", "fake"}}, Json::Object{{"name", "fake"}}},
          [lost_at] { return one_device(std::make_unique<FakeDevice>(lost_at)); }};
}

TEST(ProcessGroup, ProcessesShareTheSamplesAndTheirFilesMerge) {
  const TemporaryFolder folder;
  std::vector<std::string> files;
  std::int64_t measured = 0;
  for (int rank = 0; rank < 3; ++rank) {
    ComputeSamplingOptions sampling = tiny_sampling();
    sampling.group = {rank, 3, 0, 1};
    files.push_back(path_of_rank(folder.file("costs.jsonl"), sampling.group));
    measured += collect_compute_costs(sampling, fake(), 20, files.back(), nullptr);
  }
  EXPECT_EQ(measured, 18) << "two of twenty have no memory";
  const MergedCosts merged = merge_compute_costs(files, folder.file("merged.jsonl"));
  EXPECT_EQ(merged.samples, 18);
  EXPECT_EQ(merged.skipped, 2);
  EXPECT_EQ(merged.repeated, 0);
  // As one process would have measured it and would continue it.
  (void)collect_compute_costs(tiny_sampling(), fake(), 20, folder.file("alone.jsonl"), nullptr);
  EXPECT_EQ(read_compute_costs(folder.file("alone.jsonl")).samples,
            read_compute_costs(folder.file("merged.jsonl")).samples);
  EXPECT_EQ(
      collect_compute_costs(tiny_sampling(), fake(), 20, folder.file("merged.jsonl"), nullptr), 0);
}

TEST(ProcessGroup, ARunThatCouldMeasureNothingSaysWhy) {
  const TemporaryFolder folder;
  const std::string path = folder.file("costs.jsonl");
  ComputeSamplingOptions sampling = tiny_sampling();
  sampling.batch_size = std::int64_t{1} << 30;  // more than any machine has room for
  // The second time too, as the first leaves no file of nothing but skipped samples.
  for (int times = 0; times < 2; ++times) {
    try {
      (void)collect_compute_costs(sampling, cpu_backend({.arena_bytes = 1 << 20}, 1), 2, path,
                                  nullptr);
      ADD_FAILURE() << "measured";
    } catch (const MachineError& error) {
      EXPECT_THAT(error.what(),
                  testing::StartsWith("none of 2 samples could be measured: memory: expected "));
    }
    EXPECT_EQ(folder.num_files(), 0U);
  }
}

TEST(ProcessGroup, ADeviceLostInTheMiddleLeavesWhatWasMeasured) {
  const TemporaryFolder folder;
  const std::string path = folder.file("costs.jsonl");
  EXPECT_THROW(collect_compute_costs(tiny_sampling(), fake(5), 20, path, nullptr), MachineError);
  EXPECT_EQ(read_compute_costs(path).samples.size(), 5U);
  // A device again: the same command goes on.
  EXPECT_EQ(collect_compute_costs(tiny_sampling(), fake(), 20, path, nullptr), 13);
  EXPECT_EQ(read_compute_costs(path).samples.size(), 18U);
}

}  // namespace
}  // namespace neuroshard
