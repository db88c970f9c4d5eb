// Sampling of piece sets and the loop that measures and records them.
#include "neuroshard/collect/compute/compute_collector.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <filesystem>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <system_error>
#include <unordered_map>
#include <utility>

#include "neuroshard/collect/compute/measure_sets.h"
#include "neuroshard/collect/compute/reference_sets.h"
#include "neuroshard/collect/compute/resolved_set.h"
#include "neuroshard/core/error.h"
#include "neuroshard/core/sharding_plan.h"
#include "neuroshard/core/units.h"
#include "neuroshard/io/compute_costs_io.h"
#include "neuroshard/workload/reuse/index_distribution.h"

namespace neuroshard {

namespace {

using Clock = std::chrono::steady_clock;

/// Progress is told at least this often, also where samples in flight take longer.
constexpr std::chrono::seconds kSilence{5};

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
  bool has_reference_sets = false;
  DataType reference_data_type = DataType::fp32;
  ProcessGroup group{};
  std::optional<Clock::time_point> deadline{};
};

/// A collection and where its samples go.
struct CollectionFile {
  Collection collection;
  std::string path;
};

/// Histograms are written with this many digits; more would only make the files larger.
ReuseHistogram rounded(const ReuseHistogram& histogram) {
  ReuseHistogram result{};
  std::transform(histogram.begin(), histogram.end(), result.begin(),
                 [](double share) { return std::round(share * 1e6) / 1e6; });
  return result;
}

Json sampling_json(const ComputeSamplingOptions& options) {
  if (options.sampling == SetSampling::given) {
    Json json = Json::Object{{"workload", options.workload},
                             {"seed", options.seed},
                             {"held_out_share", options.held_out_share},
                             {"kind", options.given_kind},
                             {"made_by", options.given_by}};
    if (options.given_has_copies) json.set("copies", true);
    if (options.given_max_dim != kUsualGivenMaxDim) json.set("max_dim", options.given_max_dim);
    return json;
  }
  Json::Array dims(options.dims.begin(), options.dims.end());
  Json json = Json::Object{{"workload", options.workload},
                           {"seed", options.seed},
                           {"dims", std::move(dims)},
                           {"min_tables", options.min_tables},
                           {"max_tables", options.max_tables},
                           {"memory_bytes", options.memory_bytes},
                           {"held_out_share", options.held_out_share}};
  if (options.candidates > 1) {
    json.set("candidates", options.candidates);
    json.set("least_sure", options.interest_name);
  }
  if (options.sampling == SetSampling::coverage) {
    json.set("kind", "coverage");
    json.set("slice_share", options.slice_share);
    json.set("max_pass_bytes", options.max_pass_bytes);
    json.set("usual_max_pass_bytes", options.usual_max_pass_bytes);
    // Only where it differs, so that files of before can be continued.
    if (options.large_share != kUsualLargeShare) json.set("large_share", options.large_share);
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

/// None if no file asks for them.
std::optional<ReferenceSets> reference_sets_of(const std::vector<CollectionFile>& files,
                                               const BackendDescription& backend) {
  for (const auto& [collection, path] : files) {
    if (collection.has_reference_sets) {
      return make_reference_sets(backend.operator_info, collection.reference_data_type);
    }
  }
  return std::nullopt;
}

ComputeCostsHeader make_header(const Collection& options, const BackendDescription& backend,
                               const std::string& reference_sets) {
  ComputeCostsHeader header;
  header.hardware = backend.hardware;
  header.operator_info = backend.operator_info;
  header.batch_size = options.batch_size;
  header.optimizer = options.optimizer;
  header.sampling = options.sampling;
  header.reference_sets = reference_sets;
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
  for (const double ms : measured.reference_ms) {
    sample.reference_ms.push_back(std::round(ms * 1e4) / 1e4);
  }
  return sample;
}

/// Samples of a sequence of `count` that are this process's.
std::int64_t share_of_samples(const ProcessGroup& group, std::int64_t count) {
  return (count - group.rank + group.size - 1) / group.size;
}

/// A collection's file, and the samples that it does not have yet.
class OpenFile {
 public:
  OpenFile(const Collection& collection, const BackendDescription& backend,
           const std::string& reference_sets, const std::string& path)
      : collection_(collection),
        writer_(path, make_header(collection, backend, reference_sets)),
        requested_(share_of_samples(collection.group, collection.num_samples)),
        next_id_(collection.group.rank) {
    open_ = requested_ - std::count_if(writer_.done().begin(), writer_.done().end(),
                                       [&](std::int64_t id) { return is_requested(id); });
    skip_done();
  }

  [[nodiscard]] const Collection& collection() const { return collection_; }
  [[nodiscard]] std::int64_t requested() const { return requested_; }
  /// Samples that are left to begin.
  [[nodiscard]] std::int64_t open() const { return open_; }
  /// Of those requested.
  [[nodiscard]] double open_share() const {
    return static_cast<double>(open_) / static_cast<double>(std::max<std::int64_t>(requested_, 1));
  }
  [[nodiscard]] bool is_late() const {
    return collection_.deadline && Clock::now() > *collection_.deadline;
  }

  /// The next sample to measure.
  std::int64_t begin() {
    const std::int64_t id = next_id_;
    next_id_ += collection_.group.size;
    skip_done();
    --open_;
    return id;
  }

  ComputeCostsWriter& writer() { return writer_; }

 private:
  [[nodiscard]] bool is_requested(std::int64_t id) const {
    return id < collection_.num_samples && id % collection_.group.size == collection_.group.rank;
  }

  void skip_done() {
    while (writer_.done().contains(next_id_)) next_id_ += collection_.group.size;
  }

  const Collection& collection_;
  ComputeCostsWriter writer_;
  std::int64_t requested_;
  std::int64_t open_ = 0;
  std::int64_t next_id_;
};

/// Leaves none of the files that this run has begun.
void remove_new(const std::vector<std::unique_ptr<OpenFile>>& files) {
  for (const std::unique_ptr<OpenFile>& file : files) file->writer().remove_if_new();
}

/// The samples that several files do not have yet, one after the other, and where each belongs.
class OpenSamples {
 public:
  struct Sample {
    OpenFile* file = nullptr;
    std::int64_t id = 0;  ///< in its file
    std::vector<Piece> pieces;
    std::vector<Table> tables;  ///< of a set with slices of rows, which are tables of their own
  };

  explicit OpenSamples(std::span<const std::unique_ptr<OpenFile>> files) : files_(files) {}

  /// The set's id is the sample's, with the number of its file above it.
  std::optional<PieceSet> next() {
    const auto file = std::max_element(
        files_.begin(), files_.end(),
        [](const auto& a, const auto& b) { return a->open_share() < b->open_share(); });
    if ((*file)->open() == 0 || (*file)->is_late()) return std::nullopt;
    const Collection& collection = (*file)->collection();
    const std::int64_t id = (*file)->begin();
    const std::int64_t set_id = ((file - files_.begin()) << kFileShift) + id;
    Sample& sample = in_flight_[set_id];
    sample.file = file->get();
    sample.id = id;
    sample.pieces = collection.pieces_of(sample.id);
    PieceSet set{set_id,
                 collection.tables,
                 sample.pieces,
                 random_for_batches(collection.seed, sample.id),
                 collection.batch_size,
                 collection.optimizer};
    resolve_slices(set, sample.tables);
    return set;
  }

  /// A sample that `next` has given, once.
  Sample take(std::int64_t set_id) { return std::move(in_flight_.extract(set_id).mapped()); }

  /// Samples that `next` has given and that are not taken yet.
  [[nodiscard]] std::size_t num_in_flight() const { return in_flight_.size(); }

 private:
  static constexpr int kFileShift = 40;  ///< beyond any number of samples

  std::span<const std::unique_ptr<OpenFile>> files_;
  std::unordered_map<std::int64_t, Sample> in_flight_;
};

void append(OpenSamples::Sample sample, const PieceSetResult& result) {
  ComputeCostsWriter& writer = sample.file->writer();
  if (result.measurement) {
    writer.append(to_sample(sample.id, std::move(sample.pieces), *result.measurement));
  } else {
    writer.append(SkippedSample{sample.id, result.failure});
  }
}

/// The last of the files' deadlines; none if one has none.
std::optional<Clock::time_point> last_deadline(const std::vector<CollectionFile>& files) {
  Clock::time_point last = Clock::time_point::min();
  for (const CollectionFile& file : files) {
    if (!file.collection.deadline) return std::nullopt;
    last = std::max(last, *file.collection.deadline);
  }
  return last;
}

/// Measures the samples that the files do not have yet.
std::int64_t collect(const std::vector<CollectionFile>& collections,
                     const ComputeBackendFactory& factory,
                     const std::function<void(const CollectionProgress&)>& on_progress) {
  std::unique_ptr<ComputeBackend> backend;  // its memory is only touched if there is work
  for (const auto& [collection, path] : collections) {
    // A run that cannot measure must not begin a file: with other options it could not be
    // continued.
    (void)collection.pieces_of(0);
    std::error_code ignored;
    if (!backend && !std::filesystem::exists(path, ignored)) backend = factory.make();
  }
  std::vector<std::unique_ptr<OpenFile>> files;
  CollectionProgress progress;
  MeasuringOptions measuring{.deadline = last_deadline(collections)};
  const std::optional<ReferenceSets> reference_sets =
      reference_sets_of(collections, factory.description);
  if (reference_sets) measuring.reference_sets = reference_sets->sets;
  try {
    for (const auto& [collection, path] : collections) {
      files.push_back(std::make_unique<OpenFile>(collection, factory.description,
                                                 reference_sets ? reference_sets->name : "", path));
      progress.done += files.back()->requested() - files.back()->open();
      progress.requested += files.back()->requested();
      measuring.in_flight = std::max(measuring.in_flight, collection.in_flight);
    }
  } catch (...) {  // another file is refused: those begun could not be continued with what it takes
    remove_new(files);
    throw;
  }
  if (std::all_of(files.begin(), files.end(), [](const auto& file) { return file->open() == 0; })) {
    return 0;
  }
  if (!backend) backend = factory.make();

  OpenSamples samples(files);
  const bool is_new = progress.done == 0;
  std::int64_t measured = 0;
  std::string failure;
  const Clock::time_point start = Clock::now();
  Clock::time_point reported = start;
  const auto report = [&] {
    reported = Clock::now();
    progress.seconds = std::chrono::duration<double>(reported - start).count();
    // Samples in flight are half done, by and large: hundreds of them before the first one is.
    const double half_done = 0.5 * static_cast<double>(samples.num_in_flight());
    const double seconds_of_one =
        progress.seconds / std::max(static_cast<double>(measured) + half_done, 1.0);
    const double open = static_cast<double>(progress.requested - progress.done) - half_done;
    progress.seconds_left = seconds_of_one * std::max(open, 0.0);
    if (measuring.deadline) {
      const std::chrono::duration<double> left = *measuring.deadline - reported;
      progress.seconds_left = std::clamp(left.count(), 0.0, progress.seconds_left);
    }
    if (on_progress) on_progress(progress);
  };
  measuring.on_round = [&] {
    if (Clock::now() - reported > kSilence) report();
  };
  const auto on_done = [&](const PieceSetResult& result) {
    append(samples.take(result.id), result);
    if (result.measurement) {
      ++measured;
    } else {
      failure = result.failure;
    }
    ++progress.done;
    report();
  };
  try {
    measure_sets(
        *backend, measuring, [&] { return samples.next(); }, on_done);
  } catch (...) {  // without a sample, files that begin otherwise may be what is wanted next
    if (is_new && measured == 0) remove_new(files);
    throw;
  }
  for (const std::unique_ptr<OpenFile>& file : files) file->writer().sync();
  if (is_new && measured == 0 && !failure.empty()) {
    // Samples that were skipped are not tried again: the file could never get any.
    remove_new(files);
    throw MachineError(fmt::format("none of {} could be measured: {}",
                                   format_count(progress.done, "sample"), failure));
  }
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
          .has_reference_sets = sampling.has_reference_sets,
          .reference_data_type = sampling.reference_data_type,
          .group = sampling.group,
          .deadline = sampling.deadline};
}

}  // namespace

std::int64_t collect_compute_costs(
    const std::vector<ComputeCollection>& files, const ComputeBackendFactory& backend,
    const std::function<void(const CollectionProgress&)>& on_progress) {
  std::vector<CollectionFile> collections;
  for (const ComputeCollection& file : files) {
    collections.push_back({drawn(file.sampling, file.num_samples), file.path});
  }
  if (collections.empty()) return 0;
  return collect(collections, backend, on_progress);
}

std::int64_t collect_compute_costs(
    const ComputeSamplingOptions& sampling, const ComputeBackendFactory& backend,
    std::int64_t num_samples, const std::string& path,
    const std::function<void(const CollectionProgress&)>& on_progress) {
  return collect({{drawn(sampling, num_samples), path}}, backend, on_progress);
}

std::int64_t collect_compute_costs(
    const ComputeSamplingOptions& sampling, const ComputeBenchmarkOptions& benchmark,
    std::int64_t num_samples, const std::string& path,
    const std::function<void(const CollectionProgress&)>& on_progress) {
  return collect_compute_costs(sampling, cpu_backend(benchmark, sampling.in_flight), num_samples,
                               path, on_progress);
}

std::int64_t collect_compute_costs(
    const GivenPieceSets& given, const ComputeBackendFactory& backend, const std::string& path,
    const std::function<void(const CollectionProgress&)>& on_progress) {
  if (given.sets.empty()) throw InputError("sets", "at least one set of pieces", "none");
  Collection collection{.sampling = given.origin,
                        .tables = given.tables,
                        .pieces_of = [&](std::int64_t id) { return given.sets.at(id); },
                        .num_samples = static_cast<std::int64_t>(given.sets.size()),
                        .batch_size = given.batch_size,
                        .optimizer = given.optimizer,
                        .seed = given.seed,
                        .in_flight = given.in_flight};
  return collect({{std::move(collection), path}}, backend, on_progress);
}

std::int64_t collect_compute_costs(
    const GivenPieceSets& given, const ComputeBenchmarkOptions& benchmark, const std::string& path,
    const std::function<void(const CollectionProgress&)>& on_progress) {
  return collect_compute_costs(given, cpu_backend(benchmark, given.in_flight), path, on_progress);
}

}  // namespace neuroshard
