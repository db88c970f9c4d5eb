// What a further state of a beam may cost to be kept.
#pragma once

#include <algorithm>
#include <cstddef>
#include <limits>
#include <vector>

namespace neuroshard {

/// The lowest costs of states so far, as many as the beam keeps.
class KeptCosts {
 public:
  explicit KeptCosts(std::size_t width) : width_(width) {}

  /// A state that costs more will not be kept, and one that costs as much only if it comes before
  /// one that is. Infinite while the beam has room, unless there is a limit.
  [[nodiscard]] double highest() const {
    return costs_.size() < width_ ? limit_ : std::min(limit_, costs_.back());
  }

  /// The same without a limit: infinite while the beam has room.
  [[nodiscard]] double of_full_beam() const {
    return costs_.size() < width_ ? std::numeric_limits<double>::infinity() : costs_.back();
  }

  /// States that cost as much are not wanted, even if the beam has room.
  void limit(double cost_ms) { limit_ = cost_ms; }

  /// A feasible state's cost [ms].
  void add(double cost_ms) {
    if (cost_ms >= highest()) return;
    costs_.insert(std::upper_bound(costs_.begin(), costs_.end(), cost_ms), cost_ms);
    if (costs_.size() > width_) costs_.pop_back();
  }

 private:
  std::size_t width_;
  double limit_ = std::numeric_limits<double>::infinity();
  std::vector<double> costs_;  ///< rising
};

}  // namespace neuroshard
