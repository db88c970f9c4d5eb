// States in memory: where rows begin, and that growth keeps their values.
#include "neuroshard/search/state_rows.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

namespace neuroshard {
namespace {

void expect_aligned(const StateRows& rows, std::size_t count) {
  for (std::size_t row = 0; row < count; ++row) {
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(rows[row].data() + 2) % 64, 0u)
        << "row " << row << " of " << rows.state_size();
  }
}

/// Values that tell rows and elements apart.
void fill(StateRows& rows, std::size_t first, std::size_t last) {
  for (std::size_t row = first; row < last; ++row) {
    for (std::size_t i = 0; i < rows.state_size(); ++i) {
      rows[row][i] = static_cast<double>(1000 * row + i + 1);
    }
  }
}

void expect_filled(const StateRows& rows, std::size_t count) {
  for (std::size_t row = 0; row < count; ++row) {
    ASSERT_EQ(rows[row].size(), rows.state_size());
    for (std::size_t i = 0; i < rows.state_size(); ++i) {
      EXPECT_EQ(rows[row][i], static_cast<double>(1000 * row + i + 1));
    }
  }
}

bool is_zero(std::span<const double> row) {
  return std::all_of(row.begin(), row.end(), [](double value) { return value == 0.0; });
}

/// All remainders of a cache line's elements.
std::vector<std::size_t> state_sizes() {
  std::vector<std::size_t> sizes{101, 194};
  for (std::size_t size = 2; size <= 20; ++size) sizes.push_back(size);
  return sizes;
}

TEST(StateRows, GrowthKeepsValuesAndAlignmentAndAddsZeros) {
  for (const std::size_t size : state_sizes()) {
    StateRows rows(size);
    EXPECT_EQ(rows.state_size(), size);
    std::size_t before = 0;
    for (const std::size_t count : {1, 2, 3, 10, 11, 100}) {
      rows.resize(count);
      expect_aligned(rows, count);
      expect_filled(rows, before);
      for (std::size_t row = before; row < count; ++row) EXPECT_TRUE(is_zero(rows[row]));
      fill(rows, before, count);
      before = count;
    }
    expect_filled(rows, before);
  }
}

TEST(StateRows, RowsThatWereTakenAwayComeBackAsZeros) {
  StateRows rows(5, 4);
  fill(rows, 0, 4);
  rows.resize(2);
  rows.resize(4);
  expect_filled(rows, 2);
  EXPECT_TRUE(is_zero(rows[2]));
  EXPECT_TRUE(is_zero(rows[3]));
}

TEST(StateRows, BeginAndCanBeSetToZero) {
  for (const std::size_t size : state_sizes()) {
    StateRows rows(size, 7);
    expect_aligned(rows, 7);
    for (std::size_t row = 0; row < 7; ++row) EXPECT_TRUE(is_zero(rows[row]));
    fill(rows, 0, 7);
    rows.set_to_zero();
    for (std::size_t row = 0; row < 7; ++row) EXPECT_TRUE(is_zero(rows[row]));
  }
}

TEST(StateRows, CopiesAndMovedRowsAreAlignedToo) {
  StateRows rows(9, 6);
  fill(rows, 0, 6);
  StateRows copy = rows;
  copy[0][0] = -1.0;
  expect_filled(rows, 6);
  expect_aligned(copy, 6);
  copy[0][0] = 1.0;
  const StateRows moved = std::move(copy);
  expect_aligned(moved, 6);
  expect_filled(moved, 6);
}

}  // namespace
}  // namespace neuroshard
