// Chances from prices at the mean device.
#include "neuroshard/search/improve/way_chances.h"

#include <algorithm>
#include <cassert>
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <optional>

#include "neuroshard/search/bound/mean_prices.h"
#include "neuroshard/search/piece_catalog.h"

namespace neuroshard {

namespace {

/// Share of the plan's cost that a way adds by which its chance falls to 1 / e.
constexpr double kScale = 0.01;
/// Share of the tries that any way may get.
constexpr double kAnyWay = 0.2;

/// Slices that differ by a row: nearly the same piece.
bool are_alike(const TableStatistics& a, const TableStatistics& b) {
  constexpr double kSame = 1e-4;
  return std::abs(a.num_embeddings - b.num_embeddings) <= 1 &&
         std::abs(a.pooling_factor - b.pooling_factor) <= kSame * a.pooling_factor;
}

MeanPrices prices_of(const Simulator& simulator, PieceCatalog& catalog, const ShardingPlan& plan,
                     PatientClock& clock) {
  const double devices = simulator.task().topology.world_size;
  std::vector<double> state(catalog.state_size(), 0.0);
  double columns = 0.0;
  for (const Shard& shard : plan.shards) {
    clock.check();
    const PieceType piece = catalog.add(shard.table, shard.num_columns);
    const auto contribution = catalog.contribution(piece);
    for (std::size_t i = 0; i < state.size(); ++i) state[i] += contribution[i];
    columns += static_cast<double>(catalog.pooled_columns(piece));
  }
  for (double& element : state) element /= devices;
  return {simulator, state, columns / devices};
}

/// Turns what ways add to a device that costs `scale_ms` into chances.
void turn_into_chances(std::vector<double>& added_ms, double scale_ms) {
  const double least = *std::min_element(added_ms.begin(), added_ms.end());
  double sum = 0.0;
  for (double& ms : added_ms) sum += ms = std::exp(-(ms - least) / scale_ms);
  const double of_any = kAnyWay / static_cast<double>(added_ms.size());
  for (double& ms : added_ms) ms = (1.0 - kAnyWay) * ms / sum + of_any;
}

}  // namespace

WayChances::WayChances(const Simulator& simulator, const ShardingPlan& plan,
                       const Slicings& slicings, const StopClock& clock) {
  PatientClock patient(clock);
  PieceCatalog catalog(simulator, clock);
  const MeanPrices prices = prices_of(simulator, catalog, plan, patient);
  const double devices = simulator.task().topology.world_size;
  // Without a tangent, prices are of communication alone.
  const double scale_ms =
      simulator.compute().is_convex_increasing() ? kScale * prices.mean_ms() : 0.0;
  for (int group = 0; group < slicings.num_groups(); ++group) {
    std::vector<double> added_ms;
    for (const Slicing& way : slicings.ways(group)) {
      double sum_ms = 0.0;
      double slice_ms = 0.0;
      std::optional<TableStatistics> last;
      for (const int table : way) {
        if (scale_ms <= 0.0) break;
        patient.check();
        const std::int64_t columns = simulator.task().tables[table].embedding_dim;
        const TableStatistics rows = simulator.statistics_of({table, columns});
        if (!last || !are_alike(*last, rows)) {
          slice_ms = prices.price_ms(catalog, catalog.add(table, columns));
        }
        last = rows;
        sum_ms += slice_ms;
      }
      added_ms.push_back(sum_ms / devices);
    }
    turn_into_chances(added_ms, scale_ms > 0.0 ? scale_ms : 1.0);
    chances_.push_back(std::move(added_ms));
  }
  pieces_encoded_ = static_cast<std::int64_t>(catalog.size());
}

int WayChances::other_way(Random& random, const Slicings::Place& place) const {
  assert(place.group >= 0);
  const std::vector<double>& chances = chances_[place.group];
  double left = random.uniform() * (1.0 - chances[place.way]);
  int last = -1;
  for (int way = 0; way < static_cast<int>(chances.size()); ++way) {
    if (way == place.way) continue;
    last = way;
    left -= chances[way];
    if (left < 0.0) break;
  }
  return last;
}

}  // namespace neuroshard
