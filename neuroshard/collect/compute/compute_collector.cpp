// Sampling of piece sets and the loop that measures and records them.
#include "neuroshard/collect/compute/compute_collector.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <filesystem>
#include <optional>
#include <set>
#include <span>
#include <system_error>
#include <unordered_map>
#include <utility>

#include "neuroshard/collect/compute/measure_sets.h"
#include "neuroshard/core/error.h"
#include "neuroshard/core/sharding_plan.h"
#include "neuroshard/core/units.h"
#include "neuroshard/io/compute_costs_io.h"
#include "neuroshard/workload/reuse/index_distribution.h"

namespace neuroshard {

namespace {

/// Sets drawn for one sample before the memory is called too small.
constexpr int kMaxDraws = 10'000;

/// Streams of the generator: the draws for a sample's set must not shift those for its batches.
constexpr std::uint64_t kSetStream = 0;
constexpr std::uint64_t kBatchStream = 1;

Random random_for(std::uint64_t seed, std::int64_t id, std::uint64_t stream) {
  return Random::for_stream(seed, 2 * static_cast<std::uint64_t>(id) + stream);
}

/// A collection into one file.
struct Collection {
  Json sampling;
  std::span<const Table> tables;
  std::function<std::vector<Piece>(std::int64_t id)> pieces_of;
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

ComputeCostsHeader make_header(const Collection& options, const BackendDescription& backend) {
  ComputeCostsHeader header;
  header.hardware = backend.hardware;
  header.operator_info = backend.operator_info;
  header.batch_size = options.batch_size;
  header.optimizer = options.optimizer;
  header.sampling = options.sampling;
  for (const Table& table : options.tables) {
    header.tables.push_back({table.name, table.num_embeddings, table.pooling_factor,
                             table.data_type, rounded(reuse_histogram(table, options.batch_size))});
  }
  return header;
}

ComputeCostSample to_sample(std::int64_t id, std::vector<Piece> pieces,
                            const ComputeMeasurement& measured) {
  // Microseconds to three digits, far below the noise of any machine.
  const auto rounded_ms = [](double ms) { return std::round(ms * 1e6) / 1e6; };
  ComputeCostSample sample;
  sample.pieces = std::move(pieces);
  sample.forward_ms = rounded_ms(measured.forward_ms);
  sample.backward_ms = rounded_ms(measured.backward_ms);
  sample.info.id = id;
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

std::vector<Piece> sample_pieces(const ComputeSamplingOptions& options, std::int64_t id) {
  Random random = random_for(options.seed, id, kSetStream);
  const std::vector<int> pool = sample_pool(options, random);
  const std::int64_t count = random.integer(options.min_tables, options.max_tables);
  std::vector<Piece> pieces;
  std::int64_t bytes = 0;
  for (int draw = 0; draw < kMaxDraws; ++draw) {
    const Piece piece{pool[random.below(pool.size())],
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

/// The samples of a collection that a file does not have yet, one after the other.
class OpenSamples {
 public:
  OpenSamples(const Collection& collection, const std::set<std::int64_t>& done)
      : collection_(collection), done_(done), next_id_(collection.group.rank) {
    skip_done();
  }

  [[nodiscard]] bool empty() const { return next_id_ >= collection_.num_samples; }

  std::optional<PieceSet> next() {
    if (empty()) return std::nullopt;
    const std::int64_t id = next_id_;
    next_id_ += collection_.group.size;
    skip_done();
    in_flight_[id] = collection_.pieces_of(id);
    return PieceSet{id, collection_.tables, in_flight_[id],
                    random_for(collection_.seed, id, kBatchStream)};
  }

  /// The pieces of a sample that `next` has given, once.
  std::vector<Piece> take_pieces(std::int64_t id) {
    return std::move(in_flight_.extract(id).mapped());
  }

 private:
  void skip_done() {
    while (!empty() && done_.contains(next_id_)) next_id_ += collection_.group.size;
  }

  const Collection& collection_;
  const std::set<std::int64_t>& done_;
  std::int64_t next_id_;
  std::unordered_map<std::int64_t, std::vector<Piece>> in_flight_;
};

/// Measures the samples that the file does not have yet.
std::int64_t collect(const Collection& collection, const ComputeBackendFactory& factory,
                     const std::string& path,
                     const std::function<void(const CollectionProgress&)>& on_progress) {
  using Clock = std::chrono::steady_clock;
  const ComputeCostsHeader header = make_header(collection, factory.description);
  // A run that cannot measure must not begin a file: with other options it could not be continued.
  (void)collection.pieces_of(0);
  std::unique_ptr<ComputeBackend> backend;  // its memory is only touched if there is work
  std::error_code ignored;
  if (!std::filesystem::exists(path, ignored)) backend = factory.make();
  ComputeCostsWriter writer(path, header);
  OpenSamples samples(collection, writer.done());
  if (samples.empty()) return 0;
  if (!backend) backend = factory.make();

  const std::int64_t requested = share_of_samples(collection.group, collection.num_samples);
  CollectionProgress progress{static_cast<std::int64_t>(writer.done().size()), requested};
  std::int64_t measured = 0;
  const Clock::time_point start = Clock::now();
  const auto on_done = [&](const PieceSetResult& result) {
    std::vector<Piece> pieces = samples.take_pieces(result.id);
    if (result.measurement) {
      writer.append(to_sample(result.id, std::move(pieces), *result.measurement));
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
  measure_sets(
      *backend, {collection.batch_size, collection.optimizer, collection.in_flight},
      [&] { return samples.next(); }, on_done);
  writer.sync();
  return measured;
}

Collection drawn(const ComputeSamplingOptions& sampling, std::int64_t num_samples) {
  validate(sampling);
  return {.sampling = sampling_json(sampling),
          .tables = sampling.tables,
          .pieces_of = [&sampling](std::int64_t id) { return sample_pieces(sampling, id); },
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
    const GivenPieceSets& given, const ComputeBackendFactory& backend, const std::string& path,
    const std::function<void(const CollectionProgress&)>& on_progress) {
  if (given.sets.empty()) throw InputError("sets", "at least one set of pieces", "none");
  return collect({.sampling = given.origin,
                  .tables = given.tables,
                  .pieces_of = [&](std::int64_t id) { return given.sets.at(id); },
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
