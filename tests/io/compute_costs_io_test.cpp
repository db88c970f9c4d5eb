// Measured computation costs: the golden file, continuing a file, and malformed lines.
#include "neuroshard/io/compute_costs_io.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>
#include <zlib.h>

#include <fstream>

#include "arbitrary_task.h"
#include "io_test_util.h"

namespace neuroshard {
namespace {

const std::string kValidComputation =
    R"({"format": "neuroshard/compute-costs/1", "hardware": {}, "operator": {}, "batch_size": 64, "optimizer": "sgd", "tables": [{"name": "a", "num_embeddings": 10, "pooling_factor": 2.5, "data_type": "fp32", "reuse_histogram": [1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0]}]}
{"shards": [[0, 64]], "forward_ms": 1.5, "backward_ms": 2.5}
{"shards": [[0, 8], [0, 16]], "forward_ms": 3, "backward_ms": 4, "index": 9, "repetitions": 10, "interval": 0.02}
{"index": 10, "skipped": "out of memory"}
)";

ComputeCostsHeader golden_compute_header() {
  ComputeCostsHeader header;
  header.hardware.set("cpu", "AMD EPYC").set("cores", 2);
  header.operator_info.set("name", "fused-cpu").set("threads", 1);
  header.batch_size = 2048;
  header.optimizer = Optimizer::rowwise_adagrad;
  header.sampling = Json().set("seed", 1).set("max_tables", 15);
  header.tables = {{"t0", 1000, 1.5, DataType::fp32, {}},
                   {"t1", 7, 0.1, DataType::fp16, {}, 5.25, 0.125}};
  header.tables[0].reuse_histogram[0] = 1.0;
  header.tables[1].reuse_histogram[3] = 0.25;
  header.tables[1].reuse_histogram[16] = 0.75;
  return header;
}

std::vector<ComputeCostSample> golden_compute_samples() {
  return {{{{0, 64}, {1, 8}, {0, 4, 0.125}}, 1.234, 2.345, {0, 10, 0.0123}},
          {{{1, 128}}, 1e-3, 0.1 + 0.2, {2, {}, {}}}};
}

void write_golden_computation(const std::string& path) {
  ComputeCostsWriter writer(path, golden_compute_header());
  writer.append(golden_compute_samples()[0]);
  writer.append(SkippedSample{1, "out of memory"});
  writer.append(golden_compute_samples()[1]);
  writer.sync();
}

void expect_same(const ComputeCostsHeader& a, const ComputeCostsHeader& b) {
  EXPECT_EQ(a.hardware, b.hardware);
  EXPECT_EQ(a.operator_info, b.operator_info);
  EXPECT_EQ(a.batch_size, b.batch_size);
  EXPECT_EQ(a.optimizer, b.optimizer);
  EXPECT_EQ(a.sampling, b.sampling);
  ASSERT_EQ(a.tables.size(), b.tables.size());
  for (std::size_t i = 0; i < a.tables.size(); ++i) {
    EXPECT_EQ(a.tables[i].name, b.tables[i].name);
    EXPECT_EQ(a.tables[i].num_embeddings, b.tables[i].num_embeddings);
    expect_same_bits(a.tables[i].pooling_factor, b.tables[i].pooling_factor);
    EXPECT_EQ(a.tables[i].data_type, b.tables[i].data_type);
    expect_same_bits(a.tables[i].reuse_histogram, b.tables[i].reuse_histogram);
    EXPECT_EQ(a.tables[i].distinct_rows, b.tables[i].distinct_rows);
    EXPECT_EQ(a.tables[i].hottest_row_share, b.tables[i].hottest_row_share);
  }
}

TEST(ComputeCostsIo, GoldenFile) {
  const TemporaryFolder folder;
  write_golden_computation(folder.file("costs.jsonl"));
  const std::string written = read_file(folder.file("costs.jsonl"));
  const std::string bytes = golden("compute_costs.jsonl", written);
  EXPECT_EQ(written, bytes);
  const ComputeCosts costs = parse_compute_costs(bytes, "costs.jsonl");
  expect_same(costs.header, golden_compute_header());
  EXPECT_EQ(costs.samples, golden_compute_samples());
  ASSERT_EQ(costs.skipped.size(), 1u);
  EXPECT_EQ(costs.skipped[0].id, 1);
  EXPECT_EQ(costs.skipped[0].reason, "out of memory");
  EXPECT_FALSE(costs.truncated);
}

TEST(ComputeCostsIo, AThirdEntryIsAShareOfTheRows) {
  const auto pieces = [](const char* shards) {
    const std::string text = replaced(kValidComputation, "[[0, 64]]", shards);
    return parse_compute_costs(text, "f").samples[0].pieces;
  };
  EXPECT_EQ(pieces("[[0, 64, 0.25]]"), (std::vector<Piece>{{0, 64, 0.25}}));
  EXPECT_EQ(pieces("[[0, 64, 1]]"), (std::vector<Piece>{{0, 64}}));  // all of them
}

TEST(ComputeCostsIo, RefusesToWriteASliceThatIsNone) {
  const TemporaryFolder folder;
  ComputeCostsWriter writer(folder.file("costs.jsonl"), golden_compute_header());
  EXPECT_EQ(input_error([&] {
              writer.append(ComputeCostSample{{{0, 4, 0.0}}, 1.0, 1.0, {}});
            }),
            "sample: shards[0][2]: expected a share above 0, at most 1, got 0.0");
}

TEST(ComputeCostsIo, ContinuesAFileCutAnywhere) {
  const TemporaryFolder folder;
  const std::string path = folder.file("costs.jsonl");
  write_golden_computation(path);
  const std::string whole = read_file(path);
  for (std::size_t size = 0; size <= whole.size(); ++size) {
    const bool near_newline =
        whole.substr(size > 0 ? size - 1 : 0, 2).find('\n') != std::string::npos;
    if (size % 7 != 0 && !near_newline) continue;  // opening files is slow
    std::ofstream(path) << whole.substr(0, size);  // without the fsync of write_file
    {
      ComputeCostsWriter writer(path, golden_compute_header());
      if (!writer.done().contains(0)) writer.append(golden_compute_samples()[0]);
      if (!writer.done().contains(1)) writer.append(SkippedSample{1, "out of memory"});
      if (!writer.done().contains(2)) writer.append(golden_compute_samples()[1]);
    }
    ASSERT_EQ(read_file(path), whole) << size;
  }
}

TEST(ComputeCostsIo, ReadsAFileCutAnywhereInItsLastLine) {
  const TemporaryFolder folder;
  write_golden_computation(folder.file("costs.jsonl"));
  const std::string whole = read_file(folder.file("costs.jsonl"));
  const std::size_t last_line = whole.rfind('\n', whole.size() - 2) + 1;
  for (std::size_t size = last_line; size <= whole.size(); ++size) {
    const ComputeCosts costs = parse_compute_costs(whole.substr(0, size), "f");
    const bool complete = size >= whole.size() - 1;  // only the newline is missing
    EXPECT_EQ(costs.truncated, !complete && size > last_line) << size;
    EXPECT_EQ(costs.samples.size(), complete ? 2u : 1u) << size;
  }
}

TEST(ComputeCostsIo, RefusesToContinueAnotherFile) {
  const TemporaryFolder folder;
  const std::string path = folder.file("costs.jsonl");
  const auto refused = [&](const ComputeCostsHeader& header, const std::string& message) {
    const std::string before = read_file(path);
    EXPECT_EQ(input_error([&] { const ComputeCostsWriter writer(path, header); }), message);
    EXPECT_EQ(read_file(path), before);
  };
  write_golden_computation(path);
  ComputeCostsHeader header = golden_compute_header();
  header.tables[1].pooling_factor = 2.0;
  refused(header, path +
                      ": line 1: tables[1].pooling_factor: expected 2.0 as in this run, to "
                      "continue the file, got 0.1");
  header = golden_compute_header();
  header.sampling->set("seed", 2);
  refused(header, path +
                      ": line 1: sampling.seed: expected 2 as in this run, to continue the "
                      "file, got 1");
  header = golden_compute_header();
  header.hardware.set("gpu", "H100");
  refused(header, path +
                      ": line 1: hardware.gpu: expected \"H100\" as in this run, to continue "
                      "the file, got nothing");
  write_file(path, "notes\nmore notes");
  refused(golden_compute_header(), path +
                                       ": line 1, column 2: expected JSON, got invalid literal in "
                                       "\"no\"");
  write_file(path, "notes");
  refused(golden_compute_header(),
          path + ": expected a file that begins with the header of this run, got \"notes\"");
  write_file(path, "{\"format\": \"neuroshard/task/1\"}\n");
  refused(golden_compute_header(),
          path +
              ": line 1: format: expected \"neuroshard/compute-costs/1\", got "
              "\"neuroshard/task/1\"");
}

TEST(ComputeCostsIo, RefusesToWriteWhatItWouldNotRead) {
  const TemporaryFolder folder;
  ComputeCostsHeader header = golden_compute_header();
  header.tables[1].num_embeddings = 0;
  EXPECT_EQ(
      input_error([&] { const ComputeCostsWriter writer(folder.file("costs.jsonl"), header); }),
      "header: tables[1].num_embeddings: expected an integer between 1 and 4398046511104, got 0");
  EXPECT_EQ(folder.num_files(), 0u);
  ComputeCostsWriter writer(folder.file("costs.jsonl"), golden_compute_header());
  EXPECT_EQ(input_error([&] {
              writer.append(ComputeCostSample{{{2, 4}}, 1.0, 1.0, {}});
            }),
            "sample: shards[0][0]: expected an integer between 0 and 1, got 2");
  EXPECT_EQ(input_error([&] {
              const ComputeCostsWriter compressed(folder.file("costs.jsonl.gz"),
                                                  golden_compute_header());
            }),
            folder.file("costs.jsonl.gz") +
                ": expected an uncompressed file to append to, got a name that ends in .gz");
  EXPECT_EQ(input_error([&] {
              const ComputeCostsWriter full("/dev/full", golden_compute_header());
            }).substr(0, 33),
            "/dev/full: expected room to write");
}

TEST(ComputeCostsIo, ReadsCompressedFiles) {
  const TemporaryFolder folder;
  write_golden_computation(folder.file("costs.jsonl"));
  const std::string bytes = read_file(folder.file("costs.jsonl"));
  gzFile file = gzopen(folder.file("costs.jsonl.gz").c_str(), "wb");
  gzwrite(file, bytes.data(), static_cast<unsigned>(bytes.size()));
  gzclose(file);
  EXPECT_EQ(read_compute_costs(folder.file("costs.jsonl.gz")).samples, golden_compute_samples());
}

/// The valid file with reference sets in its header and these times in its samples.
std::string with_references(const char* first, const char* second) {
  std::string text =
      replaced(kValidComputation, "\"tables\"", "\"reference_sets\": \"c-1\", \"tables\"");
  text = replaced(text, "[[0, 64]], ", std::string("[[0, 64]], ") + first);
  return replaced(text, "\"index\": 9", std::string(second) + "\"index\": 9");
}

TEST(ComputeCostsIo, ReferenceTimesAreOfEverySampleOrOfNone) {
  const ComputeCosts costs = parse_compute_costs(
      with_references("\"reference_ms\": [1.5, 2], ", "\"reference_ms\": [3, 4], "), "f");
  EXPECT_EQ(costs.header.reference_sets, "c-1");
  EXPECT_EQ(costs.samples[0].reference_ms, (std::vector<double>{1.5, 2.0}));
  EXPECT_EQ(costs.samples[1].reference_ms, (std::vector<double>{3.0, 4.0}));
  EXPECT_EQ(parse_compute_costs(kValidComputation, "f").header.reference_sets, "");
  const auto error = [](const std::string& text) {
    return input_error([&] { (void)parse_compute_costs(text, "f"); });
  };
  EXPECT_EQ(error(with_references("\"reference_ms\": [1.5, 2], ", "")),
            "f: line 3: reference_ms: expected this required field, got nothing");
  EXPECT_EQ(error(with_references("\"reference_ms\": [1.5, 2], ", "\"reference_ms\": [3], ")),
            "f: line 3: reference_ms: expected 2 times, as in the first sample, got an array of 1");
  EXPECT_EQ(
      error(with_references("\"reference_ms\": [], ", "")),
      "f: line 2: reference_ms: expected the time of at least one reference set, got an empty "
      "array");
  EXPECT_EQ(error(with_references("\"reference_ms\": [0], ", "")),
            "f: line 2: reference_ms[0]: expected milliseconds above 0, got 0");
  EXPECT_EQ(
      error(replaced(kValidComputation, "\"forward_ms\": 1.5",
                     "\"reference_ms\": [1], \"forward_ms\": 1.5")),
      "f: line 2: reference_ms: expected nothing, as the header has no \"reference_sets\", got an "
      "array of 1");
  EXPECT_EQ(
      error(replaced(kValidComputation, "\"tables\"", "\"reference_sets\": \"\", \"tables\"")),
      "f: line 1: reference_sets: expected a name, got \"\"");
}

TEST(ComputeCostsIo, RefusesToWriteAnotherNumberOfReferenceTimes) {
  const TemporaryFolder folder;
  ComputeCostsHeader header = golden_compute_header();
  header.reference_sets = "some";
  ComputeCostsWriter writer(folder.file("costs.jsonl"), header);
  ComputeCostSample sample{{{0, 4}}, 1.0, 1.0, {}, {1.0, 2.0}};
  writer.append(sample);
  sample.reference_ms.pop_back();
  EXPECT_EQ(input_error([&] { writer.append(sample); }),
            "sample: reference_ms: expected 2 times, as in the first sample, got 1");
}

RC_GTEST_PROP(ComputeCostsIo, ReadsBackBitForBit, ()) {
  const TemporaryFolder folder;
  std::vector<ComputeCostSample> samples;
  ComputeCostsHeader header = golden_compute_header();
  const int num_references = *rc::gen::inRange(0, 4);
  if (num_references > 0) header.reference_sets = "some";
  ComputeCostsWriter writer(folder.file("costs.jsonl"), header);
  for (int i = *rc::gen::inRange(0, 5); i > 0; --i) {
    ComputeCostSample sample;
    for (int j = *rc::gen::inRange(1, 15); j > 0; --j) {
      sample.pieces.push_back(
          {*rc::gen::inRange(0, 2), *rc::gen::inRange<std::int64_t>(1, kMaxEmbeddingDim + 1)});
      if (*rc::gen::arbitrary<bool>()) sample.pieces.back().row_share = arbitrary_share();
    }
    sample.forward_ms = arbitrary_share();
    sample.backward_ms = std::ldexp(arbitrary_share(), *rc::gen::inRange(-60, 60));
    if (*rc::gen::arbitrary<bool>()) sample.info = {i, 5, arbitrary_share()};
    for (int c = 0; c < num_references; ++c) sample.reference_ms.push_back(arbitrary_share());
    samples.push_back(sample);
    writer.append(sample);
  }
  RC_ASSERT(read_compute_costs(folder.file("costs.jsonl")).samples == samples);
}

const Malformed kMalformedComputation[] = {
    {"neuroshard/compute-costs/1", "neuroshard/communication-costs/1",
     "f: line 1: format: expected \"neuroshard/compute-costs/1\", got "
     "\"neuroshard/communication-costs/1\""},
    {"\"hardware\": {}, ", "", "f: line 1: hardware: expected this required field, got nothing"},
    {"\"hardware\": {}", "\"hardware\": \"cpu\"",
     "f: line 1: hardware: expected an object, got \"cpu\""},
    {"\"operator\": {}", "\"operator\": {}, \"operators\": {}",
     "f: line 1: expected no fields but format, hardware, operator, batch_size, optimizer, "
     "sampling, reference_sets, tables, got \"operators\""},
    {"\"batch_size\": 64", "\"batch_size\": 0",
     "f: line 1: batch_size: expected an integer between 1 and 1073741824, got 0"},
    {"\"data_type\": \"fp32\", ", "",
     "f: line 1: tables[0].data_type: expected this required field, got nothing"},
    {"\"num_embeddings\": 10", "\"num_embeddings\": 0",
     "f: line 1: tables[0].num_embeddings: expected an integer between 1 and 4398046511104, got 0"},
    {"[1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0]", "[]",
     "f: line 1: tables[0].reuse_histogram: expected an array of 17 shares, got an empty array"},
    {"\"tables\": [", "\"tables\": [], \"sampling\": [",
     "f: line 1: sampling: expected an object, got an array of 1"},
    {"\"tables\": [{", "\"tables\": [{}, {",
     "f: line 1: tables[0].name: expected this required field, got nothing"},
    {"[[0, 64]]", "[[0, 64], [1, 64]]",
     "f: line 2: shards[1][0]: expected an integer between 0 and 0, got 1"},
    {"[[0, 64]]", "[[0, 0]]",
     "f: line 2: shards[0][1]: expected an integer between 1 and 65536, "
     "got 0"},
    {"[[0, 64]]", "[[0]]",
     "f: line 2: shards[0]: expected [table, num_columns] or [table, num_columns, row_share], got "
     "an array of 1"},
    {"[[0, 64]]", "[[0, 64, 0.5, 1]]",
     "f: line 2: shards[0]: expected [table, num_columns] or [table, num_columns, row_share], got "
     "an array of 4"},
    {"[[0, 64]]", "[[0, 64, 0]]",
     "f: line 2: shards[0][2]: expected a share above 0, at most 1, got 0"},
    {"[[0, 64]]", "[[0, 64, -0.5]]",
     "f: line 2: shards[0][2]: expected a share above 0, at most 1, got -0.5"},
    {"[[0, 64]]", "[[0, 64, 1.5]]",
     "f: line 2: shards[0][2]: expected a share above 0, at most 1, got 1.5"},
    {"[[0, 64]]", "[[0, 64, \"half\"]]",
     "f: line 2: shards[0][2]: expected a number, got \"half\""},
    {"\"data_type\": \"fp32\"", "\"data_type\": \"fp32\", \"distinct_rows\": 0",
     "f: line 1: tables[0].distinct_rows: expected a number above 0, got 0"},
    {"\"data_type\": \"fp32\"", "\"data_type\": \"fp32\", \"hottest_row_share\": 0",
     "f: line 1: tables[0].hottest_row_share: expected a share above 0, at most 1, got 0"},
    {"\"data_type\": \"fp32\"", "\"data_type\": \"fp32\", \"hottest_row_share\": 1.25",
     "f: line 1: tables[0].hottest_row_share: expected a share above 0, at most 1, got 1.25"},
    {"\"data_type\": \"fp32\"", "\"data_type\": \"fp32\", \"hottest_rows\": 1",
     "f: line 1: tables[0]: expected no fields but name, num_embeddings, pooling_factor, "
     "data_type, "
     "reuse_histogram, distinct_rows, hottest_row_share, got \"hottest_rows\""},
    {"[[0, 64]]", "[]",
     "f: line 2: shards: expected at least one [table, num_columns], got an empty array"},
    {"\"forward_ms\": 1.5", "\"forward_ms\": 0",
     "f: line 2: forward_ms: expected milliseconds above 0, got 0"},
    {"\"forward_ms\": 1.5", "\"forward_ms\": 1e400",
     "f: line 2, column 41: expected a number that a double can hold, got \"1e400\""},
    {"\"forward_ms\": 1.5, ", "",
     "f: line 2: forward_ms: expected this required field, got nothing"},
    {"\"index\": 9", "\"index\": -1",
     "f: line 3: index: expected an integer between 0 and 9223372036854775807, got -1"},
    {"\"repetitions\": 10", "\"repetitions\": 2.5",
     "f: line 3: repetitions: expected an integer between 1 and 9223372036854775807 (no fraction, "
     "no exponent, at most 64 bits), got 2.5"},
    {"\"interval\": 0.02", "\"interval\": -0.02",
     "f: line 3: interval: expected a share between 0 and 1e+30, got -0.02"},
    {"\"interval\": 0.02", "\"interval\": 1e308",
     "f: line 3: interval: expected a share between 0 and 1e+30, got 1e+308"},
    {"\"interval\"", "\"variance\"",
     "f: line 3: expected no fields but shards, forward_ms, backward_ms, index, repetitions, "
     "interval, reference_ms, got \"variance\""},
    {"\"index\": 10, ", "", "f: line 4: index: expected this required field, got nothing"},
    {"\"out of memory\"", "true", "f: line 4: skipped: expected a string, got true"},
    {"\n{\"index\": 10", "\n\n{\"index\": 10", "f: line 4: expected JSON, got nothing"},
    {"\"interval\": 0.02}", "\"interval\": 0.02",
     "f: line 3, column 112: expected '}', got unexpected end of input"},
};

TEST(ComputeCostsIo, RefusesMalformedLines) {
  EXPECT_NO_THROW((void)parse_compute_costs(kValidComputation, "f"));
  for (const Malformed& variant : kMalformedComputation) {
    const std::string text = replaced(kValidComputation, variant.from, variant.to);
    EXPECT_EQ(input_error([&] { (void)parse_compute_costs(text, "f"); }), variant.message);
  }
  EXPECT_EQ(input_error([] { (void)parse_compute_costs("", "f"); }),
            "f: line 1: expected JSON, got nothing");
}

}  // namespace
}  // namespace neuroshard
