// The loops that measure or simulate samples and record them.
#include "neuroshard/collect/communication/communication_collector.h"

#include <fmt/format.h>

#include <chrono>
#include <cmath>
#include <optional>
#include <utility>

#include "neuroshard/collect/communication/partial_sums.h"
#include "neuroshard/collect/compute/hardware_info.h"
#include "neuroshard/core/error.h"
#include "neuroshard/core/interconnect.h"
#include "neuroshard/io/checksum.h"
#include "neuroshard/io/communication_costs_io.h"
#include "neuroshard/io/interconnect_io.h"

namespace neuroshard {

namespace {

using Clock = std::chrono::steady_clock;

/// Of a collection that is not of all-to-alls.
CollectiveKind kind_of(const CommunicationCollection& collection) {
  return collection.kind == CollectedKind::all_reduce ? CollectiveKind::all_reduce
                                                      : CollectiveKind::partial_sums;
}

CommunicationCostsHeader make_header(const CommunicationCollection& collection, Json hardware,
                                     const std::string& interconnect) {
  const CommunicationSamplingOptions& sampling = collection.sampling;
  CommunicationCostsHeader header;
  header.hardware = std::move(hardware);
  header.world_size = sampling.world_size;
  header.local_world_size = collection.local_world_size;
  header.interconnect = collection.interconnect.empty() ? interconnect : collection.interconnect;
  header.batch_size = sampling.batch_size;
  header.data_type = sampling.data_type;
  header.sampling =
      collection.kind == CollectedKind::all_to_all
          ? Json::Object{{"seed", sampling.seed}, {"max_start_ms", sampling.max_start_ms}}
          : Json::Object{{"seed", sampling.seed}, {"kind", to_string(kind_of(collection))}};
  return header;
}

std::vector<double> rounded(std::vector<double> values) {
  for (double& ms : values) ms = std::round(ms * 1e6) / 1e6;  // nanoseconds
  return values;
}

SampleInfo info_of(std::int64_t index, int repetitions, double interval) {
  SampleInfo info{index, repetitions, std::nullopt};
  if (std::isfinite(interval)) info.interval = std::round(interval * 1e5) / 1e5;
  return info;
}

CommunicationCostSample to_sample(std::int64_t index, const CommunicationCase& drawn,
                                  const AllToAllMeasurement& measured) {
  CommunicationCostSample sample;
  sample.columns = drawn.columns;
  sample.start_ms = drawn.start_ms;
  sample.forward_ms = rounded(measured.forward_ms);
  sample.backward_ms = rounded(measured.backward_ms);
  sample.info = info_of(index, measured.repetitions, measured.interval);
  return sample;
}

CollectiveCostSample to_sample(std::int64_t index, CollectiveKind kind, std::int64_t bytes,
                               const CollectiveMeasurement& measured) {
  return {kind, bytes, rounded(measured.ms),
          info_of(index, measured.repetitions, measured.interval)};
}

/// Which samples are missing, and the file they go to.
class Recorder {
 public:
  Recorder(const CommunicationCollection& collection, const CommunicationCostsHeader& header)
      : collection_(collection),
        writer_(collection.path, header),
        progress_{static_cast<std::int64_t>(writer_.done().size()), collection.num_samples} {}

  /// The number of the next sample that is missing.
  std::optional<std::int64_t> next() {
    while (next_ < collection_.num_samples && writer_.done().contains(next_)) ++next_;
    if (next_ >= collection_.num_samples) return std::nullopt;
    return next_++;
  }

  template <typename Sample>
  void record(const Sample& sample) {
    writer_.append(sample);
    ++measured_;
    ++progress_.done;
    progress_.seconds = std::chrono::duration<double>(Clock::now() - start_).count();
    progress_.seconds_left = progress_.seconds / static_cast<double>(measured_) *
                             static_cast<double>(collection_.num_samples - progress_.done);
    if (collection_.on_progress) collection_.on_progress(progress_);
  }

  std::int64_t finish() {
    writer_.sync();
    return measured_;
  }

 private:
  const CommunicationCollection& collection_;
  CommunicationCostsWriter writer_;
  CollectionProgress progress_;
  std::int64_t next_ = 0;
  std::int64_t measured_ = 0;
  Clock::time_point start_ = Clock::now();
};

Json simulated_hardware(const std::string& platform) {
  Json hardware = Json::Object{{"kind", "simulated"}, {"simulator", "SimGrid"}};
  if (is_platform_file(platform)) {
    return hardware.set("platform_file", platform).set("sha256", sha256_file(platform));
  }
  const Interconnect& interconnect = platform_interconnect(platform);
  hardware.set("name", interconnect.name);
  set_links(hardware, interconnect);
  return hardware;
}

}  // namespace

std::int64_t simulate_communication_costs(const CommunicationCollection& collection,
                                          const std::string& platform) {
  if (collection.kind == CollectedKind::partial_sums) {
    throw InputError(
        "--kind partial-sums needs --backend mpi, as partial sums are memory work, "
        "which a simulation of links does not have, got simgrid");
  }
  const CommunicationCostsHeader header =
      make_header(collection, simulated_hardware(platform), platform_name(platform));
  // Opened when the first case is asked for, so that a platform that cannot be built leaves no file
  // behind.
  std::optional<Recorder> recorder;
  const auto next = [&] {
    if (!recorder) recorder.emplace(collection, header);
    return recorder->next();
  };
  const CommunicationSamplingOptions& sampling = collection.sampling;
  const SimulationOptions simulation{.platform = platform,
                                     .world_size = sampling.world_size,
                                     .local_world_size = collection.local_world_size,
                                     .batch_size = sampling.batch_size,
                                     .data_type = sampling.data_type};
  if (collection.kind == CollectedKind::all_reduce) {
    simulate_all_reduces(
        simulation,
        [&]() -> std::optional<NumberedBytes> {
          const std::optional<std::int64_t> index = next();
          if (!index) return std::nullopt;
          return NumberedBytes{*index, sample_all_reduce_bytes(sampling.seed, *index)};
        },
        [&](std::int64_t index, const CollectiveMeasurement& measured) {
          recorder->record(to_sample(index, CollectiveKind::all_reduce,
                                     sample_all_reduce_bytes(sampling.seed, index), measured));
        });
  } else {
    simulate_all_to_alls(
        simulation,
        [&]() -> std::optional<NumberedCase> {
          const std::optional<std::int64_t> index = next();
          if (!index) return std::nullopt;
          return NumberedCase{*index, sample_communication_case(sampling, *index)};
        },
        [&](std::int64_t index, const AllToAllMeasurement& measured) {
          recorder->record(to_sample(index, sample_communication_case(sampling, index), measured));
        });
  }
  return recorder ? recorder->finish() : 0;
}

MeasuredTransport host_transport(MpiTransport& processes) {
  const HardwareInfo info = cpu_info();
  return {processes,
          Json::Object{{"kind", "cpu"}, {"name", info.name}, {"num_cores", info.num_cores}}};
}

namespace {

/// Buffers of partial sums, and their addition, of one process.
class ReceivedParts {
 public:
  explicit ReceivedParts(const PartialSumsCase& drawn) : num_samples_(drawn.num_samples) {
    const std::int64_t columns = drawn.columns * drawn.num_tables;
    const auto elements = static_cast<std::size_t>(columns * drawn.num_samples);
    for (int slice = 0; slice < drawn.slices; ++slice) parts_.emplace_back(elements, 1.0F);
    sums_.assign(elements, 0.0F);
    for (std::int64_t table = 0; table < drawn.num_tables; ++table) {
      PartialSums sums;
      for (const std::vector<float>& part : parts_) {
        sums.parts.push_back({part.data() + table * drawn.columns, columns});
      }
      sums.sum = {sums_.data() + table * drawn.columns, columns};
      sums.num_columns = drawn.columns;
      additions_.push_back(std::move(sums));
    }
    additions_ = joined(std::move(additions_));
  }

  void add_up(ThreadPool& pool) const { add_partial_sums(additions_, num_samples_, pool); }

 private:
  std::int64_t num_samples_;
  std::vector<std::vector<float>> parts_;  ///< of each slice: its columns of all tables
  std::vector<float> sums_;
  std::vector<PartialSums> additions_;
};

/// Measures sample number `index` in all processes; a line of the file in process 0.
CollectiveCostSample measure_collective_sample(const CommunicationCollection& collection,
                                               std::int64_t index, Transport& transport,
                                               ThreadPool& pool) {
  const CommunicationSamplingOptions& sampling = collection.sampling;
  if (collection.kind == CollectedKind::all_reduce) {
    const std::int64_t bytes = sample_all_reduce_bytes(sampling.seed, index);
    return to_sample(
        index, CollectiveKind::all_reduce, bytes,
        measure_collective(
            transport, [&] { transport.all_reduce(bytes); }, collective_repetitions()));
  }
  const PartialSumsCase drawn = sample_partial_sums(sampling, index);
  const ReceivedParts received(drawn);
  return to_sample(index, CollectiveKind::partial_sums, drawn.bytes(),
                   measure_collective(
                       transport, [&] { received.add_up(pool); }, collective_repetitions()));
}

std::string agreed_options(const CommunicationCollection& collection) {
  const CommunicationSamplingOptions& sampling = collection.sampling;
  return fmt::format("{}batch size {}, {}, seed {}, lags up to {} ms, {} samples",
                     collection.kind == CollectedKind::all_to_all
                         ? ""
                         : fmt::format("{}, ", to_string(kind_of(collection))),
                     sampling.batch_size, to_string(sampling.data_type), sampling.seed,
                     sampling.max_start_ms, collection.num_samples);
}

}  // namespace

std::int64_t measure_communication_costs(const CommunicationCollection& collection,
                                         MpiTransport& processes,
                                         const MeasuredTransport& measured_on) {
  const CommunicationSamplingOptions& sampling = collection.sampling;
  if (processes.size() != sampling.world_size) {
    throw CollectiveInputError("mpi",
                               fmt::format("{} processes, one per device", sampling.world_size),
                               fmt::format("{}", processes.size()));
  }
  processes.require_agreement(agreed_options(collection));
  Json::Array hosts;
  for (const std::string& host : processes.all_gather(MpiTransport::host_name())) {
    hosts.push_back(host);
  }
  ThreadPool pool(collection.kind == CollectedKind::partial_sums ? collection.num_threads : 1);
  std::optional<Recorder> recorder;
  if (processes.rank() == 0) {
    Json hardware = measured_on.hardware;
    hardware.set("hosts", std::move(hosts));
    recorder.emplace(collection, make_header(collection, std::move(hardware), ""));
  }
  while (true) {
    // All processes draw the same case; process 0 knows which is next.
    const std::optional<std::int64_t> next = recorder ? recorder->next() : std::nullopt;
    const std::int64_t index = MpiTransport::broadcast_integer(next.value_or(-1));
    if (index < 0) break;
    if (collection.kind == CollectedKind::all_to_all) {
      const CommunicationCase drawn = sample_communication_case(sampling, index);
      const AllToAllMeasurement measured =
          measure_all_to_alls(measured_on.transport, drawn, sampling.batch_size, sampling.data_type,
                              RepetitionOptions{});
      if (recorder) recorder->record(to_sample(index, drawn, measured));
    } else {
      const CollectiveCostSample sample =
          measure_collective_sample(collection, index, measured_on.transport, pool);
      if (recorder) recorder->record(sample);
    }
  }
  return recorder ? recorder->finish() : 0;
}

}  // namespace neuroshard
