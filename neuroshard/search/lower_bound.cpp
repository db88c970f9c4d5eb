// The bound's two parts.
#include "neuroshard/search/lower_bound.h"

#include <algorithm>
#include <limits>
#include <span>
#include <vector>

#include "neuroshard/cost/cost_value.h"

namespace neuroshard {

namespace {

/// Widest table that is divided in every way [columns]; the time grows with the square.
constexpr std::int64_t kWidestDivided = 1024;
/// Divisions of all tables together that are tried: 100,000 tables of 128 columns have half.
constexpr std::int64_t kMostDivisions = 100'000'000;
/// What rounding in the last digits of a cost may amount to.
constexpr double kRounding = 1e-9;

/// Least contributions of a table's columns, however divided into pieces.
class LeastContributions {
 public:
  /// Unknown if the table is too wide, or would take more than the `divisions_left`, which it takes
  /// its own from.
  LeastContributions(const Simulator& simulator, int table, std::int64_t& divisions_left)
      : size_(simulator.compute().state_size()) {
    const Table& of = simulator.task().tables[table];
    const std::int64_t dim = of.embedding_dim;
    if (dim > kWidestDivided) return;
    const std::int64_t quantum = of.allow.columns && can_cut(dim) ? kColumnGranularity : dim;
    const std::int64_t divisions = (dim / quantum) * (dim / quantum + 1) / 2;
    if (divisions > divisions_left) return;
    divisions_left -= divisions;
    quantum_ = quantum;
    num_quanta_ = dim / quantum_;
    least_.resize(static_cast<std::size_t>(num_quanta_ + 1) * size_, 0.0);
    std::vector<double> pieces(least_.size(), 0.0);
    for (std::int64_t n = 1; n <= num_quanta_; ++n) {
      const std::span<double> piece(pieces.data() + static_cast<std::size_t>(n) * size_, size_);
      simulator.encode(table, n * quantum_, piece);
      double* best = least_.data() + static_cast<std::size_t>(n) * size_;
      std::copy(piece.begin(), piece.end(), best);
      for (std::int64_t part = 1; part < n; ++part) {
        const double* last = pieces.data() + static_cast<std::size_t>(part) * size_;
        const double* rest = least_.data() + static_cast<std::size_t>(n - part) * size_;
        for (std::size_t i = 0; i < size_; ++i) best[i] = std::min(best[i], last[i] + rest[i]);
      }
    }
  }

  [[nodiscard]] bool known() const { return num_quanta_ > 0; }
  [[nodiscard]] std::int64_t quantum() const { return quantum_; }
  [[nodiscard]] std::int64_t num_quanta() const { return num_quanta_; }
  /// Of n quanta.
  [[nodiscard]] std::span<const double> of(std::int64_t n) const {
    return {least_.data() + static_cast<std::size_t>(n) * size_, size_};
  }

 private:
  std::size_t size_;
  std::int64_t quantum_ = 0;
  std::int64_t num_quanta_ = 0;
  std::vector<double> least_;  ///< [quanta][state]
};

}  // namespace

double lower_bound_ms(const Simulator& simulator) {
  const ComputeCostModel& compute = simulator.compute();
  if (!compute.is_convex_increasing()) return 0.0;
  const Task& task = simulator.task();
  const auto floor_ms = [&](double columns) {
    return simulator.communication().floor_ms(task.topology, task.batch_size, columns);
  };
  const int world_size = task.topology.world_size;
  std::vector<double> mean(compute.state_size(), 0.0);
  double mean_columns = 0.0;
  double largest = 0.0;  // the second part: of the tables one by one
  std::int64_t divisions_left = kMostDivisions;
  for (std::size_t table = 0; table < task.tables.size(); ++table) {
    const Table& of = task.tables[table];
    mean_columns += static_cast<double>(pooled_columns(of, of.embedding_dim)) / world_size;
    const LeastContributions least(simulator, static_cast<int>(table), divisions_left);
    if (!least.known()) continue;
    const auto whole = least.of(least.num_quanta());
    for (std::size_t i = 0; i < mean.size(); ++i) mean[i] += whole[i] / world_size;
    double cheapest = std::numeric_limits<double>::infinity();
    for (std::int64_t n = (least.num_quanta() + world_size - 1) / world_size;
         n <= least.num_quanta(); ++n) {
      cheapest = std::min(
          cheapest, compute.cost(least.of(n)) +
                        floor_ms(static_cast<double>(pooled_columns(of, n * least.quantum()))));
    }
    largest = std::max(largest, cheapest);
  }
  const double bound = std::max(compute.cost(mean) + floor_ms(mean_columns), largest);
  if (!is_cost(bound)) throw not_a_cost(compute.name(), "any plan at least", bound);
  return bound * (1.0 - kRounding);
}

}  // namespace neuroshard
