// Platforms of simulations: presets of the one table, or files.
#include "neuroshard/collect/communication/platform.h"
#include "neuroshard/core/interconnect.h"

#include <gtest/gtest.h>

#include "tests/io/io_test_util.h"

namespace neuroshard {
namespace {

TEST(Platform, APresetIsThatOfTheOneTable) {
  for (const Interconnect& interconnect : interconnects()) {
    EXPECT_EQ(&platform_interconnect(interconnect.name), &interconnect);
    EXPECT_FALSE(is_platform_file(interconnect.name));
    EXPECT_EQ(platform_name(interconnect.name), interconnect.name);
  }
}

TEST(Platform, AFileIsNamedWithoutFolderAndEnding) {
  EXPECT_TRUE(is_platform_file("clusters/mine.xml"));
  EXPECT_EQ(platform_name("clusters/mine.xml"), "mine");
}

TEST(Platform, AnUnknownNameIsRefusedWithBothPossibilities) {
  EXPECT_EQ(input_error([] { (void)platform_interconnect("token-ring"); }),
            "platform: expected one of a100-nvswitch, h100-nvswitch, pcie4, ethernet-10g, "
            "ethernet-25g, ethernet-50g, ethernet-100g, or a SimGrid platform file (.xml), got "
            "\"token-ring\"");
}

}  // namespace
}  // namespace neuroshard
