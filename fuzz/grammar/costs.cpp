// The grammars of measured computation and communication costs.
#include <string>
#include <utility>

#include "fuzz/grammar/damage.h"
#include "fuzz/grammar/grammar.h"
#include "neuroshard/core/table.h"

namespace neuroshard::fuzz {

namespace {

std::string_view optimizer(Random& random) {
  return once_in(2, random) ? "sgd" : "rowwise_adagrad";
}

std::string_view data_type(Random& random) { return once_in(3, random) ? "fp16" : "fp32"; }

JsonText skipped(std::int64_t index, Random& random) {
  return object({{"index", number(index)}, {"skipped", text(odd_name(random))}});
}

void add_info(JsonText& sample, std::int64_t index, Random& random) {
  if (!once_in(4, random)) sample.add("index", number(index));
  if (once_in(2, random)) sample.add("repetitions", number(integer_between(1, 100, random)));
  if (once_in(2, random)) sample.add("interval", number(random.uniform(0.0, 0.2)));
}

JsonText measured_table(std::size_t index, Random& random) {
  const std::int64_t rows = integer_between(1, kMaxEmbeddings, random);
  JsonText table = object({{"name", text(table_name(index, random))},
                           {"num_embeddings", number(rows)},
                           {"pooling_factor", number(number_between(1e-6, 1e6, random))},
                           {"data_type", text(data_type(random))},
                           {"reuse_histogram", reuse_histogram(random)}});
  if (once_in(2, random)) {
    table.add("distinct_rows", number(number_between(0.1, static_cast<double>(rows), random)));
    table.add("hottest_row_share", number(number_between(1e-9, 1.0, random)));
  }
  return table;
}

JsonText piece(std::int64_t num_tables, Random& random) {
  JsonText json = array({number(random.integer(0, num_tables - 1)),
                         number(integer_between(1, kMaxEmbeddingDim, random))});
  if (once_in(4, random)) json.elements.push_back(number(number_between(1e-12, 1.0, random)));
  return json;
}

/// The times of all devices.
JsonText times(std::int64_t count, Random& random) {
  JsonText all = array({});
  for (std::int64_t i = 0; i < count; ++i) {
    all.elements.push_back(number(once_in(10, random) ? 0.0 : number_between(1e-6, 1e4, random)));
  }
  return all;
}

JsonText links(Random& random) {
  return object({{"kind", text("simulated")},
                 {"intra_host_gb_per_s", number(number_between(1e-9, 1e9, random))},
                 {"intra_host_latency_ms", number(random.uniform(0.0, 1.0))},
                 {"inter_host_gb_per_s", number(number_between(1e-9, 1e9, random))},
                 {"inter_host_latency_ms", number(random.uniform(0.0, 1.0))},
                 {"devices_per_card", number(integer_between(1, 8, random))}});
}

}  // namespace

std::string make_compute_costs(Random& random) {
  const std::int64_t num_tables = integer_between(1, 5, random);
  JsonText tables = array({});
  for (std::int64_t t = 0; t < num_tables; ++t) {
    tables.elements.push_back(measured_table(static_cast<std::size_t>(t), random));
  }
  JsonText header = object({{"format", text("neuroshard/compute-costs/1")},
                            {"hardware", object({{"kind", text("cpu")}})},
                            {"operator", object({{"name", text("fused")}})},
                            {"batch_size", number(integer_between(1, kMaxBatchSize, random))},
                            {"optimizer", text(optimizer(random))},
                            {"tables", std::move(tables)}});
  if (once_in(2, random)) header.add("sampling", object({{"seed", number(std::int64_t{1})}}));
  std::vector<JsonText> lines{std::move(header)};
  const std::int64_t num_samples = integer_between(0, 12, random);
  for (std::int64_t i = 0; i < num_samples; ++i) {
    if (once_in(10, random)) {
      lines.push_back(skipped(i, random));
      continue;
    }
    JsonText pieces = array({});
    for (std::int64_t p = integer_between(1, 8, random); p > 0; --p) {
      pieces.elements.push_back(piece(num_tables, random));
    }
    JsonText sample = object({{"shards", std::move(pieces)},
                              {"forward_ms", number(number_between(1e-6, 1e5, random))},
                              {"backward_ms", number(number_between(1e-6, 1e5, random))}});
    add_info(sample, i, random);
    lines.push_back(std::move(sample));
  }
  return damaged_lines(std::move(lines), random);
}

std::string make_communication_costs(Random& random) {
  const std::int64_t devices = integer_between(1, 8, random);
  JsonText topology = object({{"world_size", number(devices)}});
  if (once_in(2, random)) topology.add("local_world_size", number(std::int64_t{1}));
  if (once_in(2, random)) topology.add("interconnect", text(odd_name(random)));
  JsonText header = object({{"format", text("neuroshard/communication-costs/1")},
                            {"hardware", once_in(2, random) ? links(random) : object({})},
                            {"topology", std::move(topology)},
                            {"batch_size", number(integer_between(1, kMaxBatchSize, random))},
                            {"data_type", text(data_type(random))}});
  std::vector<JsonText> lines{std::move(header)};
  const std::int64_t num_samples = integer_between(0, 10, random);
  for (std::int64_t i = 0; i < num_samples; ++i) {
    if (once_in(10, random)) {
      lines.push_back(skipped(i, random));
      continue;
    }
    JsonText sample = object({});
    if (once_in(4, random)) {
      sample.add("kind", text(once_in(2, random) ? "all_reduce" : "partial_sums"));
      sample.add("bytes", number(integer_between(1, std::int64_t{1} << 60, random)));
      sample.add("ms", times(devices, random));
    } else {
      JsonText columns = array({});
      for (std::int64_t d = 0; d < devices; ++d) {
        columns.elements.push_back(number(integer_between(0, 1 << 20, random)));
      }
      sample.add("columns", std::move(columns));
      for (const char* key : {"start_ms", "forward_ms", "backward_ms"}) {
        sample.add(key, times(devices, random));
      }
    }
    add_info(sample, i, random);
    lines.push_back(std::move(sample));
  }
  return damaged_lines(std::move(lines), random);
}

}  // namespace neuroshard::fuzz
