// Does any column-wise plan fit where devices must be filled to almost the last byte? Device after
// device, each with a set of pieces that fills it.
#pragma once

#include "neuroshard/search/memory/exact_memory_fit.h"

namespace neuroshard {

/// Fills one device after the other: tries the ways to take columns from what is left of each table
/// that leave the other devices enough memory for the rest. What the lightest tables can add up to
/// is listed and sorted, so that the room that the heavier ones leave is looked up, not tried.
/// Where memory is tight hardly any way fills a device, so that few remain; `fit_exactly`, table
/// after table, sees only at its last tables whether the devices come out full.
///
/// A search that began badly may take forever where another order of the devices finds a plan at
/// once: rising numbers of steps are tried in several orders, always the same ones. Stops, without
/// an answer, after some 700,000 steps, which take about 50 ms, and at once for tasks of more than
/// 64 devices or 1024 devices times tables. Tables that stay together are one that cannot be cut.
/// Throws TimeIsOver.
[[nodiscard]] ExactFit fit_full_devices(const Task& task, const StopClock& clock = {});

}  // namespace neuroshard
