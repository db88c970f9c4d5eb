// What limits a plan, what each table on its slowest device costs, and what would help.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "neuroshard/core/sharding_plan.h"
#include "neuroshard/cost/model_catalog.h"
#include "neuroshard/io/plan_io.h"
#include "neuroshard/plan/bound_scope.h"

namespace neuroshard {

/// What most of the slowest device's time is.
enum class Bottleneck { computation, communication, all_reduce };
[[nodiscard]] std::string to_string(Bottleneck bottleneck);

/// The pieces of one table on one device, and what they cost there.
struct TableOnDevice {
  std::string table{};
  int device = 0;
  std::int64_t pieces = 0;
  std::int64_t num_columns = 0;  ///< of all pieces
  std::int64_t bytes = 0;
  double lookups = 0.0;   ///< a sample
  double alone_ms = 0.0;  ///< computation of a device with these pieces alone
  /// By how much the device's computation, all that it does (its total without waiting for others),
  /// and the plan's cost would fall without them, everything else left where it is.
  double less_compute_ms = 0.0;
  double less_device_ms = 0.0;
  double less_plan_ms = 0.0;
};

/// Another task, planned again from this plan and from nothing.
struct Alternative {
  std::string change{};  ///< "twice the memory on every device"
  bool found = false;
  double cost_ms = 0.0;                 ///< predicted, if found
  std::string reason{};                 ///< why no plan, if not found
  std::vector<std::string> warnings{};  ///< about the prediction, if found
};

struct Explanation {
  double cost_ms = 0.0;
  double lower_bound_ms = 0.0;  ///< 0: not known
  BoundScope bound_scope{};     ///< which plans the bound is of, and what it leaves out
  int num_devices = 0;
  int slowest_device = 0;     ///< as core/slowest_device.h has it
  bool equally_slow = false;  ///< all devices, of which that is the first
  DeviceCost slowest{};
  Bottleneck bottleneck = Bottleneck::computation;
  double mean_compute_ms = 0.0;
  /// The most that a device waits for the last to enter the forward all-to-all.
  double waiting_ms = 0.0;
  std::vector<int> full_devices{};      ///< with less than a twentieth of their memory left
  double replica_compute_ms = 0.0;      ///< of the replicated tables, on every device
  std::vector<TableOnDevice> tables{};  ///< on the slowest device, by falling `less_device_ms`
  /// The same task planned again, which all others are to be compared with; then the changes, by
  /// rising cost, those without a plan last.
  std::vector<Alternative> alternatives{};
  CostModels models{};  ///< by which all is predicted
  /// The plan's, then those of other reasons about the alternatives, which they name.
  std::vector<std::string> warnings{};
  std::vector<std::string> notes{};
};

/// One table of a plan.
struct TableExplanation {
  std::string table{};
  bool is_replicated = false;
  std::int64_t num_embeddings = 0;
  std::int64_t embedding_dim = 0;
  double pooling_factor = 0.0;
  double cost_ms = 0.0;        ///< of the plan
  double less_plan_ms = 0.0;   ///< by which it would fall without the table
  double all_reduce_ms = 0.0;  ///< of a replicated table: its part of the all-reduce
  int num_devices = 0;
  int slowest_device = 0;
  bool equally_slow = false;
  std::vector<TableOnDevice> parts{};  ///< by device
  CostModels models{};
  std::vector<std::string> warnings{};
  std::vector<std::string> notes{};
};

struct ExplainRequest {
  std::vector<std::string> models{};  ///< by name or file; for a kind not named, the plan's own
  /// Of explain_plan alone; 0: one per core. The answer does not depend on it.
  int num_threads = 0;
  /// After which each planning stops with the best that it has [s]; explain_table makes none.
  double seconds_per_planning = 5.0;
  /// Called by one thread at a time when a planning of several is done: how many are, of how many.
  std::function<void(std::size_t done, std::size_t all)> progress{};
};

/// `file` names the plan in errors. Throws InfeasibleError if it is not valid, and as price_plan.
[[nodiscard]] Explanation explain_plan(const PlanDocument& document, const ExplainRequest& request,
                                       const std::string& file);

/// Throws InputError also if the plan has no table of this name.
[[nodiscard]] TableExplanation explain_table(const PlanDocument& document, const std::string& table,
                                             const ExplainRequest& request,
                                             const std::string& file);

}  // namespace neuroshard
