// The loops that measure or simulate samples and record them.
#include "neuroshard/collect/communication/communication_collector.h"

#include <fmt/format.h>

#include <chrono>
#include <cmath>
#include <optional>

#include "neuroshard/collect/compute/hardware_info.h"
#include "neuroshard/core/error.h"
#include "neuroshard/io/checksum.h"
#include "neuroshard/io/communication_costs_io.h"
#include "neuroshard/io/interconnect_io.h"

namespace neuroshard {

namespace {

using Clock = std::chrono::steady_clock;

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
  header.sampling = Json::Object{{"seed", sampling.seed}, {"max_start_ms", sampling.max_start_ms}};
  return header;
}

CommunicationCostSample to_sample(std::int64_t index, const CommunicationCase& drawn,
                                  const AllToAllMeasurement& measured) {
  const auto rounded = [](std::vector<double> values) {
    for (double& ms : values) ms = std::round(ms * 1e6) / 1e6;  // nanoseconds
    return values;
  };
  CommunicationCostSample sample;
  sample.columns = drawn.columns;
  sample.start_ms = drawn.start_ms;
  sample.forward_ms = rounded(measured.forward_ms);
  sample.backward_ms = rounded(measured.backward_ms);
  sample.info.id = index;
  sample.info.repetitions = measured.repetitions;
  if (std::isfinite(measured.interval)) {
    sample.info.interval = std::round(measured.interval * 1e5) / 1e5;
  }
  return sample;
}

/// Which samples are missing, and the file they go to.
class Recorder {
 public:
  Recorder(const CommunicationCollection& collection, const CommunicationCostsHeader& header)
      : collection_(collection),
        writer_(collection.path, header),
        progress_{static_cast<std::int64_t>(writer_.done().size()), collection.num_samples} {}

  std::optional<NumberedCase> next() {
    while (next_ < collection_.num_samples && writer_.done().contains(next_)) ++next_;
    if (next_ >= collection_.num_samples) return std::nullopt;
    const std::int64_t index = next_++;
    return NumberedCase{index, sample_communication_case(collection_.sampling, index)};
  }

  void record(std::int64_t index, const AllToAllMeasurement& measured) {
    writer_.append(
        to_sample(index, sample_communication_case(collection_.sampling, index), measured));
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
  const CommunicationCostsHeader header =
      make_header(collection, simulated_hardware(platform), platform_name(platform));
  // Opened when the first case is asked for, so that a platform that cannot be built leaves no file
  // behind.
  std::optional<Recorder> recorder;
  const auto next = [&] {
    if (!recorder) recorder.emplace(collection, header);
    return recorder->next();
  };
  simulate_all_to_alls({.platform = platform,
                        .world_size = collection.sampling.world_size,
                        .local_world_size = collection.local_world_size,
                        .batch_size = collection.sampling.batch_size,
                        .data_type = collection.sampling.data_type},
                       next, [&](std::int64_t index, const AllToAllMeasurement& measured) {
                         recorder->record(index, measured);
                       });
  return recorder ? recorder->finish() : 0;
}

MeasuredTransport host_transport(MpiTransport& processes) {
  const HardwareInfo info = cpu_info();
  return {processes,
          Json::Object{{"kind", "cpu"}, {"name", info.name}, {"num_cores", info.num_cores}}};
}

std::int64_t measure_communication_costs(const CommunicationCollection& collection,
                                         MpiTransport& processes,
                                         const MeasuredTransport& measured_on) {
  const CommunicationSamplingOptions& sampling = collection.sampling;
  if (processes.size() != sampling.world_size) {
    throw CollectiveInputError("mpi",
                               fmt::format("{} processes, one per device", sampling.world_size),
                               fmt::format("{}", processes.size()));
  }
  processes.require_agreement(fmt::format(
      "batch size {}, {}, seed {}, lags up to {} ms, {} samples", sampling.batch_size,
      to_string(sampling.data_type), sampling.seed, sampling.max_start_ms, collection.num_samples));
  Json::Array hosts;
  for (const std::string& host : processes.all_gather(MpiTransport::host_name())) {
    hosts.push_back(host);
  }
  std::optional<Recorder> recorder;
  if (processes.rank() == 0) {
    Json hardware = measured_on.hardware;
    hardware.set("hosts", std::move(hosts));
    recorder.emplace(collection, make_header(collection, std::move(hardware), ""));
  }
  while (true) {
    // All processes draw the same case; process 0 knows which is next.
    std::optional<NumberedCase> drawn = recorder ? recorder->next() : std::nullopt;
    const std::int64_t index = MpiTransport::broadcast_integer(drawn ? drawn->first : -1);
    if (index < 0) break;
    const AllToAllMeasurement measured =
        measure_all_to_alls(measured_on.transport, sample_communication_case(sampling, index),
                            sampling.batch_size, sampling.data_type, RepetitionOptions{});
    if (recorder) recorder->record(index, measured);
  }
  return recorder ? recorder->finish() : 0;
}

}  // namespace neuroshard
