// How far from the best? A lower bound on the predicted cost of every plan of a task.
#pragma once

#include <limits>

#include "neuroshard/core/stop_clock.h"
#include "neuroshard/cost/simulator.h"

namespace neuroshard {

/// A lower bound [ms] on the predicted cost of every plan with these cuts that fits into memory.
/// Proof, for a computation model that is convex and increasing (is_convex_increasing) with head f,
/// and a communication model with floor g, convex and increasing likewise:
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
/// - **Choice by choice** (mean_device.h): let F(x) = f(T) + g(C) + ... be the cost of a mean
/// device
///   x, with what all devices' copies, all-reduce and partial sums add, at the least rate per byte,
///   and infinite where its memory exceeds the mean of the devices' memory. F is convex, and the
///   mean device of a plan is a sum over the tables of what each is cut into. For any linear
///   a + l x that is nowhere above F, then, each table cut (or copied) in the way of least l gives
///   a sum that no plan's F is below. l is F's tangent at a mean device that moves towards the
///   choices that it makes. This is never far below what any such argument can show, and usually
///   far above f(T / D) + g(C / D), where the cut that adds least differs from element to element.
/// - A plan that costs less than c has no piece that costs c on a device of its own, nor one that
/// no
///   device has memory for. If plans without such pieces cost at least c, all plans do.
/// - Some device holds at least 1/D of a table's columns, and costs no less than the cheapest way
///   of holding **that many or more**. (Of rows and columns: at least 1/D of the table, which adds
///   that share of the least per column of a whole row.) Of a table that names its devices, D is
///   their number.
/// - **Pins**: tables that stay together are one table that cannot be cut (bundled_task.h), whose
///   contribution is the sum of theirs. The devices of any set cost at least what their mean costs
///   with the tables that may lie on devices of the set alone, by the argument above with their
///   number for D: of the first 64 sets that tables name, each with the tables of all that lie
///   within it. So a device costs as much as the tables that may lie there alone. Otherwise, what
///   goes with what is bounded as if tables could lie anywhere, which is no higher.
///
/// The largest of these is returned, or `known_ms` if that is less; 0 if the model has no such
/// structure. Price: one encoding per table, multiple of 4 columns and share of rows, the square of
/// these multiples, and some ten looks at every one of the first 40,000 encodings; later tables are
/// cut as each element of the state has it least. Which pieces are looked at is in bound_pieces.h:
/// tables of more than 1,024 columns that may be cut, and the last of the wide ones where squares
/// or encodings would be too many, count with their communication and memory only. So do those
/// whose rows may be cut and have a known order: what a slice of them costs depends on which rows
/// it has, and models do not promise that slices cost no less together than the whole. Throws
/// TimeIsOver.
[[nodiscard]] double lower_bound_ms(const Simulator& simulator, const Cuts& cuts,
                                    double known_ms = std::numeric_limits<double>::infinity(),
                                    const StopClock& clock = {});

}  // namespace neuroshard
