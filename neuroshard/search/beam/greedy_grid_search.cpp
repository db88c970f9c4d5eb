// Greedy grid search over placements.
#include "neuroshard/search/beam/greedy_grid_search.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include "neuroshard/core/numbers/byte_sum.h"
#include "neuroshard/cost/compute/head_kernel.h"

namespace neuroshard {

namespace {

/// Absorbs the rounding of limits that are meant to be whole columns.
constexpr double kLimitTolerance = 1e-6;

constexpr double kInfinity = std::numeric_limits<double>::infinity();

/// Why a piece is on no device.
constexpr int kNoMemory = -1;   ///< on no device where the piece may lie
constexpr int kNoColumns = -2;  ///< memory there is, but the limit keeps it out

}  // namespace

GreedyGridSearch::GreedyGridSearch(const Simulator& simulator, const PieceCatalog& catalog,
                                   GreedyGridSearchOptions options, const StopClock& clock)
    : simulator_(simulator),
      catalog_(catalog),
      options_(options),
      clock_(clock),
      states_(catalog.state_size()) {
  const auto world_size = static_cast<std::size_t>(simulator.task().topology.world_size);
  devices_.resize(world_size);
  costs_.resize(world_size);
  changed_.resize(world_size);
  columns_.resize(world_size);
  states_.resize(world_size);
}

int GreedyGridSearch::find_device(double column_limit) {
  const std::vector<std::int64_t>& capacity = simulator_.task().topology.memory_bytes;
  const ListedPiece& piece = pieces_[num_placed_];
  int result = kNoMemory;
  bool is_refused = false;
  const auto entries = order_.entries();
  for (std::size_t rank = 0; rank < entries.size(); ++rank) {
    const int device = entries[rank].device;
    if (!piece.permitted.empty() &&
        !std::binary_search(piece.permitted.begin(), piece.permitted.end(), device)) {
      continue;
    }
    if (devices_[device].bytes + piece.bytes > capacity[device]) continue;
    result = kNoColumns;
    if (static_cast<double>(devices_[device].columns + piece.columns) > column_limit) {
      is_refused = true;
      continue;
    }
    if (is_refused) note_refusal();
    note(device);
    total_ms_ -= costs_[device];
    costs_[device] = simulator_.compute().add_and_cost(state_of(device), piece.contribution);
    total_ms_ += costs_[device];
    ++stats_.head_evaluations;
    order_.change(rank, costs_[device]);
    return device;
  }
  if (is_refused) note_refusal();
  return result;
}

void GreedyGridSearch::note_refusal() {
  limit_refused_ = true;
  free_of_limit_ = std::min(free_of_limit_, num_placed_);
}

void GreedyGridSearch::note(int device) {
  const std::size_t at = num_placed_++;
  placed_on_[at] = device;
  if (device < 0) {
    columns_after_[at] = 0;
    if (device == kNoMemory) {
      unplaced_before_.push_back(unplaced_bytes_);
      unplaced_bytes_ = add_saturated(unplaced_bytes_, pieces_[at].bytes);
    }
    return;
  }
  devices_[device].bytes += pieces_[at].bytes;
  devices_[device].columns += pieces_[at].columns;
  columns_after_[at] = devices_[device].columns;
}

void GreedyGridSearch::put(int device) {
  const std::span<const double> contribution = pieces_[num_placed_].contribution;
  note(device);
  if (device < 0) return;
  kernels::add(state_of(device).data(), contribution.data(), contribution.size());
  changed_[device] = true;
}

void GreedyGridSearch::take_back() {
  const std::size_t at = --num_placed_;
  const int device = placed_on_[at];
  if (device < 0) {
    if (device == kNoMemory) {
      unplaced_bytes_ = unplaced_before_.back();
      unplaced_before_.pop_back();
    }
    return;
  }
  const ListedPiece& piece = pieces_[at];
  devices_[device].bytes -= piece.bytes;
  devices_[device].columns -= piece.columns;
  kernels::subtract(state_of(device).data(), piece.contribution.data(), piece.contribution.size());
  changed_[device] = true;
}

void GreedyGridSearch::rewind(std::size_t count) {
  if (2 * count >= num_placed_) {
    while (num_placed_ > count) take_back();
    refresh();
    return;
  }
  // A piece is put where it was, so what is read is not yet written.
  replay(std::span(placed_on_).first(count));
}

void GreedyGridSearch::replay(std::span<const int> devices) {
  num_placed_ = 0;
  unplaced_bytes_ = 0;
  unplaced_before_.clear();
  std::fill(devices_.begin(), devices_.end(), Device{});
  states_.set_to_zero();
  std::fill(costs_.begin(), costs_.end(), 0.0);
  std::fill(changed_.begin(), changed_.end(), false);
  for (const int device : devices) put(device);
  refresh();
}

void GreedyGridSearch::refresh() {
  for (std::size_t d = 0; d < devices_.size(); ++d) {
    if (!changed_[d]) continue;
    costs_[d] = simulator_.compute().cost(state_of(static_cast<int>(d)));
    ++stats_.head_evaluations;
    changed_[d] = false;
  }
  order_.assign(costs_);
  total_ms_ = std::accumulate(costs_.begin(), costs_.end(), 0.0);
}

double GreedyGridSearch::floor_ms(double columns) const {
  const Task& task = simulator_.task();
  return simulator_.communication().floor_ms(task.topology, task.batch_size, columns);
}

bool GreedyGridSearch::must_cost_more(double most_ms, double least_of_suspect_ms,
                                      int device) const {
  // Whatever comes, the mean device gets no cheaper than this, and by convexity no mean of floors
  // is below that of the mean columns; the slowest device is no cheaper than the mean.
  const double mean_ms =
      (total_ms_ + rise_from_[num_placed_]) / static_cast<double>(devices_.size());
  if (mean_ms + floor_of_mean_ms_ > most_ms) return true;
  return costs_[device] > least_of_suspect_ms &&
         costs_[device] + floor_ms(static_cast<double>(devices_[device].columns)) > most_ms;
}

bool GreedyGridSearch::place_all(double column_limit, double most_ms) {
  const bool may_give_up = most_ms < kInfinity && simulator_.compute().is_convex_increasing();
  // Of the whole cost, of which the rest may be far more.
  most_ms += kCostRounding * (most_ms + on_every_device_ms_);
  // A device below this costs no more than that with all the columns that it may have.
  const double least_of_suspect_ms = may_give_up ? most_ms - floor_ms(column_limit) : kInfinity;
  while (num_placed_ < pieces_.size()) {
    clock_.check();
    int device = find_device(column_limit);
    if (device == kNoColumns && !pieces_[num_placed_].permitted.empty()) {
      device = find_device(kInfinity);
    }
    if (device >= 0) {
      if (may_give_up && must_cost_more(most_ms, least_of_suspect_ms, device)) return false;
      continue;
    }
    // Only memory makes a set of pieces infeasible; a limit on columns is the search's own. Once
    // memory has failed, what is left over is counted to the end.
    if (device == kNoColumns && unplaced_bytes_ == 0) return true;
    note(device);
  }
  return true;
}

bool GreedyGridSearch::is_worth_pricing(const Placement& best) {
  const auto too_costly = [&](double least_ms) {
    least_ms -= kCostRounding * (least_ms + on_every_device_ms_);
    return least_ms >= best.cost_ms - on_every_device_ms_ || least_ms > worth_ms_;
  };
  const Task& task = simulator_.task();
  const CommunicationCostModel& communication = simulator_.communication();
  for (std::size_t d = 0; d < devices_.size(); ++d) {
    columns_[d] = static_cast<double>(devices_[d].columns);
    if (too_costly(costs_[d] + floor_ms(columns_[d]))) return false;
  }
  return !too_costly(communication.least_cost_ms(task.topology, task.batch_size, costs_, columns_));
}

void GreedyGridSearch::judge(Placement& best) {
  if (unplaced_bytes_ > 0) {
    best.unplaced_bytes = std::min(best.unplaced_bytes, unplaced_bytes_);
    return;
  }
  if (num_placed_ < pieces_.size()) return;
  best.unplaced_bytes = 0;
  if (!is_worth_pricing(best)) return;
  ++stats_.plans_priced;
  const double cost = simulator_.combine(costs_, columns_, 0.0, partial_sums_ms_).cost_ms;
  if (cost < best.cost_ms) {
    best.cost_ms = cost;
    best.devices = placed_on_;
  }
}

Placement GreedyGridSearch::search(std::span<const PieceType> pieces, const KnownPlaces& known,
                                   const CostLimits& limits) {
  pieces_.clear();
  for (const PieceType piece : pieces) {
    pieces_.push_back({catalog_.bytes(piece), catalog_.pooled_columns(piece),
                       catalog_.contribution(piece),
                       catalog_.pins().devices_of(catalog_.table(piece))});
  }
  placed_on_.resize(pieces.size());
  columns_after_.resize(pieces.size());
  double total_columns = 0.0;
  double partial_bytes = 0.0;
  for (const PieceType piece : pieces) {
    total_columns += static_cast<double>(catalog_.pooled_columns(piece));
    partial_bytes += catalog_.partial_bytes(piece);
  }
  partial_sums_ms_ = simulator_.partial_sums_ms(partial_bytes);
  on_every_device_ms_ = partial_sums_ms_ + simulator_.replicas_ms();
  const double kept_ms = limits.kept_ms - on_every_device_ms_;
  worth_ms_ = std::min(limits.worth_ms, kept_ms);
  beaten_ms_ = std::min(limits.beaten_ms, kept_ms);
  mean_columns_ = total_columns / static_cast<double>(devices_.size());
  floor_of_mean_ms_ = floor_ms(mean_columns_);
  rise_from_.assign(pieces.size() + 1, 0.0);
  for (std::size_t i = pieces.size(); i > 0; --i) {
    rise_from_[i - 1] = rise_from_[i] + catalog_.least_rise_ms(pieces[i - 1]);
  }
  Placement best;
  best.cost_ms = kInfinity;
  best.unplaced_bytes = std::numeric_limits<std::int64_t>::max();
  try {
    try_limits(known, best);
  } catch (const TimeIsOver&) {
    if (best.devices.empty()) throw;
  }
  return best;
}

void GreedyGridSearch::try_limits(const KnownPlaces& known, Placement& best) {
  const double step = (options_.max_limit - 1.0) / std::max(options_.num_limits - 1, 1);
  for (int i = 0; i < options_.num_limits; ++i) {
    const double limit = mean_columns_ * (options_.max_limit - step * i) + kLimitTolerance;
    if (i == 0 || !options_.take_over) {
      replay(options_.take_over ? known.devices : std::span<const int>{});
    } else if (static_cast<double>(widest_device()) <= limit) {
      continue;
    } else {
      rewind(unaffected(limit));
    }
    if (i == 0) {
      limit_refused_ = false;
      free_of_limit_ = known.free_of_limit < num_placed_ ? known.free_of_limit : pieces_.size();
      if (!place_all(limit, beaten_ms_)) {
        // Without any limit it would have begun the same, and is given up as well. Where the limit
        // kept a piece away, that may be cheaper, and whether it is tried depends on what fits.
        if (limit_refused_) {
          place_all(limit, kInfinity);
        } else {
          best.unplaced_bytes = 0;
        }
      }
      best.under_largest_limit.assign(
          placed_on_.begin(), placed_on_.begin() + static_cast<std::ptrdiff_t>(num_placed_));
      best.free_of_limit = std::min(free_of_limit_, num_placed_);
    } else {
      const double best_ms = best.cost_ms - on_every_device_ms_;
      place_all(limit, best.feasible() ? std::min(best_ms, worth_ms_) : kInfinity);
    }
    judge(best);
  }
  // A piece wider than every limit is no reason to have no plan.
  if (!best.feasible()) {
    replay({});
    place_all(kInfinity, kInfinity);
    judge(best);
  }
}

std::size_t GreedyGridSearch::unaffected(double column_limit) const {
  const auto first = std::find_if(
      columns_after_.begin(), columns_after_.begin() + static_cast<std::ptrdiff_t>(num_placed_),
      [&](std::int64_t columns) { return static_cast<double>(columns) > column_limit; });
  return static_cast<std::size_t>(first - columns_after_.begin());
}

std::int64_t GreedyGridSearch::widest_device() const {
  std::int64_t widest = 0;
  for (const Device& device : devices_) widest = std::max(widest, device.columns);
  return widest;
}

}  // namespace neuroshard
