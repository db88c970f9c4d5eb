// The innermost loop of the search: the heads of many device states with one piece added.
#pragma once

#include <cstddef>

namespace neuroshard::kernels {

/// costs[i] = offset + s_i[1] + sum_j output[j] * max(s_i[2 + j] + bias[j], 0), or 0 if s_i[0] is
/// 0, where s_i = states[i * (2 + hidden) ...] + piece (`piece` may be null: the states as they
/// are). Results differ between instruction sets by rounding of the sum only.
void head_costs(const double* states, std::size_t num_states, const double* piece,
                std::size_t hidden, const double* bias, const double* output, double offset,
                double* costs);

}  // namespace neuroshard::kernels
