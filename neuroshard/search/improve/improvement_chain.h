// What the chains of the improvement have in common: a plan under change, and its energy.
#pragma once

#include <cstddef>
#include <cstdint>

#include "neuroshard/core/random.h"
#include "neuroshard/search/improve/column_assignment.h"
#include "neuroshard/search/improve/local_search.h"

namespace neuroshard {

/// One chain of a round. Its length is counted in nominal work, not by the clock, so that where it
/// ends depends on the plan and the options alone.
class ImprovementChain {
 public:
  virtual ~ImprovementChain() = default;
  ImprovementChain(const ImprovementChain&) = delete;
  ImprovementChain& operator=(const ImprovementChain&) = delete;

  /// Plays the chain; the assignment is the best plan met then.
  virtual void run() = 0;

  [[nodiscard]] double best_cost() const { return best_cost_; }
  [[nodiscard]] const ColumnAssignment& assignment() const { return assignment_; }
  [[nodiscard]] ChainStats stats() const;

 protected:
  /// Keeps references to simulator and options. Chains of different streams draw differently.
  ImprovementChain(ChainKind kind, const Simulator& simulator, const ShardingPlan& plan,
                   const LocalSearchOptions& options, std::uint64_t stream);

  /// What a step of annealing and the pricing of a plan count, for so many devices.
  [[nodiscard]] static double step_ns(int devices);
  [[nodiscard]] static double all_to_alls_ns(int devices);

  /// By how much the energy may rise in a step, by Metropolis' rule, drawn beforehand: the
  /// temperature falls geometrically, from `first` to `last` of `scale`, as `progress` goes to 1.
  [[nodiscard]] double random_rise(double scale, double first, double last, double progress);

  /// What is minimised: the plan's cost and a share of the mean device's. Prices the plan.
  double current_energy();
  /// What the energy is at least: a fraction of the price.
  double least_energy();

  int random_device();
  /// The device of the plan that is priced whose start is the latest, or the earliest.
  [[nodiscard]] int slowest_device();
  [[nodiscard]] int quickest_device();
  [[nodiscard]] Piece random_holding(int device);

  [[nodiscard]] const Table& table_of(const Piece& holding) const {
    return simulator_.task().tables[holding.table];
  }
  [[nodiscard]] bool is_cuttable(const Piece& holding) const {
    return can_cut(table_of(holding), holding.num_columns);
  }
  /// Some columns of a piece that can be cut.
  [[nodiscard]] std::int64_t random_part(const Piece& holding);

  const Simulator& simulator_;
  const LocalSearchOptions& options_;
  Random random_;
  PieceCatalog catalog_;
  ColumnAssignment assignment_;
  double best_cost_ = 0.0;
  std::int64_t steps_ = 0;
  std::int64_t steps_accepted_ = 0;
  std::int64_t all_to_alls_priced_ = 0;

 private:
  ChainKind kind_;
};

}  // namespace neuroshard
