// Annealing of plans.
#include "neuroshard/search/improve/annealing.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <optional>
#include <span>
#include <vector>

#include "neuroshard/search/improve/improvement_chain.h"

namespace neuroshard {

namespace {

using Clock = std::chrono::steady_clock;

/// Steps between two looks at the clock.
constexpr std::int64_t kStepsBetweenLooks = 64;

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
class Annealing final : public ImprovementChain {
 public:
  Annealing(const Simulator& simulator, const ShardingPlan& plan, const LocalSearchOptions& options,
            std::uint64_t stream)
      : ImprovementChain(ChainKind::annealing, simulator, plan, options, stream) {}

  void run() override {
    best_cost_ = assignment_.cost().cost_ms;
    const double scale = best_cost_;
    double energy = current_energy();
    for (double progress = share_done(0); progress < 1.0; progress = share_done(++steps_)) {
      if (steps_ % kStepsBetweenLooks == 0 && options_.deadline &&
          Clock::now() >= *options_.deadline) {
        break;
      }
      const Neighbour neighbour = draw();
      const double allowed = energy + random_rise(scale, options_.first_temperature,
                                                  options_.last_temperature, progress);
      if (neighbour.empty() || !fits(neighbour)) continue;
      if (const std::optional<double> next = accepted(neighbour, allowed)) {
        energy = *next;
        ++steps_accepted_;
        keep_if_best(neighbour);
      }
    }
    return_to_best();
  }

 private:
  /// Share of the chain's length that is behind it.
  [[nodiscard]] double share_done(std::int64_t step) const {
    const int devices = assignment_.num_devices();
    const auto steps = static_cast<double>(step);
    const double nominal_ns = steps * step_ns(devices) +
                              static_cast<double>(all_to_alls_priced_) * all_to_alls_ns(devices);
    return std::max(steps / static_cast<double>(options_.num_steps),
                    nominal_ns * 1e-6 / options_.round_ms);
  }

  /// Where columns come from: mostly the device that holds the plan up.
  int source() { return random_.uniform() < 0.6 ? slowest_device() : random_device(); }
  /// Where they go: mostly the one with the least to do.
  int target() { return random_.uniform() < 0.5 ? quickest_device() : random_device(); }

  /// All columns of a piece, or some.
  std::int64_t random_columns(const Piece& holding, double whole) {
    if (!is_cuttable(holding) || random_.uniform() < whole) return holding.num_columns;
    return random_part(holding);
  }

  /// The fewest columns of a piece that have to leave the device for `bytes` to be freed; more than
  /// it has if all of them are too few.
  [[nodiscard]] std::int64_t columns_that_free(const Piece& holding, std::int64_t bytes,
                                               int device) const {
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
    const Piece given = random_holding(from);
    const bool exchange = !assignment_.holdings(to).empty() && random_.uniform() < 0.5;
    const std::int64_t columns = random_columns(given, exchange ? 0.9 : 0.7);
    neighbour.add({given.table, columns, from, to});
    const std::int64_t lacking =
        assignment_.memory_change(given.table, columns, to) - assignment_.free_bytes(to);
    if (lacking > 0) {
      add_making_room(neighbour, lacking);
    } else if (exchange) {
      const Piece taken = random_holding(to);
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
      const Piece taken = random_holding(given.to);
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

  std::vector<Transfer> since_best_;  ///< what has been done since the best plan
};

}  // namespace

std::unique_ptr<ImprovementChain> make_annealing(const Simulator& simulator,
                                                 const ShardingPlan& plan,
                                                 const LocalSearchOptions& options,
                                                 std::uint64_t stream) {
  return std::make_unique<Annealing>(simulator, plan, options, stream);
}

}  // namespace neuroshard
