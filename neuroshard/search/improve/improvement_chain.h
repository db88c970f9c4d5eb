// What the chains of the improvement have in common: a plan under change, its energy, what is
// accepted, the best plan met, and where a chain ends. A kind of chain says what a neighbour is.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <vector>

#include "neuroshard/core/random.h"
#include "neuroshard/search/improve/column_assignment.h"
#include "neuroshard/search/improve/local_search.h"

namespace neuroshard {

/// What all chains of a run have in common.
struct ChainSettings {
  const LocalSearchOptions& options;
  std::int64_t steps;  ///< length, whichever is reached first: neighbours drawn, and
  double nominal_ms;   ///< nominal time [ms]
  std::uint64_t seed;
  std::optional<std::chrono::steady_clock::time_point> deadline;
};

/// One chain of a round. Its length is counted in nominal work, not by the clock, so that where it
/// ends depends on the plan and the settings alone.
class ImprovementChain {
 public:
  virtual ~ImprovementChain() = default;
  ImprovementChain(const ImprovementChain&) = delete;
  ImprovementChain& operator=(const ImprovementChain&) = delete;

  /// Plays the chain; the assignment is the best plan met then. To be called once.
  void run();

  [[nodiscard]] double best_cost() const { return stats_.best_cost_ms; }
  [[nodiscard]] const ColumnAssignment& assignment() const { return assignment_; }
  [[nodiscard]] ChainStats stats() const;

 protected:
  /// What distinguishes the kinds beyond their neighbours.
  struct Traits {
    ChainKind kind;
    /// Relative to the chain's first cost, falling geometrically over its length.
    double first_temperature;
    double last_temperature;
    std::int64_t steps_between_looks;  ///< at the clock
  };

  /// Keeps references to simulator and settings. Chains of different streams draw differently.
  ImprovementChain(const Traits& traits, const Simulator& simulator, const ShardingPlan& plan,
                   const ChainSettings& settings, std::uint64_t stream);

  /// Decides what it can of the next neighbour before the energy that is allowed is drawn.
  virtual void prepare_step() {}
  /// Goes to the next neighbour by `change`. False, with the plan as it was, if it is none or does
  /// not fit.
  virtual bool step() = 0;
  /// Leaves a neighbour: undoes all of this step's changes.
  virtual void step_back() { undo(changes_); }
  /// The chain is at a new plan now, which is priced: its first, or an accepted neighbour.
  virtual void arrived() {}
  /// Steps of annealing that take as long as what this chain has done.
  [[nodiscard]] virtual double nominal_steps() const { return static_cast<double>(stats_.steps); }

  /// Gives a device so many columns of a table more, or takes them if negative, as a part of this
  /// step.
  void change(int table, std::int64_t num_columns, int device);
  /// What a step of annealing counts, for this number of devices.
  [[nodiscard]] static double step_ns(int devices);

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

  Random random_;
  PieceCatalog catalog_;
  ColumnAssignment assignment_;

 private:
  /// Columns that went to a device, or left it if negative.
  struct Change {
    int table = 0;
    std::int64_t num_columns = 0;
    int device = 0;
  };

  void undo(std::vector<Change>& changes);
  [[nodiscard]] bool is_too_late() const;
  /// Share of the chain's length that is behind it.
  [[nodiscard]] double share_done() const;
  /// By how much the energy may rise in a step, by Metropolis' rule, drawn beforehand; the
  /// temperature is that of `progress`, from 0 to 1, on a plan whose first cost was `scale`.
  [[nodiscard]] double random_rise(double scale, double progress);
  /// The energy of the plan as it is, if it is no higher than allowed.
  std::optional<double> energy_within(double allowed);
  /// What is minimised: the plan's cost and a share of the mean device's. Prices the plan.
  double current_energy();
  /// What the energy is at least: a fraction of the price.
  double least_energy();
  /// Takes note of an accepted step.
  void keep_if_best();

  const Traits traits_;
  const Simulator& simulator_;
  const ChainSettings& settings_;
  ChainStats stats_;                ///< without what catalog and assignment count
  std::vector<Change> changes_;     ///< of this step
  std::vector<Change> since_best_;  ///< of all steps since the best plan
};

}  // namespace neuroshard
