// Finding workloads by name, and the augmented pool of their tables.
#include "neuroshard/workload/workload.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

#include "neuroshard/core/error.h"
#include "neuroshard/workload/generate/augmented_pool.h"

namespace neuroshard {
namespace {

TEST(WorkloadCatalog, ListsElevenWorkloadsThatCanBeFound) {
  const std::vector<WorkloadInfo> infos = list_workloads();
  EXPECT_EQ(infos.size(), 11U);
  for (const WorkloadInfo& info : infos) {
    const Workload workload = find_workload(info.name, 0);
    EXPECT_EQ(workload.name, info.name);
    EXPECT_EQ(workload.source, info.source);
    EXPECT_FALSE(workload.accesses.empty()) << info.name;
    EXPECT_EQ(workload.batch_size, info.batch_size);
    EXPECT_EQ(workload.optimizer, info.optimizer);
    EXPECT_EQ(workload.tables.size(), static_cast<std::size_t>(info.num_tables));
    EXPECT_EQ(info.is_seeded, info.name.starts_with("dlrm-") || info.name == "coverage");
  }
}

TEST(WorkloadCatalog, AnUnknownNameIsAnsweredWithTheKnownOnes) {
  try {
    static_cast<void>(find_workload("dlrm-2020", 0));
    FAIL() << "no error";
  } catch (const InputError& error) {
    for (const WorkloadInfo& info : list_workloads()) {
      EXPECT_THAT(error.what(), testing::HasSubstr(info.name));
    }
    EXPECT_THAT(error.what(), testing::HasSubstr("got \"dlrm-2020\""));
  }
}

TEST(AugmentedPool, HasEveryTableAtEveryDimension) {
  const std::vector<Workload> workloads = {find_workload("mlperf-dlrm-dcnv2", 0),
                                           find_workload("hugectr-7table-470b-hotness20", 0)};
  const std::vector<Table> pool = augmented_pool(workloads);
  ASSERT_EQ(pool.size(), 33U * 6U);
  EXPECT_EQ(pool[0].name, "mlperf-dlrm-dcnv2/t00/d4");
  EXPECT_EQ(pool[0].num_embeddings, 40'000'000);
  EXPECT_EQ(pool.back().name, "hugectr-7table-470b-hotness20/t6/d128");
  std::set<std::string> names;
  for (const Table& table : pool) {
    validate(table, table.name);
    EXPECT_TRUE(names.insert(table.name).second);
  }
}

}  // namespace
}  // namespace neuroshard
