// Sets that cover the whole space: within the bytes of a pass, even on logarithmic scales, with
// slices of rows, and a function of seed and id alone.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <set>

#include "neuroshard/workload/generate/coverage_workload.h"
#include "tests/collect/tiny_collection.h"
#include "tests/io/io_test_util.h"

namespace neuroshard {
namespace {

ComputeSamplingOptions coverage_sampling() {
  ComputeSamplingOptions options;
  options.workload = kCoverage;
  options.tables = coverage_workload(1).tables;
  options.dims.clear();
  for (std::int64_t dim = 4; dim <= 1024; dim += 4) options.dims.push_back(dim);
  options.batch_size = 4096;
  options.seed = 5;
  options.sampling = SetSampling::coverage;
  return options;
}

double pass_bytes(const ComputeSamplingOptions& options, const std::vector<Piece>& pieces) {
  double bytes = 0.0;
  for (const Piece& piece : pieces) {
    bytes += pass_bytes(options.tables.at(piece.table), piece, options.batch_size);
  }
  return bytes;
}

TEST(PassBytes, WrittenOut) {
  Table table;
  table.num_embeddings = 1000;
  table.pooling_factor = 3.0;
  // 300 lookups of two lines of 64 bytes and an index of 8, 100 outputs of 20 columns and an
  // offset.
  EXPECT_EQ(pass_bytes(table, {0, 20}, 100), 300.0 * (128.0 + 8.0) + 100.0 * (80.0 + 8.0));
  EXPECT_EQ(pass_bytes(table, {0, 20, 0.5}, 100), 150.0 * (128.0 + 8.0) + 100.0 * (80.0 + 8.0));
  table.data_type = DataType::fp16;
  EXPECT_EQ(pass_bytes(table, {0, 20}, 100), 300.0 * (64.0 + 8.0) + 100.0 * (80.0 + 8.0));
}

TEST(CoverageSampling, MovesNoMoreBytesThanAllowed) {
  for (const std::int64_t batch_size : {64, 4096, 131'072}) {
    ComputeSamplingOptions options = coverage_sampling();
    options.batch_size = batch_size;
    options.max_pass_bytes = 4e9;
    options.usual_max_pass_bytes = 4e8;
    int large = 0;
    for (std::int64_t id = 0; id < 500; ++id) {
      const double bytes = pass_bytes(options, sample_pieces(options, id));
      EXPECT_LE(bytes, options.max_pass_bytes);
      large += bytes > options.usual_max_pass_bytes ? 1 : 0;
    }
    EXPECT_LE(large, 500 * 0.07) << batch_size;  // one of twenty
    if (batch_size > 64) {
      EXPECT_GE(large, 5) << batch_size;
    }
  }
}

TEST(CoverageSampling, CoversEveryOrderOfMagnitude) {
  const ComputeSamplingOptions options = coverage_sampling();
  std::vector<double> decades(11, 0.0);
  std::vector<int> counts(16, 0);
  for (std::int64_t id = 0; id < 1000; ++id) {
    const std::vector<Piece> pieces = sample_pieces(options, id);
    ++decades.at(static_cast<std::size_t>(std::log10(pass_bytes(options, pieces))));
    ++counts.at(pieces.size());
  }
  for (const int decade : {5, 6, 7, 8}) {
    EXPECT_GT(decades[static_cast<std::size_t>(decade)], 100.0) << decade;
  }
  EXPECT_GT(decades[9], 10.0);
  // On a logarithmic scale every count is as likely as its ratio to the next.
  EXPECT_NEAR(counts[1], 1000 * std::log(2.0) / std::log(16.0), 100);
  for (int count = 1; count <= 15; ++count) EXPECT_GT(counts[count], 0) << count;
}

TEST(CoverageSampling, SomePiecesAreSlicesOfRows) {
  for (const double share : {0.0, 0.2, 0.6}) {
    ComputeSamplingOptions options = coverage_sampling();
    options.slice_share = share;
    int pieces = 0;
    int slices = 0;
    int equal_parts = 0;
    for (std::int64_t id = 0; id < 600; ++id) {
      for (const Piece& piece : sample_pieces(options, id)) {
        ++pieces;
        if (piece.row_share == 1.0) continue;
        ++slices;
        EXPECT_GE(piece.row_share, 1.0 / 64.0 - 1e-4);
        EXPECT_LT(piece.row_share, 1.0);
        const double parts = 1.0 / piece.row_share;
        equal_parts += std::abs(parts - std::round(parts)) < 1e-9 ? 1 : 0;
      }
    }
    // A slice moves fewer bytes, so pieces that are to move many are slices less often.
    EXPECT_NEAR(static_cast<double>(slices) / pieces, share, 0.06);
    if (share > 0.0) {
      EXPECT_NEAR(static_cast<double>(equal_parts) / slices, 0.5, 0.12);
    }
  }
}

TEST(CoverageSampling, EveryOctaveOfWidthsOccurs) {
  const ComputeSamplingOptions options = coverage_sampling();
  std::vector<double> logarithms;
  for (std::int64_t id = 0; id < 600; ++id) {
    for (const Piece& piece : sample_pieces(options, id)) {
      logarithms.push_back(std::log2(static_cast<double>(piece.num_columns)));
      EXPECT_EQ(piece.num_columns % 4, 0);
      EXPECT_TRUE(piece.num_columns >= 4 && piece.num_columns <= 1024);
    }
  }
  for (int octave = 2; octave < 10; ++octave) {
    const auto count = std::count_if(logarithms.begin(), logarithms.end(),
                                     [&](double x) { return x >= octave && x < octave + 1; });
    // An eighth of the candidates each; pieces that must move few bytes are narrow more often, and
    // there is only one width below 8.
    const double share = static_cast<double>(count) / static_cast<double>(logarithms.size());
    EXPECT_GT(share, 0.05) << octave;
    EXPECT_LT(share, 0.3) << octave;
  }
}

TEST(CoverageSampling, DependsOnSeedAndIdAlone) {
  ComputeSamplingOptions options = coverage_sampling();
  const std::vector<Piece> pieces = sample_pieces(options, 321);
  for (std::int64_t other = 0; other < 5; ++other) (void)sample_pieces(options, other);
  EXPECT_EQ(sample_pieces(options, 321), pieces);
  EXPECT_NE(sample_pieces(options, 322), pieces);
  options.seed = 6;
  EXPECT_NE(sample_pieces(options, 321), pieces);
}

TEST(CoverageSampling, MeasuresTheSetOfMostInterest) {
  ComputeSamplingOptions options = coverage_sampling();
  std::vector<std::vector<Piece>> drawn;
  for (std::int64_t id = 0; id < 40; ++id) drawn.push_back(sample_pieces(options, id));
  options.candidates = 4;
  options.interest = [&](std::span<const Piece> pieces) {
    return -static_cast<double>(pieces.size());
  };
  for (std::int64_t id = 0; id < 10; ++id) {
    const auto first = drawn.begin() + 4 * id;
    const auto smallest = std::min_element(
        first, first + 4, [](const auto& a, const auto& b) { return a.size() < b.size(); });
    EXPECT_EQ(sample_pieces(options, id), *smallest);
  }
  options.interest = nullptr;
  EXPECT_EQ(input_error([&] { validate(options); }),
            "candidates: expected 1 where no interest is given, got 4");
}

TEST(CoverageSampling, ASetIsOfHeldOutTablesOrOfOthers) {
  const ComputeSamplingOptions options = coverage_sampling();
  int held_out = 0;
  for (std::int64_t id = 0; id < 500; ++id) {
    std::set<bool> kinds;
    for (const Piece& piece : sample_pieces(options, id)) {
      kinds.insert(is_held_out(options.tables.at(piece.table).name, options.held_out_share));
    }
    EXPECT_EQ(kinds.size(), 1u);
    held_out += *kinds.begin() ? 1 : 0;
  }
  EXPECT_NEAR(held_out, 50, 35);
}

TEST(CoverageSampling, FindsTheOneTableThatFitsAmongMany) {
  ComputeSamplingOptions options = coverage_sampling();
  options.tables.clear();
  for (int i = 0; i < 200; ++i) {
    Table table;
    table.name = fmt::format("t{}", i);
    table.num_embeddings = 1000;
    table.pooling_factor = i == 77 ? 1.0 : 500.0;
    options.tables.push_back(table);
  }
  options.dims = {4};
  options.max_tables = 1;
  options.held_out_share = 0.0;
  options.slice_share = 0.0;
  options.max_pass_bytes = options.usual_max_pass_bytes = 1e6;
  validate(options);
  for (std::int64_t id = 0; id < 20; ++id) {
    EXPECT_EQ(sample_pieces(options, id), (std::vector<Piece>{{77, 4}})) << id;
  }
}

TEST(CoverageSampling, SaysWhatItCannotDo) {
  const auto refusal = [](const std::function<void(ComputeSamplingOptions&)>& change) {
    ComputeSamplingOptions options = coverage_sampling();
    change(options);
    return input_error([&] {
      validate(options);
      (void)sample_pieces(options, 0);
    });
  };
  EXPECT_EQ(refusal([](auto& o) { o.slice_share = 1.0; }),
            "slices: expected a share from 0 to below 1, got 1");
  EXPECT_EQ(refusal([](auto& o) { o.slice_share = -0.1; }),
            "slices: expected a share from 0 to below 1, got -0.1");
  EXPECT_EQ(refusal([](auto& o) { o.max_pass_bytes = o.usual_max_pass_bytes = 1000.0; }),
            "max_pass_bytes: expected at least 128 KiB, got 1000 B");
  EXPECT_EQ(refusal([](auto& o) {
              o.batch_size = kMaxBatchSize;  // of which no piece moves less than 128 KiB
              o.max_pass_bytes = o.usual_max_pass_bytes = 131'072.0;
            }),
            "max_pass_bytes: expected room for 1 piece of the pool, got 128.00 KiB");
  EXPECT_EQ(refusal([](auto& o) {
              o.batch_size = kMaxBatchSize;
              o.usual_max_pass_bytes = 131'072.0;  // which holds, where no set is large
              o.large_share = 0.0;
            }),
            "max_pass_bytes: expected room for 1 piece of the pool, got 128.00 KiB");
  EXPECT_EQ(refusal([](auto& o) { o.usual_max_pass_bytes = 1000.0; }),
            "usual_max_pass_bytes: expected at least 64 KiB, got 1000 B");
}

}  // namespace
}  // namespace neuroshard
