// The presets of interconnects: usable, named once, found by name; invalid ones are refused.
#include "neuroshard/core/interconnect.h"

#include <gtest/gtest.h>

#include <limits>
#include <set>

#include "tests/io/io_test_util.h"

namespace neuroshard {
namespace {

Interconnect some_interconnect() {
  return {.name = "some",
          .devices_per_host = 4,
          .intra_host_gb_per_s = 20.0,
          .intra_host_latency_ms = 0.01,
          .intra_host_share = 0.5,
          .devices_per_card = 2,
          .card_gb_per_s = 8.0,
          .card_share = 0.25,
          .inter_host_latency_ms = 0.02,
          .source = "made up"};
}

TEST(Interconnect, PresetsAreUsableAndNamedOnce) {
  std::set<std::string_view> names;
  for (const Interconnect& interconnect : interconnects()) {
    EXPECT_NO_THROW(validate(interconnect));
    EXPECT_FALSE(interconnect.source.empty());
    EXPECT_TRUE(names.insert(interconnect.name).second);
    EXPECT_EQ(&find_interconnect(interconnect.name), &interconnect);
    // Two names for the same links would be one preset in two places.
    for (const Interconnect& other : interconnects()) {
      EXPECT_EQ(interconnect.has_links_of(other), &interconnect == &other);
    }
  }
}

TEST(Interconnect, PresetsHaveTheRatesOfTheirDataSheets) {
  const Interconnect& pcie4 = find_interconnect("pcie4");
  EXPECT_EQ(pcie4.devices_per_host, 4);
  EXPECT_EQ(pcie4.devices_per_card, 4);
  EXPECT_EQ(pcie4.card_gb_per_s, 12.5);  // 100 Gb/s
  EXPECT_EQ(pcie4.intra_host_latency_ms, 0.006);
  EXPECT_DOUBLE_EQ(pcie4.effective_card_gb_per_s(), 11.75);
  EXPECT_DOUBLE_EQ(find_interconnect("a100-nvswitch").effective_intra_host_gb_per_s(), 246.0);
  EXPECT_DOUBLE_EQ(find_interconnect("h100-nvswitch").effective_card_gb_per_s(), 48.5);
  EXPECT_EQ(find_interconnect("ethernet-25g").card_gb_per_s, 3.125);
}

TEST(Interconnect, AnUnknownNameIsRefusedWithTheKnownOnes) {
  EXPECT_EQ(input_error([] { (void)find_interconnect("token-ring"); }),
            "interconnect: expected one of a100-nvswitch, h100-nvswitch, pcie4, ethernet-10g, "
            "ethernet-25g, ethernet-50g, ethernet-100g, got \"token-ring\"");
  EXPECT_EQ(input_error([] { (void)find_interconnect("ring", "--platform", ", or a file"); }),
            "--platform: expected one of a100-nvswitch, h100-nvswitch, pcie4, ethernet-10g, "
            "ethernet-25g, ethernet-50g, ethernet-100g, or a file, got \"ring\"");
}

TEST(Interconnect, ImpossibleValuesAreRefusedByField) {
  const auto refusal = [](const auto& change) {
    Interconnect interconnect = some_interconnect();
    change(interconnect);
    return input_error([&] { validate(interconnect); });
  };
  EXPECT_NO_THROW(validate(some_interconnect()));
  EXPECT_EQ(
      refusal([](Interconnect& i) { i.inter_host_latency_ms = -1.0; }),
      "interconnect some.inter_host_latency_ms: expected a time between 0 and 1e6 ms, got -1");
  EXPECT_EQ(
      refusal([](Interconnect& i) {
        i.intra_host_latency_ms = std::numeric_limits<double>::infinity();
      }),
      "interconnect some.intra_host_latency_ms: expected a time between 0 and 1e6 ms, got inf");
  EXPECT_EQ(refusal([](Interconnect& i) { i.intra_host_gb_per_s = 0.0; }),
            "interconnect some.intra_host_gb_per_s: expected a bandwidth between 1e-9 and 1e9 "
            "GB/s, got 0");
  EXPECT_EQ(
      refusal([](Interconnect& i) { i.card_gb_per_s = -2.0; }),
      "interconnect some.card_gb_per_s: expected a bandwidth between 1e-9 and 1e9 GB/s, got -2");
  EXPECT_EQ(refusal([](Interconnect& i) { i.intra_host_share = 0.0; }),
            "interconnect some.intra_host_share: expected a share above 0, at most 1, got 0");
  EXPECT_EQ(refusal([](Interconnect& i) { i.card_share = 1.5; }),
            "interconnect some.card_share: expected a share above 0, at most 1, got 1.5");
  EXPECT_EQ(refusal([](Interconnect& i) { i.devices_per_card = 0; }),
            "interconnect some.devices_per_card: expected at least 1 device, got 0");
  EXPECT_EQ(refusal([](Interconnect& i) { i.devices_per_host = 0; }),
            "interconnect some.devices_per_host: expected at least 1 device, got 0");
}

TEST(Interconnect, LinksAreTheSameWhateverTheirName) {
  const Interconnect one = some_interconnect();
  Interconnect other = one;
  other.name = "another";
  other.source = "elsewhere";
  other.devices_per_host = 16;
  other.intra_host_gb_per_s = 10.0;  // measured
  other.intra_host_share = 1.0;
  EXPECT_TRUE(one.has_links_of(other));
  const auto differs = [&](const auto& change) {
    Interconnect changed = one;
    change(changed);
    return !changed.has_links_of(one) && !one.has_links_of(changed);
  };
  EXPECT_TRUE(differs([](Interconnect& i) { i.intra_host_gb_per_s *= 2.0; }));
  EXPECT_TRUE(differs([](Interconnect& i) { i.intra_host_share = 1.0; }));
  EXPECT_TRUE(differs([](Interconnect& i) { i.intra_host_latency_ms = 0.0; }));
  EXPECT_TRUE(differs([](Interconnect& i) { i.card_gb_per_s *= 2.0; }));
  EXPECT_TRUE(differs([](Interconnect& i) { i.card_share = 1.0; }));
  EXPECT_TRUE(differs([](Interconnect& i) { i.inter_host_latency_ms = 0.0; }));
  EXPECT_TRUE(differs([](Interconnect& i) { i.devices_per_card = 4; }));
}

TEST(Interconnect, TimesThatNoSumCouldHoldAreRefused) {
  Interconnect interconnect = some_interconnect();
  interconnect.inter_host_latency_ms = 1e308;
  EXPECT_EQ(input_error([&] { validate(interconnect); }),
            "interconnect some.inter_host_latency_ms: expected a time between 0 and 1e6 ms, got "
            "1e+308");
  EXPECT_FALSE(is_link_latency(std::numeric_limits<double>::quiet_NaN()));
  EXPECT_FALSE(is_link_rate(std::numeric_limits<double>::quiet_NaN()));
}

}  // namespace
}  // namespace neuroshard
