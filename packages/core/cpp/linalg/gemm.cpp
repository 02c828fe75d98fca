#include "linalg/gemm.h"

#include "kernel/fused.h"

namespace plait::core {
namespace {

template <class T>
void scale(T *c, int64_t ldc, int64_t m, int64_t n, T beta) {
  for (int64_t i = 0; i < m; i++)
    for (int64_t j = 0; j < n; j++) c[i * ldc + j] = beta == T(0) ? T(0) : T(beta * c[i * ldc + j]);
}

template <class T>
bool is_plain(const Product<T> &p) {
  return p.alpha == T(1) && (p.beta == T(0) || p.beta == T(1));
}

template <class T>
void gemm_plain_serial(const Product<T> &p, const Batch &batch = {}) {
  if (gemm_direct(p, batch) || gemm_few_serial(p, batch)) return;
  batch.in_turn(p, gemm_tiled_serial<T>);
}

template <class T>
plait_status gemm_plain(const plait_call *c, const Product<T> &p) {
  if (p.m * p.n * p.k <= kOneUnit && (gemm_direct(p) || gemm_few_serial(p, {}))) return PLAIT_OK;
  return gemm_few(c, p) || gemm_shallow(c, p) ? PLAIT_OK : gemm_tiled(c, p);
}

// c = alpha x + beta c for the m x n products x.
template <class T>
void combine(const Product<T> &p, const T *x) {
  for (int64_t i = 0; i < p.m; i++)
    for (int64_t j = 0; j < p.n; j++) {
      T *to = p.c + i * p.ldc + j;
      const T value = p.alpha * x[i * p.n + j];
      *to = p.beta == T(0) ? value : fused(p.beta, *to, value);
    }
}

// Other factors are applied afterwards.
template <class T>
plait_status gemm_scaled(const plait_call *c, const Product<T> &p) {
  Workspace space;
  PLAIT_TRY(space.take(c, uint64_t(p.m * p.n) * sizeof(T)));
  Product<T> q = p;
  q.alpha = T(1);
  q.beta = T(0);
  q.c = space.as<T>();
  q.ldc = p.n;
  PLAIT_TRY(gemm_plain(c, q));
  combine(p, q.c);
  return PLAIT_OK;
}

template <class T>
void gemm_scaled_serial(const Product<T> &p) {
  constexpr int64_t kHigh = 24, kWide = 64;
  alignas(64) T some[kHigh * kWide];
  for (int64_t i = 0; i < p.m; i += kHigh)
    for (int64_t j = 0; j < p.n; j += kWide) {
      Product<T> q{p.m - i < kHigh ? p.m - i : kHigh,
                   p.n - j < kWide ? p.n - j : kWide,
                   p.k,
                   T(1),
                   p.a.at(i, 0),
                   p.b.at(0, j),
                   T(0),
                   some,
                   0};
      q.ldc = q.n;
      gemm_plain_serial(q);
      Product<T> whole = p;
      whole.m = q.m;
      whole.n = q.n;
      whole.c += i * p.ldc + j;
      combine(whole, some);
    }
}

}  // namespace

template <class T>
void gemm_serial(const Product<T> &p, const Batch &batch) {
  if constexpr (is_float<T>) {
    if (p.m == 0 || p.n == 0) return;
    if (p.k > 0 && is_plain(p) && !names_blas()) return gemm_plain_serial(p, batch);
    batch.in_turn(p, [](const Product<T> &q) {
      if (q.k == 0) return scale(q.c, q.ldc, q.m, q.n, q.beta);
      if (gemm_blas_serial(q)) return;
      is_plain(q) ? gemm_plain_serial(q) : gemm_scaled_serial(q);
    });
  } else {
    batch.in_turn(p, [](const Product<T> &q) { gemm_integers(q); });
  }
}

template <class T>
plait_status gemm(const plait_call *c, Product<T> p) {
  PLAIT_TRY(check_blas(c));
  if (p.m == 0 || p.n == 0) return PLAIT_OK;
  if (p.k == 0) {
    scale(p.c, p.ldc, p.m, p.n, p.beta);
    return PLAIT_OK;
  }
  if constexpr (is_float<T>) {
    if (p.m * p.n * p.k > kOneUnit) {
      const plait_status status = gemm_blas(c, p);
      if (status != PLAIT_DECLINE) return status;
    } else if (!is_plain(p)) {
      return gemm_scaled_serial(p), PLAIT_OK;
    }
    return is_plain(p) ? gemm_plain(c, p) : gemm_scaled(c, p);
  } else {
    gemm_integers(c, p);
    return PLAIT_OK;
  }
}

#define PLAIT_INSTANCE(T)                                       \
  template void gemm_serial(const Product<T> &, const Batch &); \
  template plait_status gemm(const plait_call *, Product<T>);
PLAIT_INSTANCE(float)
PLAIT_INSTANCE(double)
PLAIT_INSTANCE(uint8_t)
PLAIT_INSTANCE(uint16_t)
PLAIT_INSTANCE(uint32_t)
PLAIT_INSTANCE(uint64_t)

}  // namespace plait::core
