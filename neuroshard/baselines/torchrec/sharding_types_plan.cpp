// The loop over proposers and proposals.
#include "neuroshard/baselines/torchrec/sharding_types_plan.h"

#include <fmt/format.h>

#include <string>
#include <utility>

#include "neuroshard/baselines/placement.h"
#include "neuroshard/baselines/torchrec/enumeration.h"
#include "neuroshard/baselines/torchrec/fitted_constants.h"
#include "neuroshard/baselines/torchrec/greedy_partition.h"
#include "neuroshard/baselines/torchrec/proposals.h"
#include "neuroshard/core/error.h"
#include "neuroshard/core/table_pins.h"
#include "neuroshard/core/units.h"

namespace neuroshard::torchrec {

namespace {

/// "the whole table", "32 columns of table", "100 rows of table", "100 rows of 32 columns of
/// table".
std::string described(const Table& table, const ShardRange& piece) {
  std::string text;
  if (piece.num_rows < table.num_embeddings) text += fmt::format("{} rows of ", piece.num_rows);
  if (piece.num_columns < table.embedding_dim) {
    text += fmt::format("{} columns of ", piece.num_columns);
  }
  return (text.empty() ? "the whole " : text) + "table";
}

InfeasibleError no_plan(const Task& task, const NoRoom& refusal, std::int64_t num_proposals) {
  const Table& table = task.tables[refusal.table];
  const TablePins pins(task);
  const char* others = pins.group_of(refusal.table) ? " and all that stay with it" : "";
  return InfeasibleError(fmt::format(
      "torchrec-like ({} proposals): {} room for {} \"{}\"{} of {}; the most room left{} is {}",
      num_proposals, refusal.where, described(table, refusal.piece), table.name, others,
      format_bytes(refusal.bytes), only_devices_text(pins, refusal.table),
      format_bytes(refusal.most_room)));
}

}  // namespace

ShardingTypesPlan plan_sharding_types(const Simulator& simulator,
                                      const ShardingTypesOptions& options, const StopClock& clock) {
  const Task& task = simulator.task();
  const SearchSpace space =
      enumerate(task, options.min_partition,
                options.constants ? *options.constants : fitted_constants(simulator, clock));
  GreedyPartitioner partitioner(task);
  std::optional<double> best_rating_ms;
  Proposal best;
  ShardingTypesPlan result;
  for (const std::unique_ptr<Proposer>& proposer : make_proposers(space)) {
    const std::int64_t before = partitioner.work();
    while (!result.stopped_by_clock && partitioner.work() - before <= options.max_work) {
      const Proposal* proposal = proposer->next();
      if (proposal == nullptr) break;
      if (clock.is_over()) {
        result.stopped_by_clock = true;
        break;
      }
      ++result.num_proposals;
      const std::optional<double> rating_ms = partitioner.place(*proposal);
      if (!rating_ms || (best_rating_ms && *rating_ms >= *best_rating_ms)) continue;
      best_rating_ms = rating_ms;
      best = *proposal;
    }
  }
  if (!best_rating_ms && result.stopped_by_clock) throw TimeIsOver();
  if (!best_rating_ms) throw no_plan(task, partitioner.no_room(), result.num_proposals);
  (void)partitioner.place(best);
  result.plan = partitioner.plan(best);
  for (const ShardingOption* option : best) result.types.push_back(option->type);
  result.rating_ms = *best_rating_ms;
  return result;
}

}  // namespace neuroshard::torchrec
