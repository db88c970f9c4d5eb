// Measured communication costs: the golden file, continuing a file, and malformed lines.
#include "neuroshard/io/communication_costs_io.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "arbitrary_task.h"
#include "io_test_util.h"

namespace neuroshard {
namespace {

CommunicationCostsHeader golden_communication_header() {
  CommunicationCostsHeader header;
  header.hardware.set("gpu", "H100").set("simulated", true);
  header.world_size = 4;
  header.local_world_size = 2;
  header.interconnect = "nvlink";
  header.batch_size = 65536;
  header.data_type = DataType::fp16;
  header.sampling = Json().set("seed", 5);
  return header;
}

std::vector<CommunicationCostSample> golden_communication_samples() {
  return {{{256, 320, 0, 4},
           {0.0, 3.5, 0.1, 20.0},
           {4.1, 0.7, 3.9, 0.0},
           {0.6, 0.6, 0.6, 0.6},
           {0, 5, 0.01}},
          {{4, 4, 4, 4}, {0, 0, 0, 0}, {1, 1, 1, 1}, {1e-3, 1, 1, 1}, {2, {}, {}}}};
}

void write_golden_communication(const std::string& path) {
  CommunicationCostsWriter writer(path, golden_communication_header());
  writer.append(golden_communication_samples()[0]);
  writer.append(SkippedSample{1, "simulation failed"});
  writer.append(golden_communication_samples()[1]);
}

TEST(CommunicationCostsIo, GoldenFile) {
  const TemporaryFolder folder;
  write_golden_communication(folder.file("costs.jsonl"));
  const std::string written = read_file(folder.file("costs.jsonl"));
  const std::string bytes = golden("communication_costs.jsonl", written);
  EXPECT_EQ(written, bytes);
  const CommunicationCosts costs = parse_communication_costs(bytes, "costs.jsonl");
  EXPECT_EQ(costs.header.hardware, golden_communication_header().hardware);
  EXPECT_EQ(costs.header.world_size, 4);
  EXPECT_EQ(costs.header.local_world_size, 2);
  EXPECT_EQ(costs.header.interconnect, "nvlink");
  EXPECT_EQ(costs.header.batch_size, 65536);
  EXPECT_EQ(costs.header.data_type, DataType::fp16);
  EXPECT_EQ(costs.header.sampling, golden_communication_header().sampling);
  EXPECT_EQ(costs.samples, golden_communication_samples());
  ASSERT_EQ(costs.skipped.size(), 1u);
  EXPECT_EQ(costs.skipped[0].id, 1);
  EXPECT_FALSE(costs.truncated);
}

TEST(CommunicationCostsIo, AllReducesAndPartialSumsStandBesideAllToAlls) {
  const TemporaryFolder folder;
  const std::string path = folder.file("costs.jsonl");
  const std::vector<CollectiveCostSample> collectives{
      {CollectiveKind::all_reduce, 4096, {0.5, 0.25, 0.5, 1.0}, {7, 16, 0.02}},
      {CollectiveKind::partial_sums, 12, {0.0, 0.0, 0.0, 0.125}, {}}};
  {
    CommunicationCostsWriter writer(path, golden_communication_header());
    writer.append(collectives[0]);
    writer.append(golden_communication_samples()[0]);
    writer.append(collectives[1]);
  }
  const std::string text = read_file(path);
  EXPECT_NE(text.find(R"({"kind": "all_reduce", "bytes": 4096, "ms": [0.5, 0.25, 0.5, 1.0], )"
                      R"("index": 7, "repetitions": 16, "interval": 0.02})"),
            std::string::npos)
      << text;
  const CommunicationCosts costs = read_communication_costs(path);
  EXPECT_EQ(costs.collectives, collectives);
  ASSERT_EQ(costs.samples.size(), 1u);
  EXPECT_EQ(costs.samples[0], golden_communication_samples()[0]);
  EXPECT_EQ(CommunicationCostsWriter(path, golden_communication_header()).done(),
            (std::set<std::int64_t>{0, 7}));

  const std::string header = text.substr(0, text.find('\n') + 1);
  const auto refusal = [&](const std::string& line) {
    return input_error([&] { (void)parse_communication_costs(header + line + "\n", "c"); });
  };
  EXPECT_EQ(refusal(R"({"kind": "broadcast", "bytes": 4, "ms": [1, 1, 1, 1]})"),
            "c: line 2: kind: expected \"all_reduce\" or \"partial_sums\", or none for "
            "all-to-alls, got \"broadcast\"");
  EXPECT_EQ(refusal(R"({"kind": "all_reduce", "bytes": 0, "ms": [1, 1, 1, 1]})"),
            "c: line 2: bytes: expected an integer between 1 and 1152921504606846976, got 0");
  EXPECT_EQ(
      refusal(R"({"kind": "all_reduce", "bytes": 4, "ms": [1]})"),
      "c: line 2: ms: expected an array of one number for each of 4 devices, got an array of 1");
  EXPECT_EQ(refusal(R"({"kind": "all_reduce", "bytes": 4, "ms": [1, 1, 1, 1], "columns": []})"),
            "c: line 2: expected no fields but kind, bytes, ms, index, repetitions, interval, got "
            "\"columns\"");
}

TEST(CommunicationCostsIo, ContinuesAFile) {
  const TemporaryFolder folder;
  const std::string path = folder.file("costs.jsonl");
  write_golden_communication(path);
  const std::string whole = read_file(path);
  write_file(path, whole.substr(0, whole.size() - 10));
  EXPECT_TRUE(read_communication_costs(path).truncated);
  {
    CommunicationCostsWriter writer(path, golden_communication_header());
    EXPECT_EQ(writer.done(), (std::set<std::int64_t>{0, 1}));
    writer.append(golden_communication_samples()[1]);
    writer.sync();
  }
  EXPECT_EQ(read_file(path), whole);
  CommunicationCostsHeader header = golden_communication_header();
  header.local_world_size = 4;
  EXPECT_EQ(input_error([&] { const CommunicationCostsWriter writer(path, header); }),
            path +
                ": line 1: topology.local_world_size: expected 4 as in this run, to continue "
                "the file, got 2");
}

RC_GTEST_PROP(CommunicationCostsIo, ReadsBackBitForBit, ()) {
  const TemporaryFolder folder;
  CommunicationCostsHeader header = golden_communication_header();
  header.world_size = *rc::gen::inRange(1, 20);
  header.local_world_size = 1;
  std::vector<CommunicationCostSample> samples;
  CommunicationCostsWriter writer(folder.file("costs.jsonl"), header);
  for (int i = *rc::gen::inRange(0, 4); i > 0; --i) {
    CommunicationCostSample sample;
    for (int device = 0; device < header.world_size; ++device) {
      sample.columns.push_back(*rc::gen::inRange<std::int64_t>(0, 1'000'000'000'000));
      sample.start_ms.push_back(20.0 * arbitrary_share());
      sample.forward_ms.push_back(arbitrary_share());
      sample.backward_ms.push_back(arbitrary_share());
    }
    samples.push_back(sample);
    writer.append(sample);
  }
  RC_ASSERT(read_communication_costs(folder.file("costs.jsonl")).samples == samples);
}

const std::string kValidCommunication =
    R"({"format": "neuroshard/communication-costs/1", "hardware": {}, "topology": {"world_size": 2}, "batch_size": 64, "data_type": "fp32"}
{"columns": [256, 320], "start_ms": [0.0, 3.5], "forward_ms": [4.1, 0.7], "backward_ms": [0.6, 0.5]}
{"index": 3, "skipped": "time out"}
)";

const Malformed kMalformedCommunication[] = {
    {"neuroshard/communication-costs/1", "neuroshard/communication-costs/2",
     "f: line 1: format: expected \"neuroshard/communication-costs/1\", got "
     "\"neuroshard/communication-costs/2\""},
    {"{\"world_size\": 2}", "{}",
     "f: line 1: topology.world_size: expected this required field, got nothing"},
    {"{\"world_size\": 2}", "{\"world_size\": 2, \"local_world_size\": 4}",
     "f: line 1: topology.local_world_size: expected an integer between 1 and 2, got 4"},
    {"{\"world_size\": 2}", "{\"world_size\": 3, \"local_world_size\": 2}",
     "f: line 1: topology.local_world_size: expected a divisor of world_size = 3, got 2"},
    {"{\"world_size\": 2}", "{\"world_size\": 2, \"memory_bytes\": 4}",
     "f: line 1: topology: expected no fields but world_size, local_world_size, interconnect, got "
     "\"memory_bytes\""},
    {"\"data_type\": \"fp32\"", "\"data_type\": \"int8\"",
     "f: line 1: data_type: expected \"fp32\" or \"fp16\", got \"int8\""},
    {"\"data_type\": \"fp32\"", "\"data_type\": \"fp32\", \"sampling\": 1",
     "f: line 1: sampling: expected an object, got 1"},
    {"[256, 320]", "[256]",
     "f: line 2: columns: expected an array of one number for each of 2 devices, got an array of "
     "1"},
    {"[256, 320]", "[256, -4]",
     "f: line 2: columns[1]: expected an integer between 0 and 9223372036854775807, got -4"},
    {"[0.0, 3.5]", "[0.0, -3.5]",
     "f: line 2: start_ms[1]: expected milliseconds of at least 0, got -3.5"},
    {"[4.1, 0.7]", "[4.1, \"0.7\"]", "f: line 2: forward_ms[1]: expected a number, got \"0.7\""},
    {"[0.6, 0.5]", "0.6", "f: line 2: backward_ms: expected an array, got 0.6"},
    {", \"backward_ms\": [0.6, 0.5]", "",
     "f: line 2: backward_ms: expected this required field, got nothing"},
    {"\"columns\"", "\"column\"",
     "f: line 2: expected no fields but columns, start_ms, forward_ms, backward_ms, index, "
     "repetitions, interval, got \"column\""},
    {"\"skipped\"", "\"shards\": [], \"skipped\"",
     "f: line 3: expected no fields but index, skipped, got \"shards\""},
};

TEST(CommunicationCostsIo, RefusesMalformedLines) {
  EXPECT_NO_THROW((void)parse_communication_costs(kValidCommunication, "f"));
  for (const Malformed& variant : kMalformedCommunication) {
    const std::string text = replaced(kValidCommunication, variant.from, variant.to);
    EXPECT_EQ(input_error([&] { (void)parse_communication_costs(text, "f"); }), variant.message);
  }
}

}  // namespace
}  // namespace neuroshard
