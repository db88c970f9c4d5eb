// Annealing of plans.
#include "neuroshard/search/improve/annealing.h"

#include <algorithm>
#include <array>
#include <optional>
#include <span>

#include "neuroshard/search/improve/improvement_chain.h"

namespace neuroshard {

namespace {

constexpr std::int64_t kMovesBetweenLooks = 64;

/// Pieces that are tried to make room on a device.
constexpr int kRoomAttempts = 4;

/// Of the steps with a limit on what may move: they begin with columns that go back to where they
/// were, which makes room for others to move.
constexpr double kShareHome = 0.2;

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
  Annealing(const Simulator& simulator, const ShardingPlan& plan, const ChainSettings& settings,
            std::uint64_t stream)
      : ImprovementChain({ChainKind::annealing, settings.options.first_temperature,
                          settings.options.last_temperature, kMovesBetweenLooks},
                         simulator, plan, settings, stream),
        is_limited_(settings.move_limit != nullptr) {}

 private:
  void prepare_step() override { neighbour_ = draw(); }

  bool step() override {
    if (neighbour_.empty() || !fits(neighbour_)) return false;
    const Transfer& first = neighbour_.transfers().front();
    assignment_.remember(first.from, first.to);
    for (const Transfer& transfer : neighbour_.transfers()) {
      change(transfer.table, -transfer.num_columns, transfer.from);
      change(transfer.table, transfer.num_columns, transfer.to);
    }
    return true;
  }

  /// The remembered state includes the costs.
  void step_back() override { assignment_.roll_back(); }

  /// Where columns come from: mostly the slowest device.
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
    if (is_limited_ && random_.uniform() < kShareHome) return draw_way_home();
    Neighbour neighbour;
    const int from = source();
    int to = target();
    if (from == to || assignment_.holdings(from).empty()) return neighbour;
    const Piece given = random_holding(from);
    if (!permits(given, to)) to = random_permitted(given);
    if (from == to) return neighbour;
    const bool exchange = !assignment_.holdings(to).empty() && random_.uniform() < 0.5;
    const std::int64_t columns = random_columns(given, exchange ? 0.9 : 0.7);
    neighbour.add({given.table, columns, from, to});
    const std::int64_t lacking =
        assignment_.memory_change(given.table, columns, to) - assignment_.free_bytes(to);
    if (lacking > 0) {
      add_making_room(neighbour, lacking);
    } else if (exchange) {
      const Piece taken = random_holding(to);
      if (taken.table != given.table && permits(taken, from)) {
        neighbour.add({taken.table, random_columns(taken, 0.9), to, from});
      }
    }
    return neighbour;
  }

  /// Columns that go home, alone or in exchange.
  Neighbour draw_way_home() {
    Neighbour neighbour;
    const std::optional<Transfer> home = random_way_home();
    if (!home) return neighbour;
    neighbour.add(*home);
    const std::int64_t lacking =
        assignment_.memory_change(home->table, home->num_columns, home->to) -
        assignment_.free_bytes(home->to);
    if (lacking > 0) {
      add_making_room(neighbour, lacking);
    } else if (!assignment_.holdings(home->to).empty() && random_.uniform() < 0.5) {
      const Piece taken = random_holding(home->to);
      if (taken.table != home->table && permits(taken, home->from)) {
        neighbour.add({taken.table, random_columns(taken, 0.9), home->to, home->from});
      }
    }
    return neighbour;
  }

  /// Adds a transfer back that frees the missing bytes on the device that columns go to, or marks
  /// the neighbour as one that does not fit.
  void add_making_room(Neighbour& neighbour, std::int64_t lacking) {
    const Transfer given = neighbour.transfers().front();
    const auto holdings = assignment_.holdings(given.to);
    for (int attempt = 0; attempt < kRoomAttempts && !holdings.empty(); ++attempt) {
      const Piece taken = random_holding(given.to);
      const std::int64_t columns = columns_that_free(taken, lacking, given.to);
      if (taken.table == given.table || columns > taken.num_columns) continue;
      if (!permits(taken, given.from)) continue;
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

  bool is_limited_;
  Neighbour neighbour_;  ///< of this step
};

}  // namespace

std::unique_ptr<ImprovementChain> make_annealing(const Simulator& simulator,
                                                 const ShardingPlan& plan,
                                                 const ChainSettings& settings,
                                                 std::uint64_t stream) {
  return std::make_unique<Annealing>(simulator, plan, settings, stream);
}

}  // namespace neuroshard
