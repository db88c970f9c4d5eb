// Measured computation costs to and from JSON Lines.
#include "neuroshard/io/compute_costs_io.h"

#include <fmt/format.h>

#include <stdexcept>

#include "neuroshard/core/error.h"
#include "neuroshard/io/json/json_reader.h"
#include "neuroshard/io/task_io.h"

namespace neuroshard {

namespace {

/// The measured table as a table one column wide, which core can judge.
Table as_table(const MeasuredTable& measured) {
  return {measured.name,      measured.num_embeddings,  1,           measured.pooling_factor,
          measured.data_type, measured.reuse_histogram, std::nullopt};
}

MeasuredTable measured_table_from_json(const JsonReader& reader) {
  reader.allow_fields({"name", "num_embeddings", "pooling_factor", "data_type", "reuse_histogram",
                       "distinct_rows", "hottest_row_share"});
  MeasuredTable table;
  table.name = reader.field("name").text();
  table.num_embeddings = reader.field("num_embeddings").integer();
  table.pooling_factor = reader.field("pooling_factor").number();
  table.data_type = data_type_from_json(reader.field("data_type"));
  table.reuse_histogram = reuse_histogram_from_json(reader.field("reuse_histogram"));
  if (const auto rows = reader.optional_field("distinct_rows")) {
    table.distinct_rows = rows->number();
    if (!(*table.distinct_rows > 0.0)) rows->fail("a number above 0");
  }
  if (const auto share = reader.optional_field("hottest_row_share")) {
    table.hottest_row_share = share->number();
    if (!(*table.hottest_row_share > 0.0 && *table.hottest_row_share <= 1.0)) {
      share->fail("a share above 0, at most 1");
    }
  }
  return table;
}

ComputeCostsHeader compute_header_from_json(const JsonReader& reader) {
  reader.expect_format(kComputeCostsFormat);
  reader.allow_fields({"format", "hardware", "operator", "batch_size", "optimizer", "sampling",
                       "reference_sets", "tables"});
  ComputeCostsHeader header;
  header.hardware = reader.field("hardware").object();
  header.operator_info = reader.field("operator").object();
  header.batch_size = batch_size_from_json(reader.field("batch_size"));
  header.optimizer = optimizer_from_json(reader.field("optimizer"));
  if (const auto sampling = reader.optional_field("sampling")) header.sampling = sampling->object();
  if (const auto reference_sets = reader.optional_field("reference_sets")) {
    header.reference_sets = reference_sets->text();
    if (header.reference_sets.empty()) reference_sets->fail("a name");
  }
  const JsonReader tables = reader.field("tables");
  if (tables.array_size() == 0) tables.fail("at least one table");
  for (std::size_t i = 0; i < tables.array_size(); ++i) {
    header.tables.push_back(measured_table_from_json(tables.element(i)));
    reader.check([&] { validate(as_table(header.tables.back()), fmt::format("tables[{}]", i)); });
  }
  return header;
}

Piece piece_from_json(const JsonReader& reader, std::size_t num_tables) {
  const std::size_t size = reader.array_size();
  if (size != 2 && size != 3) {
    reader.fail("[table, num_columns] or [table, num_columns, row_share]");
  }
  const auto last_table = static_cast<std::int64_t>(num_tables) - 1;
  Piece piece{static_cast<int>(reader.element(0).integer(0, last_table)),
              reader.element(1).integer(1, kMaxEmbeddingDim)};
  if (size == 3) {
    const JsonReader share = reader.element(2);
    piece.row_share = share.number();
    if (!(piece.row_share > 0.0 && piece.row_share <= 1.0))
      share.fail("a share above 0, at most 1");
  }
  return piece;
}

Json compute_json(const Piece& piece) {
  Json::Array entries{piece.table, piece.num_columns};
  if (piece.num_rows != 0) {
    throw std::logic_error("a slice of a row order is a table of its own in the header");
  }
  if (piece.row_share < 1.0) entries.emplace_back(piece.row_share);
  return entries;
}

/// Of a file with reference sets or without.
std::vector<double> references_from_json(const JsonReader& line, bool has_reference_sets) {
  std::vector<double> times;
  if (!has_reference_sets) {
    if (const auto given = line.optional_field("reference_ms")) {
      given->fail("nothing, as the header has no \"reference_sets\"");
    }
    return times;
  }
  const JsonReader given = line.field("reference_ms");
  if (given.array_size() == 0) given.fail("the time of at least one reference set");
  for (std::size_t i = 0; i < given.array_size(); ++i) {
    times.push_back(time_from_json(given.element(i)));
  }
  return times;
}

ComputeCostSample sample_from_json(const JsonReader& line, std::size_t num_tables,
                                   bool has_reference_sets) {
  line.allow_fields(
      {"shards", "forward_ms", "backward_ms", "index", "repetitions", "interval", "reference_ms"});
  ComputeCostSample sample;
  const JsonReader shards = line.field("shards");
  if (shards.array_size() == 0) shards.fail("at least one [table, num_columns]");
  sample.pieces.reserve(shards.array_size());
  for (std::size_t i = 0; i < shards.array_size(); ++i) {
    sample.pieces.push_back(piece_from_json(shards.element(i), num_tables));
  }
  sample.forward_ms = time_from_json(line.field("forward_ms"));
  sample.backward_ms = time_from_json(line.field("backward_ms"));
  sample.info = sample_info_from_json(line);
  sample.reference_ms = references_from_json(line, has_reference_sets);
  return sample;
}

Json compute_json(const MeasuredTable& table) {
  Json json;
  json.set("name", table.name);
  json.set("num_embeddings", table.num_embeddings);
  json.set("pooling_factor", table.pooling_factor);
  json.set("data_type", to_string(table.data_type));
  json.set("reuse_histogram", reuse_histogram_to_json(table.reuse_histogram));
  if (table.distinct_rows) json.set("distinct_rows", *table.distinct_rows);
  if (table.hottest_row_share) json.set("hottest_row_share", *table.hottest_row_share);
  return json;
}

Json compute_json(const ComputeCostsHeader& header) {
  Json json;
  json.set("format", kComputeCostsFormat);
  json.set("hardware", header.hardware);
  json.set("operator", header.operator_info);
  json.set("batch_size", header.batch_size);
  json.set("optimizer", to_string(header.optimizer));
  if (header.sampling) json.set("sampling", *header.sampling);
  if (!header.reference_sets.empty()) json.set("reference_sets", header.reference_sets);
  Json::Array tables;
  for (const MeasuredTable& table : header.tables) tables.push_back(compute_json(table));
  json.set("tables", std::move(tables));
  return json;
}

Json compute_json(const ComputeCostSample& sample) {
  Json::Array shards;
  for (const Piece& piece : sample.pieces) {
    shards.push_back(compute_json(piece));
  }
  Json json;
  json.set("shards", std::move(shards));
  json.set("forward_ms", sample.forward_ms);
  json.set("backward_ms", sample.backward_ms);
  add_sample_info(sample.info, json);
  if (!sample.reference_ms.empty()) {
    json.set("reference_ms", Json::Array(sample.reference_ms.begin(), sample.reference_ms.end()));
  }
  return json;
}

/// The header as JSON, after the checks that its reader makes.
Json checked_header(const ComputeCostsHeader& header) {
  Json json = compute_json(header);
  (void)compute_header_from_json(JsonReader(json, "header"));
  return json;
}

}  // namespace

ComputeCosts parse_compute_costs(std::string_view text, const std::string& file) {
  ComputeCosts costs;
  costs.truncated = read_json_lines(
      text, file, [&](const JsonReader& line) { costs.header = compute_header_from_json(line); },
      [&](const JsonReader& line) {
        if (auto skipped = skipped_from_json(line)) {
          costs.skipped.push_back(std::move(*skipped));
        } else {
          costs.samples.push_back(sample_from_json(line, costs.header.tables.size(),
                                                   !costs.header.reference_sets.empty()));
          const std::size_t first = costs.samples.front().reference_ms.size();
          if (costs.samples.back().reference_ms.size() != first) {
            line.field("reference_ms").fail(fmt::format("{} times, as in the first sample", first));
          }
        }
      });
  return costs;
}

ComputeCosts read_compute_costs(const std::string& path) {
  return parse_compute_costs(read_maybe_compressed_file(path), path);
}

ComputeCostsWriter::ComputeCostsWriter(const std::string& path, const ComputeCostsHeader& header)
    : num_tables_(header.tables.size()),
      has_references_(!header.reference_sets.empty()),
      writer_(path, checked_header(header),
              [](const JsonReader& line) { return compute_json(compute_header_from_json(line)); }) {
}

void ComputeCostsWriter::append(const ComputeCostSample& sample) {
  const Json json = compute_json(sample);
  if (sample.reference_ms.size() != num_references_.value_or(sample.reference_ms.size())) {
    throw InputError("sample: reference_ms",
                     fmt::format("{} times, as in the first sample", *num_references_),
                     fmt::format("{}", sample.reference_ms.size()));
  }
  (void)sample_from_json(JsonReader(json, "sample"), num_tables_, has_references_);
  num_references_ = sample.reference_ms.size();
  writer_.append(json);
}

}  // namespace neuroshard
