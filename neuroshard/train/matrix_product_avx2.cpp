// The matrix product for avx2 (flags in neuroshard/CMakeLists.txt).
#define Eigen Eigen_avx2
#define NEUROSHARD_MULTIPLY multiply_avx2
#include "neuroshard/train/matrix_product_kernel.inc"
