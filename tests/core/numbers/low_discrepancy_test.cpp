// Points of the low-discrepancy sequence: in the cube, the same for a seed, and more even than
// random ones for every prefix.
#include "neuroshard/core/numbers/low_discrepancy.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <vector>

namespace neuroshard {
namespace {

template <std::size_t kDimensions>
using Points = std::vector<std::array<double, kDimensions>>;

template <std::size_t kDimensions>
Points<kDimensions> sequence(std::uint64_t seed, int count) {
  const LowDiscrepancySequence<kDimensions> points(seed);
  Points<kDimensions> result;
  for (int i = 0; i < count; ++i) result.push_back(points.point(i));
  return result;
}

template <std::size_t kDimensions>
Points<kDimensions> random_points(std::uint64_t seed, int count) {
  Random random(seed);
  Points<kDimensions> result(static_cast<std::size_t>(count));
  for (auto& point : result) {
    for (double& x : point) x = random.uniform();
  }
  return result;
}

/// Standard deviation of the number of points in the cells of a grid, relative to the mean.
template <std::size_t kDimensions>
double unevenness(const Points<kDimensions>& points, int cells_per_side) {
  std::vector<double> counts(
      static_cast<std::size_t>(std::pow(cells_per_side, static_cast<double>(kDimensions))), 0.0);
  for (const auto& point : points) {
    std::size_t cell = 0;
    for (const double x : point) {
      cell = cell * static_cast<std::size_t>(cells_per_side) +
             static_cast<std::size_t>(x * cells_per_side);
    }
    counts.at(cell) += 1.0;
  }
  const double mean = static_cast<double>(points.size()) / static_cast<double>(counts.size());
  double squares = 0.0;
  for (const double count : counts) squares += (count - mean) * (count - mean);
  return std::sqrt(squares / static_cast<double>(counts.size())) / mean;
}

TEST(LowDiscrepancySequence, LiesInTheCubeAndDependsOnTheSeed) {
  const auto points = sequence<5>(1, 1000);
  for (const auto& point : points) {
    for (const double x : point) EXPECT_TRUE(x >= 0.0 && x < 1.0) << x;
  }
  EXPECT_EQ(sequence<5>(1, 1000), points);
  EXPECT_NE(sequence<5>(2, 1000), points);
}

TEST(LowDiscrepancySequence, LatePointsAreInTheUnitCube) {
  const LowDiscrepancySequence<3> points(4);
  for (const double x : points.point(1'000'000'000)) EXPECT_TRUE(x >= 0.0 && x < 1.0) << x;
}

/// Mean over seeds of the sequence's unevenness, relative to that of random points.
template <std::size_t kDimensions>
double relative_unevenness(int count, int cells_per_side) {
  double sequences = 0.0;
  double randoms = 0.0;
  for (std::uint64_t seed = 0; seed < 20; ++seed) {
    sequences += unevenness(sequence<kDimensions>(seed, count), cells_per_side);
    randoms += unevenness(random_points<kDimensions>(seed, count), cells_per_side);
  }
  return sequences / randoms;
}

TEST(LowDiscrepancySequence, FillsTheCubeMoreEvenlyThanRandomPoints) {
  for (const int count : {128, 384, 2048}) {
    EXPECT_LT(relative_unevenness<1>(count, 16), 0.3) << count;
    EXPECT_LT(relative_unevenness<2>(count, 8), 0.6) << count;
    EXPECT_LT(relative_unevenness<3>(count, 4), 0.7) << count;
    EXPECT_LT(relative_unevenness<5>(count, 2), 0.95) << count;
  }
}

TEST(LowDiscrepancySequence, EachCoordinateHasNoLargeGaps) {
  constexpr int kCount = 384;
  const auto points = sequence<5>(7, kCount);
  for (std::size_t d = 0; d < 5; ++d) {
    std::vector<double> x{0.0, 1.0};
    for (const auto& point : points) x.push_back(point[d]);
    std::sort(x.begin(), x.end());
    double largest = 0.0;
    for (std::size_t i = 1; i < x.size(); ++i) largest = std::max(largest, x[i] - x[i - 1]);
    EXPECT_LT(largest, 6.0 / kCount) << d;  // random points: about log(384) / 384
  }
}

}  // namespace
}  // namespace neuroshard
