// Choice of the matrix product's instruction set.
#include "neuroshard/train/matrix_product.h"

#include <cassert>

#include "neuroshard/train/matrix_product_kernel.h"

namespace neuroshard {

std::vector<kernels::AvailableProduct> kernels::available_products() {
  std::vector<AvailableProduct> products{{"baseline", multiply_baseline}};
#if defined(__x86_64__)
  // The levels x86-64-v3 and v4, feature by feature: not every compiler knows them by name here.
  const bool v3 = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") &&
                  __builtin_cpu_supports("bmi") && __builtin_cpu_supports("bmi2");
  const bool v4 = v3 && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
                  __builtin_cpu_supports("avx512cd") && __builtin_cpu_supports("avx512dq") &&
                  __builtin_cpu_supports("avx512vl");
  if (v3) products.push_back({"avx2", multiply_avx2});
  if (v4) products.push_back({"avx512", multiply_avx512});
#endif
  return products;
}

void multiply(const Eigen::MatrixXf& a, Transpose transpose_a, const Eigen::MatrixXf& b,
              Transpose transpose_b, Product product, Eigen::MatrixXf& c) {
  static const kernels::Multiply run = kernels::available_products().back().multiply;
  const bool ta = transpose_a == Transpose::yes;
  const bool tb = transpose_b == Transpose::yes;
  const Eigen::Index rows = ta ? a.cols() : a.rows();
  const Eigen::Index depth = ta ? a.rows() : a.cols();
  const Eigen::Index columns = tb ? b.rows() : b.cols();
  assert(depth == (tb ? b.cols() : b.rows()));
  if (product == Product::assign) c.resize(rows, columns);
  assert(c.rows() == rows && c.cols() == columns);
  run(a.data(), ta, b.data(), tb, c.data(), rows, columns, depth, product == Product::add);
}

}  // namespace neuroshard
