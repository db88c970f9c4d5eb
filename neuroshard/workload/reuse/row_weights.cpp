// Cuts by the cumulative weight of the rows.
#include "neuroshard/workload/reuse/row_weights.h"

#include <algorithm>
#include <cassert>
#include <cmath>
#include <cstddef>
#include <utility>

namespace neuroshard {

RowWeights::RowWeights(std::vector<Segment> segments, std::int64_t num_rows)
    : segments_(std::move(segments)), num_rows_(num_rows) {
  for (const Segment& segment : segments_) {
    weight_before_.push_back(total_);
    total_ += segment.weight;
  }
}

double RowWeights::share_before(double row) const {
  auto segment = std::upper_bound(
      segments_.begin(), segments_.end(), row,
      [](double value, const Segment& candidate) { return value < candidate.first_row; });
  if (segment == segments_.begin()) return 0.0;
  --segment;
  const double part = std::min((row - segment->first_row) / segment->num_rows, 1.0);
  return (weight_before_[static_cast<std::size_t>(segment - segments_.begin())] +
          part * segment->weight) /
         total_;
}

double RowWeights::row_of_share(double share) const {
  const double weight = share * total_;
  const auto next = std::lower_bound(weight_before_.begin(), weight_before_.end(), weight);
  if (next == weight_before_.begin()) return 0.0;
  const auto number = static_cast<std::size_t>(next - weight_before_.begin()) - 1;
  const Segment& segment = segments_[number];
  if (segment.weight <= 0.0) return segment.first_row;
  const double part = std::min((weight - weight_before_[number]) / segment.weight, 1.0);
  return segment.first_row + part * segment.num_rows;
}

std::vector<std::int64_t> RowWeights::equal_ends(int num_slices, std::int64_t min_rows,
                                                 std::int64_t max_rows) const {
  assert(min_rows >= 1 && num_slices >= 1 && num_rows_ / num_slices >= min_rows);
  const std::int64_t of_equal_slices = (num_rows_ + num_slices - 1) / num_slices;
  max_rows = std::clamp(max_rows, of_equal_slices, num_rows_);
  std::vector<std::int64_t> ends{0};
  std::int64_t end = num_rows_;  // of the slices with equal parts; those after it are full
  double share = 1.0;            // of the rows before it
  for (int left = num_slices; left > 1;) {
    const double before = share_before(static_cast<double>(ends.back()));
    const double wanted = before + (share - before) / left;
    const double row = std::floor(row_of_share(wanted));
    const bool next_is_nearer =
        std::abs(share_before(row + 1.0) - wanted) < std::abs(share_before(row) - wanted);
    const std::int64_t nearest = static_cast<std::int64_t>(row) + (next_is_nearer ? 1 : 0);
    const std::int64_t least = ends.back() + min_rows;
    const auto after = static_cast<std::int64_t>(left - 1);
    if (std::max(nearest, least) < end - after * max_rows) {
      // The slices after this one are full, so that fewer slices share what is before them.
      end -= after * max_rows;
      share = share_before(static_cast<double>(end));
      left = static_cast<int>(ends.size());
      ends = {0};
      continue;
    }
    ends.push_back(
        std::clamp(nearest, least, std::min(ends.back() + max_rows, end - after * min_rows)));
    --left;
  }
  for (; end < num_rows_; end += max_rows) ends.push_back(end);
  ends.push_back(num_rows_);
  return ends;
}

}  // namespace neuroshard
