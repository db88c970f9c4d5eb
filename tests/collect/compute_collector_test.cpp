// The collection from end to end: a file that can be interrupted anywhere and continued, and that
// no other run changes.
#include "neuroshard/collect/compute/compute_collector.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <csignal>
#include <filesystem>
#include <functional>
#include <map>
#include <set>
#include <thread>
#include <utility>
#include <vector>

#include "neuroshard/io/compute_costs_io.h"
#include "tests/collect/scripted_device.h"
#include "tests/collect/tiny_collection.h"
#include "tests/io/io_test_util.h"

namespace neuroshard {
namespace {

using testing::HasSubstr;
using testing_collection::Script;
using testing_collection::ScriptedDevice;
using testing_collection::tiny_benchmark;
using testing_collection::tiny_sampling;
using Sequence = std::vector<std::pair<std::int64_t, std::vector<Piece>>>;

std::int64_t collect(const std::string& path, std::int64_t num_samples,
                     const ComputeSamplingOptions& sampling = tiny_sampling()) {
  return collect_compute_costs(sampling, tiny_benchmark(), num_samples, path, {});
}

/// The content of the file without the times, which differ from run to run.
Sequence sequence_of(const std::string& path) {
  Sequence sequence;
  for (const ComputeCostSample& sample : read_compute_costs(path).samples) {
    EXPECT_TRUE(sample.info.id.has_value());
    sequence.emplace_back(sample.info.id.value_or(-1), sample.pieces);
  }
  return sequence;
}

TEST(ComputeCollector, MeasuresTheSeededSequence) {
  const TemporaryFolder folder;
  const std::string path = folder.file("costs.jsonl");
  EXPECT_EQ(collect(path, 5), 5);
  const ComputeCosts costs = read_compute_costs(path);
  EXPECT_FALSE(costs.truncated);
  EXPECT_EQ(costs.header.batch_size, 32);
  EXPECT_EQ(costs.header.tables.size(), 12u);
  EXPECT_EQ(*costs.header.hardware.find("num_cores"), Json(available_cores()));
  EXPECT_EQ(*costs.header.operator_info.find("num_threads"), Json(1));
  ASSERT_EQ(costs.samples.size(), 5u);
  for (std::int64_t i = 0; i < 5; ++i) {
    const ComputeCostSample& sample = costs.samples[i];
    EXPECT_EQ(sample.info.id, i);
    const std::vector<Piece> pieces = sample_pieces(tiny_sampling(), i);
    EXPECT_EQ(sample.pieces, pieces);
    EXPECT_GT(sample.forward_ms, 0.0);
    EXPECT_GT(sample.backward_ms, 0.0);
  }
  EXPECT_EQ(folder.num_files(), 1u);
}

TEST(ComputeCollector, RecordsWhatReferenceSetsTookMeanwhile) {
  const TemporaryFolder folder;
  const std::string path = folder.file("costs.jsonl");
  ComputeSamplingOptions sampling = tiny_sampling();
  sampling.has_reference_sets = true;
  EXPECT_EQ(collect(path, 3, sampling), 3);
  EXPECT_EQ(collect(path, 5, sampling), 2) << "goes on";
  const ComputeCosts costs = read_compute_costs(path);
  const std::string name = "reference-1, arena_bytes 1048576, quantile 0.25";
  EXPECT_EQ(costs.header.reference_sets, name);
  ASSERT_EQ(costs.samples.size(), 5u);
  for (std::int64_t i = 0; i < 5; ++i) {
    const ComputeCostSample& sample = costs.samples[i];
    EXPECT_EQ(sample.pieces, sample_pieces(tiny_sampling(), i)) << "those without reference sets";
    EXPECT_EQ(sample.reference_ms.size(), 16u);
  }
  EXPECT_EQ(input_error([&] { collect(path, 6); }),
            path +
                ": line 1: reference_sets: expected nothing as in this run, to continue the file, "
                "got \"" +
                name + "\"");
}

TEST(ComputeCollector, ReferenceSetsThatCannotRunLeaveNoFile) {
  const TemporaryFolder folder;
  ComputeBackendFactory backend;
  backend.make = [] {
    return one_device(std::make_unique<ScriptedDevice>(Script{.on_prepare = [](std::int64_t id) {
      if (id < 0) throw OutOfMemory("arena: too small");
    }}));
  };
  ComputeSamplingOptions sampling = tiny_sampling();
  sampling.has_reference_sets = true;
  EXPECT_THROW(collect_compute_costs(sampling, backend, 3, folder.file("costs.jsonl"), {}),
               MachineError);
  EXPECT_EQ(folder.num_files(), 0u);
}

TEST(ComputeCollector, ReportsItsProgress) {
  const TemporaryFolder folder;
  std::vector<std::int64_t> done;
  (void)collect(folder.file("a"), 2);
  const std::int64_t measured = collect_compute_costs(
      tiny_sampling(), tiny_benchmark(), 5, folder.file("a"), [&](const CollectionProgress& now) {
        done.push_back(now.done);
        EXPECT_EQ(now.requested, 5);
      });
  EXPECT_EQ(measured, 3);
  EXPECT_THAT(done, testing::ElementsAre(3, 4, 5));
}

TEST(ComputeCollector, NoMoreTimeIsLeftThanUntilTheDeadline) {
  const TemporaryFolder folder;
  ComputeSamplingOptions sampling = tiny_sampling();
  sampling.deadline = std::chrono::steady_clock::now() + std::chrono::milliseconds(300);
  int reports = 0;
  (void)collect_compute_costs(sampling, tiny_benchmark(), 1'000'000, folder.file("a"),
                              [&](const CollectionProgress& now) {
                                ++reports;
                                EXPECT_LE(now.seconds_left, 0.3);
                              });
  EXPECT_GT(reports, 0);
}

TEST(ComputeCollector, AlternatingSamplesAreThoseOfTheSequence) {
  const TemporaryFolder folder;
  ComputeSamplingOptions sampling = tiny_sampling();
  sampling.in_flight = 4;
  ComputeBenchmarkOptions benchmark = tiny_benchmark();
  benchmark.repetitions = {.target_interval = 0.0, .min_repetitions = 1, .max_repetitions = 3};
  const std::string path = folder.file("costs.jsonl");
  EXPECT_EQ(collect_compute_costs(sampling, benchmark, 3, path, {}), 3);
  EXPECT_EQ(collect_compute_costs(sampling, benchmark, 11, path, {}), 8);
  std::set<std::int64_t> ids;
  for (const ComputeCostSample& sample : read_compute_costs(path).samples) {
    const std::int64_t id = sample.info.id.value_or(-1);
    EXPECT_TRUE(ids.insert(id).second);
    const std::vector<Piece> pieces = sample_pieces(sampling, id);
    EXPECT_EQ(sample.pieces, pieces);
    EXPECT_EQ(sample.info.repetitions, 3);
  }
  EXPECT_EQ(ids.size(), 11u);
}

TEST(ComputeCollector, TheSamplesOfSeveralFilesAlternate) {
  const TemporaryFolder folder;
  std::vector<std::pair<std::int64_t, std::int64_t>> begun;  // batch size and its samples so far
  std::map<std::int64_t, std::int64_t> count;
  Script script;
  script.on_set = [&](const PieceSet& set) {
    begun.emplace_back(set.batch_size, ++count[set.batch_size]);
  };
  const ComputeBackendFactory backend{
      {}, [&] { return one_device(std::make_unique<ScriptedDevice>(script)); }};
  std::vector<ComputeCollection> files;
  for (const std::int64_t batch_size : {16, 32}) {
    ComputeSamplingOptions sampling = tiny_sampling();
    sampling.batch_size = batch_size;
    sampling.seed = static_cast<std::uint64_t>(batch_size);
    files.push_back(
        {sampling, batch_size == 16 ? 6 : 12, folder.file(fmt::format("b{}", batch_size))});
  }
  (void)collect_compute_costs(files[0].sampling, backend, 1, files[0].path, {});
  begun.clear();
  count.clear();
  std::int64_t last_done = 0;
  EXPECT_EQ(collect_compute_costs(files, backend,
                                  [&](const CollectionProgress& now) {
                                    EXPECT_EQ(now.requested, 18);
                                    last_done = now.done;
                                  }),
            17);
  EXPECT_EQ(last_done, 18);
  // In proportion: of the one file there are five to measure of six, of the other all twelve.
  std::map<std::int64_t, std::int64_t> now{{16, 1}, {32, 0}};
  for (const auto& [batch_size, number] : begun) {
    ++now[batch_size];
    if (now[32] >= 2) {
      EXPECT_NEAR(static_cast<double>(now[16]) / 6.0, static_cast<double>(now[32]) / 12.0, 0.17);
    }
  }
  for (const ComputeCollection& file : files) {
    const ComputeCosts costs = read_compute_costs(file.path);
    EXPECT_EQ(costs.header.batch_size, file.sampling.batch_size);
    ASSERT_EQ(costs.samples.size(), static_cast<std::size_t>(file.num_samples));
    for (const ComputeCostSample& sample : costs.samples) {
      EXPECT_EQ(sample.pieces, sample_pieces(file.sampling, *sample.info.id));
    }
  }
  EXPECT_EQ(collect_compute_costs(files, backend, {}), 0);
}

TEST(ComputeCollector, ContinuesAFileCutAnywhereInItsLastLine) {
  const TemporaryFolder folder;
  const std::string path = folder.file("costs.jsonl");
  (void)collect(path, 6);
  const std::string whole = read_file(path);
  const Sequence expected = sequence_of(path);
  const std::size_t last_line = whole.rfind('\n', whole.size() - 2) + 1;
  for (std::size_t size = last_line; size + 1 < whole.size(); size += 11) {
    write_file(path, whole.substr(0, size));
    EXPECT_EQ(collect(path, 6), 1) << size;
    EXPECT_EQ(sequence_of(path), expected);
    EXPECT_TRUE(read_file(path).starts_with(whole.substr(0, last_line)));
  }
}

TEST(ComputeCollector, FillsGapsAndExtends) {
  const TemporaryFolder folder;
  const std::string path = folder.file("costs.jsonl");
  (void)collect(path, 4);
  Sequence longer = sequence_of(path);
  EXPECT_EQ(collect(path, 7), 3);
  const Sequence extended = sequence_of(path);
  ASSERT_EQ(extended.size(), 7u);
  EXPECT_TRUE(std::equal(longer.begin(), longer.end(), extended.begin()));

  // Without the line of sample 2, as if another machine had measured it elsewhere.
  std::string text = read_file(path);
  std::size_t start = 0;
  for (int line = 0; line < 3; ++line) start = text.find('\n', start) + 1;
  text.erase(start, text.find('\n', start) + 1 - start);
  write_file(path, text);
  EXPECT_EQ(collect(path, 7), 1);
  std::set<std::int64_t> ids;
  for (const auto& [id, pieces] : sequence_of(path)) EXPECT_TRUE(ids.insert(id).second);
  EXPECT_EQ(ids.size(), 7u);
}

TEST(ComputeCollector, AFinishedFileIsNotTouched) {
  const TemporaryFolder folder;
  const std::string path = folder.file("costs.jsonl");
  (void)collect(path, 3);
  const std::string bytes = read_file(path);
  const auto long_ago = std::filesystem::file_time_type::clock::now() - std::chrono::hours(24);
  std::filesystem::last_write_time(path, long_ago);
  EXPECT_EQ(collect(path, 3), 0);
  EXPECT_EQ(collect(path, 2), 0);
  EXPECT_EQ(read_file(path), bytes);
  EXPECT_EQ(std::filesystem::last_write_time(path), long_ago);
}

TEST(ComputeCollector, RefusesToContinueAnotherRun) {
  const TemporaryFolder folder;
  const std::string path = folder.file("costs.jsonl");
  (void)collect(path, 2);
  const std::string bytes = read_file(path);
  const auto refusal = [&](const std::function<void(ComputeSamplingOptions&)>& change) {
    ComputeSamplingOptions other = tiny_sampling();
    change(other);
    std::string message = input_error([&] { (void)collect(path, 2, other); });
    EXPECT_EQ(read_file(path), bytes);
    EXPECT_THAT(message, testing::StartsWith(path + ": line 1: "));
    return message;
  };
  EXPECT_EQ(refusal([](auto& o) { o.seed = 6; }),
            path +
                ": line 1: sampling.seed: expected 6 as in this run, to continue the file, got "
                "5");
  EXPECT_THAT(refusal([](auto& o) { o.batch_size = 64; }), HasSubstr("batch_size: expected 64"));
  EXPECT_THAT(refusal([](auto& o) { o.optimizer = Optimizer::rowwise_adagrad; }),
              HasSubstr("optimizer: expected \"rowwise_adagrad\""));
  EXPECT_THAT(refusal([](auto& o) { o.dims = {4}; }), HasSubstr("sampling.dims"));
  EXPECT_THAT(refusal([](auto& o) { o.tables[3].num_embeddings = 9; }),
              HasSubstr("tables[3].num_embeddings: expected 9"));
  EXPECT_THAT(refusal([](auto& o) { o.held_out_share = 0.2; }),
              HasSubstr("sampling.held_out_share: expected 0.2"));
  EXPECT_THAT(refusal([](auto& o) { o.memory_bytes = 1 << 21; }),
              HasSubstr("sampling.memory_bytes"));
}

TEST(ComputeCollector, RefusedOptionsLeaveNoFile) {
  const TemporaryFolder folder;
  const auto refusal = [&](const std::function<void(ComputeSamplingOptions&)>& change) {
    ComputeSamplingOptions options = tiny_sampling();
    change(options);
    std::string message = input_error([&] { (void)collect(folder.file("a"), 3, options); });
    EXPECT_EQ(folder.num_files(), 0u) << message;
    return message;
  };
  EXPECT_EQ(refusal([](auto& o) { o.tables.clear(); }),
            "workload: expected at least one table, got 0");
  EXPECT_EQ(refusal([](auto& o) { o.dims.clear(); }),
            "dims: expected at least one number of columns, got 0");
  EXPECT_EQ(refusal([](auto& o) {
              o.dims = {4, 0};
            }),
            "dims: expected numbers of columns of at least 1, got 0");
  EXPECT_EQ(refusal([](auto& o) { o.min_tables = 0; }), "min_tables: expected at least 1, got 0");
  EXPECT_EQ(refusal([](auto& o) { o.max_tables = 0; }),
            "max_tables: expected at least min_tables, got 0");
  EXPECT_EQ(refusal([](auto& o) { o.batch_size = 0; }),
            "batch_size: expected an integer between 1 and 2^30, got 0");
  EXPECT_EQ(refusal([](auto& o) { o.held_out_share = 1.0; }),
            "held_out: expected a share from 0 to below 1, got 1");
  EXPECT_EQ(refusal([](auto& o) { o.held_out_share = std::nan(""); }),
            "held_out: expected a share from 0 to below 1, got nan");
  EXPECT_EQ(refusal([](auto& o) { o.memory_bytes = 799; }),
            "memory: expected room for 1 piece of the pool, got 799 B");
}

TEST(ComputeCollector, ALastLineThatOnlyLacksItsNewlineIsKept) {
  const TemporaryFolder folder;
  const std::string path = folder.file("costs.jsonl");
  (void)collect(path, 3);
  const std::string whole = read_file(path);
  write_file(path, whole.substr(0, whole.size() - 1));
  ASSERT_EQ(read_compute_costs(path).samples.size(), 3u);
  EXPECT_EQ(collect(path, 4), 1);
  EXPECT_THAT(read_file(path), testing::StartsWith(whole)) << "with the newline, and as it was";
  EXPECT_EQ(read_compute_costs(path).samples.size(), 4u);
}

TEST(ComputeCollector, ARefusedFileLeavesTheOthersUnbegun) {
  const TemporaryFolder folder;
  (void)collect(folder.file("second"), 2);
  ComputeSamplingOptions other = tiny_sampling();
  other.seed = 6;
  EXPECT_THAT(input_error([&] {
                (void)collect_compute_costs(
                    {{tiny_sampling(), 2, folder.file("first")}, {other, 2, folder.file("second")}},
                    cpu_backend(tiny_benchmark(), 1), {});
              }),
              HasSubstr("sampling.seed: expected 6"));
  EXPECT_EQ(folder.num_files(), 1u);
}

TEST(ComputeCollector, SetsOfPlansOfWiderTablesAreAnotherRun) {
  const TemporaryFolder folder;
  const std::string path = folder.file("costs.jsonl");
  ComputeSamplingOptions sampling = tiny_sampling();
  sampling.sampling = SetSampling::given;
  sampling.given = [](std::int64_t id) {
    return std::vector<Piece>{{.table = static_cast<int>(id), .num_columns = 4}};
  };
  sampling.given_kind = "plans";
  sampling.given_by = "a model";
  (void)collect(path, 2, sampling);
  EXPECT_THAT(read_file(path), testing::Not(HasSubstr("max_dim"))) << "as files before have it";
  sampling.given_max_dim = 512;
  EXPECT_THAT(input_error([&] { (void)collect(path, 3, sampling); }),
              HasSubstr("sampling.max_dim"));
}

TEST(ComputeCollector, ARefusedArenaLeavesNoFile) {
  const TemporaryFolder folder;
  ComputeBenchmarkOptions benchmark = tiny_benchmark();
  benchmark.arena_bytes = 1000;
  EXPECT_EQ(input_error([&] {
              (void)collect_compute_costs(tiny_sampling(), benchmark, 3, folder.file("a"), {});
            }),
            "arena: expected at least 1 MiB, got 1000 bytes");
  EXPECT_EQ(folder.num_files(), 0u);
}

/// The tiny tables with every way of saying how rows are used, in sets of many slices.
ComputeSamplingOptions tiny_coverage() {
  ComputeSamplingOptions sampling = tiny_sampling();
  sampling.sampling = SetSampling::coverage;
  sampling.slice_share = 0.7;
  sampling.batch_size = 2048;  // of fewer samples, slices would move too few bytes
  sampling.max_pass_bytes = 1e6;
  sampling.usual_max_pass_bytes = 5e5;
  sampling.tables[0].reuse_histogram = ReuseHistogram{};
  (*sampling.tables[0].reuse_histogram)[1] = 1.0;
  IndexDistribution zipf;
  zipf.zipf_exponent = 1.1;
  sampling.tables[1].index_distribution = zipf;
  IndexDistribution classes;
  classes.access_classes = {{1, 0.5}, {200, 0.5}};
  sampling.tables[2].index_distribution = classes;
  return sampling;
}

TEST(ComputeCollector, MeasuresSlicesOfRows) {
  const TemporaryFolder folder;
  const std::string path = folder.file("costs.jsonl");
  ComputeSamplingOptions sampling = tiny_coverage();
  sampling.in_flight = 3;  // sets with tables of their own, at the same time
  EXPECT_EQ(collect(path, 12, sampling), 12);
  std::size_t slices = 0;
  for (const ComputeCostSample& sample : read_compute_costs(path).samples) {
    const std::vector<Piece> pieces = sample_pieces(sampling, sample.info.id.value_or(-1));
    EXPECT_EQ(sample.pieces, pieces);
    for (const Piece& piece : sample.pieces) slices += piece.row_share < 1.0 ? 1 : 0;
    EXPECT_GT(sample.forward_ms, 0.0);
  }
  EXPECT_GT(slices, 3u);
  EXPECT_EQ(collect(path, 14, sampling), 2);  // is continued as any other file
}

/// What a backend is given is the slice as a table, and each piece whole.
TEST(ComputeCollector, ASliceIsATableOfItsOwnForTheBackend) {
  const TemporaryFolder folder;
  const ComputeSamplingOptions sampling = tiny_coverage();
  GivenPieceSets given;
  given.tables = sampling.tables;
  given.sets = {{{1, 8, 0.25}, {3, 4}, {3, 4, 0.5}}};
  given.batch_size = 32;
  testing_collection::Script script;
  std::vector<Table> tables;
  std::vector<Piece> pieces;
  script.on_set = [&](const PieceSet& set) {
    tables.assign(set.tables.begin(), set.tables.end());
    pieces = set.pieces;
  };
  const ComputeBackendFactory backend{
      {}, [&] { return one_device(std::make_unique<testing_collection::ScriptedDevice>(script)); }};
  EXPECT_EQ(collect_compute_costs(given, backend, folder.file("costs.jsonl"), {}), 1);
  EXPECT_EQ(pieces, (std::vector<Piece>{{0, 8}, {1, 4}, {2, 4}}));
  ASSERT_EQ(tables.size(), 3u);
  EXPECT_EQ(tables[0].num_embeddings, 38);  // a quarter of 150
  EXPECT_DOUBLE_EQ(tables[0].pooling_factor, 0.25 * 1.5);
  EXPECT_EQ(tables[1].num_embeddings, 350);
  EXPECT_EQ(tables[2].num_embeddings, 175);
  // The file has the slices.
  EXPECT_EQ(read_compute_costs(folder.file("costs.jsonl")).samples[0].pieces, given.sets[0]);
}

TEST(ComputeCollector, SaysHowCoverageWasSampled) {
  const TemporaryFolder folder;
  const std::string path = folder.file("costs.jsonl");
  (void)collect(path, 1, tiny_coverage());
  const Json sampling = read_compute_costs(path).header.sampling.value();
  EXPECT_EQ(*sampling.find("kind"), Json("coverage"));
  EXPECT_EQ(*sampling.find("slice_share"), Json(0.7));
  EXPECT_EQ(*sampling.find("max_pass_bytes"), Json(1e6));
  EXPECT_EQ(*sampling.find("usual_max_pass_bytes"), Json(5e5));
  ComputeSamplingOptions other = tiny_coverage();
  other.slice_share = 0.6;
  EXPECT_THAT(input_error([&] { (void)collect(path, 2, other); }),
              HasSubstr("sampling.slice_share: expected 0.6 as in this run"));
  other = tiny_coverage();
  other.sampling = SetSampling::uniform;
  EXPECT_THAT(input_error([&] { (void)collect(path, 2, other); }), HasSubstr("sampling.kind"));
}

TEST(ComputeCollector, RecordsWhatAHistogramOnlyHintsAt) {
  const TemporaryFolder folder;
  const std::string path = folder.file("costs.jsonl");
  (void)collect(path, 1, tiny_coverage());
  const std::vector<MeasuredTable> tables = read_compute_costs(path).header.tables;
  EXPECT_FALSE(tables[0].distinct_rows || tables[0].hottest_row_share);  // a histogram, no more
  EXPECT_EQ(tables[2].hottest_row_share, 0.5);
  EXPECT_EQ(tables[3].hottest_row_share, 1.0 / 350.0);
  EXPECT_NEAR(tables[3].distinct_rows.value(), 350.0 * -std::expm1(-3072.0 / 350.0), 1e-6);
  for (std::size_t t = 1; t < tables.size(); ++t) {
    EXPECT_LE(tables[t].distinct_rows.value(), static_cast<double>(tables[t].num_embeddings));
    EXPECT_GT(tables[t].distinct_rows.value(), 1.0);
  }
}

/// Collects in a process of its own, which is killed once the file has `num_lines` lines.
void collect_and_kill(const std::string& path, std::size_t num_lines) {
  const pid_t child = fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    (void)collect(path, 100'000);
    _exit(0);
  }
  const auto lines_now = [&] {
    if (!std::filesystem::exists(path)) return std::size_t{0};
    const std::string text = read_file(path);
    return static_cast<std::size_t>(std::count(text.begin(), text.end(), '\n'));
  };
  const auto start = std::chrono::steady_clock::now();
  while (lines_now() < num_lines &&
         std::chrono::steady_clock::now() - start < std::chrono::seconds(60)) {
    std::this_thread::sleep_for(std::chrono::microseconds(300));
  }
  ASSERT_EQ(kill(child, SIGKILL), 0);
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  ASSERT_TRUE(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
}

TEST(ComputeCollector, AKilledRunLeavesAReadableFileThatGoesOn) {
  const TemporaryFolder folder;
  const std::string path = folder.file("costs.jsonl");
  std::size_t samples = 0;
  for (int kills = 1; kills <= 5; ++kills) {
    collect_and_kill(path, samples + 4);
    if (HasFatalFailure()) return;
    const Sequence sequence = sequence_of(path);
    EXPECT_GE(sequence.size(), samples);
    samples = sequence.size();
  }
  ASSERT_GT(samples, 0u);
  (void)collect(path, static_cast<std::int64_t>(samples) + 2);
  const Sequence sequence = sequence_of(path);
  ASSERT_EQ(sequence.size(), samples + 2);
  for (std::size_t i = 0; i < sequence.size(); ++i) {
    EXPECT_EQ(sequence[i].first, static_cast<std::int64_t>(i));
    const std::vector<Piece> pieces = sample_pieces(tiny_sampling(), sequence[i].first);
    EXPECT_EQ(sequence[i].second, pieces);
  }
}

TEST(ComputeCollector, ASecondRunOfTheSameFileIsRefused) {
  const TemporaryFolder folder;
  const std::string path = folder.file("costs.jsonl");
  std::string message;
  (void)collect_compute_costs(
      tiny_sampling(), tiny_benchmark(), 1, path,
      [&](const CollectionProgress&) { message = input_error([&] { (void)collect(path, 1); }); });
  EXPECT_THAT(message, HasSubstr("expected a file that nobody else is writing"));
}

}  // namespace
}  // namespace neuroshard
