// The matrix product for avx512 (flags in neuroshard/CMakeLists.txt).
#define Eigen Eigen_avx512
#define NEUROSHARD_MULTIPLY multiply_avx512
#include "neuroshard/train/matrix_product_kernel.inc"
