// Matrix products of any layout, cut into tiles whose grid depends on the sizes alone.
#pragma once
#include "linalg/blas.h"
#include "linalg/matrix.h"

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

// The largest number of products that are summed up one after the other. The error of such a sum
// grows with their number, that of a sum of such sums with its root. Some BLAS kernels sum up all k
// products in one run, so they get no more than this at a time, and the error does not depend on
// the processor.
constexpr int64_t kRun = 512;

// run(begin, depth) for even runs of [0, k), in order; once if k is 0.
template <class F>
void in_runs(int64_t k, const F &run) {
  const int64_t depth = k > kRun ? ceil_div(k, ceil_div(k, kRun)) : k;
  int64_t l = 0;
  do {
    run(l, k - l < depth ? k - l : depth);
    l += depth;
  } while (l < k);
}

// Computes c of p in runs of k, each by multiply(product) into a buffer, as some libraries add
// single products to c.
template <class T, class F>
void gemm_in_runs(const Product<T> &p, const F &multiply) {
  Workspace space;
  const bool whole = p.k <= kRun, apart = !whole && space.try_take(uint64_t(p.m * p.n) * sizeof(T));
  in_runs(p.k, [&](int64_t l, int64_t depth) {
    Product<T> q = p;
    q.a = p.a.at(0, l);
    q.b = p.b.at(l, 0);
    q.k = depth;
    if (l && apart) {
      q.c = space.as<T>();
      q.ldc = p.n;
    }
    if (l) q.beta = T(apart ? 0 : 1);
    multiply(q);
    if (!l || !apart) return;
    for (int64_t i = 0; i < p.m; i++) {
      T *to = p.c + i * p.ldc;
      for (int64_t j = 0; j < p.n; j++) to[j] = to[j] + q.c[i * p.n + j];
    }
  });
}

// Products of the same sizes: how many, and how many elements a, b and c of each are behind those
// of the one before.
struct Batch {
  int64_t count = 1, a = 0, b = 0, c = 0;

  // f(product) for each, beginning with p
  template <class T, class F>
  void in_turn(Product<T> p, const F &f) const {
    for (int64_t i = 0; i < count; i++) {
      f(p);
      p.a.data += a;
      p.b.data += b;
      p.c += c;
    }
  }
};

// On the calling thread, any strides.
template <class T>
void gemm_serial(const Product<T> &p, const Batch &batch = {});

// On all threads, any strides.
template <class T>
plait_status gemm(const plait_call *c, Product<T> p);

// Whether the user requires rows that do not depend on other rows.
bool batch_invariant();

// Of complex numbers, in gemm_complex.cpp.
template <>
plait_status gemm(const plait_call *c, Product<Complex64> p);
template <>
plait_status gemm(const plait_call *c, Product<Complex128> p);
template <>
void gemm_serial(const Product<Complex64> &p, const Batch &batch);
template <>
void gemm_serial(const Product<Complex128> &p, const Batch &batch);

// Of integers and any strides, on the calling thread or on all.
template <class T>
void gemm_integers(const Product<T> &p);
template <class T>
void gemm_integers(const plait_call *c, const Product<T> &p);

// Multiplications for one unit of parallel work.
constexpr int64_t kOneUnit = 1 << 19;

// Products below have alpha 1 and beta 0 or 1. Their results are the same sums in the same order,
// by whichever of the functions: products in blocks of kDepth, which are added to c one after the
// other.

// Of few rows or columns: the larger operand is read once, where it lies. On all threads, or, as a
// batch, on the calling one. Return false and do nothing if there are more, if the larger operand
// is contiguous in no direction, or if too few units of work would come of it.
constexpr int64_t kFewRows = 8;
template <class T>
bool gemm_few(const plait_call *c, const Product<T> &p);
template <class T>
bool gemm_few_serial(const Product<T> &p, const Batch &batch);

// Of up to kFewRows products for each of so many results that these leave the caches. Returns false
// and does nothing for others, and if b's rows are not contiguous.
template <class T>
bool gemm_shallow(const plait_call *c, const Product<T> &p);

// Small products, whose operands are not worth packing. Returns false and does nothing if the
// product is not small, or if b is neither dense nor transposed and small.
constexpr int64_t kDirect = 1 << 16;
template <class T>
bool gemm_direct(const Product<T> &p, const Batch &batch = {});

// Of any strides, on all threads or on the caller's.
template <class T>
plait_status gemm_tiled(const plait_call *c, const Product<T> &p);
template <class T>
void gemm_tiled_serial(const Product<T> &p);

// By the BLAS library that PLAIT_BLAS_LIBRARY names. Decline and do nothing if it names none, and
// in the batch-invariant mode.
template <class T>
plait_status gemm_blas(const plait_call *c, Product<T> p);
template <class T>
bool gemm_blas_serial(const Product<T> &p);

// Runs a block for the element type T of a product. Sums and products wrap around: signed integers
// are treated as the unsigned ones of their size.
#define PLAIT_PRODUCT(k, ...)                                                         \
  switch (k) {                                                                        \
    PLAIT_CASE(F32, float, __VA_ARGS__)                                               \
    PLAIT_CASE(F64, double, __VA_ARGS__)                                              \
    PLAIT_CASE(C64, Complex64, __VA_ARGS__)                                           \
    PLAIT_CASE(C128, Complex128, __VA_ARGS__)                                         \
    case U8: PLAIT_CASE_IF(selects(U8) || selects(I8), I8, uint8_t, __VA_ARGS__)      \
    case U16: PLAIT_CASE_IF(selects(U16) || selects(I16), I16, uint16_t, __VA_ARGS__) \
    case U32: PLAIT_CASE_IF(selects(U32) || selects(I32), I32, uint32_t, __VA_ARGS__) \
    case U64: PLAIT_CASE_IF(selects(U64) || selects(I64), I64, uint64_t, __VA_ARGS__) \
    default: return PLAIT_DECLINE;                                                    \
  }

// The matrix of the last two dimensions.
template <class T>
Matrix<T> matrix(const DLTensor *t) {
  return {data<T>(t), t->strides[t->ndim - 2], t->strides[t->ndim - 1]};
}

}  // namespace plait::core
