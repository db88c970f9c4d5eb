// Sets of pieces as plans have them: those of the devices of plans that the search makes for random
// tasks. A search finds the sets that its model is too low about, and they are not the sets that
// are drawn at random: a model should be trained on some of them.
#pragma once

#include <cstdint>
#include <limits>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "neuroshard/collect/compute/set_sampling.h"
#include "neuroshard/core/piece.h"
#include "neuroshard/core/task.h"
#include "neuroshard/cost/communication/communication_cost_model.h"
#include "neuroshard/cost/compute/compute_cost_model.h"
#include "neuroshard/search/planner.h"
#include "neuroshard/workload/workload.h"

namespace neuroshard {

/// How plans are made whose costs are of interest, not they themselves: by a number of steps, as
/// they must not depend on the clock, of the brief schedule, as there are many of them. Any gain
/// counts, however small: a model must learn the plans that mislead the search.
[[nodiscard]] PlannerOptions options_of_measured_plans();

/// The pieces of each device of a plan; `table` is the task's. Devices without any have an
/// empty set. Replicated tables are not among them, as each device looks them up for its share of
/// the batch alone (copies_of).
[[nodiscard]] std::vector<std::vector<Piece>> sets_of_devices(const Task& task,
                                                              const ShardingPlan& plan);

/// The replicated tables of a plan as whole pieces, likewise: what each device has a copy of.
[[nodiscard]] std::vector<Piece> copies_of(const Task& task, const ShardingPlan& plan);

struct PlannedSetsOptions {
  /// Tables of the tasks, each of which is of one pool, by turns; names unique among all pools.
  std::vector<Workload> pools;
  bool own_dims = false;          ///< of the pools' tables, or any dimension from 4 to `max_dim`
  std::int64_t max_dim = 128;     ///< a power of two
  int max_tables_of_device = 15;  ///< of a task, divided by its devices
  int max_tables = 15 * kMaxWorldSize;   ///< of a task
  int max_sets_of_plan = kMaxWorldSize;  ///< drawn among its devices'
  /// Sets whose forward passes move more (pass_bytes) are left out.
  double max_pass_bytes = std::numeric_limits<double>::infinity();
  std::int64_t batch_size = 4096;
  Optimizer optimizer = Optimizer::sgd;
  std::uint64_t seed = 0;
  int num_threads = 0;  ///< of planning; the sets do not depend on it
};

/// An endless sequence of such sets. Tasks have 1, 2, 4, 8 or 16 devices; ample memory or such that
/// the tables fill nine tenths of it; a fast bus or a slow network; and every third plan cuts
/// columns alone. Of devices with equal pieces the sequence has one. Every fourth task is of
/// devices that look up `batch_size` samples *each*, over a slow network: of its plan the sequence
/// has the copies that each device keeps, if there are any. Plans are made when their sets are
/// asked for. Not for several threads at once.
class PlannedSets {
 public:
  PlannedSets(PlannedSetsOptions options, std::shared_ptr<const ComputeCostModel> model);

  /// Set `id` >= 0, whose pieces are of the pools' tables, counted through all of them. Throws
  /// InfeasibleError where a hundred tasks in a row have no plan, or none with a set that is not
  /// left out, and InputError where the only pool's tables fit no task.
  [[nodiscard]] std::vector<Piece> set(std::int64_t id);

 private:
  struct DrawnTask;
  struct Planned {
    Task task;
    ShardingPlan plan;
  };

  void plan_next();
  /// Nothing if the task drawn has no plan.
  [[nodiscard]] std::optional<Planned> planned(const DrawnTask& drawn) const;
  void add_devices(const Planned& planned, std::uint64_t number);
  void add_copies(const Planned& planned);
  [[nodiscard]] bool is_small_enough(const std::vector<Piece>& pieces, const Task& task) const;
  /// The pieces with their tables' places among those of all pools.
  [[nodiscard]] std::vector<Piece> of_all_pools(std::vector<Piece> pieces, const Task& task) const;

  PlannedSetsOptions options_;
  std::shared_ptr<const ComputeCostModel> model_;
  std::vector<std::shared_ptr<const CommunicationCostModel>> communication_;  ///< of each kind
  std::map<std::string, int> places_;  ///< of the tables among those of all pools
  std::vector<std::vector<Piece>> sets_;
  std::uint64_t next_task_ = 0;
};

/// Who makes the plans.
struct PlanningModel {
  std::shared_ptr<const ComputeCostModel> compute;
  std::string identity;  ///< tells the model from all others: the SHA-256 of its file, or its name
};

/// By name or file. Throws InputError, which names --planned-by, if it is no computation model.
[[nodiscard]] PlanningModel find_planning_model(const std::string& name);

/// Has such sets measured; the tables of `sampling` must be those of all pools, in their order.
void use_planned_sets(ComputeSamplingOptions& sampling, PlannedSetsOptions options,
                      const PlanningModel& model);

/// Of plans of the tables of `sampling` that are not held out, at most as wide as the widest of its
/// `dims`.
void use_planned_sets(ComputeSamplingOptions& sampling, const PlanningModel& model,
                      int num_threads);

}  // namespace neuroshard
