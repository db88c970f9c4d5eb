// Where tables may lie on some devices alone: have those the memory?
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "neuroshard/core/numbers/byte_sum.h"
#include "neuroshard/core/stop_clock.h"
#include "neuroshard/core/table_pins.h"
#include "neuroshard/search/groups/bundled_task.h"

namespace neuroshard {

/// Tables for which the devices that they may lie on have too little memory.
struct PinnedShortage {
  std::vector<int> tables{};   ///< which may lie on no other devices than these
  std::vector<int> devices{};  ///< rising
  bool of_one_piece = false;   ///< one table, of which not even the narrowest piece has room
  WideBytes needed = 0;        ///< bytes, of that piece or of all tables
  WideBytes available = 0;     ///< bytes, on the largest of the devices or on all
};

/// The largest capacity of a device on which the table may lie [bytes].
[[nodiscard]] std::int64_t largest_permitted(const Task& task, const TablePins& pins, int table);

/// A shortage that shows that no plan fits, the one of the fewest devices; none if there is none,
/// or if telling takes more than a look at each set of devices and the tables within it. `needed`
/// and `narrowest` have the bytes of every table: at least, on devices of the largest capacity
/// where it may lie; and of its narrowest piece. Tables of the task stay with none. Where the time
/// is over and there are many sets of many devices, one that was found by then, if any.
[[nodiscard]] std::optional<PinnedShortage> pinned_shortage(const Task& task, const TablePins& pins,
                                                            std::span<const std::int64_t> needed,
                                                            std::span<const std::int64_t> narrowest,
                                                            const StopClock& clock = {});

/// Tables of the bundled task by their names in the original: `table "a"`, `tables "a" and "b"`,
/// `tables "a", "b", "c" and 7 more`.
[[nodiscard]] std::string tables_text(const Task& original, const BundledTask& bundled,
                                      const std::vector<int>& tables);

/// "tables "a" and "b" need 20 GiB, and device 0, on which alone they may lie, has 16 GiB".
[[nodiscard]] std::string shortage_text(const Task& original, const BundledTask& bundled,
                                        const PinnedShortage& shortage);

}  // namespace neuroshard
