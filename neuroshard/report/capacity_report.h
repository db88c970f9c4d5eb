// The cost over numbers of devices and sizes of memory, as text with a chart, and as JSON.
#pragma once

#include <string>

#include "neuroshard/decide/capacity.h"
#include "neuroshard/io/json/json.h"

namespace neuroshard {

/// A row for each number of devices, a column for each memory; a bar chart of the costs, in
/// which sizes of memory with the same cost share a bar; the smallest cluster that fits, and the
/// cheapest.
[[nodiscard]] std::string capacity_text(const Capacity& capacity);

/// "neuroshard/capacity/1".
[[nodiscard]] Json capacity_json(const Capacity& capacity);

}  // namespace neuroshard
