// Simulations that are larger than any machine: refused with the figure, before memory is taken.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/cli/run_mpi.h"

namespace neuroshard {
namespace {

using namespace testing_cli;
using testing::AllOf;
using testing::HasSubstr;

Arguments simulation_of(const std::string& platform, int devices, const std::string& path) {
  return {"collect",   "communication",         "--backend", "simgrid", "--platform", platform,
          "--devices", std::to_string(devices), "--samples", "1",       "-o",         path};
}

/// A platform file of clusters with these hosts.
std::string clusters_of(const std::vector<std::string>& radicals) {
  std::string text =
      "<?xml version='1.0'?><!DOCTYPE platform SYSTEM \"https://simgrid.org/simgrid.dtd\">"
      "<platform version=\"4.1\"><zone id=\"z\" routing=\"Full\">";
  for (std::size_t i = 0; i < radicals.size(); ++i) {
    const std::string id = "c" + std::to_string(i);
    text += fmt::format(
        "<cluster id=\"{0}\" prefix=\"{0}-\" suffix=\"\" radical = \"{1}\" speed=\"1Gf\" "
        "bw=\"1GBps\" lat=\"1us\"/>",
        id, radicals[i]);
  }
  return text + "</zone></platform>";
}

TEST(CliSimulationLimits, APlatformOfAHundredMillionHostsIsRefused) {
  SKIP_IN_UNKNOWN_CODE();
  const CliFolder folder;
  const auto refused = [&](const std::vector<std::string>& radicals, const std::string& message) {
    const std::string platform = folder.write("cluster.xml", clusters_of(radicals));
    expect_refusal(folder, simulation_of(platform, 2, folder.file("costs.jsonl")),
                   "cluster.xml: expected " + message);
  };
  refused({"0-99999999"}, "at most 65536 hosts, got 100000000");
  refused({"0-9999,20000-29999", "0-59999"}, "at most 65536 hosts, got 80000");
  refused({"0-99999999999999999999"}, "");
  refused({"7-"}, "");
  const std::string platform = folder.write("cluster.xml", clusters_of({"0-3"}));
  (void)expect_success(simulation_of(platform, 4, folder.file("costs.jsonl")));
}

TEST(CliSimulationLimits, DevicesThatMemoryHasNoRoomForAreRefused) {
  SKIP_IN_UNKNOWN_CODE();
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  GTEST_SKIP() << "sanitizers take more address space than the limit";
#endif
  const CliFolder folder;
  const Arguments limited{"bash", "-c", "ulimit -v 3000000; exec \"$0\" \"$@\"",
                          NEUROSHARD_EXECUTABLE};
  const CommandResult result =
      run_program(limited + simulation_of("ethernet-25g", 4096, folder.file("costs.jsonl")));
  EXPECT_EQ(result.exit_code, 3);
  expect_one_line(result.err);
  EXPECT_THAT(result.err, AllOf(HasSubstr("memory: expected "),
                                HasSubstr(" free to simulate 4096 devices, got ")));
  EXPECT_TRUE(folder.state().empty());
}

}  // namespace
}  // namespace neuroshard
