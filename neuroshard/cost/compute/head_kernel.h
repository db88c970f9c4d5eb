// The innermost loops of the search: sums of device states and the heads on them.
#pragma once

#include <cstddef>

namespace neuroshard::kernels {

/// costs[i] = offset + s_i[1] + sum_j output[j] * max(s_i[2 + j] + bias[j], 0), or 0 if s_i[0] is
/// 0, where s_i = states[i * stride ...] + piece (`piece` may be null: the states as they are).
/// Results differ between instruction sets by rounding of the sum only.
void head_costs(const double* states, std::size_t num_states, std::size_t stride,
                const double* piece, std::size_t hidden, const double* bias, const double* output,
                double offset, double* costs);

/// One state's hidden sums, `hidden[m]` of each of `num_members` networks one after the other:
/// sums[m] = sum_j output[j] * max(s[j] + bias[j], 0) over the network's own, s as above.
void member_sums(const double* state, const double* piece, const std::size_t* hidden,
                 std::size_t num_members, const double* bias, const double* output, double* sums);

/// Adds the contribution of `size` elements to the state; returns the cost that `head_costs` gives
/// for the result, bit for bit.
double add_and_cost(double* state, const double* contribution, std::size_t size, std::size_t hidden,
                    const double* bias, const double* output, double offset);

/// state[i] += contribution[i], and its reverse.
void add(double* state, const double* contribution, std::size_t size);
void subtract(double* state, const double* contribution, std::size_t size);

/// Each value rounded to the nearest multiple (ties to even) of `grid`, a power of two.
void round_to_multiples(double* values, std::size_t size, double grid);

}  // namespace neuroshard::kernels
