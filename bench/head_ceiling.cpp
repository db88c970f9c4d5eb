// The head's loop without the work done once for each state, compiled once per instruction set.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "bench/head_ceiling.cpp"
#include <hwy/foreach_target.h>  // must come before highway.h
// clang-format off
#include <hwy/highway.h>
// clang-format on

#include "bench/head_ceiling.h"

HWY_BEFORE_NAMESPACE();
namespace neuroshard::bench::HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;

double head_ceiling(const double* HWY_RESTRICT states, std::size_t num_states, std::size_t stride,
                    std::size_t hidden, const double* HWY_RESTRICT bias,
                    const double* HWY_RESTRICT output) {
  const hn::ScalableTag<double> d;
  const std::size_t lanes = hn::Lanes(d);
  auto sum0 = hn::Zero(d);
  auto sum1 = hn::Zero(d);
  auto sum2 = hn::Zero(d);
  auto sum3 = hn::Zero(d);
  for (std::size_t i = 0; i < num_states; ++i) {
    const double* HWY_RESTRICT state = states + i * stride;
    const auto add_to = [&](auto& sum, std::size_t j) HWY_ATTR {
      const auto value = hn::Add(hn::LoadU(d, state + j), hn::LoadU(d, bias + j));
      sum = hn::MulAdd(hn::Max(value, hn::Zero(d)), hn::LoadU(d, output + j), sum);
    };
    for (std::size_t j = 0; j + 4 * lanes <= hidden; j += 4 * lanes) {
      add_to(sum0, j);
      add_to(sum1, j + lanes);
      add_to(sum2, j + 2 * lanes);
      add_to(sum3, j + 3 * lanes);
    }
  }
  return hn::GetLane(hn::SumOfLanes(d, hn::Add(hn::Add(sum0, sum1), hn::Add(sum2, sum3))));
}

}  // namespace neuroshard::bench::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace neuroshard::bench {

HWY_EXPORT(head_ceiling);

double head_ceiling(const double* states, std::size_t num_states, std::size_t stride,
                    std::size_t hidden, const double* bias, const double* output) {
  return HWY_DYNAMIC_DISPATCH(head_ceiling)(states, num_states, stride, hidden, bias, output);
}

}  // namespace neuroshard::bench
#endif
