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
#include "neuroshard/workload/reuse/row_slice.h"

namespace neuroshard {

namespace {

/// A sample's batches are drawn from the odd streams of the generator, its set (sample_pieces) from
/// the even ones.
Random random_for_batches(std::uint64_t seed, std::int64_t id) {
  return Random::for_stream(seed, 2 * static_cast<std::uint64_t>(id) + 1);
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
  std::optional<std::chrono::steady_clock::time_point> deadline{};
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
  Json json = Json::Object{{"workload", options.workload},
                           {"seed", options.seed},
                           {"dims", std::move(dims)},
                           {"min_tables", options.min_tables},
                           {"max_tables", options.max_tables},
                           {"memory_bytes", options.memory_bytes},
                           {"held_out_share", options.held_out_share}};
  if (options.sampling == SetSampling::coverage) {
    json.set("kind", "coverage");
    json.set("slice_share", options.slice_share);
    json.set("max_pass_bytes", options.max_pass_bytes);
    json.set("usual_max_pass_bytes", options.usual_max_pass_bytes);
  }
  return json;
}

/// With what a histogram only hints at, where it is known.
MeasuredTable measured_table(const Table& table, std::int64_t batch_size) {
  MeasuredTable measured{table.name, table.num_embeddings, table.pooling_factor, table.data_type,
                         rounded(reuse_histogram(table, batch_size))};
  if (!table.reuse_histogram) {
    const double rows = reuse_statistics(table, batch_size).distinct_rows;
    if (rows > 0.0) measured.distinct_rows = rows;
    measured.hottest_row_share = hottest_row_share(table, batch_size);
  }
  return measured;
}

ComputeCostsHeader make_header(const Collection& options, const BackendDescription& backend) {
  ComputeCostsHeader header;
  header.hardware = backend.hardware;
  header.operator_info = backend.operator_info;
  header.batch_size = options.batch_size;
  header.optimizer = options.optimizer;
  header.sampling = options.sampling;
  for (const Table& table : options.tables) {
    header.tables.push_back(measured_table(table, options.batch_size));
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
    if (empty() || is_late()) return std::nullopt;
    const std::int64_t id = next_id_;
    next_id_ += collection_.group.size;
    skip_done();
    InFlight& sample = in_flight_[id];
    sample.pieces = collection_.pieces_of(id);
    PieceSet set{id, collection_.tables, sample.pieces, random_for_batches(collection_.seed, id)};
    resolve_slices(sample, set);
    return set;
  }

  /// The pieces of a sample that `next` has given, once.
  std::vector<Piece> take_pieces(std::int64_t id) {
    return std::move(in_flight_.extract(id).mapped().pieces);
  }

 private:
  [[nodiscard]] bool is_late() const {
    return collection_.deadline && std::chrono::steady_clock::now() > *collection_.deadline;
  }

  struct InFlight {
    std::vector<Piece> pieces;
    std::vector<Table> tables;  ///< of a set with slices of rows, which are tables of their own
  };

  /// Backends know whole tables only.
  void resolve_slices(InFlight& sample, PieceSet& set) const {
    const auto is_slice = [](const Piece& piece) { return piece.row_share < 1.0; };
    if (std::none_of(set.pieces.begin(), set.pieces.end(), is_slice)) return;
    for (Piece& piece : set.pieces) {
      const Table& table = collection_.tables[static_cast<std::size_t>(piece.table)];
      sample.tables.push_back(row_slice(table, collection_.batch_size, piece.row_share));
      piece = {static_cast<int>(sample.tables.size()) - 1, piece.num_columns};
    }
    set.tables = sample.tables;
    set.has_own_tables = true;
  }

  void skip_done() {
    while (!empty() && done_.contains(next_id_)) next_id_ += collection_.group.size;
  }

  const Collection& collection_;
  const std::set<std::int64_t>& done_;
  std::int64_t next_id_;
  std::unordered_map<std::int64_t, InFlight> in_flight_;
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
          .group = sampling.group,
          .deadline = sampling.deadline};
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
