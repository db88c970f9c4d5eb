// A machine whose times are exact: a millisecond per column, in each direction.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include "neuroshard/collect/compute/compute_backend.h"

namespace neuroshard::testing_backends {

class ExactBackend final : public ComputeBackend {
 public:
  void measure(const std::function<std::optional<PieceSet>()>& next, int, std::int64_t, Optimizer,
               const std::function<void(const PieceSetResult&)>& on_done) override {
    while (const std::optional<PieceSet> set = next()) {
      double columns = 0.0;
      for (const TablePiece& piece : set->pieces) columns += static_cast<double>(piece.num_columns);
      measured.push_back(columns);
      PieceSetResult result{set->id, ComputeMeasurement{columns, columns, 7, 0.0}, ""};
      if (columns == failing) result = {set->id, std::nullopt, "no memory"};
      on_done(result);
    }
  }
  std::unique_ptr<PreparedSet> prepare_set(PieceSet, std::int64_t, Optimizer) override {
    return nullptr;
  }

  std::vector<double> measured;  ///< columns of the sets, in order
  double failing = -1.0;         ///< columns of a set that there is no memory for
};

}  // namespace neuroshard::testing_backends
