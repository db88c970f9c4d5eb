// Cuts that memory demands, rows of the costliest tables, even pieces and cheapest cuts.
#include "neuroshard/search/beam/first_lists/first_lists.h"

#include <algorithm>
#include <cstddef>
#include <utility>

#include "neuroshard/search/beam/first_lists/cheapest_cuts.h"
#include "neuroshard/search/beam/first_lists/even_pieces.h"
#include "neuroshard/search/beam/first_lists/first_cuts.h"
#include "neuroshard/search/beam/first_lists/slices_within.h"

namespace neuroshard {

namespace {

/// Where nothing else fits, pieces are as small as this part of the largest device.
constexpr int kSmallestShareOfDevice = 16;

}  // namespace

std::int64_t FirstLists::largest_device() const {
  const auto& capacity = simulator_.task().topology.memory_bytes;
  return *std::max_element(capacity.begin(), capacity.end());
}

PieceList FirstLists::sorted(PieceList pieces) const {
  std::sort(pieces.begin(), pieces.end(),
            [&](PieceType a, PieceType b) { return catalog_.goes_first(a, b); });
  return pieces;
}

std::vector<PieceList> FirstLists::sorted(std::vector<PieceList> lists) const {
  for (PieceList& pieces : lists) pieces = sorted(std::move(pieces));
  return lists;
}

PieceList FirstLists::halved_to(std::int64_t most_bytes, const std::vector<int>& slices) {
  const std::vector<Table>& tables = simulator_.task().tables;
  PieceList waiting;
  waiting.reserve(tables.size() + 1);
  PatientClock clock(clock_);
  for (std::size_t table = 0; table < tables.size(); ++table) {
    clock.check();
    waiting.push_back(catalog_.add(static_cast<int>(table), tables[table].embedding_dim,
                                   slices.empty() ? 1 : slices[table]));
  }
  PieceList pieces;
  pieces.reserve(2 * waiting.size());
  while (!waiting.empty()) {
    clock.check();
    const PieceType piece = waiting.back();
    waiting.pop_back();
    if (catalog_.largest_bytes(piece) > most_bytes && catalog_.can_halve(piece)) {
      const auto [wide, narrow] = catalog_.halves(piece);
      waiting.insert(waiting.end(), {narrow, wide});
    } else {
      add_slices(catalog_, piece, pieces);
    }
  }
  return sorted(std::move(pieces));
}

std::vector<PieceList> FirstLists::sliced() {
  const std::vector<Table>& tables = simulator_.task().tables;
  const std::int64_t largest = largest_device();
  PieceList whole;
  PatientClock clock(clock_);
  for (std::size_t t = 0; t < tables.size(); ++t) {
    clock.check();
    whole.push_back(catalog_.add(static_cast<int>(t), tables[t].embedding_dim));
  }
  std::sort(whole.begin(), whole.end(),
            [&](PieceType a, PieceType b) { return catalog_.costs_more(a, b); });
  std::vector<PieceList> lists;
  const std::vector<int> least = slices_within(simulator_, largest, clock_);
  const bool some_are_larger =
      std::any_of(least.begin(), least.end(), [](int count) { return count > 1; });
  if (some_are_larger) lists.push_back(halved_to(largest, least));
  for (const FirstCuts& cuts : first_cuts(simulator_.task(), max_pieces_)) {
    if (cuts.num_slices == 0) {
      lists.push_back(halved_to(largest, slices_within(simulator_, largest / cuts.parts, clock_)));
      continue;
    }
    std::vector<int> slices(tables.size(), 1);
    for (std::size_t rank = 0; rank < std::min(cuts.sliced_tables, whole.size()); ++rank) {
      const int table = catalog_.table(whole[rank]);
      if (catalog_.can_slice(table, cuts.num_slices)) slices[table] = cuts.num_slices;
    }
    lists.push_back(halved_to(largest / cuts.parts, slices));
  }
  return lists;
}

std::vector<PieceList> FirstLists::that_may_fit(const ShardingPlan& fitting) {
  std::vector<PieceList> lists;
  for (int parts = 2; parts <= kSmallestShareOfDevice; parts *= 2) {
    lists.push_back(halved_to(largest_device() / parts));
  }
  if (!fitting.has_row_slices()) {
    PieceList pieces;
    for (const Shard& shard : fitting.shards) {
      pieces.push_back(catalog_.add(shard.table, shard.num_columns));
    }
    lists.push_back(sorted(std::move(pieces)));
  }
  return lists;
}

std::vector<PieceList> FirstLists::of_even_pieces() {
  return sorted(even_lists(simulator_, catalog_, rows_, largest_device(), max_pieces_, clock_));
}

std::vector<PieceList> FirstLists::of_cheapest_cuts() {
  return sorted(cheapest_lists(simulator_, catalog_, rows_, max_pieces_, clock_));
}

}  // namespace neuroshard
