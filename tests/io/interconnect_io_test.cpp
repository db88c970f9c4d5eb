// Links in files: read as written, and those of the shipped files are the presets'.
#include "neuroshard/io/interconnect_io.h"
#include "neuroshard/core/interconnect.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <map>

#include "neuroshard/io/communication_costs_io.h"
#include "neuroshard/io/json/json_reader.h"
#include "tests/io/io_test_util.h"

namespace neuroshard {
namespace {

TEST(InterconnectIo, EffectiveRatesAreReadAsWritten) {
  const Interconnect& pcie4 = find_interconnect("pcie4");
  Json json = Json::Object{{"name", "mine"}};
  set_links(json, pcie4);
  EXPECT_EQ(to_line(json),
            "{\"name\": \"mine\", \"intra_host_gb_per_s\": 26.775, \"intra_host_latency_ms\": "
            "0.006, \"inter_host_gb_per_s\": 11.75, \"inter_host_latency_ms\": 0.03, "
            "\"devices_per_card\": 4}");
  const Interconnect read = links_from(JsonReader(json, "f"));
  EXPECT_TRUE(read.has_links_of(pcie4));
  EXPECT_EQ(read.intra_host_share, 1.0);
  EXPECT_EQ(read.card_share, 1.0);
}

TEST(InterconnectIo, RefusesImpossibleLinks) {
  const auto refusal = [](const char* key, Json value) {
    Json json = Json::Object{};
    set_links(json, find_interconnect("pcie4"));
    json.set(key, std::move(value));
    return input_error([&] { (void)links_from(JsonReader(json, "f")); });
  };
  EXPECT_EQ(refusal("intra_host_gb_per_s", 0.0),
            "f: intra_host_gb_per_s: expected a bandwidth between 1e-9 and 1e9 GB/s, got 0.0");
  EXPECT_EQ(refusal("inter_host_gb_per_s", -1.0),
            "f: inter_host_gb_per_s: expected a bandwidth between 1e-9 and 1e9 GB/s, got -1.0");
  EXPECT_EQ(refusal("inter_host_latency_ms", -0.5),
            "f: inter_host_latency_ms: expected a time between 0 and 1e6 ms, got -0.5");
  EXPECT_EQ(refusal("devices_per_card", 0),
            "f: devices_per_card: expected an integer between 1 and 1073741824, got 0");
}

/// The first file of every interconnect that all-to-alls were simulated on.
std::map<std::string, std::string> shipped_files() {
  std::map<std::string, std::string> files;
  for (const char* folder : {"simulated", "held-out"}) {
    const std::string path = std::string(NEUROSHARD_SOURCE_DIR) + "/data/communication/" + folder;
    for (const auto& entry : std::filesystem::directory_iterator(path)) {
      const std::string name = entry.path().filename();
      const bool is_small = name.find("-b2048-") != std::string::npos;
      for (const Interconnect& preset : interconnects()) {
        if (is_small && name.starts_with(preset.name + "-")) files[preset.name] = entry.path();
      }
    }
  }
  return files;
}

TEST(InterconnectIo, ShippedSimulationsAreOfThePresets) {
  const std::map<std::string, std::string> files = shipped_files();
  EXPECT_EQ(files.size(), interconnects().size());
  for (const auto& [name, path] : files) {
    const CommunicationCostsHeader header = read_communication_costs(path).header;
    EXPECT_EQ(header.interconnect, name);
    EXPECT_TRUE(links_from(JsonReader(header.hardware, path)).has_links_of(find_interconnect(name)))
        << path;
  }
}

}  // namespace
}  // namespace neuroshard
