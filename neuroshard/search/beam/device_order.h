// Devices by rising cost, for a greedy algorithm that always wants the cheapest one.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

namespace neuroshard {

/// Equal costs are ordered by the device's number. An array in order with binary search: the
/// cheapest devices are read in a row, and a change moves few bytes even with a thousand devices.
class DeviceOrder {
 public:
  struct Entry {
    double cost;
    int device;
  };

  /// Ranks the devices 0, 1, ... of these costs.
  void assign(std::span<const double> costs);

  /// By rising cost.
  [[nodiscard]] std::span<const Entry> entries() const { return entries_; }

  /// Gives the device at this rank a new cost and its place.
  void change(std::size_t rank, double cost);

 private:
  std::vector<Entry> entries_;
};

}  // namespace neuroshard
