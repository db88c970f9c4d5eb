// A machine whose times are exact: a millisecond per column, in each direction.
#pragma once

#include <memory>
#include <vector>

#include "neuroshard/collect/compute/compute_backend.h"
#include "neuroshard/core/error.h"

namespace neuroshard::testing_backends {

class ExactDevice : public MeasuringDevice {
 public:
  std::unique_ptr<PreparedSet> prepare(const PieceSet& set) override {
    double columns = 0.0;
    for (const Piece& piece : set.pieces) columns += static_cast<double>(piece.num_columns);
    measured.push_back(columns);
    if (columns == failing || set.pieces.size() > most_pieces) throw OutOfMemory("no memory");
    return std::make_unique<Prepared>(columns);
  }
  [[nodiscard]] int max_in_flight() const override { return 1000; }
  [[nodiscard]] std::int64_t bytes_between_passes() const override { return 0; }
  std::int64_t disturb_caches(std::int64_t bytes) override { return bytes; }
  [[nodiscard]] RepetitionOptions repetitions() const override {
    return {.warm_ups = 0, .min_repetitions = 1, .max_repetitions = 1};
  }

  std::vector<double> measured;         ///< columns of the sets, in order
  double failing = -1.0;                ///< columns of a set that does not fit into memory
  std::size_t most_pieces = 1'000'000;  ///< of a set that fits into it

 private:
  class Prepared final : public PreparedSet {
   public:
    explicit Prepared(double ms) : ms_(ms) {}
    std::future<double> forward() override { return known_time(ms_); }
    std::future<double> backward() override { return known_time(ms_); }
    [[nodiscard]] std::int64_t bytes_touched() const override { return 0; }

   private:
    double ms_;
  };
};

}  // namespace neuroshard::testing_backends
