// Which tables of a task stand for the same rows, cut in several ways.
#pragma once

#include <cassert>
#include <cstddef>
#include <utility>
#include <vector>

namespace neuroshard {

/// One way of cutting the rows of a table: tables of the task at hand, each a slice.
using Slicing = std::vector<int>;

/// Groups of tables of a task that are alternatives: a plan has the columns of the tables of one
/// way of each group, and none of the others'.
class Slicings {
 public:
  /// Where a table belongs.
  struct Place {
    int group = -1;  ///< negative: to none, it is in every plan
    int way = 0;
  };

  /// Adds a group; no table may be in two.
  void add(std::vector<Slicing> ways) {
    for (std::size_t way = 0; way < ways.size(); ++way) {
      for (const int table : ways[way]) {
        if (places_.size() <= static_cast<std::size_t>(table)) places_.resize(table + 1);
        assert(places_[table].group < 0);
        places_[table] = {static_cast<int>(groups_.size()), static_cast<int>(way)};
      }
    }
    groups_.push_back(std::move(ways));
  }

  [[nodiscard]] bool empty() const { return groups_.empty(); }
  [[nodiscard]] Place place_of(int table) const {
    return static_cast<std::size_t>(table) < places_.size() ? places_[table] : Place{};
  }
  [[nodiscard]] int num_groups() const { return static_cast<int>(groups_.size()); }
  [[nodiscard]] const std::vector<Slicing>& ways(int group) const { return groups_[group]; }

 private:
  std::vector<std::vector<Slicing>> groups_;  ///< [group][way]
  std::vector<Place> places_;                 ///< by table; the last ones may be missing
};

}  // namespace neuroshard
