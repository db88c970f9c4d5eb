// The memory of the devices that tables may lie on, and what is said where it is too little.
#include "neuroshard/search/memory/pinned_memory.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>
#include <utility>

#include "neuroshard/core/units.h"

namespace neuroshard {

namespace {

/// Distinct sets of devices of which every two are compared; of more, each is looked at alone.
constexpr std::size_t kMostSetsCompared = 500;
/// Comparisons of devices after which the clock is looked at, a millisecond: what takes less is
/// told even where the time is over.
constexpr std::size_t kComparisonsBetweenLooks = 1'000'000;
/// Tables that a message names.
constexpr std::size_t kMostNamed = 3;

/// Tables by the devices that they may lie on.
using TablesByDevices = std::map<std::vector<int>, std::vector<int>>;

TablesByDevices tables_by_devices(const Task& task, const TablePins& pins) {
  TablesByDevices tables;
  for (std::size_t t = 0; t < task.tables.size(); ++t) {
    const auto devices = pins.devices_of(static_cast<int>(t));
    if (!devices.empty()) {
      tables[{devices.begin(), devices.end()}].push_back(static_cast<int>(t));
    }
  }
  return tables;
}

/// Tables that may lie on no other devices than these.
std::vector<int> tables_within(const TablesByDevices& tables, const std::vector<int>& devices) {
  if (tables.size() > kMostSetsCompared) return tables.at(devices);
  std::vector<int> within;
  for (const auto& [others, of_them] : tables) {
    if (std::includes(devices.begin(), devices.end(), others.begin(), others.end())) {
      within.insert(within.end(), of_them.begin(), of_them.end());
    }
  }
  std::sort(within.begin(), within.end());
  return within;
}

}  // namespace

std::int64_t largest_permitted(const Task& task, const TablePins& pins, int table) {
  const std::vector<std::int64_t>& memory = task.topology.memory_bytes;
  std::int64_t largest = 0;
  for (const int device : pins.devices_of(table)) largest = std::max(largest, memory[device]);
  return pins.devices_of(table).empty() ? *std::max_element(memory.begin(), memory.end()) : largest;
}

std::optional<PinnedShortage> pinned_shortage(const Task& task, const TablePins& pins,
                                              std::span<const std::int64_t> needed,
                                              std::span<const std::int64_t> narrowest,
                                              const StopClock& clock) {
  std::optional<PinnedShortage> found;
  const auto keep = [&](PinnedShortage shortage) {
    const bool is_first = !found || shortage.devices.size() < found->devices.size();
    if (is_first && shortage.needed > shortage.available) found = std::move(shortage);
  };
  const TablesByDevices tables = tables_by_devices(task, pins);
  std::size_t comparisons = 0;
  for (const auto& [devices, of_them] : tables) {
    comparisons += tables.size() * devices.size();
    if (comparisons >= kComparisonsBetweenLooks) {
      comparisons = 0;
      if (clock.is_over()) break;
    }
    for (const int t : of_them) {
      keep({{t}, devices, true, narrowest[t], largest_permitted(task, pins, t)});
    }
    PinnedShortage of_all{tables_within(tables, devices), devices};
    for (const int t : of_all.tables) of_all.needed += needed[t];
    for (const int device : devices) {
      of_all.available += task.topology.memory_bytes[device];
    }
    keep(std::move(of_all));
  }
  return found;
}

std::string tables_text(const Task& original, const BundledTask& bundled,
                        const std::vector<int>& tables) {
  std::vector<std::string> names;
  for (const int table : tables) {
    for (const int member : bundled.members()[table]) {
      names.push_back(fmt::format("\"{}\"", original.tables[member].name));
    }
  }
  if (names.size() == 1) return "table " + names.front();
  if (names.size() > kMostNamed + 1) {
    const std::size_t more = names.size() - kMostNamed;
    names.resize(kMostNamed);
    names.push_back(fmt::format("{} more", more));
  }
  const std::string last = std::move(names.back());
  names.pop_back();
  return fmt::format("tables {} and {}", fmt::join(names, ", "), last);
}

std::string shortage_text(const Task& original, const BundledTask& bundled,
                          const PinnedShortage& shortage) {
  const std::string tables = tables_text(original, bundled, shortage.tables);
  const std::string devices = devices_text(shortage.devices);
  const bool one_table =
      shortage.tables.size() == 1 && bundled.members()[shortage.tables.front()].size() == 1;
  const std::string what = shortage.of_one_piece && one_table ? "the narrowest piece of " : "";
  const char* have = shortage.devices.size() == 1 ? "has"
                     : shortage.of_one_piece      ? "have at most"
                                                  : "have";
  return fmt::format(
      "{}{} {} {}, and {}, on which alone {} may lie, {} {}", what, tables,
      one_table ? "needs" : "need", format_bytes(static_cast<double>(shortage.needed)), devices,
      one_table ? "it" : "they", have, format_bytes(static_cast<double>(shortage.available)));
}

}  // namespace neuroshard
