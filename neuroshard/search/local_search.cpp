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
/// Share of the mean device in what is minimised: where the slowest device cannot be helped at
/// once, less work elsewhere makes room for helping it later.
constexpr double kMeanShare = 0.1;

/// Pieces that are tried to make room on a device.
constexpr int kRoomAttempts = 4;

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
            std::uint64_t stream)
      : simulator_(simulator),
        options_(options),
        random_(Random::for_stream(options.seed, stream)),
        catalog_(simulator),
        assignment_(simulator, catalog_, plan),
        step_ns_(NominalStepTime::kStep_ns +
                 NominalStepTime::kStepPerDevice_ns * assignment_.num_devices()),
        all_to_alls_ns_(NominalStepTime::kAllToAlls_ns +
                        NominalStepTime::kAllToAllsPerDevice_ns * assignment_.num_devices()) {}

  void run() {
    best_cost_ = assignment_.cost().cost_ms;
    const double scale = best_cost_;
    double energy = current_energy();
    std::int64_t step = 0;
    for (double progress = share_done(0); progress < 1.0; progress = share_done(++step)) {
      if (step % kStepsPerLook == 0 && options_.deadline && Clock::now() >= *options_.deadline) {
        break;
      }
      const Neighbour neighbour = draw();
      const double allowed = energy + acceptance(progress, scale);
      if (neighbour.empty() || !fits(neighbour)) continue;
      if (const std::optional<double> next = accepted(neighbour, allowed)) {
        energy = *next;
        keep_if_best(neighbour);
      }
    }
    return_to_best();
  }

  [[nodiscard]] double best_cost() const { return best_cost_; }
  [[nodiscard]] const ColumnAssignment& assignment() const { return assignment_; }
  [[nodiscard]] std::size_t pieces_encoded() const { return catalog_.size(); }

 private:
  /// Share of the chain's length that is behind it.
  [[nodiscard]] double share_done(std::int64_t step) const {
    const auto steps = static_cast<double>(step);
    const double nominal_ns =
        steps * step_ns_ + static_cast<double>(all_to_alls_priced_) * all_to_alls_ns_;
    return std::max(steps / static_cast<double>(options_.num_steps),
                    nominal_ns * 1e-6 / options_.round_ms);
  }

  double current_energy() {
    const PlanCost& cost = assignment_.cost();
    double sum = 0.0;
    for (const DeviceCost& device : cost.devices) sum += start_of(device);
    return cost.cost_ms + kMeanShare * sum / static_cast<double>(cost.devices.size());
  }

  /// What the energy is at least.
  double least_energy() {
    const ColumnAssignment::Floor floor = assignment_.floor();
    return floor.cost_ms + kMeanShare * floor.compute_sum_ms / assignment_.num_devices();
  }

  /// When a device is ready for the forward all-to-all: all of them end together, so what holds
  /// the plan up is who starts it last.
  static double start_of(const DeviceCost& device) {
    return device.compute_ms + device.backward_comm_ms;
  }

  /// By how much the energy may rise in this step: Metropolis' rule, drawn beforehand.
  double acceptance(double progress, double scale) {
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
    if (!is_cuttable(holding) || random_.uniform() < whole) return holding.num_columns;
    const std::int64_t least = narrowest_cut(table_of(holding)) / kColumnGranularity;
    const std::int64_t quanta = holding.num_columns / kColumnGranularity;
    return random_.integer(least, quanta - least) * kColumnGranularity;
  }

  [[nodiscard]] const Table& table_of(const ColumnAssignment::Holding& holding) const {
    return simulator_.task().tables[holding.table];
  }

  [[nodiscard]] bool is_cuttable(const ColumnAssignment::Holding& holding) const {
    return can_cut(table_of(holding), holding.num_columns);
  }

  /// The fewest columns of a piece that have to leave the device for `bytes` to be freed; more than
  /// it has if all of them are too few.
  [[nodiscard]] std::int64_t columns_that_free(const ColumnAssignment::Holding& holding,
                                               std::int64_t bytes, int device) const {
    if (is_cuttable(holding)) {
      const Table& table = table_of(holding);
      const std::int64_t per_quantum =
          kColumnGranularity *
          (table.num_embeddings * element_bytes(table.data_type) + table.extra_bytes_per_column);
      const std::int64_t columns = std::max(
          (std::max<std::int64_t>(bytes, 1) + per_quantum - 1) / per_quantum * kColumnGranularity,
          narrowest_cut(table));
      if (columns <= holding.num_columns - narrowest_cut(table)) return columns;
    }
    const std::int64_t freed =
        -assignment_.memory_change(holding.table, -holding.num_columns, device);
    return freed >= bytes ? holding.num_columns : holding.num_columns + 1;
  }

  Neighbour draw() {
    Neighbour neighbour;
    const int from = source();
    const int to = target();
    if (from == to || assignment_.holdings(from).empty()) return neighbour;
    const ColumnAssignment::Holding given = random_holding(from);
    const bool exchange = !assignment_.holdings(to).empty() && random_.uniform() < 0.5;
    const std::int64_t columns = random_columns(given, exchange ? 0.9 : 0.7);
    neighbour.add({given.table, columns, from, to});
    const std::int64_t lacking =
        assignment_.memory_change(given.table, columns, to) - assignment_.free_bytes(to);
    if (lacking > 0) {
      add_making_room(neighbour, lacking);
    } else if (exchange) {
      const ColumnAssignment::Holding taken = random_holding(to);
      if (taken.table != given.table) {
        neighbour.add({taken.table, random_columns(taken, 0.9), to, from});
      }
    }
    return neighbour;
  }

  /// Adds a transfer back that frees the lacking bytes on the device that columns go to, or leaves
  /// the neighbour as one that does not fit.
  void add_making_room(Neighbour& neighbour, std::int64_t lacking) {
    const Transfer given = neighbour.transfers().front();
    const auto holdings = assignment_.holdings(given.to);
    for (int attempt = 0; attempt < kRoomAttempts && !holdings.empty(); ++attempt) {
      const ColumnAssignment::Holding taken = random_holding(given.to);
      const std::int64_t columns = columns_that_free(taken, lacking, given.to);
      if (taken.table == given.table || columns > taken.num_columns) continue;
      const bool all = columns == taken.num_columns || random_.uniform() < 0.5;
      neighbour.add({taken.table, all ? taken.num_columns : columns, given.to, given.from});
      return;
    }
  }

  [[nodiscard]] bool fits(const Neighbour& neighbour) const {
    const Transfer& first = neighbour.transfers().front();
    std::int64_t from_change = 0;
    std::int64_t to_change = 0;
    for (const Transfer& transfer : neighbour.transfers()) {
      const bool back = transfer.from != first.from;
      (back ? to_change : from_change) +=
          assignment_.memory_change(transfer.table, -transfer.num_columns, transfer.from);
      (back ? from_change : to_change) +=
          assignment_.memory_change(transfer.table, transfer.num_columns, transfer.to);
    }
    return from_change <= assignment_.free_bytes(first.from) &&
           to_change <= assignment_.free_bytes(first.to);
  }

  /// Goes to the neighbour and returns its energy if that is no higher than allowed.
  std::optional<double> accepted(const Neighbour& neighbour, double allowed) {
    const Transfer& first = neighbour.transfers().front();
    assignment_.remember(first.from, first.to);
    for (const Transfer& transfer : neighbour.transfers()) assignment_.apply(transfer);
    // Most neighbours are far too bad, and that is seen without the all-to-alls.
    if (least_energy() <= allowed) {
      ++all_to_alls_priced_;
      const double energy = current_energy();
      if (energy <= allowed) return energy;
    }
    assignment_.roll_back();
    return std::nullopt;
  }

  void keep_if_best(const Neighbour& neighbour) {
    for (const Transfer& transfer : neighbour.transfers()) since_best_.push_back(transfer);
    const double cost = assignment_.cost().cost_ms;
    if (cost >= best_cost_) return;
    best_cost_ = cost;
    since_best_.clear();
  }

  void return_to_best() {
    for (; !since_best_.empty(); since_best_.pop_back()) {
      assignment_.apply(since_best_.back().reversed());
    }
  }

  const Simulator& simulator_;
  const LocalSearchOptions& options_;
  Random random_;
  PieceCatalog catalog_;
  ColumnAssignment assignment_;
  double step_ns_;
  double all_to_alls_ns_;
  std::int64_t all_to_alls_priced_ = 0;
  double best_cost_ = 0.0;
  std::vector<Transfer> since_best_;  ///< what has been done since the best plan
};

/// One round's best chain, and what all of them did.
void run_round(const Simulator& simulator, const LocalSearchOptions& options, std::int64_t round,
               ThreadPool& pool, PlanningResult& result) {
  std::vector<std::optional<Annealing>> chains(std::max(options.num_chains, 1));
  pool.for_each(chains.size(), [&](std::size_t i, int) {
    const auto stream = static_cast<std::uint64_t>(round) * chains.size() + i;
    chains[i].emplace(simulator, result.plan, options, stream);
    chains[i]->run();
  });
  const Annealing* best = nullptr;
  double best_cost = result.predicted.cost_ms;
  for (const std::optional<Annealing>& chain : chains) {
    result.stats.head_evaluations += chain->assignment().head_evaluations();
    result.stats.pieces_encoded += static_cast<std::int64_t>(chain->pieces_encoded());
    if (chain->best_cost() >= best_cost) continue;
    best = &*chain;
    best_cost = chain->best_cost();
  }
  if (best == nullptr) return;
  result.plan = best->assignment().plan();
  result.predicted = simulator.cost(result.plan);
}

}  // namespace

LocalSearchOptions brief_local_search() {
  LocalSearchOptions options;
  options.num_rounds = 8;
  options.num_steps = 15'000;
  options.round_ms = 15.625;
  options.first_temperature = 3e-2;
  return options;
}

PlanningResult improve_plan(const Simulator& simulator, const ShardingPlan& plan,
                            const LocalSearchOptions& options, ThreadPool& pool) {
  PlanningResult result;
  result.plan = plan;
  result.predicted = simulator.cost(plan);
  if (simulator.task().topology.world_size == 1) return result;  // nowhere to take anything
  std::int64_t rounds_without_gain = 0;
  for (std::int64_t round = 0; round < options.num_rounds; ++round) {
    if (options.deadline && Clock::now() >= *options.deadline) break;
    const double before = result.predicted.cost_ms;
    run_round(simulator, options, round, pool, result);
    const bool gained = result.predicted.cost_ms < before * (1.0 - options.least_gain);
    rounds_without_gain = gained ? 0 : rounds_without_gain + 1;
    if (rounds_without_gain >= options.patience) break;
  }
  return result;
}

}  // namespace neuroshard
