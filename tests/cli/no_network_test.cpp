// Nothing is sent anywhere: what is compiled and packed takes no function for networks from
// elsewhere. MPI, NCCL and SimGrid, dynamic libraries of others, have such functions and are not
// looked at.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/cli/run_cli.h"

namespace neuroshard::testing_cli {
namespace {

const std::string kScript = NEUROSHARD_SOURCE_DIR "/scripts/check_network.py";

TEST(NoNetwork, NothingOfOurOwnCanOpenAConnection) {
  const CommandResult result = run_program(
      {"python3", kScript, "@" NEUROSHARD_OWN_BINARIES, NEUROSHARD_SOURCE_DIR "/python"});
  EXPECT_EQ(result.exit_code, 0) << result.out << result.err;
}

TEST(NoNetwork, AnObjectThatConnectsIsFound) {
  const CommandResult result = run_program({"python3", kScript, NEUROSHARD_CONNECTING_OBJECT});
  EXPECT_EQ(result.exit_code, 1);
  const std::string finding = ": expected no function that leads out of the process, got ";
  EXPECT_THAT(result.out, testing::HasSubstr("connects.cpp.o" + finding + "connect\n"));
  EXPECT_THAT(result.out, testing::HasSubstr("connects.cpp.o" + finding + "socket\n"));
}

TEST(NoNetwork, ALinkedObjectAndItsLibrariesAreLookedAt) {
  // It takes connect and socket from the C library when it is loaded.
  const CommandResult result = run_program({"python3", kScript, NEUROSHARD_CONNECTING_MODULE});
  EXPECT_EQ(result.exit_code, 1);
  EXPECT_THAT(result.out, testing::HasSubstr(", got connect\n"));
  EXPECT_THAT(result.out, testing::HasSubstr("expected libraries of HACKING.md alone, got "
                                             "libstrange.so\n"));
}

TEST(NoNetwork, APythonModuleForNetworksIsFound) {
  const CliFolder folder;
  const std::string source =
      folder.write("a.py", "import json\n\n\ndef get():\n    from urllib.request import urlopen\n");
  EXPECT_EQ(run_program({"python3", kScript, source}).out,
            source + ": line 5: expected no module for networks, got urllib.request\n");
}

TEST(NoNetwork, NothingToLookAtIsAnError) {
  const CliFolder folder;
  const std::string empty = folder.write("list", "\n");
  EXPECT_EQ(run_program({"python3", kScript, "@" + empty}).exit_code, 2);
  EXPECT_EQ(run_program({"python3", kScript, folder.file("none.o")}).exit_code, 2);
}

}  // namespace
}  // namespace neuroshard::testing_cli
