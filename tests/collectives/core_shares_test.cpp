// Which cores the processes of a host work on, however mpirun has bound them.
#include "neuroshard/evaluate/distributed/core_shares.h"

#include <gtest/gtest.h>

#include <numeric>
#include <string>
#include <vector>

namespace neuroshard {
namespace {

using Cores = std::vector<int>;

Cores range(int first, int count) {
  Cores cores(static_cast<std::size_t>(count));
  std::iota(cores.begin(), cores.end(), first);
  return cores;
}

TEST(CoreShares, ProcessesThatAreNotBoundDivideTheHost) {
  const std::vector<ProcessPlace> processes(3, {"a", range(0, 8)});
  EXPECT_EQ(core_share(processes, 0).cores, (Cores{0, 1}));
  EXPECT_EQ(core_share(processes, 1).cores, (Cores{2, 3}));
  EXPECT_EQ(core_share(processes, 2).cores, (Cores{4, 5}));
  EXPECT_FALSE(core_share(processes, 2).oversubscribed);
}

/// As Open MPI binds more than two processes: each to a socket, with others.
TEST(CoreShares, ThoseOfASocketDivideTheSocket) {
  std::vector<ProcessPlace> processes;
  for (int p = 0; p < 8; ++p) processes.push_back({"a", range(p % 2 == 0 ? 0 : 16, 16)});
  EXPECT_EQ(core_share(processes, 0).cores, range(0, 4));
  EXPECT_EQ(core_share(processes, 1).cores, range(16, 4));
  EXPECT_EQ(core_share(processes, 6).cores, range(12, 4));
  EXPECT_EQ(core_share(processes, 7).cores, range(28, 4));
  EXPECT_FALSE(core_share(processes, 0).oversubscribed);
}

TEST(CoreShares, OneThatIsBoundAloneKeepsItsCores) {
  const std::vector<ProcessPlace> processes{{"a", {0}}, {"a", {1, 5}}, {"b", {0}}};
  EXPECT_EQ(core_share(processes, 1).cores, (Cores{1, 5}));
  EXPECT_EQ(core_share(processes, 2).cores, (Cores{0}));
  EXPECT_FALSE(core_share(processes, 0).oversubscribed);
}

TEST(CoreShares, MoreProcessesThanCoresAreSaid) {
  // Fewer than the host's cores, but they may use only two of these.
  const std::vector<ProcessPlace> two_cores(4, {"a", {0, 1}});
  EXPECT_EQ(core_share(two_cores, 0).cores, (Cores{0}));
  EXPECT_EQ(core_share(two_cores, 3).cores, (Cores{1}));
  EXPECT_TRUE(core_share(two_cores, 0).oversubscribed);
  // Bound differently, to cores that they have in common.
  const std::vector<ProcessPlace> overlapping{{"a", {0, 1}}, {"a", {1, 2}}, {"b", {7}}};
  EXPECT_TRUE(core_share(overlapping, 2).oversubscribed);
}

}  // namespace
}  // namespace neuroshard
