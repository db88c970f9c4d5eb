// Workloads as text.
#include "neuroshard/report/workload_report.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/cost/arbitrary_task.h"

namespace neuroshard {
namespace {

using testing::HasSubstr;
using testing_tasks::make_table;

TEST(WorkloadReport, SaysHowRowsAreOrdered) {
  Workload workload;
  workload.tables = {make_table("a", 1000, 16), make_table("b", 1000, 16),
                     make_table("c", 1000, 16)};
  EXPECT_THAT(workload_text(workload, 64), HasSubstr("\nrow order            hashed\n"));
  workload.tables[1].row_order = RowOrder::by_frequency;
  workload.tables[2].row_access = {{0.5, 0.9}, {1.0, 1.0}};
  EXPECT_THAT(workload_text(workload, 64),
              HasSubstr("\nrow order            hashed 1, by_frequency 1, measured 1\n"));
}

}  // namespace
}  // namespace neuroshard
