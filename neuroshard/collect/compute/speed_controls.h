// How the machine's speed has changed since costs were measured: some of their samples, measured
// again. A machine shared with others is faster or slower by several percent for minutes, which a
// cost model cannot know; a comparison of predicted and measured costs should not mistake it for
// the model's error.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "neuroshard/core/numbers/random.h"
#include "neuroshard/core/piece.h"
#include "neuroshard/core/table.h"
#include "neuroshard/io/compute_costs_io.h"

namespace neuroshard {

/// A set of pieces that was measured earlier.
struct SpeedControl {
  std::span<const Table> tables;  ///< of the pieces; must outlive the control
  std::vector<Piece> pieces;      ///< slices of rows among them (resolve_slices)
  /// Forward and backward, as it was; of a sample with reference sets, at the usual speed of its
  /// files (usual_speed.h).
  double cost_ms = 0.0;
};

/// The samples of some files that can be measured again.
class SpeedControls {
 public:
  /// Samples with a table that is not among `tables` under its name, or there with another number
  /// of rows, pooling factor or data type, or that took no time, are left out. Throws InputError
  /// for a file that cannot be read. The controls refer to `tables`.
  SpeedControls(const std::vector<std::string>& files, std::span<const Table> tables);
  /// The same, of files that have been read.
  SpeedControls(const std::vector<ComputeCosts>& files, std::span<const Table> tables);

  /// `count` samples of this batch size and optimizer, or all of them if they are fewer.
  [[nodiscard]] std::vector<SpeedControl> draw(std::int64_t batch_size, Optimizer optimizer,
                                               std::size_t count, Random random) const;

 private:
  struct Group {
    std::int64_t batch_size = 0;
    Optimizer optimizer = Optimizer::sgd;
    std::vector<SpeedControl> samples;
  };
  std::vector<Group> groups_;  ///< one per file
};

/// Median of costs now over costs then, of an even number the mean of the two in the middle; 1 if
/// there are none.
[[nodiscard]] double median_drift(std::vector<double> ratios);

}  // namespace neuroshard
