// How far the search over rows, columns and copies is from the best plan, on tasks small enough to
// try every plan.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdio>
#include <limits>
#include <string>
#include <vector>

#include "neuroshard/core/error.h"
#include "neuroshard/core/numbers/random.h"
#include "neuroshard/search/bound/lower_bound.h"
#include "neuroshard/search/neuroshard_planner.h"
#include "tests/search/arbitrary_simulator.h"

namespace neuroshard {
namespace {

using testing_tasks::make_table;
using testing_tasks::one_host_task;

/// A way of cutting rows: slices of these numbers of rows.
using Way = std::vector<std::int64_t>;

/// All ways with up to as many equal slices as devices; equal slices on one device may be one.
std::vector<Way> ways_of(const Table& table, int num_devices) {
  const std::int64_t rows = table.num_embeddings;  // a multiple of 6
  std::vector<Way> ways{{rows}, {rows / 2, rows / 2}};
  if (num_devices == 3) {
    ways.push_back({rows / 3, rows / 3, rows / 3});
    ways.push_back({rows / 3 * 2, rows / 3});
  }
  return ways;
}

/// Every way of cutting and placing, depth first, over incremental states.
class RectangleBruteForce {
 public:
  explicit RectangleBruteForce(const Simulator& simulator)
      : simulator_(simulator),
        world_size_(simulator.task().topology.world_size),
        states_(world_size_, std::vector<double>(simulator.compute().state_size(), 0.0)),
        bytes_(world_size_, 0),
        columns_(world_size_, 0.0) {}

  struct Best {
    double cost_ms = std::numeric_limits<double>::infinity();
    bool has_slices = false;  ///< of rows
    bool has_copies = false;
  };

  /// The best plan, of those of equal cost the first; infinite cost if none fits.
  Best run() {
    place_table(0);
    return best_;
  }

 private:
  [[nodiscard]] const Table& table(std::size_t number) const {
    return simulator_.task().tables[number];
  }

  void place_table(std::size_t number) {
    if (number == simulator_.task().tables.size()) return price();
    replicate(number);
    place_strips(number, table(number).embedding_dim);
  }

  /// Places the first `columns` columns of a table in strips, each with its own way of cutting the
  /// rows, then all later tables.
  void place_strips(std::size_t number, std::int64_t columns) {
    if (columns == 0) return place_table(number + 1);
    for (std::int64_t width = kColumnGranularity; width <= columns; width += kColumnGranularity) {
      for (const Way& way : ways_of(table(number), world_size_)) {
        const double bytes = way.size() < 2 ? 0.0 : partial_bytes(width, way.size());
        partial_bytes_ += bytes;
        place_slice({number, columns - width, width, way}, 0, width);
        partial_bytes_ -= bytes;
      }
    }
  }

  void replicate(std::size_t number) {
    const Table& of = table(number);
    const std::int64_t bytes = shard_bytes(of, of.embedding_dim, simulator_.task().optimizer);
    for (std::int64_t& on_device : bytes_) on_device += bytes;
    if (fits()) {
      replicated_.push_back(static_cast<int>(number));
      place_table(number + 1);
      replicated_.pop_back();
    }
    for (std::int64_t& on_device : bytes_) on_device -= bytes;
  }

  /// Columns of a table, with a way of cutting their rows.
  struct Strip {
    std::size_t table;
    std::int64_t columns_left;  ///< of the table, for later strips
    std::int64_t width;
    const Way& way;
  };

  /// Places the first `columns` columns of a slice of the strip, then all later slices and strips.
  void place_slice(const Strip& strip, std::size_t slice, std::int64_t columns) {
    if (columns == 0) {
      if (++slice == strip.way.size()) return place_strips(strip.table, strip.columns_left);
      return place_slice(strip, slice, strip.width);
    }
    for (std::int64_t width = kColumnGranularity; width <= columns; width += kColumnGranularity) {
      const std::int64_t rows = strip.way[slice];
      const Piece piece{
          static_cast<int>(strip.table), width,
          static_cast<double>(rows) / static_cast<double>(table(strip.table).num_embeddings)};
      std::vector<double> contribution(simulator_.compute().state_size());
      simulator_.encode(piece, contribution);
      for (int device = 0; device < world_size_; ++device) {
        add(piece, contribution, rows, device, 1);
        if (fits()) place_slice(strip, slice, columns - width);
        add(piece, contribution, rows, device, -1);
      }
    }
  }

  void add(const Piece& piece, const std::vector<double>& contribution, std::int64_t rows,
           int device, int sign) {
    for (std::size_t i = 0; i < contribution.size(); ++i) {
      states_[device][i] += sign * contribution[i];
    }
    bytes_[device] += sign * shard_bytes(table(piece.table), piece.num_columns,
                                         simulator_.task().optimizer, rows);
    columns_[device] += static_cast<double>(sign * piece.num_columns);
  }

  [[nodiscard]] bool fits() const {
    for (int d = 0; d < world_size_; ++d) {
      if (bytes_[d] > simulator_.task().topology.memory_bytes[d]) return false;
    }
    return true;
  }

  /// That each device reads and writes to add up that many partial sums.
  [[nodiscard]] double partial_bytes(std::int64_t num_columns, std::size_t parts) const {
    return 4.0 * static_cast<double>(replica_batch_size(simulator_.task())) *
           static_cast<double>(num_columns) * static_cast<double>(parts + 1);
  }

  void price() {
    const Simulator::ReplicaCost replicas = simulator_.replica_cost(replicated_);
    std::vector<double> compute_ms;
    for (const auto& state : states_) {
      compute_ms.push_back(simulator_.compute().cost(state) + replicas.compute_ms);
    }
    const double cost_ms = simulator_
                               .combine(compute_ms, columns_, replicas.all_reduce_ms,
                                        simulator_.partial_sums_ms(partial_bytes_))
                               .cost_ms;
    if (cost_ms < best_.cost_ms) best_ = {cost_ms, partial_bytes_ > 0.0, !replicated_.empty()};
  }

  const Simulator& simulator_;
  int world_size_;
  std::vector<std::vector<double>> states_;
  std::vector<std::int64_t> bytes_;
  std::vector<double> columns_;
  std::vector<int> replicated_;
  double partial_bytes_ = 0.0;
  Best best_;
};

/// Two or three tables on two or three devices; memory from tight to ample. Some tables are tiny.
Task small_rectangle_task(Random& random, Optimizer optimizer) {
  std::vector<Table> tables;
  const auto devices = static_cast<int>(random.integer(2, 3));
  const std::int64_t num_tables = random.integer(2, 3);
  const std::int64_t widest = devices == 2 ? 2 : 1;
  std::int64_t bytes = 0;
  for (std::int64_t t = 0; t < num_tables; ++t) {
    const std::int64_t rows =
        random.below(3) == 0 ? random.integer(1, 20) : random.integer(200, 200'000);
    tables.push_back(make_table(fmt::format("t{}", t), 6 * rows, 4 * random.integer(1, widest),
                                random.uniform(1.0, 40.0)));
    bytes += shard_bytes(tables.back(), tables.back().embedding_dim, optimizer);
  }
  const double slack = random.uniform(1.02, 2.5);
  return one_host_task(tables, devices,
                       static_cast<std::int64_t>(slack * static_cast<double>(bytes) / devices),
                       optimizer);
}

/// The plan's cost relative to the best; infinite if none was found though one fits. Below 1 where
/// slices that fill memory to the last row are better than equal ones.
double ratio_to_best(const Simulator& simulator, double best) {
  PlannerOptions options;
  options.cuts = {};
  options.least_gain = 0.0;  // smaller gains are left as they may not be any, measured
  try {
    const PlanningResult found = NeuroShardPlanner().plan(simulator, options);
    EXPECT_EQ(violations(simulator.task(), found.plan), std::vector<std::string>{});
    return found.predicted.cost_ms / best;
  } catch (const InfeasibleError&) {
    return std::numeric_limits<double>::infinity();
  }
}

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr std::size_t kRectangleTasks = 20;
#else
constexpr std::size_t kRectangleTasks = 200;
#endif

/// Where tables lie, and what is expected there.
struct Cluster {
  const char* interconnect;
  bool is_one_host;
  std::int64_t batch_size;
  Optimizer optimizer;
  double median_bound;     ///< at least; relative to the best plan
  double worst_ratio;      ///< to the best plan, below it
  double share_of_slices;  ///< of the tasks, whose best plan has slices of rows, at least
  double share_of_copies;
};

void expect_best_plans(const Cluster& cluster, std::size_t num_tasks, std::uint64_t seed) {
  Random random(seed);
  std::vector<double> ratios;
  std::vector<double> bounds;  // relative to the best
  std::size_t with_slices = 0;
  std::size_t with_copies = 0;
  while (ratios.size() < num_tasks) {
    Task task = small_rectangle_task(random, cluster.optimizer);
    if (!cluster.is_one_host) task.topology.local_world_size = 1;
    task.batch_size = cluster.batch_size;
    std::shared_ptr<const ComputeCostModel> compute = testing_tasks::analytic_compute();
    if (random.below(2) == 0) {
      compute = testing_networks::random_model(ComputeArchitecture::bounded_loads, random());
    }
    const Simulator simulator(
        task, compute,
        std::make_shared<AnalyticCommunicationModel>(find_interconnect(cluster.interconnect)));
    const RectangleBruteForce::Best best = RectangleBruteForce(simulator).run();
    if (best.cost_ms < std::numeric_limits<double>::infinity()) {
      ratios.push_back(ratio_to_best(simulator, best.cost_ms));
      bounds.push_back(lower_bound_ms(simulator, {}, 2.0 * best.cost_ms) / best.cost_ms);
      EXPECT_LE(bounds.back(), 1.0);
      with_slices += best.has_slices ? 1 : 0;
      with_copies += best.has_copies ? 1 : 0;
    }
  }
  std::sort(ratios.begin(), ratios.end());
  const auto optimal =
      std::count_if(ratios.begin(), ratios.end(), [](double r) { return r <= 1.0 + 1e-9; });
  std::printf("cost relative to the best plan, %zu tasks: %zu the best, most %.4f\n", num_tasks,
              static_cast<std::size_t>(optimal), ratios.back());
  std::printf("the best plan has slices of rows on %zu, copies on %zu\n", with_slices, with_copies);
  std::sort(bounds.begin(), bounds.end());
  std::printf("lower bound relative to the best plan: %.3f in the median, least %.3f\n",
              bounds[bounds.size() / 2], bounds.front());
  EXPECT_GE(bounds[bounds.size() / 2], cluster.median_bound);
  EXPECT_LE(ratios[num_tasks * 95 / 100 - 1], 1.0 + 1e-9);
  EXPECT_LT(ratios.back(), cluster.worst_ratio);
  // Or these tasks would say nothing of them.
  EXPECT_GE(static_cast<double>(with_slices), cluster.share_of_slices * num_tasks);
  EXPECT_GE(static_cast<double>(with_copies), cluster.share_of_copies * num_tasks);
}

TEST(RectangleOptimality, TheBestPlanOfNineteenTasksInTwenty) {
  expect_best_plans({.interconnect = "a100-nvswitch",
                     .is_one_host = true,
                     .batch_size = 1024,
                     .optimizer = Optimizer::sgd,
                     .median_bound = 0.95,
                     .worst_ratio = 1.05,
                     .share_of_slices = 0.5,
                     .share_of_copies = 0.0},
                    kRectangleTasks, 2024);
}

/// Slow links between all devices, and batches of which the pooled outputs are more than the
/// gradients of a tiny table.
TEST(RectangleOptimality, LikewiseWhereCopiesAreWorthIt) {
  expect_best_plans({.interconnect = "ethernet-10g",
                     .is_one_host = false,
                     .batch_size = 65'536,
                     .optimizer = Optimizer::rowwise_adagrad,
                     .median_bound = 0.94,
                     .worst_ratio = 1.3,
                     .share_of_slices = 0.5,
                     .share_of_copies = 0.5},
                    kRectangleTasks, 4041);
}

}  // namespace
}  // namespace neuroshard
