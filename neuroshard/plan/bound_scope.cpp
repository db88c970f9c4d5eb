// What a lower bound is of, by the document that it is in.
#include "neuroshard/plan/bound_scope.h"

#include "neuroshard/plan/plan_task.h"

namespace neuroshard {

BoundScope bound_scope(const PlanDocument& document) {
  BoundScope scope;
  scope.cuts = bound_cuts(document);
  scope.num_tables = static_cast<std::int64_t>(document.task.tables.size());
  scope.unpriced = unpriced_tables(document.task, scope.cuts);
  scope.has_other_slices = has_other_slices(document.task, document.plan);
  return scope;
}

}  // namespace neuroshard
