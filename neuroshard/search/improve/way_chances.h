// How often each way of cutting a table's rows is tried: the cheaper ones more often.
#pragma once

#include <cstdint>
#include <vector>

#include "neuroshard/core/numbers/random.h"
#include "neuroshard/core/stop_clock.h"
#include "neuroshard/cost/simulator.h"
#include "neuroshard/search/improve/slicings.h"

namespace neuroshard {

/// A way's chance falls with what its slices add to the mean device of a plan, on any devices;
/// some chance is left to every way, as none of that says whether its slices fit or even out the
/// load.
class WayChances {
 public:
  /// Of the ways of `slicings` near a plan of the simulator's task.
  /// Throws TimeIsOver.
  WayChances(const Simulator& simulator, const ShardingPlan& plan, const Slicings& slicings,
             const StopClock& clock);

  /// A way of the group of `place`, which must belong to one, other than its own.
  [[nodiscard]] int other_way(Random& random, const Slicings::Place& place) const;

  /// [way] of a group: in sum 1.
  [[nodiscard]] const std::vector<double>& of(int group) const { return chances_[group]; }

  /// Pieces that were encoded for this.
  [[nodiscard]] std::int64_t pieces_encoded() const { return pieces_encoded_; }

 private:
  std::vector<std::vector<double>> chances_;  ///< [group][way]
  std::int64_t pieces_encoded_ = 0;
};

}  // namespace neuroshard
