// Matrix products by the BLAS library that the user chose. Without such a choice plait's own
// kernels run: they are as fast, and their results do not depend on the library.
#include "linalg/blas_layout.h"
#include "linalg/gemm.h"

namespace plait::core {
namespace {

constexpr int64_t kSmallest = 32;  // rows or columns of a tile

template <class T>
bool uses_blas(const Product<T> &p) {
  const bool fits = p.m <= INT32_MAX && p.n <= INT32_MAX && p.k <= INT32_MAX && p.ldc <= INT32_MAX;
  return names_blas() && blas_of<T>().gemm && fits && !batch_invariant();
}

}  // namespace

template <class T>
bool gemm_blas_serial(const Product<T> &p) {
  const BlasLayout a = blas_layout(p.a, p.m, p.k), b = blas_layout(p.b, p.k, p.n);
  if (!uses_blas(p) || !a.ld || !b.ld) return false;
  gemm_in_runs(p, [&](const Product<T> &q) {
    blas_of<T>().gemm(kRowMajor, a.trans, b.trans, int(q.m), int(q.n), int(q.k), q.alpha, q.a.data,
                      int(a.ld), q.b.data, int(b.ld), q.beta, q.c, int(q.ldc > q.n ? q.ldc : q.n));
  });
  return true;
}

template <class T>
plait_status gemm_blas(const plait_call *c, Product<T> p) {
  if (!uses_blas(p)) return PLAIT_DECLINE;
  Workspace space_a, space_b;
  PLAIT_TRY(pack(c, &p.a, p.m, p.k, &space_a));
  PLAIT_TRY(pack(c, &p.b, p.k, p.n, &space_b));
  const int64_t units = p.m * p.n * p.k / kOneUnit, most = units > 32 ? 32 : units;
  int64_t down = 1, across = 1;
  while (down * across < most) {
    const int64_t h = p.m / down, w = p.n / across;
    if (h < 2 * kSmallest && w < 2 * kSmallest) break;
    if (h >= w)
      down *= 2;
    else
      across *= 2;
  }
  const int64_t h = ceil_div(ceil_div(p.m, down), 4) * 4,
                w = ceil_div(ceil_div(p.n, across), 16) * 16;
  across = ceil_div(p.n, w);
  parallel(c, ceil_div(p.m, h) * across, [&](int64_t t) {
    const int64_t i = t / across * h, j = t % across * w;
    Product<T> q = p;
    q.m = p.m - i < h ? p.m - i : h;
    q.n = p.n - j < w ? p.n - j : w;
    q.a = p.a.at(i, 0);
    q.b = p.b.at(0, j);
    q.c = p.c + i * p.ldc + j;
    gemm_serial(q);
  });
  return PLAIT_OK;
}

#define PLAIT_INSTANCE(T)                             \
  template bool gemm_blas_serial(const Product<T> &); \
  template plait_status gemm_blas(const plait_call *, Product<T>);
PLAIT_INSTANCE(float)
PLAIT_INSTANCE(double)

}  // namespace plait::core
