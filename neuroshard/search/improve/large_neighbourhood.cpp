// Large-neighbourhood search over plans.
#include "neuroshard/search/improve/large_neighbourhood.h"

#include <algorithm>
#include <limits>
#include <numeric>
#include <vector>

namespace neuroshard {

namespace {

/// Devices that are ruined besides the slowest, and pieces taken from each, at the most.
constexpr std::int64_t kMostOthers = 2;
constexpr std::int64_t kMostPieces = 4;
/// Devices that a piece is tried on, at the most.
constexpr int kMostTargets = 16;
constexpr int kDevicesOfLongestTrial = 8;
constexpr std::int64_t kRebuildsBetweenLooks = 8;
constexpr double kShareCut = 0.25;      ///< of the pieces taken
constexpr double kShareInOrder = 0.75;  ///< of the recreations: the costliest piece first
constexpr double kShareSlowest = 0.8;   ///< of the ruins: begin at the slowest device
/// Of the ruins that cut a table's rows in another way: at first and after one that was accepted;
/// the factor of each that was not; and at the least.
constexpr double kShareResliced = 0.5;
constexpr double kFutileReslicing = 0.995;
constexpr double kLeastShareResliced = 0.3;
/// Temperatures relative to the chain's first cost, falling geometrically from where annealing
/// ends: recreated plans are seldom much worse.
constexpr double kFirstTemperature = 1e-3;
constexpr double kLastTemperature = 1e-5;

/// One chain.
class LargeNeighbourhood final : public ImprovementChain {
 public:
  LargeNeighbourhood(const Simulator& simulator, const ShardingPlan& plan,
                     const ChainSettings& settings, std::uint64_t stream)
      : ImprovementChain({ChainKind::large_neighbourhood, kFirstTemperature, kLastTemperature,
                          kRebuildsBetweenLooks},
                         simulator, plan, settings, stream),
        slicings_(settings.slicings),
        chances_(settings.chances) {}

 private:
  bool step() override {
    ruin();
    if (recreate()) return true;
    step_back();
    return false;
  }

  void arrived() override {
    slowest_ = slowest_device();
    if (resliced_) share_resliced_ = kShareResliced;
    resliced_ = false;
  }

  /// Trying a piece on a device takes one head evaluation and, at times, two updates of a state: a
  /// third of a step of annealing, which takes two and four. On many devices, steps take longer and
  /// trials do not.
  [[nodiscard]] double nominal_steps() const override {
    const int devices = assignment_.num_devices();
    const double trial_ns = step_ns(std::min(devices, kDevicesOfLongestTrial)) / 3.0;
    return ImprovementChain::nominal_steps() +
           static_cast<double>(trials_) * trial_ns / step_ns(devices);
  }

  void ruin_device(int device) {
    const auto most = std::min<std::int64_t>(
        kMostPieces, static_cast<std::int64_t>(assignment_.holdings(device).size()));
    if (most == 0) return;
    for (std::int64_t left = random_.integer(1, most); left > 0; --left) {
      const Piece holding = random_holding(device);
      change(holding.table, -holding.num_columns, device);
      if (is_cuttable(holding) && random_.uniform() < kShareCut) {
        const std::int64_t part = random_part(holding);
        taken_.push_back({holding.table, part});
        taken_.push_back({holding.table, holding.num_columns - part});
      } else {
        taken_.push_back(holding);
      }
    }
  }

  /// Takes all columns of a table of which the device holds a piece, to place them in slices of
  /// another way of cutting its rows.
  void reslice(int device) {
    if (assignment_.holdings(device).empty()) return;
    const Slicings::Place place = slicings_.place_of(random_holding(device).table);
    if (place.group < 0) return;
    const std::vector<Slicing>& ways = slicings_.ways(place.group);
    for (const int table : ways[place.way]) {
      for (int holder = 0; holder < assignment_.num_devices(); ++holder) {
        const std::int64_t columns = assignment_.columns_of(table, holder);
        if (columns > 0) change(table, -columns, holder);
      }
    }
    for (const int table : ways[chances_->other_way(random_, place)]) {
      taken_.push_back({table, table_of({table, 0}).embedding_dim});
    }
  }

  void ruin() {
    taken_.clear();
    ruined_ = {random_.uniform() < kShareSlowest ? slowest_ : random_device()};
    if (resliced_) {
      share_resliced_ = std::max(kFutileReslicing * share_resliced_, kLeastShareResliced);
    }
    resliced_ = !slicings_.empty() && random_.uniform() < share_resliced_;
    if (resliced_) reslice(ruined_.front());
    for (std::int64_t others = random_.integer(1, kMostOthers); others > 0; --others) {
      const int device = random_device();
      if (std::find(ruined_.begin(), ruined_.end(), device) == ruined_.end()) {
        ruined_.push_back(device);
      }
    }
    for (const int device : ruined_) ruin_device(device);
  }

  /// All devices, or as many as are tried: the ruined ones and some by chance.
  void draw_targets() {
    if (assignment_.num_devices() <= kMostTargets) {
      targets_.resize(static_cast<std::size_t>(assignment_.num_devices()));
      std::iota(targets_.begin(), targets_.end(), 0);
      return;
    }
    targets_ = ruined_;
    while (targets_.size() < static_cast<std::size_t>(kMostTargets)) {
      const int device = random_device();
      if (std::find(targets_.begin(), targets_.end(), device) == targets_.end()) {
        targets_.push_back(device);
      }
    }
  }

  /// Gives all pieces a device; false if one has no room anywhere.
  bool recreate() {
    if (random_.uniform() < kShareInOrder) {
      std::stable_sort(taken_.begin(), taken_.end(), [&](const auto& a, const auto& b) {
        return single_cost(a) > single_cost(b);
      });
    } else {
      random_.shuffle(taken_);
    }
    draw_targets();
    for (const Piece& piece : taken_) {
      int cheapest = -1;
      double least = std::numeric_limits<double>::infinity();
      for (const int device : targets_) {
        if (!permits(piece, device)) continue;
        if (assignment_.memory_change(piece.table, piece.num_columns, device) >
            assignment_.free_bytes(device)) {
          continue;
        }
        ++trials_;
        const double floor_ms = assignment_.floor_with(piece.table, piece.num_columns, device);
        if (floor_ms < least) {
          least = floor_ms;
          cheapest = device;
        }
      }
      if (cheapest < 0) return false;
      change(piece.table, piece.num_columns, cheapest);
    }
    return true;
  }

  double single_cost(const Piece& piece) {
    return catalog_.single_cost(catalog_.add(piece.table, piece.num_columns));
  }

  const Slicings& slicings_;
  const WayChances* chances_;
  double share_resliced_ = kShareResliced;
  bool resliced_ = false;  ///< by the last step, which has not been accepted
  int slowest_ = 0;        ///< device of the plan as it is
  std::vector<Piece> taken_;
  std::vector<int> ruined_;
  std::vector<int> targets_;
  std::int64_t trials_ = 0;
};

}  // namespace

std::unique_ptr<ImprovementChain> make_large_neighbourhood(const Simulator& simulator,
                                                           const ShardingPlan& plan,
                                                           const ChainSettings& settings,
                                                           std::uint64_t stream) {
  return std::make_unique<LargeNeighbourhood>(simulator, plan, settings, stream);
}

}  // namespace neuroshard
