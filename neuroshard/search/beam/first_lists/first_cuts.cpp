// Combinations of numbers of slices and of tables.
#include "neuroshard/search/beam/first_lists/first_cuts.h"

#include <algorithm>
#include <array>

#include "neuroshard/search/slices/row_slices.h"

namespace neuroshard {

namespace {

constexpr int kMostFirstSlices = 16;
constexpr std::array<std::size_t, 8> kFirstSlicedTables{1, 2, 3, 5, 8, 13, 20, 40};
constexpr int kSmallestFirstShare = 16;

}  // namespace

std::vector<FirstCuts> first_cuts(const Task& task, std::int64_t most_pieces) {
  const int devices = task.topology.world_size;
  const int most_slices = std::min(devices, kMostFirstSlices);
  std::vector<int> numbers;
  for (int num_slices = 2; num_slices < most_slices; num_slices *= 2) {
    numbers.push_back(num_slices);
  }
  if (most_slices > 1) numbers.push_back(most_slices);
  std::vector<FirstCuts> all;
  for (const int num_slices : numbers) {
    for (const std::size_t count : kFirstSlicedTables) {
      for (const int parts : {1, 4}) all.push_back({num_slices, count, parts});
    }
  }
  // A slice for each device: what is left over evens out a table of most of the lookups alone.
  if (devices > most_slices && devices <= kMostEvenSlices) {
    for (const std::size_t count : kFirstSlicedTables) all.push_back({devices, count, 1});
  }
  for (int parts = 2; parts <= kSmallestFirstShare; parts *= 2) all.push_back({0, 0, parts});
  const std::int64_t most = most_pieces / static_cast<std::int64_t>(task.tables.size());
  const auto kept = static_cast<std::size_t>(
      std::clamp<std::int64_t>(most, 1, static_cast<std::int64_t>(all.size())));
  if (kept == all.size()) return all;
  std::reverse(all.begin(), all.end());
  std::rotate(all.begin(),
              std::find_if(all.begin(), all.end(),
                           [](const FirstCuts& cuts) { return cuts.num_slices > 0; }),
              all.end());
  std::vector<FirstCuts> some;
  for (std::size_t i = 0; i < kept; ++i) some.push_back(all[i * all.size() / kept]);
  return some;
}

}  // namespace neuroshard
