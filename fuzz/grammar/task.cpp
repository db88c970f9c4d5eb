// The grammar of tasks.
#include <algorithm>
#include <cmath>
#include <utility>

#include "fuzz/grammar/damage.h"
#include "fuzz/grammar/grammar.h"
#include "neuroshard/core/table.h"
#include "neuroshard/core/task.h"

namespace neuroshard::fuzz {

namespace {

constexpr std::int64_t kMostMemory = std::int64_t{1} << 60;
/// A batch of these is measured in milliseconds.
constexpr std::int64_t kMostMeasuredSamples = 256;

/// In most cases two, the hot rows and the others; one if all are hot; sometimes some dozens.
JsonText access_classes(std::int64_t rows, Random& random) {
  const int most = once_in(4, random) ? 40 : 2;
  JsonText classes = array({});
  double left = 1.0;  // of the lookups
  for (int i = 1; i <= most && rows > 0; ++i) {
    const std::int64_t own = i == most ? rows : integer_between(1, rows, random);
    const double share = own == rows ? left : left * random.uniform();
    classes.elements.push_back(array({number(own), number(share)}));
    rows -= own;
    left -= share;
  }
  return classes;
}

JsonText row_access(Random& random) {
  JsonText points = array({});
  double rows = 0.0;
  double accesses = 0.0;
  for (std::uint64_t i = random.below(6); i > 0; --i) {
    rows += (1.0 - rows) * random.uniform(0.01, 0.9);
    accesses += (1.0 - accesses) * random.uniform();
    points.elements.push_back(array({number(rows), number(accesses)}));
  }
  points.elements.push_back(array({number(1.0), number(1.0)}));
  return points;
}

JsonText cut_names(Random& random) {
  JsonText names = array({});
  for (const CutName& cut : kCutNames) {
    if (once_in(2, random)) names.elements.push_back(text(cut.name));
  }
  return names;
}

/// How its rows are used.
void add_statistics(JsonText& table, std::int64_t rows, Random& random) {
  switch (random.below(5)) {
    case 0:
      table.add("reuse_histogram", reuse_histogram(random));
      break;
    case 1:
      table.add("index_distribution",
                object({{"zipf_exponent", number(random.uniform(0.0, 10.0))}}));
      break;
    case 2:
      table.add("index_distribution", object({{"access_classes", access_classes(rows, random)}}));
      break;
    default:
      break;
  }
  if (once_in(6, random)) {
    table.add("row_order", text(once_in(2, random) ? "hashed" : "by_frequency"));
  } else if (once_in(6, random)) {
    table.add("row_access", row_access(random));
  }
}

/// What tables rarely have.
void add_conditions(JsonText& table, const TaskSketch& task, Random& random) {
  if (once_in(8, random)) table.add("min_shard_columns", number(integer_between(0, 128, random)));
  if (once_in(8, random)) table.add("min_shard_rows", number(integer_between(0, 4096, random)));
  if (once_in(8, random)) table.add("allow", cut_names(random));
  if (once_in(8, random)) {
    table.add("extra_bytes_per_shard", number(integer_between(0, kMaxExtraBytes, random)));
  }
  if (once_in(8, random)) {
    table.add("extra_bytes_per_column", number(integer_between(0, kMaxExtraBytes, random)));
  }
  if (once_in(8, random)) {
    table.add("num_features", number(integer_between(1, kMaxFeatures, random)));
  }
  if (once_in(10, random)) {
    table.add("devices", array({number(integer_between(0, task.devices - 1, random))}));
  }
  if (once_in(10, random) && !task.names.empty()) {
    table.add("same_device_as", text(one_of(task.names, random)));
  }
}

JsonText make_table(TaskSketch& task, bool is_small, Random& random) {
  const std::int64_t rows = integer_between(1, is_small ? 100'000 : kMaxEmbeddings, random);
  std::int64_t columns = integer_between(1, is_small ? 256 : kMaxEmbeddingDim, random);
  if (!once_in(4, random) && columns > 4) columns -= columns % 4;
  std::string name = table_name(task.names.size(), random);
  JsonText table = object(
      {{"name", text(name)},
       {"num_embeddings", number(rows)},
       {"embedding_dim", number(columns)},
       {"pooling_factor", number(number_between(is_small ? 0.01 : 5e-324,
                                                is_small ? 200.0 : kMaxPoolingFactor, random))}});
  if (once_in(2, random)) table.add("data_type", text(once_in(3, random) ? "fp16" : "fp32"));
  add_statistics(table, rows, random);
  add_conditions(table, task, random);
  task.names.push_back(std::move(name));
  task.rows.push_back(rows);
  task.columns.push_back(columns);
  return table;
}

JsonText memory_bytes(const TaskSketch& task, Random& random) {
  double bytes = 0.0;
  for (std::size_t i = 0; i < task.rows.size(); ++i) {
    bytes += static_cast<double>(task.rows[i]) * static_cast<double>(task.columns[i] + 1) * 4.0;
  }
  const auto one = [&] {
    if (once_in(6, random)) return integer_between(1, kMostMemory, random);
    // Tight in some cases, ample in others.
    const double share = std::exp2(random.uniform(-0.3, 4.0)) / static_cast<double>(task.devices);
    return static_cast<std::int64_t>(std::clamp(bytes * share, 1.0, 0x1p60));
  };
  if (!once_in(4, random) || task.devices > 64) return number(one());
  JsonText each = array({});
  for (std::int64_t d = 0; d < task.devices; ++d) each.elements.push_back(number(one()));
  return each;
}

JsonText topology(const TaskSketch& task, Random& random) {
  JsonText json = object({{"world_size", number(task.devices)}});
  if (once_in(2, random)) {
    std::int64_t local = integer_between(1, task.devices, random);
    while (task.devices % local != 0) --local;
    json.add("local_world_size", number(local));
  }
  json.add("memory_bytes", memory_bytes(task, random));
  if (once_in(6, random)) {
    json.add("interconnect", text(once_in(2, random) ? "pcie4" : odd_name(random)));
  }
  return json;
}

/// With at most so many samples in a batch.
TaskSketch sketch_of_size(bool is_small, std::int64_t most_samples, Random& random) {
  TaskSketch task;
  task.devices = integer_between(1, is_small ? 8 : kMaxWorldSize, random);
  const std::int64_t most_tables = is_small ? 6 : once_in(50, random) ? 300 : 20;
  const std::int64_t num_tables = integer_between(1, most_tables, random);
  JsonText tables = array({});
  for (std::int64_t i = 0; i < num_tables; ++i) {
    tables.elements.push_back(make_table(task, is_small, random));
  }
  task.json = object({{"format", text("neuroshard/task/1")},
                      {"batch_size", number(integer_between(1, most_samples, random))},
                      {"optimizer", text(once_in(2, random) ? "sgd" : "rowwise_adagrad")},
                      {"tables", std::move(tables)}});
  task.json.add("topology", topology(task, random));
  if (once_in(8, random)) task.json.add("allow", cut_names(random));
  return task;
}

}  // namespace

std::string table_name(std::size_t number, Random& random) {
  std::string name = "t" + std::to_string(number);
  if (once_in(12, random)) name += odd_name(random);
  return name;
}

JsonText reuse_histogram(Random& random) {
  double shares[kReuseBins];
  double sum = 0.0;
  for (double& share : shares) {
    share = once_in(2, random) ? 0.0 : random.uniform();
    sum += share;
  }
  JsonText histogram = array({});
  for (const double share : shares) {
    histogram.elements.push_back(number(sum > 0.0 ? share / sum : 1.0 / kReuseBins));
  }
  return histogram;
}

TaskSketch sketch_task(Random& random) {
  return sketch_of_size(!once_in(5, random), kMaxBatchSize, random);
}

std::string make_task(Random& random) { return damaged_text(sketch_task(random).json, random); }

std::string make_small_task(Random& random) {
  return to_string(sketch_of_size(true, kMostMeasuredSamples, random).json);
}

}  // namespace neuroshard::fuzz
