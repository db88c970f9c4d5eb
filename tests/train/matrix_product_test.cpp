// The matrix product against three loops, for all shapes of operands and every instruction set.
#include "neuroshard/train/matrix_product.h"

#include <gtest/gtest.h>

#include <cmath>

#include "neuroshard/core/numbers/random.h"
#include "neuroshard/train/matrix_product_kernel.h"

namespace neuroshard {
namespace {

using Eigen::Index;
using Eigen::MatrixXf;

MatrixXf random_matrix(Index rows, Index columns, Random& random) {
  return MatrixXf::NullaryExpr(rows, columns,
                               [&] { return static_cast<float>(random.uniform(-1.0, 1.0)); });
}

struct Shape {
  Index rows, columns, depth;
};

constexpr Shape kShapes[] = {{1, 1, 1},    {3, 5, 7},     {8, 8, 8}, {16, 1, 33}, {1, 40, 16},
                             {65, 31, 17}, {128, 90, 34}, {2, 3, 0}, {0, 3, 2},   {3, 0, 2}};

MatrixXf naive(const MatrixXf& a, const MatrixXf& b, const MatrixXf& start) {
  MatrixXf c = start;
  for (Index i = 0; i < a.rows(); ++i) {
    for (Index j = 0; j < b.cols(); ++j) {
      double sum = start(i, j);
      for (Index k = 0; k < a.cols(); ++k) sum += static_cast<double>(a(i, k)) * b(k, j);
      c(i, j) = static_cast<float>(sum);
    }
  }
  return c;
}

void expect_close(const MatrixXf& actual, const MatrixXf& expected, Index depth) {
  ASSERT_EQ(actual.rows(), expected.rows());
  ASSERT_EQ(actual.cols(), expected.cols());
  const double tolerance = 1e-6 * std::sqrt(static_cast<double>(depth) + 1.0);
  for (Index i = 0; i < actual.size(); ++i) {
    EXPECT_NEAR(actual.data()[i], expected.data()[i], tolerance);
  }
}

void check(const kernels::AvailableProduct& product, const Shape& shape, bool ta, bool tb, bool add,
           Random& random) {
  SCOPED_TRACE(testing::Message() << product.instruction_set << ' ' << shape.rows << 'x'
                                  << shape.columns << 'x' << shape.depth << (ta ? " a'" : "")
                                  << (tb ? " b'" : "") << (add ? " add" : ""));
  const MatrixXf a = random_matrix(shape.rows, shape.depth, random);
  const MatrixXf b = random_matrix(shape.depth, shape.columns, random);
  const MatrixXf given_a = ta ? MatrixXf(a.transpose()) : a;
  const MatrixXf given_b = tb ? MatrixXf(b.transpose()) : b;
  MatrixXf c = random_matrix(shape.rows, shape.columns, random);
  const MatrixXf start = add ? c : MatrixXf::Zero(shape.rows, shape.columns);
  product.multiply(given_a.data(), ta, given_b.data(), tb, c.data(), shape.rows, shape.columns,
                   shape.depth, add);
  expect_close(c, naive(a, b, start), shape.depth);
}

TEST(MatrixProduct, MatchesThreeLoopsOnEveryInstructionSet) {
  Random random(1);
  for (const kernels::AvailableProduct& product : kernels::available_products()) {
    for (const Shape& shape : kShapes) {
      for (const int flags : {0, 1, 2, 3, 4, 5, 6, 7}) {
        check(product, shape, (flags & 1) != 0, (flags & 2) != 0, (flags & 4) != 0, random);
      }
    }
  }
}

TEST(MatrixProduct, AssignsAnyShapeAndAddsToTheSame) {
  Random random(2);
  const MatrixXf a = random_matrix(5, 7, random);
  const MatrixXf b = random_matrix(9, 7, random);
  MatrixXf c(1, 1);
  multiply(a, Transpose::no, b, Transpose::yes, Product::assign, c);
  const MatrixXf once = naive(a, b.transpose(), MatrixXf::Zero(5, 9));
  expect_close(c, once, 7);
  multiply(a, Transpose::no, b, Transpose::yes, Product::add, c);
  expect_close(c, 2.0F * once, 7);
}

}  // namespace
}  // namespace neuroshard
