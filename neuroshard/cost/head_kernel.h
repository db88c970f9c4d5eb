// The innermost loop of the search: the heads of many device states with one piece added.
#pragma once

#include <cstddef>

namespace neuroshard::kernels {

/// costs[i] = offset + s_i[1] + sum_j output[j] * max(s_i[2 + j] + bias[j], 0), or 0 if s_i[0] is
/// 0, where s_i = states[i * stride ...] + piece (`piece` may be null: the states as they are).
/// Results differ between instruction sets by rounding of the sum only.
void head_costs(const double* states, std::size_t num_states, std::size_t stride,
                const double* piece, std::size_t hidden, const double* bias, const double* output,
                double offset, double* costs);

/// sums[i] = sum_j output[j] * max(s_i[j] + bias[j], 0), with s_i as above.
void hidden_sums(const double* states, std::size_t num_states, std::size_t stride,
                 const double* piece, std::size_t hidden, const double* bias, const double* output,
                 double* sums);

/// state[i] += contribution[i], and its reverse.
void add(double* state, const double* contribution, std::size_t size);
void subtract(double* state, const double* contribution, std::size_t size);

}  // namespace neuroshard::kernels
