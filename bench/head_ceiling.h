// The machine's ceiling for the cost network's head.
#pragma once

#include <cstddef>

namespace neuroshard::bench {

/// Sum over `num_states` states, `stride` doubles apart, and their `hidden` units of
/// max(state + bias, 0) * output: the loads and operations of as many heads, in one sum instead of
/// one for each state, with as many partial sums as keep the arithmetic units busy. No head can be
/// faster. Units beyond a multiple of these partial sums are left out.
[[nodiscard]] double head_ceiling(const double* states, std::size_t num_states, std::size_t stride,
                                  std::size_t hidden, const double* bias, const double* output);

}  // namespace neuroshard::bench
