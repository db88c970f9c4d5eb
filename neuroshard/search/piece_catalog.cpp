// The distinct pieces that a search meets.
#include "neuroshard/search/piece_catalog.h"

#include <fmt/format.h>

#include <algorithm>
#include <cassert>
#include <cmath>
#include <limits>
#include <tuple>

#include "neuroshard/cost/cost_value.h"

namespace neuroshard {

namespace {
constexpr PieceType kUnknown = -1;
}  // namespace

PieceCatalog::PieceCatalog(const Simulator& simulator)
    : simulator_(simulator),
      contributions_(simulator.compute().state_size()),
      types_(simulator.task().tables.size()) {}

PieceType PieceCatalog::add(int table, std::int64_t num_columns) {
  assert(num_columns % kColumnGranularity == 0 ||
         num_columns == simulator_.task().tables[table].embedding_dim);
  std::vector<PieceType>& types = types_[table];
  const auto quanta =
      static_cast<std::size_t>((num_columns + kColumnGranularity - 1) / kColumnGranularity);
  if (quanta >= types.size()) types.resize(quanta + 1, kUnknown);
  if (types[quanta] != kUnknown) return types[quanta];
  const auto type = static_cast<PieceType>(facts_.size());
  types[quanta] = type;
  contributions_.resize(facts_.size() + 1);
  const std::span<double> contribution = contributions_[static_cast<std::size_t>(type)];
  simulator_.encode(table, num_columns, contribution);
  const Task& task = simulator_.task();
  const double single_cost = simulator_.compute().cost(contribution);
  const bool finite = std::all_of(contribution.begin(), contribution.end(),
                                  [](double value) { return std::isfinite(value); });
  if (!finite || !is_cost(single_cost)) {
    throw not_a_cost(
        simulator_.compute().name(),
        fmt::format("{} columns of table \"{}\"", num_columns, task.tables[table].name),
        finite ? single_cost : std::numeric_limits<double>::quiet_NaN());
  }
  facts_.push_back({table, num_columns, neuroshard::pooled_columns(task.tables[table], num_columns),
                    shard_bytes(task.tables[table], num_columns, task.optimizer), single_cost});
  return type;
}

bool PieceCatalog::can_halve(PieceType type) const {
  const Facts& facts = facts_[type];
  return facts.num_columns % kColumnGranularity == 0 &&
         can_cut(simulator_.task().tables[facts.table], facts.num_columns);
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
