// The room that control groups leave, from files as Linux shows them.
#include "neuroshard/core/machine/memory_limit.h"

#include <gtest/gtest.h>

#include <filesystem>

#include "tests/io/io_test_util.h"

namespace neuroshard {
namespace {

/// A machine's control groups.
class Groups {
 public:
  void write(const std::string& name, const std::string& text) const {
    const std::filesystem::path path = folder_.file(name);
    std::filesystem::create_directories(path.parent_path());
    write_file(path, text);
  }
  [[nodiscard]] std::optional<std::int64_t> room(const std::string& list) const {
    write("list", list);
    return control_group_room(folder_.file("list"), folder_.file("root"));
  }

 private:
  TemporaryFolder folder_;
};

TEST(ControlGroupRoom, Version2TakesTheLeastOfAllThatTheGroupLiesIn) {
  const Groups groups;
  groups.write("root/a/memory.max", "1000\n");
  groups.write("root/a/memory.current", "600\n");
  groups.write("root/a/memory.stat", "anon 400\ninactive_file 100\n");
  groups.write("root/a/b/memory.max", "max\n");
  groups.write("root/a/b/memory.current", "10\n");
  EXPECT_EQ(groups.room("0::/a/b\n"), 500);
  groups.write("root/a/b/memory.max", "50\n");
  EXPECT_EQ(groups.room("0::/a/b\n"), 40);
  EXPECT_EQ(groups.room("0::/\n"), std::nullopt);
}

TEST(ControlGroupRoom, AContainerSeesItsOwnGroupAsTheRoot) {
  const Groups groups;
  groups.write("root/memory.max", "4096\n");
  groups.write("root/memory.current", "96\n");
  EXPECT_EQ(groups.room("0::/\n"), 4000);
  EXPECT_EQ(groups.room("0::/of/the/host\n"), 4000);
}

TEST(ControlGroupRoom, Version1AmongOtherControllers) {
  const Groups groups;
  groups.write("root/memory/box/memory.limit_in_bytes", "1000\n");
  groups.write("root/memory/box/memory.usage_in_bytes", "1500\n");
  groups.write("root/memory/box/memory.stat", "inactive_file 1\ntotal_inactive_file 700\n");
  EXPECT_EQ(groups.room("5:cpu,cpuacct:/box\n4:hugetlb,memory:/box\n0::/\n"), 200);
  groups.write("root/memory/box/memory.stat", "");
  EXPECT_EQ(groups.room("4:memory:/box\n"), 0);
  EXPECT_EQ(groups.room("5:cpu:/box\n"), std::nullopt);
}

TEST(ControlGroupRoom, NoGroupsNoLimit) {
  const Groups groups;
  EXPECT_EQ(groups.room(""), std::nullopt);
  EXPECT_EQ(groups.room("nonsense\n0:\n"), std::nullopt);
  EXPECT_EQ(control_group_room("/nowhere", "/nowhere"), std::nullopt);
  EXPECT_GT(available_memory_bytes(), 0);
}

}  // namespace
}  // namespace neuroshard
