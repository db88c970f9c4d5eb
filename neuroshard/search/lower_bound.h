// How far from the best? A lower bound on the predicted cost of every plan of a task.
#pragma once

#include "neuroshard/cost/simulator.h"

namespace neuroshard {

/// A lower bound [ms] on the predicted cost of every plan, cut and placed in any way, memory left
/// aside. Proof, for a computation model that is convex and increasing (is_convex_increasing) with
/// head f, and a communication model with floor g, convex and increasing likewise:
///
/// - However a table is cut, its pieces add at least `least` to each element of the states, the
///   minimum over all ways of dividing its columns, which dynamic programming gives. So the states
///   of all devices add up to at least T, the sum of `least` over the tables; and columns to C.
/// - The devices that hold anything, m <= D of them, cost f(S_d) + g(C_d) at least. The largest of
///   m values is no less than their mean, that by convexity no less than f + g of the mean device,
///   and that, as both increase, no less than **f(T / D) + g(C / D)**.
/// - Some device holds at least 1/D of a table's columns, and costs no less than the cheapest way
///   of holding **that many or more**.
///
/// The larger of the two is returned; 0 if the model has no such structure. Price: one encoding per
/// table and multiple of 4 columns, and the square of these multiples. Tables of more than 1,024
/// columns, and the last of the wide ones where the squares would add up to more than some ten
/// seconds, count with their communication only.
[[nodiscard]] double lower_bound_ms(const Simulator& simulator);

}  // namespace neuroshard
