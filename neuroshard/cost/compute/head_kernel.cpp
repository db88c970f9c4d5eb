// Sums of device states and the heads on them, compiled once per instruction set.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "neuroshard/cost/compute/head_kernel.cpp"
#include <hwy/foreach_target.h>  // must come before highway.h
// clang-format off
#include <hwy/highway.h>
// clang-format on

#include <cmath>

#include "neuroshard/cost/compute/head_kernel.h"

HWY_BEFORE_NAMESPACE();
namespace neuroshard::kernels::HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;

/// sum_j output[j] * max(value(j), 0), where `values(j)` are value(j), value(j + 1), ... in a
/// vector.
template <class Values, class Value>
HWY_INLINE double active_sum(std::size_t hidden, const double* HWY_RESTRICT output,
                             const Values& values, const Value& value) {
  const hn::ScalableTag<double> d;
  const std::size_t lanes = hn::Lanes(d);
  auto sum0 = hn::Zero(d);
  auto sum1 = hn::Zero(d);
  const auto active = [&](std::size_t j) HWY_ATTR { return hn::Max(values(j), hn::Zero(d)); };
  std::size_t j = 0;
  for (; j + 2 * lanes <= hidden; j += 2 * lanes) {
    sum0 = hn::MulAdd(active(j), hn::LoadU(d, output + j), sum0);
    sum1 = hn::MulAdd(active(j + lanes), hn::LoadU(d, output + j + lanes), sum1);
  }
  if (j + lanes <= hidden) {
    sum0 = hn::MulAdd(active(j), hn::LoadU(d, output + j), sum0);
    j += lanes;
  }
  double total = hn::GetLane(hn::SumOfLanes(d, hn::Add(sum0, sum1)));
  for (; j < hidden; ++j) {
    const double one = value(j);
    if (one > 0.0) total += one * output[j];
  }
  return total;
}

template <bool kWithPiece>
HWY_INLINE double hidden_sum(const double* HWY_RESTRICT state, const double* HWY_RESTRICT piece,
                             std::size_t hidden, const double* HWY_RESTRICT bias,
                             const double* HWY_RESTRICT output) {
  const hn::ScalableTag<double> d;
  return active_sum(
      hidden, output,
      [&](std::size_t j) HWY_ATTR {
        const auto value = hn::Add(hn::LoadU(d, state + j), hn::LoadU(d, bias + j));
        if constexpr (kWithPiece) return hn::Add(value, hn::LoadU(d, piece + j));
        return value;
      },
      [&](std::size_t j) { return state[j] + bias[j] + (kWithPiece ? piece[j] : 0.0); });
}

/// As `hidden_sum` without a piece, after the piece was added to the state.
HWY_INLINE double hidden_sum_after(double* HWY_RESTRICT state, const double* HWY_RESTRICT piece,
                                   std::size_t hidden, const double* HWY_RESTRICT bias,
                                   const double* HWY_RESTRICT output) {
  const hn::ScalableTag<double> d;
  return active_sum(
      hidden, output,
      [&](std::size_t j) HWY_ATTR {
        const auto value = hn::Add(hn::LoadU(d, state + j), hn::LoadU(d, piece + j));
        hn::StoreU(value, d, state + j);
        return hn::Add(value, hn::LoadU(d, bias + j));
      },
      [&](std::size_t j) {
        state[j] += piece[j];
        return state[j] + bias[j];
      });
}

void head_costs(const double* states, std::size_t num_states, std::size_t stride,
                const double* piece, std::size_t hidden, const double* bias, const double* output,
                double offset, double* costs) {
  for (std::size_t i = 0; i < num_states; ++i) {
    const double* state = states + i * stride;
    if (piece != nullptr) {
      costs[i] = offset + state[1] + piece[1] +
                 hidden_sum<true>(state + 2, piece + 2, hidden, bias, output);
    } else {
      costs[i] = state[0] == 0.0 ? 0.0
                                 : offset + state[1] +
                                       hidden_sum<false>(state + 2, nullptr, hidden, bias, output);
    }
  }
}

void member_sums(const double* state, const double* piece, const std::size_t* hidden,
                 std::size_t num_members, const double* bias, const double* output, double* sums) {
  std::size_t first = 0;
  for (std::size_t m = 0; m < num_members; ++m) {
    sums[m] = piece != nullptr ? hidden_sum<true>(state + first, piece + first, hidden[m],
                                                  bias + first, output + first)
                               : hidden_sum<false>(state + first, nullptr, hidden[m], bias + first,
                                                   output + first);
    first += hidden[m];
  }
}

void add(double* HWY_RESTRICT state, const double* HWY_RESTRICT contribution, std::size_t size) {
  const hn::ScalableTag<double> d;
  const std::size_t lanes = hn::Lanes(d);
  std::size_t i = 0;
  for (; i + lanes <= size; i += lanes) {
    hn::StoreU(hn::Add(hn::LoadU(d, state + i), hn::LoadU(d, contribution + i)), d, state + i);
  }
  for (; i < size; ++i) state[i] += contribution[i];
}

double add_and_cost(double* HWY_RESTRICT state, const double* HWY_RESTRICT contribution,
                    std::size_t size, std::size_t hidden, const double* HWY_RESTRICT bias,
                    const double* HWY_RESTRICT output, double offset) {
  state[0] += contribution[0];
  state[1] += contribution[1];
  const double sum = hidden_sum_after(state + 2, contribution + 2, hidden, bias, output);
  add(state + 2 + hidden, contribution + 2 + hidden, size - 2 - hidden);
  return state[0] == 0.0 ? 0.0 : offset + state[1] + sum;
}

void subtract(double* HWY_RESTRICT state, const double* HWY_RESTRICT contribution,
              std::size_t size) {
  const hn::ScalableTag<double> d;
  const std::size_t lanes = hn::Lanes(d);
  std::size_t i = 0;
  for (; i + lanes <= size; i += lanes) {
    hn::StoreU(hn::Sub(hn::LoadU(d, state + i), hn::LoadU(d, contribution + i)), d, state + i);
  }
  for (; i < size; ++i) state[i] -= contribution[i];
}

void round_to_multiples(double* values, std::size_t size, double grid) {
  const hn::ScalableTag<double> d;
  const std::size_t lanes = hn::Lanes(d);
  const double inverse = 1.0 / grid;
  std::size_t i = 0;
  for (; i + lanes <= size; i += lanes) {
    const auto steps = hn::Round(hn::Mul(hn::LoadU(d, values + i), hn::Set(d, inverse)));
    // Without SSE4.1, rounding to 0 loses the sign.
    const auto rounded = hn::Mul(steps, hn::Set(d, grid));
    hn::StoreU(hn::CopySign(rounded, hn::LoadU(d, values + i)), d, values + i);
  }
  for (; i < size; ++i) values[i] = std::nearbyint(values[i] * inverse) * grid;
}

}  // namespace neuroshard::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace neuroshard::kernels {

HWY_EXPORT(head_costs);
HWY_EXPORT(member_sums);
HWY_EXPORT(add_and_cost);
HWY_EXPORT(add);
HWY_EXPORT(subtract);
HWY_EXPORT(round_to_multiples);

void head_costs(const double* states, std::size_t num_states, std::size_t stride,
                const double* piece, std::size_t hidden, const double* bias, const double* output,
                double offset, double* costs) {
  HWY_DYNAMIC_DISPATCH(head_costs)
  (states, num_states, stride, piece, hidden, bias, output, offset, costs);
}

void member_sums(const double* state, const double* piece, const std::size_t* hidden,
                 std::size_t num_members, const double* bias, const double* output, double* sums) {
  HWY_DYNAMIC_DISPATCH(member_sums)(state, piece, hidden, num_members, bias, output, sums);
}

double add_and_cost(double* state, const double* contribution, std::size_t size, std::size_t hidden,
                    const double* bias, const double* output, double offset) {
  return HWY_DYNAMIC_DISPATCH(add_and_cost)(state, contribution, size, hidden, bias, output,
                                            offset);
}

void add(double* state, const double* contribution, std::size_t size) {
  HWY_DYNAMIC_DISPATCH(add)(state, contribution, size);
}

void subtract(double* state, const double* contribution, std::size_t size) {
  HWY_DYNAMIC_DISPATCH(subtract)(state, contribution, size);
}

void round_to_multiples(double* values, std::size_t size, double grid) {
  HWY_DYNAMIC_DISPATCH(round_to_multiples)(values, size, grid);
}

}  // namespace neuroshard::kernels
#endif
