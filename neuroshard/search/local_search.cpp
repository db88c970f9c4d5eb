// Annealing of plans.
#include "neuroshard/search/local_search.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <span>
#include <utility>
#include <vector>

#include "neuroshard/core/random.h"
#include "neuroshard/search/column_assignment.h"

namespace neuroshard {

namespace {

using Clock = std::chrono::steady_clock;

/// How often the clock is read.
constexpr std::int64_t kStepsPerLook = 64;
/// A step's price grows with the devices; beyond so many, chains are shorter in return, so that not
/// the clock decides where they end.
constexpr int kDevicesOfFullLength = 256;
/// Share of the mean device in what is minimised: where the slowest device cannot be helped at
/// once, less work elsewhere makes room for helping it later.
constexpr double kMeanShare = 0.1;

/// Up to two transfers: a move, or the two halves of an exchange.
class Neighbour {
 public:
  void add(const Transfer& transfer) { transfers_[count_++] = transfer; }
  [[nodiscard]] std::span<const Transfer> transfers() const { return {transfers_.data(), count_}; }
  [[nodiscard]] bool empty() const { return count_ == 0; }

 private:
  std::array<Transfer, 2> transfers_{};
  std::size_t count_ = 0;
};

/// One chain.
class Annealing {
 public:
  Annealing(const Simulator& simulator, const ShardingPlan& plan, const LocalSearchOptions& options,
            int chain)
      : simulator_(simulator),
        options_(options),
        num_steps_(options.num_steps * kDevicesOfFullLength /
                   std::max(kDevicesOfFullLength, simulator.task().topology.world_size)),
        random_(Random::for_stream(options.seed, static_cast<std::uint64_t>(chain))),
        catalog_(simulator),
        assignment_(simulator, catalog_, plan),
        best_plan_(plan),
        best_cost_(simulator.cost(plan).cost_ms) {}

  void run() {
    double energy = current_energy();
    const double scale = best_cost_;
    for (std::int64_t step = 0; step < num_steps_; ++step) {
      if (step % kStepsPerLook == 0 && options_.deadline && Clock::now() >= *options_.deadline) {
        break;
      }
      const Neighbour neighbour = draw();
      if (neighbour.empty()) continue;
      for (const Transfer& transfer : neighbour.transfers()) assignment_.apply(transfer);
      const double threshold = acceptance(step, scale);
      const double next = fits(neighbour) ? current_energy() : energy + 2.0 * threshold + 1.0;
      if (next <= energy + threshold) {
        energy = next;
        keep_if_best();
      } else {
        undo(neighbour);
      }
    }
  }

  [[nodiscard]] double best_cost() const { return best_cost_; }
  [[nodiscard]] const ShardingPlan& best_plan() const { return best_plan_; }
  [[nodiscard]] const ColumnAssignment& assignment() const { return assignment_; }
  [[nodiscard]] std::size_t pieces_encoded() const { return catalog_.size(); }

 private:
  double current_energy() {
    const PlanCost& cost = assignment_.cost();
    double sum = 0.0;
    for (const DeviceCost& device : cost.devices) sum += start_of(device);
    return cost.cost_ms + kMeanShare * sum / static_cast<double>(cost.devices.size());
  }

  /// When a device is ready for the forward all-to-all: all of them end together, so what holds
  /// the plan up is who starts it last.
  static double start_of(const DeviceCost& device) {
    return device.compute_ms + device.backward_comm_ms;
  }

  /// By how much the energy may rise in this step: Metropolis' rule, drawn beforehand.
  double acceptance(std::int64_t step, double scale) {
    const double progress = static_cast<double>(step) / static_cast<double>(num_steps_);
    const double temperature =
        scale * options_.first_temperature *
        std::pow(options_.last_temperature / options_.first_temperature, progress);
    return -temperature * std::log(1.0 - random_.uniform());
  }

  int random_device() { return static_cast<int>(random_.below(assignment_.num_devices())); }

  template <typename Better>
  int extreme_device(const Better& better) {
    const std::vector<DeviceCost>& devices = assignment_.cost().devices;
    std::size_t best = 0;
    for (std::size_t d = 1; d < devices.size(); ++d) {
      if (better(start_of(devices[d]), start_of(devices[best]))) best = d;
    }
    return static_cast<int>(best);
  }

  /// Where columns come from: mostly the device that holds the plan up.
  int source() {
    return random_.uniform() < 0.6 ? extreme_device(std::greater<>()) : random_device();
  }
  /// Where they go: mostly the one with the least to do.
  int target() { return random_.uniform() < 0.5 ? extreme_device(std::less<>()) : random_device(); }

  ColumnAssignment::Holding random_holding(int device) {
    const auto holdings = assignment_.holdings(device);
    return holdings[random_.below(holdings.size())];
  }

  /// All columns of a piece, or some.
  std::int64_t random_columns(const ColumnAssignment::Holding& holding, double whole) {
    const std::int64_t quanta = holding.num_columns / kColumnGranularity;
    const bool cuttable =
        quanta >= 2 && can_cut(simulator_.task().tables[holding.table].embedding_dim);
    if (!cuttable || random_.uniform() < whole) return holding.num_columns;
    return random_.integer(1, quanta - 1) * kColumnGranularity;
  }

  Neighbour draw() {
    Neighbour neighbour;
    const int from = source();
    const int to = target();
    if (from == to || assignment_.holdings(from).empty()) return neighbour;
    const ColumnAssignment::Holding given = random_holding(from);
    const bool exchange = !assignment_.holdings(to).empty() && random_.uniform() < 0.5;
    neighbour.add({given.table, random_columns(given, exchange ? 0.9 : 0.7), from, to});
    if (!exchange) return neighbour;
    const ColumnAssignment::Holding taken = random_holding(to);
    if (taken.table == given.table) return neighbour;
    neighbour.add({taken.table, random_columns(taken, 0.9), to, from});
    return neighbour;
  }

  [[nodiscard]] bool fits(const Neighbour& neighbour) const {
    const Transfer& first = neighbour.transfers().front();
    return assignment_.free_bytes(first.from) >= 0 && assignment_.free_bytes(first.to) >= 0;
  }

  void undo(const Neighbour& neighbour) {
    const auto transfers = neighbour.transfers();
    for (std::size_t i = transfers.size(); i-- > 0;) assignment_.apply(transfers[i].reversed());
  }

  void keep_if_best() {
    const double cost = assignment_.cost().cost_ms;
    if (cost >= best_cost_) return;
    best_cost_ = cost;
    best_plan_ = assignment_.plan();
  }

  const Simulator& simulator_;
  const LocalSearchOptions& options_;
  std::int64_t num_steps_;
  Random random_;
  PieceCatalog catalog_;
  ColumnAssignment assignment_;
  ShardingPlan best_plan_;
  double best_cost_;
};

}  // namespace

PlanningResult improve_plan(const Simulator& simulator, const ShardingPlan& plan,
                            const LocalSearchOptions& options, ThreadPool& pool) {
  std::vector<std::optional<Annealing>> chains(std::max(options.num_chains, 1));
  pool.for_each(chains.size(), [&](std::size_t i, int) {
    chains[i].emplace(simulator, plan, options, static_cast<int>(i));
    chains[i]->run();
  });
  PlanningResult result;
  const Annealing* best = &*chains.front();
  for (const std::optional<Annealing>& chain : chains) {
    if (chain->best_cost() < best->best_cost()) best = &*chain;
    result.stats.head_evaluations += chain->assignment().head_evaluations();
    result.stats.pieces_encoded += static_cast<std::int64_t>(chain->pieces_encoded());
  }
  result.plan = best->best_plan();
  result.predicted = simulator.cost(result.plan);
  return result;
}

}  // namespace neuroshard
