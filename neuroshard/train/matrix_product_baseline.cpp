// The matrix product for baseline (flags in neuroshard/CMakeLists.txt).
#define Eigen Eigen_baseline
#define NEUROSHARD_MULTIPLY multiply_baseline
#include "neuroshard/train/matrix_product_kernel.inc"
