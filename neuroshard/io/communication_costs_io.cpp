// Measured communication costs to and from JSON Lines.
#include "neuroshard/io/communication_costs_io.h"

#include <fmt/format.h>

#include <limits>

#include "neuroshard/core/task.h"
#include "neuroshard/io/json/json_reader.h"
#include "neuroshard/io/task_io.h"

namespace neuroshard {

namespace {

void header_topology_from_json(const JsonReader& reader, CommunicationCostsHeader& header) {
  reader.allow_fields({"world_size", "local_world_size", "interconnect"});
  header.world_size = static_cast<int>(reader.field("world_size").integer(1, kMaxWorldSize));
  header.local_world_size = header.world_size;
  if (const auto local = reader.optional_field("local_world_size")) {
    header.local_world_size = static_cast<int>(local->integer(1, header.world_size));
    if (header.world_size % header.local_world_size != 0) {
      local->fail(fmt::format("a divisor of world_size = {}", header.world_size));
    }
  }
  if (const auto name = reader.optional_field("interconnect")) header.interconnect = name->text();
}

CommunicationCostsHeader communication_header_from_json(const JsonReader& reader) {
  reader.expect_format(kCommunicationCostsFormat);
  reader.allow_fields({"format", "hardware", "topology", "batch_size", "data_type", "sampling"});
  CommunicationCostsHeader header;
  header.hardware = reader.field("hardware").object();
  header_topology_from_json(reader.field("topology"), header);
  header.batch_size = batch_size_from_json(reader.field("batch_size"));
  header.data_type = data_type_from_json(reader.field("data_type"));
  if (const auto sampling = reader.optional_field("sampling")) header.sampling = sampling->object();
  return header;
}

/// Fails unless the array has an element for each device; returns its size.
std::size_t checked_size(const JsonReader& reader, int world_size) {
  if (reader.array_size() != static_cast<std::size_t>(world_size)) {
    reader.fail(fmt::format("an array of one number for each of {} devices", world_size));
  }
  return reader.array_size();
}

std::vector<std::int64_t> columns_from_json(const JsonReader& reader, int world_size) {
  std::vector<std::int64_t> columns(checked_size(reader, world_size));
  for (std::size_t device = 0; device < columns.size(); ++device) {
    columns[device] = reader.element(device).integer(0, std::numeric_limits<std::int64_t>::max());
  }
  return columns;
}

std::vector<double> times_from_json(const JsonReader& reader, int world_size) {
  std::vector<double> times(checked_size(reader, world_size));
  for (std::size_t device = 0; device < times.size(); ++device) {
    times[device] = time_from_json(reader.element(device), /*zero_allowed=*/true);
  }
  return times;
}

CommunicationCostSample all_to_all_from_json(const JsonReader& line, int world_size) {
  line.allow_fields(
      {"columns", "start_ms", "forward_ms", "backward_ms", "index", "repetitions", "interval"});
  CommunicationCostSample sample;
  sample.columns = columns_from_json(line.field("columns"), world_size);
  sample.start_ms = times_from_json(line.field("start_ms"), world_size);
  sample.forward_ms = times_from_json(line.field("forward_ms"), world_size);
  sample.backward_ms = times_from_json(line.field("backward_ms"), world_size);
  sample.info = sample_info_from_json(line);
  return sample;
}

constexpr std::int64_t kMostBytes = std::int64_t{1} << 60;

CollectiveKind kind_from_json(const JsonReader& reader) {
  for (const CollectiveKind kind : {CollectiveKind::all_reduce, CollectiveKind::partial_sums}) {
    if (reader.text() == to_string(kind)) return kind;
  }
  reader.fail("\"all_reduce\" or \"partial_sums\", or none for all-to-alls");
}

CollectiveCostSample collective_from_json(const JsonReader& line, const JsonReader& kind,
                                          int world_size) {
  line.allow_fields({"kind", "bytes", "ms", "index", "repetitions", "interval"});
  CollectiveCostSample sample;
  sample.kind = kind_from_json(kind);
  sample.bytes = line.field("bytes").integer(1, kMostBytes);
  sample.ms = times_from_json(line.field("ms"), world_size);
  sample.info = sample_info_from_json(line);
  return sample;
}

Json communication_json(const CommunicationCostsHeader& header) {
  Json topology;
  topology.set("world_size", header.world_size);
  topology.set("local_world_size", header.local_world_size);
  if (!header.interconnect.empty()) topology.set("interconnect", header.interconnect);
  Json json;
  json.set("format", kCommunicationCostsFormat);
  json.set("hardware", header.hardware);
  json.set("topology", std::move(topology));
  json.set("batch_size", header.batch_size);
  json.set("data_type", to_string(header.data_type));
  if (header.sampling) json.set("sampling", *header.sampling);
  return json;
}

template <typename T>
Json communication_json(const std::vector<T>& values) {
  return Json::Array(values.begin(), values.end());
}

Json communication_json(const CommunicationCostSample& sample) {
  Json json;
  json.set("columns", communication_json(sample.columns));
  json.set("start_ms", communication_json(sample.start_ms));
  json.set("forward_ms", communication_json(sample.forward_ms));
  json.set("backward_ms", communication_json(sample.backward_ms));
  add_sample_info(sample.info, json);
  return json;
}

Json communication_json(const CollectiveCostSample& sample) {
  Json json;
  json.set("kind", to_string(sample.kind));
  json.set("bytes", sample.bytes);
  json.set("ms", communication_json(sample.ms));
  add_sample_info(sample.info, json);
  return json;
}

/// The header as JSON, after the checks that its reader makes.
Json checked_communication_header(const CommunicationCostsHeader& header) {
  Json json = communication_json(header);
  (void)communication_header_from_json(JsonReader(json, "header"));
  return json;
}

}  // namespace

std::string_view to_string(CollectiveKind kind) {
  return kind == CollectiveKind::all_reduce ? "all_reduce" : "partial_sums";
}

CommunicationCosts parse_communication_costs(std::string_view text, const std::string& file) {
  CommunicationCosts costs;
  costs.truncated = read_json_lines(
      text, file,
      [&](const JsonReader& line) { costs.header = communication_header_from_json(line); },
      [&](const JsonReader& line) {
        if (auto skipped = skipped_from_json(line)) {
          costs.skipped.push_back(std::move(*skipped));
        } else if (const auto kind = line.optional_field("kind")) {
          costs.collectives.push_back(collective_from_json(line, *kind, costs.header.world_size));
        } else {
          costs.samples.push_back(all_to_all_from_json(line, costs.header.world_size));
        }
      });
  return costs;
}

CommunicationCosts read_communication_costs(const std::string& path) {
  return parse_communication_costs(read_maybe_compressed_file(path), path);
}

CommunicationCostsWriter::CommunicationCostsWriter(const std::string& path,
                                                   const CommunicationCostsHeader& header)
    : world_size_(header.world_size),
      writer_(path, checked_communication_header(header), [](const JsonReader& line) {
        return communication_json(communication_header_from_json(line));
      }) {}

void CommunicationCostsWriter::append(const CommunicationCostSample& sample) {
  const Json json = communication_json(sample);
  (void)all_to_all_from_json(JsonReader(json, "sample"), world_size_);
  writer_.append(json);
}

void CommunicationCostsWriter::append(const CollectiveCostSample& sample) {
  const Json json = communication_json(sample);
  const JsonReader reader(json, "sample");
  const JsonReader kind = reader.field("kind");
  (void)collective_from_json(reader, kind, world_size_);
  writer_.append(json);
}

}  // namespace neuroshard
