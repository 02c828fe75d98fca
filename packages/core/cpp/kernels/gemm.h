// Matrix products of any layout, cut into tiles whose grid depends on the sizes alone.
#ifndef PLAIT_CORE_GEMM_H
#define PLAIT_CORE_GEMM_H
#include "kernels/blas.h"
#include "kernels/matrix.h"

namespace plait::core {

// c = alpha a b + beta c for an m x k a, a k x n b, and c with rows of ldc elements. beta 0: c
// isn't read.
template <class T>
struct Product {
  int64_t m, n, k;
  T alpha;
  Matrix<T> a, b;
  T beta;
  T *c;
  int64_t ldc;
};

// On the calling thread: by BLAS if it takes the strides, else by plait's own loops.
template <class T>
void gemm_serial(const Product<T> &p);

// On all threads, any strides.
template <class T>
plait_status gemm(const plait_call *c, Product<T> p);

// Whether the user wants rows that do not depend on the others.
bool batch_invariant();

// Whether BLAS takes the strides of a rows x columns matrix.
template <class T>
bool is_plain(const Matrix<T> &a, int64_t rows, int64_t columns);

// Of complex numbers, gemm_complex.cpp.
template <>
plait_status gemm(const plait_call *c, Product<Complex64> p);
template <>
plait_status gemm(const plait_call *c, Product<Complex128> p);
template <>
void gemm_serial(const Product<Complex64> &p);
template <>
void gemm_serial(const Product<Complex128> &p);
template <>
bool is_plain(const Matrix<Complex64> &a, int64_t rows, int64_t columns);
template <>
bool is_plain(const Matrix<Complex128> &a, int64_t rows, int64_t columns);

// plait's own loops: no library needed, any strides, integers too.
template <class T>
void gemm_own(const Product<T> &p);

// Small products, whose operands are not worth packing. False, and nothing done, if the product
// isn't small, or b is neither dense nor transposed and small. Not for the batch-invariant mode.
constexpr int64_t kDirect = 1 << 16;
template <class T>
bool gemm_direct(Product<T> p);

// Large products on processors with wide tiles, on all threads. DECLINE, and nothing done, if there
// are none, or the product is small, huge, or laid out as they don't take it.
template <class T>
plait_status gemm_tiled(const plait_call *c, const Product<T> &p);

}  // namespace plait::core
#endif  // PLAIT_CORE_GEMM_H
