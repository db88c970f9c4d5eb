// Sampling of piece sets and the loop that measures and records them.
#include "neuroshard/collect/compute/compute_collector.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <filesystem>
#include <optional>
#include <span>
#include <system_error>
#include <unordered_map>
#include <utility>

#include "neuroshard/core/error.h"
#include "neuroshard/core/sharding_plan.h"
#include "neuroshard/core/units.h"
#include "neuroshard/io/compute_costs_io.h"
#include "neuroshard/workload/reuse/index_distribution.h"

namespace neuroshard {

namespace {

/// Sets drawn for one sample before the memory is called too small.
constexpr int kMaxDraws = 10'000;

/// Streams of the generator: what is drawn for a sample's set must not shift its batches.
constexpr std::uint64_t kSetStream = 0;
constexpr std::uint64_t kBatchStream = 1;

Random random_for(std::uint64_t seed, std::int64_t index, std::uint64_t stream) {
  return Random::for_stream(seed, 2 * static_cast<std::uint64_t>(index) + stream);
}

/// What is measured into one file.
struct Collection {
  Json sampling;
  std::span<const Table> tables;
  std::function<std::vector<SampledPiece>(std::int64_t index)> pieces_of;
  std::int64_t num_samples = 0;
  std::int64_t batch_size = 0;
  Optimizer optimizer = Optimizer::sgd;
  std::uint64_t seed = 0;
  int in_flight = 1;
  ProcessGroup group{};
};

/// Histograms are written with this many digits; more would only make the files larger.
ReuseHistogram rounded(const ReuseHistogram& histogram) {
  ReuseHistogram result{};
  std::transform(histogram.begin(), histogram.end(), result.begin(),
                 [](double share) { return std::round(share * 1e6) / 1e6; });
  return result;
}

Json sampling_json(const ComputeSamplingOptions& options) {
  Json::Array dims(options.dims.begin(), options.dims.end());
  return Json::Object{{"workload", options.workload},
                      {"seed", options.seed},
                      {"dims", std::move(dims)},
                      {"min_tables", options.min_tables},
                      {"max_tables", options.max_tables},
                      {"memory_bytes", options.memory_bytes},
                      {"held_out_share", options.held_out_share}};
}

ComputeCostsHeader make_header(const Collection& options,
                               const MeasuredOperator& measured_operator) {
  ComputeCostsHeader header;
  header.hardware = measured_operator.hardware;
  header.operator_info = measured_operator.operator_info;
  header.batch_size = options.batch_size;
  header.optimizer = options.optimizer;
  header.sampling = options.sampling;
  for (const Table& table : options.tables) {
    header.tables.push_back({table.name, table.num_embeddings, table.pooling_factor,
                             table.data_type, rounded(reuse_histogram(table, options.batch_size))});
  }
  return header;
}

ComputeCostSample to_sample(std::int64_t index, const std::vector<SampledPiece>& pieces,
                            const ComputeMeasurement& measured) {
  // Microseconds to three digits, far below the noise of any machine.
  const auto rounded_ms = [](double ms) { return std::round(ms * 1e6) / 1e6; };
  ComputeCostSample sample;
  for (const SampledPiece& piece : pieces) {
    sample.shards.push_back({piece.table, piece.num_columns});
  }
  sample.forward_ms = rounded_ms(measured.forward_ms);
  sample.backward_ms = rounded_ms(measured.backward_ms);
  sample.info.index = index;
  sample.info.repetitions = measured.repetitions;
  if (std::isfinite(measured.interval)) {
    sample.info.interval = std::round(measured.interval * 1e5) / 1e5;
  }
  return sample;
}

void validate(const ComputeSamplingOptions& options) {
  const auto require = [](bool ok, const char* place, const char* expected, std::int64_t actual) {
    if (!ok) throw InputError(place, expected, fmt::format("{}", actual));
  };
  require(!options.tables.empty(), "workload", "at least one table", 0);
  require(!options.dims.empty(), "dims", "at least one number of columns", 0);
  for (const std::int64_t dim : options.dims) {
    require(dim >= 1 && dim <= kMaxEmbeddingDim, "dims", "numbers of columns of at least 1", dim);
  }
  if (!(options.held_out_share >= 0.0 && options.held_out_share < 1.0)) {
    throw InputError("held_out", "a share from 0 to below 1",
                     fmt::format("{}", options.held_out_share));
  }
  require(options.min_tables >= 1, "min_tables", "at least 1", options.min_tables);
  require(options.max_tables >= options.min_tables, "max_tables", "at least min_tables",
          options.max_tables);
  require(options.batch_size >= 1 && options.batch_size <= kMaxBatchSize, "batch_size",
          "an integer between 1 and 2^30", options.batch_size);
  require(options.in_flight >= 1, "in_flight", "at least 1", options.in_flight);
}

}  // namespace

std::vector<std::int64_t> widths_of_pieces() {
  std::vector<std::int64_t> widths;
  for (std::int64_t width = 4; width <= 128; width += 4) widths.push_back(width);
  return widths;
}

bool is_held_out(const std::string& table_name, double held_out_share) {
  std::uint64_t hash = 0;
  for (const char c : table_name) hash = mix64(hash ^ static_cast<unsigned char>(c));
  return static_cast<double>(hash >> 11) * 0x1p-53 < held_out_share;
}

namespace {

/// The tables that this sample is drawn from: all held-out ones or all others.
std::vector<int> sample_pool(const ComputeSamplingOptions& options, Random& random) {
  const bool from_held_out = random.uniform() < options.held_out_share;
  std::vector<int> pool;
  std::vector<int> others;
  for (std::size_t i = 0; i < options.tables.size(); ++i) {
    const bool held_out = is_held_out(options.tables[i].name, options.held_out_share);
    (held_out == from_held_out ? pool : others).push_back(static_cast<int>(i));
  }
  return pool.empty() ? others : pool;
}

}  // namespace

std::vector<SampledPiece> sample_pieces(const ComputeSamplingOptions& options, std::int64_t index) {
  Random random = random_for(options.seed, index, kSetStream);
  const std::vector<int> pool = sample_pool(options, random);
  const std::int64_t count = random.integer(options.min_tables, options.max_tables);
  std::vector<SampledPiece> pieces;
  std::int64_t bytes = 0;
  for (int draw = 0; draw < kMaxDraws; ++draw) {
    const SampledPiece piece{pool[random.below(pool.size())],
                             options.dims[random.below(options.dims.size())]};
    const std::int64_t piece_bytes =
        shard_bytes(options.tables[piece.table], piece.num_columns, options.optimizer);
    if (bytes + piece_bytes > options.memory_bytes) continue;
    bytes += piece_bytes;
    pieces.push_back(piece);
    if (static_cast<std::int64_t>(pieces.size()) == count) return pieces;
  }
  if (static_cast<int>(pieces.size()) >= options.min_tables) return pieces;
  throw InputError("memory", fmt::format("room for {} pieces of the pool", options.min_tables),
                   format_bytes(static_cast<double>(options.memory_bytes)));
}

namespace {

/// Samples of a sequence of `count` that are this process's.
std::int64_t share_of_samples(const ProcessGroup& group, std::int64_t count) {
  return (count - group.rank + group.size - 1) / group.size;
}

/// Measures what the file does not have yet.
std::int64_t collect(const Collection& collection, const MeasuredOperator& measured_operator,
                     const std::string& path,
                     const std::function<void(const CollectionProgress&)>& on_progress) {
  using Clock = std::chrono::steady_clock;
  const ComputeCostsHeader header = make_header(collection, measured_operator);
  // A run that cannot measure must not begin a file: with other options it could not be continued.
  (void)collection.pieces_of(0);
  bool prepared = false;
  const auto prepare = [&] {
    if (!prepared) measured_operator.prepare();
    prepared = true;
  };
  std::error_code ignored;
  if (!std::filesystem::exists(path, ignored)) prepare();
  ComputeCostsWriter writer(path, header);
  const std::int64_t num_samples = collection.num_samples;
  const ProcessGroup& group = collection.group;
  const std::int64_t requested = share_of_samples(group, num_samples);
  CollectionProgress progress{static_cast<std::int64_t>(writer.done().size()), requested};
  std::int64_t next_index = group.rank;
  const auto skip_done = [&] {
    while (next_index < num_samples && writer.done().contains(next_index)) next_index += group.size;
  };
  skip_done();
  if (next_index >= num_samples) return 0;
  prepare();

  std::unordered_map<std::int64_t, std::vector<SampledPiece>> in_flight;
  const auto next = [&]() -> std::optional<SampledSet> {
    skip_done();
    if (next_index >= num_samples) return std::nullopt;
    const std::int64_t index = std::exchange(next_index, next_index + group.size);
    in_flight[index] = collection.pieces_of(index);
    return SampledSet{index, in_flight[index], random_for(collection.seed, index, kBatchStream)};
  };
  std::int64_t measured = 0;
  const Clock::time_point start = Clock::now();
  const auto on_done = [&](const PieceSetResult& result) {
    const auto pieces = in_flight.extract(result.id);
    if (result.measurement) {
      writer.append(to_sample(result.id, pieces.mapped(), *result.measurement));
      ++measured;
    } else {
      writer.append(SkippedSample{result.id, result.failure});
    }
    ++progress.done;
    progress.seconds = std::chrono::duration<double>(Clock::now() - start).count();
    progress.seconds_left =
        progress.seconds / static_cast<double>(std::max<std::int64_t>(measured, 1)) *
        static_cast<double>(std::max<std::int64_t>(requested - progress.done, 0));
    if (on_progress) on_progress(progress);
  };
  measured_operator.measure(next, on_done);
  writer.sync();
  return measured;
}

/// The fused operator (collect/compute/cpu/embedding_operator.h) on a CPU or a GPU.
std::int64_t collect(const Collection& collection, const ComputeBackendFactory& factory,
                     const std::string& path,
                     const std::function<void(const CollectionProgress&)>& on_progress) {
  std::unique_ptr<ComputeBackend> backend;  // its memory is only touched if there is work
  MeasuredOperator ours;
  ours.hardware = factory.description.hardware;
  ours.operator_info = factory.description.operator_info;
  ours.prepare = [&] { backend = factory.make(); };
  ours.measure = [&](const auto& next, const auto& on_done) {
    const auto next_set = [&]() -> std::optional<PieceSet> {
      const std::optional<SampledSet> sampled = next();
      if (!sampled) return std::nullopt;
      PieceSet set{sampled->index, {}, sampled->random};
      for (const SampledPiece& piece : sampled->pieces) {
        set.pieces.push_back({&collection.tables[piece.table], piece.num_columns});
      }
      return set;
    };
    backend->measure(next_set, collection.in_flight, collection.batch_size, collection.optimizer,
                     on_done);
  };
  return collect(collection, ours, path, on_progress);
}

Collection drawn(const ComputeSamplingOptions& sampling, std::int64_t num_samples) {
  validate(sampling);
  return {.sampling = sampling_json(sampling),
          .tables = sampling.tables,
          .pieces_of = [&sampling](std::int64_t index) { return sample_pieces(sampling, index); },
          .num_samples = num_samples,
          .batch_size = sampling.batch_size,
          .optimizer = sampling.optimizer,
          .seed = sampling.seed,
          .in_flight = sampling.in_flight,
          .group = sampling.group};
}

}  // namespace

std::int64_t collect_compute_costs(
    const ComputeSamplingOptions& sampling, const ComputeBackendFactory& backend,
    std::int64_t num_samples, const std::string& path,
    const std::function<void(const CollectionProgress&)>& on_progress) {
  return collect(drawn(sampling, num_samples), backend, path, on_progress);
}

std::int64_t collect_compute_costs(
    const ComputeSamplingOptions& sampling, const ComputeBenchmarkOptions& benchmark,
    std::int64_t num_samples, const std::string& path,
    const std::function<void(const CollectionProgress&)>& on_progress) {
  return collect(drawn(sampling, num_samples), cpu_backend(benchmark, sampling.in_flight), path,
                 on_progress);
}

std::int64_t collect_compute_costs(
    const ComputeSamplingOptions& sampling, const MeasuredOperator& measured_operator,
    std::int64_t num_samples, const std::string& path,
    const std::function<void(const CollectionProgress&)>& on_progress) {
  return collect(drawn(sampling, num_samples), measured_operator, path, on_progress);
}

std::int64_t collect_compute_costs(
    const GivenPieceSets& given, const ComputeBackendFactory& backend, const std::string& path,
    const std::function<void(const CollectionProgress&)>& on_progress) {
  if (given.sets.empty()) throw InputError("sets", "at least one set of pieces", "none");
  return collect({.sampling = given.origin,
                  .tables = given.tables,
                  .pieces_of = [&](std::int64_t index) { return given.sets.at(index); },
                  .num_samples = static_cast<std::int64_t>(given.sets.size()),
                  .batch_size = given.batch_size,
                  .optimizer = given.optimizer,
                  .seed = given.seed,
                  .in_flight = given.in_flight},
                 backend, path, on_progress);
}

std::int64_t collect_compute_costs(
    const GivenPieceSets& given, const ComputeBenchmarkOptions& benchmark, const std::string& path,
    const std::function<void(const CollectionProgress&)>& on_progress) {
  return collect_compute_costs(given, cpu_backend(benchmark, given.in_flight), path, on_progress);
}

}  // namespace neuroshard
