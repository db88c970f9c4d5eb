// The distinct pieces that a search meets.
#include "neuroshard/search/piece_catalog.h"

#include <tuple>

namespace neuroshard {

PieceCatalog::PieceCatalog(const Simulator& simulator)
    : simulator_(simulator), state_size_(simulator.compute().state_size()) {}

PieceType PieceCatalog::add(int table, std::int64_t num_columns) {
  const auto type = static_cast<PieceType>(facts_.size());
  const auto [entry, is_new] = types_.try_emplace({table, num_columns}, type);
  if (!is_new) return entry->second;
  contributions_.resize(contributions_.size() + state_size_);
  const std::span<double> contribution(contributions_.data() + type * state_size_, state_size_);
  simulator_.encode(table, num_columns, contribution);
  const Task& task = simulator_.task();
  facts_.push_back({table, num_columns,
                    shard_bytes(task.tables[table], num_columns, task.optimizer),
                    simulator_.compute().cost(contribution)});
  return type;
}

bool PieceCatalog::can_halve(PieceType type) const {
  const std::int64_t columns = facts_[type].num_columns;
  return columns % kColumnGranularity == 0 && columns >= 2 * kColumnGranularity;
}

std::pair<PieceType, PieceType> PieceCatalog::halves(PieceType type) {
  const Facts facts = facts_[type];
  const std::int64_t quanta = facts.num_columns / kColumnGranularity;
  const std::int64_t narrow = quanta / 2 * kColumnGranularity;
  return {add(facts.table, facts.num_columns - narrow), add(facts.table, narrow)};
}

bool PieceCatalog::goes_first(PieceType a, PieceType b) const {
  const Facts& fa = facts_[a];
  const Facts& fb = facts_[b];
  // Costs compare falling, so the sides are exchanged for them.
  return std::tie(fb.single_cost, fa.table, fb.num_columns) <
         std::tie(fa.single_cost, fb.table, fa.num_columns);
}

}  // namespace neuroshard
