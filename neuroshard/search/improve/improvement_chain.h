// What all kinds of improvement chains share: the plan that changes, its energy, the acceptance
// rule, the best plan so far, and the end of the chain. Each kind defines its own neighbours.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <vector>

#include "neuroshard/core/numbers/random.h"
#include "neuroshard/search/improve/column_assignment.h"
#include "neuroshard/search/improve/local_search.h"
#include "neuroshard/search/improve/slicings.h"
#include "neuroshard/search/improve/way_chances.h"
#include "neuroshard/search/replan/move_limit.h"

namespace neuroshard {

/// Settings that all chains of a run share.
struct ChainSettings {
  const LocalSearchOptions& options;
  std::int64_t steps;  ///< length, whichever is reached first: neighbours drawn, or
  double nominal_ms;   ///< nominal time [ms]
  std::uint64_t seed;
  std::optional<std::chrono::steady_clock::time_point> deadline;
  const Slicings& slicings;
  const WayChances* chances = nullptr;    ///< of the slicings' ways; nullptr: there are none
  const MoveLimit* move_limit = nullptr;  ///< on what its plans may move; nullptr: none
};

/// One chain of a round. Its length is counted in nominal work, not by the clock, so that where it
/// ends depends on the plan and the settings alone.
class ImprovementChain {
 public:
  virtual ~ImprovementChain() = default;
  ImprovementChain(const ImprovementChain&) = delete;
  ImprovementChain& operator=(const ImprovementChain&) = delete;

  /// Runs the chain, after which the assignment is the best plan met. To be called once.
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

  /// Makes those decisions on the next neighbour that come before the allowed energy is drawn.
  virtual void prepare_step() {}
  /// Goes to the next neighbour by `change`. Returns false and leaves the plan unchanged if there
  /// is no neighbour or it does not fit.
  virtual bool step() = 0;
  /// Leaves a neighbour: undoes all of this step's changes.
  virtual void step_back() { undo(changes_); }
  /// Called when the chain is at a new plan with known cost: its first, or an accepted neighbour.
  virtual void arrived() {}
  /// Steps of annealing that would take as long as this chain's work so far.
  [[nodiscard]] virtual double nominal_steps() const { return static_cast<double>(stats_.steps); }

  /// Gives a device `num_columns` more columns of a table, or takes them away if negative, as a
  /// part of this step.
  void change(int table, std::int64_t num_columns, int device);
  /// Nominal time of a step of annealing on this number of devices [ns].
  [[nodiscard]] static double step_ns(int devices);

  int random_device();
  /// The device of the priced plan that starts last, or first.
  [[nodiscard]] int slowest_device();
  [[nodiscard]] int quickest_device();
  [[nodiscard]] Piece random_holding(int device);
  /// Whether pieces of its table may lie on the device; and some device on which they may, where
  /// not all are permitted.
  [[nodiscard]] bool permits(const Piece& holding, int device) const {
    return catalog_.pins().permits(holding.table, device);
  }
  [[nodiscard]] int random_permitted(const Piece& holding);

  [[nodiscard]] const Table& table_of(const Piece& holding) const {
    return simulator_.task().tables[holding.table];
  }
  [[nodiscard]] bool is_cuttable(const Piece& holding) const {
    return can_cut(table_of(holding), holding.num_columns);
  }
  /// Some columns of a piece that can be cut.
  [[nodiscard]] std::int64_t random_part(const Piece& holding);

  /// Some columns that lie where the older plan did not have them, and where it had them; nothing
  /// if none was met, or there is no limit on what may move.
  [[nodiscard]] std::optional<Transfer> random_way_home();

  Random random_;
  PieceCatalog catalog_;
  ColumnAssignment assignment_;

 private:
  using Change = ColumnChange;

  void undo(std::vector<Change>& changes);
  /// Whether the changes of this step leave what the plan moves within the limit or lower it.
  [[nodiscard]] bool may_move();
  /// What the bytes that the plan moves add to its energy, of one whose first cost was `scale`.
  [[nodiscard]] double moving_energy(double scale, std::int64_t moved_bytes) const;
  [[nodiscard]] bool is_too_late() const;
  /// Share of the chain's length that is done.
  [[nodiscard]] double share_done() const;
  /// By how much the energy may rise in a step, by Metropolis' rule, drawn beforehand; the
  /// temperature is that of `progress`, from 0 to 1, on a plan whose first cost was `scale`.
  [[nodiscard]] double random_rise(double scale, double progress);
  /// The energy of the plan as it is, if it is no higher than allowed.
  std::optional<double> energy_within(double allowed);
  /// The objective: the plan's cost and a share of the mean device's. Prices the plan.
  double current_energy();
  /// A lower bound on the energy, in a fraction of the time.
  double least_energy();
  /// Records an accepted step.
  void keep_if_best();

  const Traits traits_;
  const Simulator& simulator_;
  const ChainSettings& settings_;
  std::optional<MoveLedger> ledger_;  ///< if there is a limit
  std::int64_t moved_bytes_ = 0;      ///< by the neighbour of this step
  ChainStats stats_;                  ///< without what catalog and assignment count
  std::vector<Change> changes_;       ///< of this step
  std::vector<Change> since_best_;    ///< of all steps since the best plan
};

}  // namespace neuroshard
