// The distinct pieces that a search meets.
#include "neuroshard/search/piece_catalog.h"

#include <fmt/format.h>

#include <algorithm>
#include <cassert>
#include <cmath>
#include <limits>
#include <tuple>

#include "neuroshard/cost/cost_value.h"
#include "neuroshard/search/slices/row_slices.h"

namespace neuroshard {

namespace {
constexpr PieceType kUnknown = -1;
}  // namespace

PieceCatalog::PieceCatalog(const Simulator& simulator, const StopClock& clock)
    : simulator_(simulator),
      clock_(clock),
      pins_(simulator.task()),
      contributions_(simulator.compute().state_size()),
      types_(simulator.task().tables.size()) {}

PieceType& PieceCatalog::place_of(int table, std::int64_t num_columns, int num_slices) {
  if (num_slices > 1) {
    return slice_types_.try_emplace({table, num_columns, num_slices}, kUnknown).first->second;
  }
  std::vector<PieceType>& types = types_[table];
  const auto quanta =
      static_cast<std::size_t>((num_columns + kColumnGranularity - 1) / kColumnGranularity);
  if (quanta >= types.size()) types.resize(quanta + 1, kUnknown);
  return types[quanta];
}

PieceType PieceCatalog::add(int table, std::int64_t num_columns, int num_slices) {
  const Table& whole = simulator_.task().tables[table];
  assert(num_columns % kColumnGranularity == 0 || num_columns == whole.embedding_dim);
  assert(num_slices >= 1 && num_slices <= whole.num_embeddings);
  PieceType& place = place_of(table, num_columns, num_slices);
  if (place != kUnknown) return place;
  const auto type = static_cast<PieceType>(facts_.size());
  if (num_slices == 1 || !has_row_order(whole)) {
    place = type;
    const std::int64_t most_rows = (whole.num_embeddings + num_slices - 1) / num_slices;
    // By table: it may stand for several, which its own statistics do not tell.
    simulator_.encode(Piece{table, num_columns, 1.0 / num_slices}, next_contribution());
    add_slice(table, num_columns, num_slices, 0, most_rows);
    return type;
  }
  const std::vector<TableStatistics>& slices = slices_of(table, num_slices);
  for (int slice = 0; slice < num_slices; ++slice) {
    if (clock_.is_over()) {
      facts_.erase(facts_.begin() + type, facts_.end());
      throw TimeIsOver();
    }
    simulator_.encode(slices[slice], num_columns, next_contribution());
    add_slice(table, num_columns, num_slices, slice, slices[slice].num_embeddings);
  }
  place = type;
  return type;
}

std::span<double> PieceCatalog::next_contribution() {
  contributions_.resize(facts_.size() + 1);
  return contributions_[facts_.size()];
}

void PieceCatalog::add_slice(int table, std::int64_t num_columns, int num_slices, int slice,
                             std::int64_t num_rows) {
  const Task& task = simulator_.task();
  const Table& whole = task.tables[table];
  const std::span<const double> contribution = contributions_[facts_.size()];
  const double single_cost = simulator_.compute().cost(contribution);
  const bool finite = std::all_of(contribution.begin(), contribution.end(),
                                  [](double value) { return std::isfinite(value); });
  if (!finite || !is_cost(single_cost)) {
    throw not_a_cost(simulator_.compute().name(),
                     fmt::format("{} columns of table \"{}\"", num_columns, whole.name),
                     finite ? single_cost : std::numeric_limits<double>::quiet_NaN());
  }
  const std::int64_t pooled = neuroshard::pooled_columns(whole, num_columns);
  const double partial = simulator_.partial_bytes_per_column(num_slices) +
                         simulator_.partial_bytes_per_column_of(table);
  facts_.push_back({table, num_slices, slice, num_columns, pooled,
                    shard_bytes(whole, num_columns, task.optimizer, num_rows),
                    partial * static_cast<double>(pooled), single_cost,
                    simulator_.compute().least_rise_ms(contribution)});
}

const std::vector<TableStatistics>& PieceCatalog::slices_of(int table, int num_slices) {
  const auto [place, is_new] = slices_.try_emplace({table, num_slices});
  std::vector<TableStatistics>& slices = place->second;
  if (!is_new) return slices;
  const std::vector<std::int64_t> ends = simulator_.slice_ends(table, num_slices);
  for (int slice = 0; slice < num_slices; ++slice) {
    slices.push_back(simulator_.statistics_of({.table = table,
                                               .row_share = 1.0 / num_slices,
                                               .row_offset = ends[slice],
                                               .num_rows = ends[slice + 1] - ends[slice]}));
  }
  return slices;
}

std::int64_t PieceCatalog::largest_bytes(PieceType type) const {
  if (has_equal_slices(type)) return bytes(type);
  const PieceType first = first_slice(type);
  std::int64_t largest = 0;
  for (PieceType each = first; each < first + num_slices(type); ++each) {
    largest = std::max(largest, bytes(each));
  }
  return largest;
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
  return {add(facts.table, facts.num_columns - narrow, facts.num_slices),
          add(facts.table, narrow, facts.num_slices)};
}

bool PieceCatalog::can_slice(int table, int num_slices) const {
  const Task& task = simulator_.task();
  return neuroshard::can_slice(task, task.tables[table], num_slices);
}

bool PieceCatalog::can_halve_rows(PieceType type) const {
  return can_slice(facts_[type].table, 2 * facts_[type].num_slices);
}

PieceType PieceCatalog::row_half(PieceType type) {
  const Facts facts = facts_[type];
  return add(facts.table, facts.num_columns, 2 * facts.num_slices);
}

std::size_t PieceCatalog::num_devices(PieceType type) const {
  const std::size_t count = pins_.devices_of(facts_[type].table).size();
  return count > 0 ? count : static_cast<std::size_t>(simulator_.task().topology.world_size);
}

bool PieceCatalog::goes_first_of_equal_cost(PieceType a, PieceType b) const {
  const Facts& fa = facts_[a];
  const Facts& fb = facts_[b];
  if (fa.table != fb.table) return fa.table < fb.table;
  if (fa.num_columns != fb.num_columns) return fa.num_columns > fb.num_columns;
  return std::tie(fa.num_slices, fa.slice) < std::tie(fb.num_slices, fb.slice);
}

}  // namespace neuroshard
