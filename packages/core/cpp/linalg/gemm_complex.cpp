// Matrix products of complex numbers: BLAS's cgemm and zgemm, or plain loops where there is none.
#include "linalg/blas_layout.h"
#include "linalg/gemm.h"
#include "pointwise/math.h"

namespace plait::core {
namespace {

constexpr int64_t kTileWork = 1 << 17;  // multiplications for one unit of parallel work

using ComplexGemm = void (*)(int order, int trans_a, int trans_b, int m, int n, int k,
                             const void *alpha, const void *a, int lda, const void *b, int ldb,
                             const void *beta, void *c, int ldc);
// Not a static local: after a fork while another thread opens the library the child would wait for
// ever.
ComplexGemm blas_gemm(Complex64) {
  return reinterpret_cast<ComplexGemm>(blas_symbol("cblas_cgemm"));
}
ComplexGemm blas_gemm(Complex128) {
  return reinterpret_cast<ComplexGemm>(blas_symbol("cblas_zgemm"));
}

template <class T>
bool by_blas(const Product<T> &p) {
  const ComplexGemm gemm = batch_invariant() ? nullptr : blas_gemm(T(0));
  const BlasLayout a = blas_layout(p.a, p.m, p.k), b = blas_layout(p.b, p.k, p.n);
  const bool fits = p.m <= INT32_MAX && p.n <= INT32_MAX && p.k <= INT32_MAX && p.ldc <= INT32_MAX;
  if (!gemm || !a.ld || !b.ld || !fits) return false;
  gemm_in_runs(p, [&](const Product<T> &q) {
    gemm(kRowMajor, a.trans, b.trans, int(q.m), int(q.n), int(q.k), &q.alpha, q.a.data, int(a.ld),
         q.b.data, int(b.ld), &q.beta, q.c, int(q.ldc > q.n ? q.ldc : q.n));
  });
  return true;
}

template <class T>
void by_loops(const Product<T> &p) {
  constexpr int64_t kBeside = 64;
  T sum[kBeside];
  for (int64_t i = 0; i < p.m; i++)
    for (int64_t j = 0; j < p.n; j += kBeside) {
      T *to = p.c + i * p.ldc + j;
      const int64_t w = p.n - j < kBeside ? p.n - j : kBeside;
      for (int64_t v = 0; v < w; v++) to[v] = p.beta == T(0) ? T(0) : p.beta * to[v];
      in_runs(p.k, [&](int64_t begin, int64_t depth) {
        for (int64_t v = 0; v < w; v++) sum[v] = T(0);
        for (int64_t l = begin; l < begin + depth; l++) {
          const T x = p.alpha * p.a.data[i * p.a.rows + l * p.a.columns];
          const T *row = p.b.at(l, j).data;
          for (int64_t v = 0; v < w; v++) sum[v] = sum[v] + x * row[v * p.b.columns];
        }
        for (int64_t v = 0; v < w; v++) to[v] = to[v] + sum[v];
      });
    }
}

template <class T>
void serial(const Product<T> &p) {
  if (!by_blas(p)) by_loops(p);
}

template <class T>
plait_status whole(const plait_call *c, Product<T> p) {
  PLAIT_TRY(check_blas(c));
  if (p.m == 0 || p.n == 0) return PLAIT_OK;
  if (p.k == 0) return by_loops(p), PLAIT_OK;
  Workspace space_a, space_b;
  PLAIT_TRY(pack(c, &p.a, p.m, p.k, &space_a));
  PLAIT_TRY(pack(c, &p.b, p.k, p.n, &space_b));
  const int64_t required = p.m * p.n * p.k / kTileWork + 1, most = p.m < 16 ? p.m : 16;
  const int64_t rows = ceil_div(p.m, required < most ? required : most);
  parallel(c, ceil_div(p.m, rows), [&](int64_t t) {
    Product<T> q = p;
    q.a = p.a.at(t * rows, 0);
    q.c = p.c + t * rows * p.ldc;
    q.m = p.m - t * rows < rows ? p.m - t * rows : rows;
    serial(q);
  });
  return PLAIT_OK;
}

}  // namespace

template <>
plait_status gemm(const plait_call *c, Product<Complex64> p) {
  return whole(c, p);
}
template <>
plait_status gemm(const plait_call *c, Product<Complex128> p) {
  return whole(c, p);
}
template <>
void gemm_serial(const Product<Complex64> &p, const Batch &batch) {
  batch.in_turn(p, serial<Complex64>);
}
template <>
void gemm_serial(const Product<Complex128> &p, const Batch &batch) {
  batch.in_turn(p, serial<Complex128>);
}

}  // namespace plait::core
