// The loop over proposers and proposals.
#include "neuroshard/baselines/torchrec/sharding_types_plan.h"

#include <fmt/format.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

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

std::vector<ShardingType> types_of(const Proposal& proposal) {
  std::vector<ShardingType> types;
  for (const ShardingOption* option : proposal) types.push_back(option->type);
  return types;
}

}  // namespace

ShardingTypesPlan plan_sharding_types(const Simulator& simulator,
                                      const ShardingTypesOptions& options, const StopClock& clock) {
  const Task& task = simulator.task();
  const SearchSpace space =
      enumerate(task, options.min_partition,
                options.constants ? *options.constants : fitted_constants(simulator, clock));
  GreedyPartitioner partitioner(task, clock);
  std::optional<double> best_rating_ms;
  ShardingTypesPlan result;
  const auto try_proposals = [&](Proposer& proposer) {
    const std::int64_t before = partitioner.work();
    while (partitioner.work() - before <= options.max_work) {
      const Proposal* proposal = proposer.next();
      if (proposal == nullptr) return;
      clock.check();
      const std::optional<double> rating_ms = partitioner.place(*proposal);
      ++result.num_proposals;
      if (!rating_ms || (best_rating_ms && *rating_ms >= *best_rating_ms)) continue;
      best_rating_ms = rating_ms;
      // At once: to place it again may take longer than there is time for.
      result.plan = partitioner.plan(*proposal);
      result.types = types_of(*proposal);
    }
  };
  try {
    for (const std::unique_ptr<Proposer>& proposer : make_proposers(space)) {
      try_proposals(*proposer);
    }
  } catch (const TimeIsOver&) {
    if (!best_rating_ms) throw;
    result.stopped_by_clock = true;
  }
  if (!best_rating_ms) throw no_plan(task, partitioner.no_room(), result.num_proposals);
  result.rating_ms = *best_rating_ms;
  return result;
}

}  // namespace neuroshard::torchrec
