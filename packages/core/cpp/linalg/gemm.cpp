#include "linalg/gemm.h"

#include "linalg/blas_layout.h"

namespace plait::core {
namespace {

constexpr int64_t kTileWork = 1 << 19;  // multiplications for one unit of parallel work
constexpr int64_t kUnpacked =
    1 << 14;  // below, copying an operand into order costs more than it gains
constexpr int64_t kSmallest = 32;       // rows or columns of a tile
constexpr int64_t kDeep = 4096;  // inner sizes from here on are cut where there are few results

template <class T>
void scale(T *c, int64_t ldc, int64_t m, int64_t n, T beta) {
  for (int64_t i = 0; i < m; i++)
    for (int64_t j = 0; j < n; j++) c[i * ldc + j] = beta == T(0) ? T(0) : T(beta * c[i * ldc + j]);
}

// Few results of a long sum: the sum is cut into fixed pieces, which are added up in order.
template <class T>
plait_status gemm_deep(const plait_call *c, const Product<T> &p, int64_t pieces) {
  const int64_t depth = ceil_div(p.k, pieces), results = p.m * p.n;
  pieces = ceil_div(p.k, depth);
  Workspace space;
  PLAIT_TRY(space.take(c, uint64_t(pieces * results) * sizeof(T)));
  T *part = space.as<T>();
  parallel(c, pieces, [&](int64_t i) {
    Product<T> q = p;
    q.a = p.a.at(0, i * depth);
    q.b = p.b.at(i * depth, 0);
    q.k = p.k - i * depth < depth ? p.k - i * depth : depth;
    q.beta = T(0);
    q.c = part + i * results;
    q.ldc = p.n;
    gemm_serial(q);
  });
  for (int64_t r = 0; r < p.m; r++) {
    T *to = p.c + r * p.ldc;
    for (int64_t j = 0; j < p.n; j++) {
      T sum = part[r * p.n + j];
      for (int64_t i = 1; i < pieces; i++) sum = T(sum + part[i * results + r * p.n + j]);
      to[j] = p.beta == T(0) ? sum : T(p.beta * to[j] + sum);
    }
  }
  return PLAIT_OK;
}

}  // namespace

// Products that are not packed, or that BLAS packs.
template <class T>
bool gemm_floats(const Product<T> &p) {
  if constexpr (is_float<T>) {
    if (batch_invariant()) return false;
    if (p.m > 1 && gemm_direct(p)) return true;
    if (p.n == 1 && gemv(p)) return true;
    if (p.m == 1 && p.n > 1) {
      const Product<T> q{p.n, 1, p.k, p.alpha, p.b.transposed(), p.a.transposed(), p.beta, p.c, 1};
      if (gemv(q)) return true;
    }
    if (!blas_of<T>().gemm) return false;
    const BlasLayout a = blas_layout(p.a, p.m, p.k), b = blas_layout(p.b, p.k, p.n);
    const bool fits =
        p.m <= INT32_MAX && p.n <= INT32_MAX && p.k <= INT32_MAX && p.ldc <= INT32_MAX;
    if (!a.ld || !b.ld || !fits) return false;
    gemm_in_runs(p, [&](const Product<T> &q) {
      blas_of<T>().gemm(kRowMajor, a.trans, b.trans, int(q.m), int(q.n), int(q.k), q.alpha,
                        q.a.data, int(a.ld), q.b.data, int(b.ld), q.beta, q.c,
                        int(q.ldc > q.n ? q.ldc : q.n));
    });
    return true;
  }
  return false;
}

template <class T>
void gemm_serial(const Product<T> &p) {
  if (!gemm_floats(p)) gemm_own(p);
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
    const plait_status tiled = gemm_tiled(c, p);
    if (tiled != PLAIT_DECLINE) return tiled;
  }
  const int64_t work = p.m * p.n * p.k;
  if (work <= kTileWork && gemm_floats(p)) return PLAIT_OK;
  if (work <= kUnpacked) {
    gemm_own(p);
    return PLAIT_OK;
  }
  Workspace space_a, space_b;
  if constexpr (is_float<T>) {
    PLAIT_TRY(pack(c, &p.a, p.m, p.k, &space_a));
    PLAIT_TRY(pack(c, &p.b, p.k, p.n, &space_b));
  }
  int64_t wanted = work / kTileWork;
  if (wanted > 32) wanted = 32;
  int64_t down = 1, across = 1;
  while (down * across < wanted) {
    const int64_t h = p.m / down, w = p.n / across;
    if (h >= w && h >= 2 * kSmallest) {
      down *= 2;
    } else if (w >= 2 * kSmallest) {
      across *= 2;
    } else if (h >= 2 * kSmallest) {
      down *= 2;
    } else {
      break;
    }
  }
  if (down * across < 4 && p.k >= kDeep && wanted > 1 && !batch_invariant())
    return gemm_deep(c, p, wanted < p.k / (kDeep / 4) ? wanted : p.k / (kDeep / 4));
  const int64_t h = ceil_div(ceil_div(p.m, down), 4) * 4,
                w = ceil_div(ceil_div(p.n, across), 16) * 16;
  down = ceil_div(p.m, h);
  across = ceil_div(p.n, w);
  parallel(c, down * across, [&](int64_t t) {
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

#define PLAIT_INSTANCE(T)                        \
  template void gemm_serial(const Product<T> &); \
  template plait_status gemm(const plait_call *, Product<T>);
PLAIT_INSTANCE(float)
PLAIT_INSTANCE(double)
PLAIT_INSTANCE(uint8_t)
PLAIT_INSTANCE(uint16_t)
PLAIT_INSTANCE(uint32_t)
PLAIT_INSTANCE(uint64_t)

}  // namespace plait::core
