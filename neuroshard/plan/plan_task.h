// Where a plan is made: from a task and a request to a document that records everything that made
// it. The command line, the Python package and C++ programs all call this.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "neuroshard/core/task.h"
#include "neuroshard/cost/model_catalog.h"
#include "neuroshard/cost/simulator.h"
#include "neuroshard/io/plan_io.h"
#include "neuroshard/search/planner.h"

namespace neuroshard {

struct PlanRequest {
  /// Cost models by name or file, at most one of each kind; for a kind that is not named the
  /// default is taken, with a warning (model_catalog.h).
  std::vector<std::string> models{};
  std::string algorithm = "neuroshard";  ///< name of a planner (planner_catalog.h)
  PlannerOptions options{};
  bool lower_bound = true;  ///< compute it too; some ten seconds for 100,000 tables
  bool baselines = false;   ///< also plan by every baseline
};

/// One algorithm's outcome on a task.
struct AlgorithmOutcome {
  std::string algorithm{};
  bool found = false;
  double cost_ms = 0.0;  ///< predicted, if found
  double wall_ms = 0.0;  ///< time it took
  std::string reason{};  ///< why no plan, if not found
};

/// A plan with its price, and what a report of it needs.
struct PricedPlan {
  PlanDocument document{};      ///< `predicted` is given
  CostModels models{};          ///< used for the prediction
  double lower_bound_ms = 0.0;  ///< of every plan of the task (lower_bound.h); 0: not known
  /// What the plan is expected to cost when it runs, its slowest device being slower than predicted
  /// (expected_cost.h) [ms]; none: that is not known.
  std::optional<double> expected_ms{};
  /// Per device: the range of the predictions of the computation model's networks; without spread
  /// for a single network.
  std::vector<MemberRange> member_ranges{};
  std::vector<std::string> warnings{};  ///< a line each: what makes the prediction say less
  std::vector<std::string> notes{};     ///< a line each: what was chosen for the user
};

struct PlannedTask : PricedPlan {
  SearchStats stats{};
  std::vector<AlgorithmOutcome> baselines{};  ///< if they were asked for
};

/// Task -> models -> simulator -> search -> bound -> warnings -> document. Where the clock may stop
/// the search (PlannerOptions::stop_by_clock), all of this ends a tenth or 100 ms after the time
/// limit at the latest, and the bound is unknown if there was no time for it. Throws InputError for
/// an invalid task, an unknown algorithm or model, or options out of range; InfeasibleError, which
/// says what memory or devices would suffice, if the algorithm finds no plan, or
/// "no plan found within 10 ms".
[[nodiscard]] PlannedTask plan_task(const Task& task, const PlanRequest& request = {});

/// The same with models that are loaded already, and a planner of any kind; `request.models` and
/// `request.algorithm` are ignored.
[[nodiscard]] PlannedTask plan_task(const Task& task, const CostModels& models,
                                    const Planner& planner, const PlanRequest& request);

/// Makes a plan again: its task, algorithm, options and models. `names` may give the models'
/// present names or paths; `file` names the document in errors; `observer` is told how far it is
/// (PlannerOptions::observer). Throws InputError if a model is not the one that the plan was made
/// with, or the document does not record how it was made. Warns if the result is another plan,
/// which happens if a clock stopped the search or with another version.
[[nodiscard]] PlannedTask plan_like(const PlanDocument& document,
                                    const std::vector<std::string>& names, const std::string& file,
                                    const PlanningObserver* observer = nullptr);

struct PriceRequest {
  std::vector<std::string> models{};  ///< by name or file; for a kind not named, the plan's own
  /// Compute it too, some ten seconds for 100,000 tables: of every plan with the cuts that this
  /// one's search had, and those that it has.
  bool lower_bound = true;
};

/// Prices a plan by its own models, or those named in their place: costs, lower bound, warnings and
/// the document's `model` are all of these models. The record of the search stays in `search`, with
/// its models in `search.model` if they differ. `file` names the document in errors. Throws
/// InfeasibleError for a plan that is not valid, naming its first violation.
[[nodiscard]] PricedPlan price_plan(const PlanDocument& document, const PriceRequest& request,
                                    const std::string& file);

/// The cuts of the plans that the lower bound of a document is of: those that its search had, as
/// far as `search` says so, and the plan's own.
[[nodiscard]] Cuts bound_cuts(const PlanDocument& document);

/// Says how long the moves take by the model's links; nothing where it has none.
void price_moves(const CommunicationCostModel& communication, const Topology& topology,
                 PlanMoves& moves);

/// Throws InfeasibleError "file: not valid: ..." unless the plan is valid for its task.
void require_valid(const PlanDocument& document, const std::string& file);

}  // namespace neuroshard
