// Drawing tables and dimensions until a task fits its devices.
#include "neuroshard/workload/generate/task_generator.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>
#include <numeric>
#include <utility>
#include <vector>

#include "neuroshard/core/error.h"
#include "neuroshard/core/numbers/random.h"
#include "neuroshard/core/sharding_plan.h"
#include "neuroshard/core/units.h"

namespace neuroshard {

namespace {

constexpr int kMaxDraws = 10'000;

void require(bool ok, const std::string& place, const std::string& expected,
             const std::string& actual) {
  if (!ok) throw InputError(place, expected, actual);
}

void validate(const TaskGeneratorOptions& options, const Workload& workload) {
  const auto available = static_cast<int>(workload.tables.size());
  require(options.min_tables >= 1, "min_tables", "at least 1", fmt::to_string(options.min_tables));
  require(options.max_tables >= options.min_tables, "max_tables",
          fmt::format("at least min_tables = {}", options.min_tables),
          fmt::to_string(options.max_tables));
  require(options.max_tables <= available, "max_tables",
          fmt::format("at most the {} tables of {}", available, workload.name),
          fmt::to_string(options.max_tables));
  require(options.max_dim >= kColumnGranularity && options.max_dim <= kMaxEmbeddingDim &&
              std::has_single_bit(static_cast<std::uint64_t>(options.max_dim)),
          "max_dim", fmt::format("a power of two between 4 and {}", kMaxEmbeddingDim),
          fmt::to_string(options.max_dim));
  require(options.num_devices >= 1 && options.num_devices <= kMaxWorldSize, "num_devices",
          fmt::format("an integer between 1 and {}", kMaxWorldSize),
          fmt::to_string(options.num_devices));
  require(options.memory_bytes >= 1 && options.memory_bytes <= std::int64_t{1} << 60,
          "memory_bytes", "an integer between 1 and 2^60", fmt::to_string(options.memory_bytes));
  require(options.batch_size >= 0 && options.batch_size <= kMaxBatchSize, "batch_size",
          fmt::format("an integer between 0 and {}", kMaxBatchSize),
          fmt::to_string(options.batch_size));
  require(options.local_devices >= 0 &&
              (options.local_devices == 0 || options.num_devices % options.local_devices == 0),
          "local_devices", fmt::format("a divisor of the {} devices", options.num_devices),
          fmt::to_string(options.local_devices));
  require(
      options.max_fill == 0.0 || (options.min_fill > 0.0 && options.min_fill <= options.max_fill &&
                                  options.max_fill <= 1.0),
      "fill", "shares with 0 < MIN <= MAX <= 1",
      fmt::format("{}:{}", options.min_fill, options.max_fill));
  require(options.max_pooling_factor >= 0.0, "max_pooling_factor", "at least 0",
          fmt::to_string(options.max_pooling_factor));
}

/// The tables that tasks are drawn from.
Workload pool_of(const Workload& workload, const TaskGeneratorOptions& options) {
  Workload pool = workload;
  if (options.max_pooling_factor > 0.0) {
    std::erase_if(pool.tables, [&](const Table& table) {
      return table.pooling_factor > options.max_pooling_factor;
    });
  }
  return pool;
}

/// A table of the workload at a dimension.
struct Pick {
  std::size_t table = 0;
  std::int64_t embedding_dim = 0;
};

/// Draws sets of tables with dimensions.
class Picker {
 public:
  Picker(const Workload& workload, const TaskGeneratorOptions& options)
      : workload_(workload), options_(options), order_(workload.tables.size()) {
    std::iota(order_.begin(), order_.end(), std::size_t{0});
  }

  [[nodiscard]] std::vector<Pick> draw(std::size_t num_tables, Random& random) {
    const int num_dims =
        std::countr_zero(static_cast<std::uint64_t>(options_.max_dim / kColumnGranularity)) + 1;
    std::vector<Pick> picks;
    for (std::size_t i = 0; i < num_tables; ++i) {
      std::swap(order_[i], order_[i + random.below(order_.size() - i)]);
      const std::int64_t dim = options_.own_dims ? workload_.tables[order_[i]].embedding_dim
                                                 : kColumnGranularity << random.below(num_dims);
      picks.push_back({order_[i], dim});
    }
    return picks;
  }

  [[nodiscard]] double bytes(const std::vector<Pick>& picks) const {
    double sum = 0.0;
    for (const Pick& pick : picks) {
      sum += static_cast<double>(
          shard_bytes(workload_.tables[pick.table], pick.embedding_dim, options_.optimizer));
    }
    return sum;
  }

  /// True if the narrowest piece of each table fits a device of `memory_bytes`.
  [[nodiscard]] bool can_be_cut_to_fit(const std::vector<Pick>& picks,
                                       std::int64_t memory_bytes) const {
    return std::all_of(picks.begin(), picks.end(), [&](const Pick& pick) {
      Table table = workload_.tables[pick.table];
      table.embedding_dim = pick.embedding_dim;
      const std::int64_t narrowest =
          can_cut(table, pick.embedding_dim) ? narrowest_cut(table) : pick.embedding_dim;
      return shard_bytes(table, narrowest, options_.optimizer) <= memory_bytes;
    });
  }

 private:
  const Workload& workload_;
  const TaskGeneratorOptions& options_;
  std::vector<std::size_t> order_;
};

/// Tables, and the memory of each device.
struct Draw {
  std::vector<Pick> picks;
  std::int64_t memory_bytes = 0;
};

Draw draw_fitting(const Workload& workload, const TaskGeneratorOptions& options,
                  std::uint64_t index) {
  Random random = Random::for_stream(options.seed, index);
  const auto num_tables =
      static_cast<std::size_t>(random.integer(options.min_tables, options.max_tables));
  const double capacity =
      static_cast<double>(options.memory_bytes) * static_cast<double>(options.num_devices);
  // A stream of its own: the fill of a task does not affect its tables.
  const double fill =
      Random::for_stream(mix64(options.seed), index).uniform(options.min_fill, options.max_fill);
  Picker picker(workload, options);
  double least_bytes = std::numeric_limits<double>::infinity();
  for (int draw = 0; draw < kMaxDraws; ++draw) {
    std::vector<Pick> picks = picker.draw(num_tables, random);
    const double bytes = picker.bytes(picks);
    std::int64_t memory = options.memory_bytes;
    if (fill > 0.0) {
      // Compared as it is: of a share that is hardly any, no integer has room for it.
      const double filled = std::ceil(bytes / (fill * options.num_devices));
      if (filled < static_cast<double>(memory)) memory = static_cast<std::int64_t>(filled);
    }
    if (bytes <= capacity && picker.can_be_cut_to_fit(picks, memory)) {
      return {std::move(picks), memory};
    }
    least_bytes = std::min(least_bytes, bytes);
  }
  throw InputError(
      fmt::format("task {}", index),
      fmt::format("{} tables of {} that fit {} x {}", num_tables, workload.name,
                  options.num_devices, format_bytes(static_cast<double>(options.memory_bytes))),
      least_bytes > capacity
          ? fmt::format("{} or more in each of {} draws (fewer tables, a smaller dimension, more "
                        "devices or more memory would help)",
                        format_bytes(least_bytes), kMaxDraws)
          : fmt::format("a table whose narrowest piece fits no device in each of {} draws",
                        kMaxDraws));
}

}  // namespace

void set_default_tables(TaskGeneratorOptions& options, const Workload& workload) {
  const auto available = static_cast<int>(
      std::count_if(workload.tables.begin(), workload.tables.end(), [&](const Table& table) {
        return options.max_pooling_factor == 0.0 ||
               table.pooling_factor <= options.max_pooling_factor;
      }));
  if (available == 0 && !workload.tables.empty()) {
    throw InputError("max_pooling_factor", "room for a table of the workload",
                     fmt::format("{}", options.max_pooling_factor));
  }
  options.min_tables = std::min(TaskGeneratorOptions{}.min_tables, available);
  options.max_tables = std::min(TaskGeneratorOptions{}.max_tables, available);
}

Task generate_task(const Workload& all_tables, const TaskGeneratorOptions& options,
                   std::uint64_t index) {
  const Workload workload = pool_of(all_tables, options);
  validate(options, workload);
  Task task;
  task.batch_size = options.batch_size > 0 ? options.batch_size : workload.batch_size;
  task.optimizer = options.optimizer;
  const Draw drawn = draw_fitting(workload, options, index);
  for (const Pick& pick : drawn.picks) {
    Table& table = task.tables.emplace_back(workload.tables[pick.table]);
    table.embedding_dim = pick.embedding_dim;
  }
  task.topology = {
      .world_size = options.num_devices,
      .local_world_size = options.local_devices > 0 ? options.local_devices : options.num_devices,
      .memory_bytes = std::vector<std::int64_t>(static_cast<std::size_t>(options.num_devices),
                                                drawn.memory_bytes),
      .interconnect = options.interconnect};
  return task;
}

}  // namespace neuroshard
