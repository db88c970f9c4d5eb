// How far from the best? A lower bound on the predicted cost of every plan of a task.
#pragma once

#include <limits>

#include "neuroshard/core/stop_clock.h"
#include "neuroshard/cost/simulator.h"

namespace neuroshard {

/// A lower bound [ms] on the predicted cost of every plan with these cuts, placed in any way,
/// memory left aside. Proof, for a computation model that is convex and increasing
/// (is_convex_increasing) with head f, and a communication model with floor g, convex and
/// increasing likewise:
///
/// - However a table is cut, its pieces add at least `least` to each element of the states, the
///   minimum over all ways of dividing its columns, which dynamic programming gives. So the states
///   of all devices add up to at least T, the sum of `least` over the tables; and columns to C.
/// - With **rows**, a piece of n columns that has the share s of the rows adds h(s, n), which is at
///   least s times the minimum of h(s', n) / s' over all shares s' that a slice may have. Each row
///   has all columns in some division, so that the same dynamic programming on these minima, for a
///   whole row, bounds the sum of all pieces. The shares are those of 2, 3, 4, 6, 8, 12 and 16
///   equal slices, of any power of two, as far as there are devices, and of as many as there are
///   devices or half as many, up to kMostEvenSlices; neighbours on a device joined; rows that do
///   not divide evenly count as if they did. Plans with slices of other sizes are not looked at:
///   those that memory makes necessary or that are a small part of a device's memory, as many as
///   there are more than kMostEvenSlices devices, and those of other planners.
/// - With **copies**, a table on every one of several devices takes its t from T and its c from C,
///   and adds a contribution r to the operator of copies, which then costs at least the sum of
///   their linear parts (least_rise_ms). By convexity f(T / D) falls by no more than the sum of
///   f((T + t) / D) - f(T / D) over these tables, and g likewise. So for each table that may be on
///   every device the excess of these differences over the linear part of r is subtracted, if there
///   is one: those are the tables that memory has room for on each device, and whose all-reduce
///   alone costs less than `known_ms`, the cost of a plan.
/// - The devices that hold anything, m <= D of them, cost f(S_d) + g(C_d) at least. The largest of
///   m values is no less than their mean, that by convexity no less than f + g of the mean device,
///   and that, as both increase, no less than **f(T / D) + g(C / D)**.
/// - Some device holds at least 1/D of a table's columns, and costs no less than the cheapest way
///   of holding **that many or more**. (Of rows and columns: at least 1/D of the table, which adds
///   that share of the least per column of a whole row.)
///
/// The larger of the two is returned, or `known_ms` if that is less; 0 if the model has no such
/// structure. Price: one encoding per table, multiple of 4 columns and share of rows, and the
/// square of these multiples. Tables of more than 1,024 columns, and the last of the wide ones
/// where squares or encodings would add up to more than some ten seconds (with rows: to one), and
/// those with a row order that may be cut in rows, count with their communication only. Throws
/// TimeIsOver.
[[nodiscard]] double lower_bound_ms(const Simulator& simulator, const Cuts& cuts,
                                    double known_ms = std::numeric_limits<double>::infinity(),
                                    const StopClock& clock = {});

}  // namespace neuroshard
