// Frank and Wolfe's algorithm on the relaxation.
#include "neuroshard/search/bound/mean_device.h"

#include <algorithm>
#include <array>
#include <cmath>

namespace neuroshard {

namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

/// Steps towards the cheapest mean device, of which there are some ten where nothing is excluded
/// meanwhile.
constexpr int kMostSteps = 40;
/// A step that raises the bound by a smaller share of it is one of the last.
constexpr double kLeastRise = 1e-4;
constexpr int kStepsWithoutRise = 5;
/// Looks at pieces in all steps together: some tenths of a second.
constexpr std::size_t kMostLooks = 1'500'000;
/// Halvings of what is between a bound and a cost.
constexpr int kHalvings = 6;
/// Share of a state within which tangents change gradually, in the first step.
constexpr double kFirstSmoothing = 0.05;
/// What a plan would cost that exceeds all memory twice, relative to one of whole tables.
constexpr double kMemoryWeight = 5.0;

double dot(std::span<const double> a, std::span<const double> b) {
  std::array<double, 4> sums{};  // independent of each other, so that vectors are used
  std::size_t i = 0;
  for (; i + sums.size() <= a.size(); i += sums.size()) {
    for (std::size_t lane = 0; lane < sums.size(); ++lane) {
      sums[lane] += a[i + lane] * b[i + lane];
    }
  }
  double sum = (sums[0] + sums[1]) + (sums[2] + sums[3]);
  for (; i < a.size(); ++i) sum += a[i] * b[i];
  return sum;
}

void add_scaled(std::vector<double>& sum, std::span<const double> more, double factor) {
  for (std::size_t i = 0; i < sum.size(); ++i) sum[i] += factor * more[i];
}

void add_scaled(MeanDevice::Extras& sum, const MeanDevice::Extras& more, double factor) {
  sum.columns += factor * more.columns;
  sum.bytes += factor * more.bytes;
  sum.partial_bytes += factor * more.partial_bytes;
  sum.gradient_bytes += factor * more.gradient_bytes;
}

double dot(const MeanDevice::Extras& a, const MeanDevice::Extras& b) {
  return a.columns * b.columns + a.bytes * b.bytes + a.partial_bytes * b.partial_bytes +
         a.gradient_bytes * b.gradient_bytes;
}

/// A rate [ms/byte] that a cost of bytes, which never falls, is nowhere below from `least` to
/// `most`: the highest but for half a percent.
template <class Cost>
double least_rate(double least, double most, const Cost& cost_ms) {
  constexpr double kStep = 1.005;
  if (most <= 0.0) return 0.0;
  double rate = kInfinity;
  for (double bytes = std::max(least, 1.0); bytes <= most; bytes *= kStep) {
    rate = std::min(rate, cost_ms(bytes) / (bytes * kStep));
  }
  return rate == kInfinity ? 0.0 : rate;
}

}  // namespace

MeanDevice::MeanDevice(const Simulator& simulator)
    : simulator_(simulator), state_size_(simulator.compute().state_size()) {}

void MeanDevice::add_table(std::int64_t num_quanta) {
  tables_.push_back({pieces_.size(), pieces_.size(), num_quanta, -1});
}

void MeanDevice::add_piece(std::int64_t num_quanta, double row_share,
                           std::span<const double> contribution, const Extras& extras) {
  const Task& task = simulator_.task();
  Piece piece{
      num_quanta,
      simulator_.compute().bound(contribution) +
          simulator_.communication().floor_ms(task.topology, task.batch_size, extras.columns),
      {}};
  add_scaled(piece.extras, extras, 1.0 / row_share);
  piece.extras.partial_bytes *= task.topology.world_size;  // every device has them all
  pieces_.push_back(piece);
  for (const double element : contribution) contributions_.push_back(element / row_share);
  tables_.back().end_piece = pieces_.size();
}

void MeanDevice::add_table_of_least(std::span<const double> contribution, const Extras& extras) {
  add_table(1);
  add_piece(1, 1.0, contribution, extras);
  pieces_.back().alone_ms = 0.0;  // it need not be on one device
}

void MeanDevice::add_copy(std::span<const double> contribution, const Extras& extras) {
  tables_.back().copy = static_cast<int>(copies_.size());
  copies_.push_back(extras);
  copied_.insert(copied_.end(), contribution.begin(), contribution.end());
}

/// A mean device on its way to the cheapest one.
class MeanDevice::Relaxation {
 public:
  Relaxation(const MeanDevice& of, const StopClock& clock)
      : of_(of),
        clock_(clock),
        compute_(of.simulator_.compute()),
        task_(of.simulator_.task()),
        devices_(static_cast<double>(task_.topology.world_size)),
        at_(nothing()),
        slopes_(nothing()) {
    for (const std::int64_t bytes : task_.topology.memory_bytes) {
      memory_bytes_ += static_cast<double>(bytes) / devices_;
    }
    Extras least{.partial_bytes = kInfinity, .gradient_bytes = kInfinity};
    Extras most;
    for (const Extras& copy : of.copies_) {
      least.gradient_bytes = std::min(least.gradient_bytes, copy.gradient_bytes);
      most.gradient_bytes += copy.gradient_bytes;
    }
    slopes_.extras.gradient_bytes =
        least_rate(least.gradient_bytes, most.gradient_bytes, [&](double bytes) {
          return of.simulator_.communication().all_reduce_ms(task_.topology, bytes);
        });
    // A plan with slices has at least what whole rows of one kind of its pieces have. And no rows
    // of a table have more than if they were all in pieces of the kind with most for each quantum:
    // where memory leaves narrow pieces alone, that is a multiple of what a kind has.
    for (const OfTable& table : of.tables_) {
      double most_per_quantum = 0.0;
      for (std::size_t i = table.first_piece; i < table.end_piece; ++i) {
        const Piece& piece = of.pieces_[i];
        const double bytes = piece.extras.partial_bytes / devices_;
        if (bytes <= 0.0) continue;
        least.partial_bytes = std::min(least.partial_bytes, bytes);
        most_per_quantum =
            std::max(most_per_quantum, bytes / static_cast<double>(piece.num_quanta));
      }
      most.partial_bytes += most_per_quantum * static_cast<double>(table.num_quanta);
    }
    slopes_.extras.partial_bytes =
        least_rate(least.partial_bytes, most.partial_bytes,
                   [&](double bytes) { return of.simulator_.partial_sums_ms(bytes); });
  }

  /// A bound on the cost of plans without pieces that cost `most_ms` alone; no higher than needed
  /// once it is `enough_ms`.
  double bound_ms(double most_ms, double enough_ms) {
    double bound = 0.0;
    int without_rise = 0;
    for (int step = 0; step < kMostSteps && without_rise < kStepsWithoutRise; ++step) {
      clock_.check();
      looks_ += of_.pieces_.size();
      if (step > 0 && looks_ > kMostLooks) break;
      const double constant = set_slopes(kFirstSmoothing / (1 + steps_++));
      const auto [least_ms, choices] = cheapest_choices(most_ms);
      const double of_step = constant + least_ms;
      without_rise = of_step > bound * (1.0 + kLeastRise) ? 0 : without_rise + 1;
      bound = std::max(bound, of_step);
      if (bound >= enough_ms) break;
      go_towards(choices);
    }
    return bound;
  }

 private:
  /// A mean device, or a slope for each of its elements.
  struct Point {
    std::vector<double> pieces;  ///< its state
    std::vector<double> copies;  ///< the state of the copies' operator
    Extras extras;
  };

  Point nothing() const {
    return {
        std::vector<double>(of_.state_size_, 0.0), std::vector<double>(of_.state_size_, 0.0), {}};
  }

  double floor_ms(double columns) const {
    return of_.simulator_.communication().floor_ms(task_.topology, task_.batch_size, columns);
  }

  /// Memory that it exceeds costs so much that the cheapest one does not; that of a plan costs
  /// nothing.
  double cost_ms(const Point& point) const {
    return compute_.bound(point.pieces) + compute_.bound(point.copies) +
           floor_ms(point.extras.columns) +
           slopes_.extras.partial_bytes * point.extras.partial_bytes +
           slopes_.extras.gradient_bytes * point.extras.gradient_bytes +
           memory_ms_per_byte_ * std::max(point.extras.bytes - memory_bytes_, 0.0);
  }

  /// The tangent at the point: its slopes, and its constant.
  double set_slopes(double smoothing) {
    double constant = compute_.tangent(at_.pieces, smoothing, slopes_.pieces);
    // A plan without copies has no operator for them.
    constant += std::min(compute_.tangent(at_.copies, smoothing, slopes_.copies), 0.0);
    // Of a convex function that never falls: by its slope to the left, and lower by what it rises
    // there.
    const double columns = at_.extras.columns;
    const double step = 1e-7 * columns;
    const double before = floor_ms(columns - step);
    slopes_.extras.columns = step > 0.0 ? (floor_ms(columns) - before) / step : 0.0;
    constant += before - slopes_.extras.columns * columns;
    const double excess = (at_.extras.bytes - memory_bytes_) / (smoothing * memory_bytes_);
    slopes_.extras.bytes = memory_ms_per_byte_ / (1.0 + std::exp(-excess));
    return constant - slopes_.extras.bytes * memory_bytes_;
  }

  /// The table's columns divided into pieces, and these into slices, at the least price [ms], which
  /// is of all devices together.
  double divide(const OfTable& table, double most_ms) {
    const auto count = static_cast<std::size_t>(table.num_quanta) + 1;
    piece_ms_.assign(count, kInfinity);
    cheapest_piece_.assign(count, 0);
    for (std::size_t i = table.first_piece; i < table.end_piece; ++i) {
      const Piece& piece = of_.pieces_[i];
      if (piece.alone_ms >= most_ms) continue;
      const double ms =
          dot(slopes_.pieces, of_.contribution(i)) + dot(slopes_.extras, piece.extras);
      if (ms >= piece_ms_[piece.num_quanta]) continue;
      piece_ms_[piece.num_quanta] = ms;
      cheapest_piece_[piece.num_quanta] = i;
    }
    least_ms_.assign(count, kInfinity);
    least_ms_[0] = 0.0;
    last_.assign(count, 0);
    for (std::size_t n = 1; n < count; ++n) {
      for (std::size_t part = 1; part <= n; ++part) {
        const double ms = piece_ms_[part] + least_ms_[n - part];
        if (ms >= least_ms_[n]) continue;
        least_ms_[n] = ms;
        last_[n] = part;
      }
    }
    return least_ms_.back();
  }

  /// Each table's cheapest choice by the slopes: their price [ms], infinite if a table has none,
  /// and the mean device that they make.
  std::pair<double, Point> cheapest_choices(double most_ms) {
    Point point = nothing();
    double least_ms = 0.0;
    for (const OfTable& table : of_.tables_) {
      const double pieces_ms = divide(table, most_ms) / devices_;
      if (table.copy >= 0) {
        const Extras& extras = of_.copies_[table.copy];
        const double copy_ms =
            dot(slopes_.copies, of_.copied(table.copy)) + dot(slopes_.extras, extras);
        if (copy_ms < pieces_ms) {
          least_ms += copy_ms;
          add_scaled(point.copies, of_.copied(table.copy), 1.0);
          add_scaled(point.extras, extras, 1.0);
          continue;
        }
      }
      least_ms += pieces_ms;
      if (pieces_ms == kInfinity) break;
      for (std::size_t left = last_.size() - 1; left > 0; left -= last_[left]) {
        const std::size_t piece = cheapest_piece_[last_[left]];
        add_scaled(point.pieces, of_.contribution(piece), 1.0 / devices_);
        add_scaled(point.extras, of_.pieces_[piece].extras, 1.0 / devices_);
      }
    }
    return {least_ms, std::move(point)};
  }

  Point between(const Point& to, double share) const {
    Point result = nothing();
    add_scaled(result.pieces, at_.pieces, 1.0 - share);
    add_scaled(result.pieces, to.pieces, share);
    add_scaled(result.copies, at_.copies, 1.0 - share);
    add_scaled(result.copies, to.copies, share);
    add_scaled(result.extras, at_.extras, 1.0 - share);
    add_scaled(result.extras, to.extras, share);
    return result;
  }

  /// To where the cost is least on the way there.
  void go_towards(const Point& to) {
    if (steps_ == 1) {  // the first: there is nowhere to come from
      at_ = to;
      memory_ms_per_byte_ = kMemoryWeight * cost_ms(at_) / memory_bytes_;
      return;
    }
    double low = 0.0;
    double high = 1.0;
    for (int i = 0; i < 20; ++i) {
      const double first = low + (high - low) / 3.0;
      const double second = high - (high - low) / 3.0;
      if (cost_ms(between(to, first)) <= cost_ms(between(to, second))) {
        high = second;
      } else {
        low = first;
      }
    }
    // At a kink the cost may rise at once, though not where tangents are smoothed.
    const double usual = 1.0 / (steps_ + 1);
    const double share = std::max(0.5 * (low + high), 0.1 * usual);
    at_ = between(to, share);
  }

  const MeanDevice& of_;
  const StopClock& clock_;
  const ComputeCostModel& compute_;
  const Task& task_;
  double devices_;
  double memory_bytes_ = 0.0;        ///< of a device, in the mean
  double memory_ms_per_byte_ = 0.0;  ///< of what exceeds it; not known before the first step
  Point at_;
  Point slopes_;
  int steps_ = 0;
  std::size_t looks_ = 0;  ///< at pieces
  // Of the table at hand, by number of quanta.
  std::vector<double> piece_ms_;
  std::vector<std::size_t> cheapest_piece_;
  std::vector<double> least_ms_;
  std::vector<std::size_t> last_;
};

double MeanDevice::bound_ms(double known_ms, const StopClock& clock) const {
  Relaxation relaxation(*this, clock);
  double bound = relaxation.bound_ms(known_ms, known_ms);
  if (bound == kInfinity) return known_ms < kInfinity ? known_ms : 0.0;  // no plan fits
  // A plan that costs less than T has no piece that costs T alone; so if plans without such pieces
  // cost at least T, all do.
  double above = known_ms;
  for (int i = 0; i < kHalvings && bound < above && above < kInfinity; ++i) {
    const double middle = 0.5 * (bound + above);
    if (relaxation.bound_ms(middle, middle) >= middle) {
      bound = middle;
    } else {
      above = middle;
    }
  }
  return std::min(bound, known_ms);
}

}  // namespace neuroshard
