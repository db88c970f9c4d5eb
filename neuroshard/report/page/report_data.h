// What a report shows of plans of one task and of what was measured of them, computed once, apart
// from how it is drawn.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "neuroshard/evaluate/evaluation_file.h"
#include "neuroshard/io/plan_io.h"

namespace neuroshard {

/// A plan with the name that people know it by, such as its file's.
struct NamedPlan {
  std::string name{};
  PlanDocument document{};
};

struct NamedEvaluation {
  std::string name{};
  EvaluationRecord record{};
};

/// A rectangle of a table on its device, with what it takes there.
struct ReportPiece {
  Shard shard{};
  std::int64_t memory_bytes = 0;
  /// Bytes of the rows that one batch looks up in it: lookups x columns x bytes of a value.
  double looked_up_bytes = 0.0;
};

/// A device's part of an iteration and what lies on it.
struct ReportDevice {
  std::optional<DeviceCost> cost{};  ///< predicted; nothing if the plan has no prediction
  /// Of `cost`'s forward communication: until the last device enters the forward all-to-all.
  double waiting_ms = 0.0;
  std::int64_t memory_bytes = 0;
  std::int64_t memory_limit_bytes = 0;
  std::int64_t num_pieces = 0;
  double looked_up_bytes = 0.0;  ///< replicated tables included
};

/// A point of the search: the cheapest plan so far after this much work.
struct SearchPoint {
  std::int64_t plans_priced = 0;
  double best_cost_ms = 0.0;
};

/// How the search got to the plan, as far as the plan's file says so.
struct SearchHistory {
  std::vector<SearchPoint> levels{};  ///< after each level of the beam search with a feasible state
  /// After each round of the improvement, the first before any of them: costs as the pessimist sees
  /// them, which are above the levels'.
  std::vector<SearchPoint> rounds{};
};

struct ReportPlan {
  NamedPlan plan{};
  std::vector<ReportPiece> pieces{};
  std::vector<ReportDevice> devices{};
  SearchHistory history{};
  /// In words: which device is slowest and why, and how good that is. At least one sentence, the
  /// first of which stands for itself.
  std::vector<std::string> words{};
  std::vector<NamedEvaluation> evaluations{};
};

struct ReportData {
  Task task{};  ///< of every plan
  std::vector<ReportPlan> plans{};
};

/// Throws InfeasibleError, naming the plan, if it is not valid for its task; InputError, naming the
/// plan or the evaluation, if there is no plan, a plan is of another task than the first, or an
/// evaluation is of none of the plans.
[[nodiscard]] ReportData report_data(const std::vector<NamedPlan>& plans,
                                     const std::vector<NamedEvaluation>& evaluations = {});

/// Of each device, the part of its forward communication that is waiting: from its own entry into
/// the forward all-to-all to that of the last device [ms].
[[nodiscard]] std::vector<double> waiting_ms(std::span<const DeviceCost> devices);

}  // namespace neuroshard
