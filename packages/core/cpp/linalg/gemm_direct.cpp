// Small products of floating-point numbers, whose operands are not packed.
#include "kernel/fused.h"
#include "kernel/transpose.h"
#include "linalg/gemm.h"
#include "linalg/tile.h"

namespace plait::core {
namespace {

constexpr int64_t kTurned = 4096;  // elements of a transposed operand that are put in order

// R rows and V vectors of results, from operands that are not packed.
template <class T, int R, int V>
PLAIT_INLINE void strip(const Product<T> &p, int64_t i, int64_t j) {
  Vec<T> acc[R][V] = {};
  const T *a = p.a.data + i * p.a.rows, *b = p.b.data + j;
  for (int64_t l = 0; l < p.k; l++, a += p.a.columns, b += p.b.rows) {
    Vec<T> wide[V];
    for (int v = 0; v < V; v++) wide[v] = load(b + v * kLanes<T>);
    for (int r = 0; r < R; r++) {
      const Vec<T> x = splat(a[r * p.a.rows]);
      for (int v = 0; v < V; v++) acc[r][v] = fused(x, wide[v], acc[r][v]);
    }
  }
  for (int r = 0; r < R; r++)
    for (int v = 0; v < V; v++) {
      T *to = p.c + (i + r) * p.ldc + j + v * kLanes<T>;
      store(to, p.beta == T(0) ? acc[r][v] : load(to) + acc[r][v]);
    }
}

template <class T, int R>
void strips(const Product<T> &p, int64_t i) {
  int64_t j = 0;
  for (; j + 2 * kLanes<T> <= p.n; j += 2 * kLanes<T>) strip<T, R, 2>(p, i, j);
  for (; j + kLanes<T> <= p.n; j += kLanes<T>) strip<T, R, 1>(p, i, j);
  for (; j < p.n; j++)
    for (int r = 0; r < R; r++) {
      const T *a = p.a.data + (i + r) * p.a.rows, *b = p.b.data + j;
      T sum = T(0), *to = p.c + (i + r) * p.ldc + j;
      for (int64_t l = 0; l < p.k; l++) sum = fused(a[l * p.a.columns], b[l * p.b.rows], sum);
      *to = p.beta == T(0) ? sum : *to + sum;
    }
}

}  // namespace

template <class T>
bool gemm_direct(Product<T> p) {
  if (p.m < 2 || p.n < kLanes<T> || p.m * p.n * p.k > kDirect) return false;
  alignas(32) T turned[kTurned];
  if (p.b.columns != 1) {
    if (p.b.rows != 1 || p.m < 4 || p.k * p.n > kTurned) return false;
    transpose_block(reinterpret_cast<char *>(turned), p.n, reinterpret_cast<const char *>(p.b.data),
                    p.b.columns, p.n, p.k, sizeof(T));
    p.b = {turned, p.n, 1};
  }
  for (int64_t l = 0; l < p.k; l += kDepth<T>) {
    const int64_t depth = p.k - l < kDepth<T> ? p.k - l : kDepth<T>;
    Product<T> q = p;
    q.a = p.a.at(0, l);
    q.b = p.b.at(l, 0);
    q.k = depth;
    if (l) q.beta = T(1);
    int64_t i = 0;
    for (; i + 4 <= q.m; i += 4) strips<T, 4>(q, i);
    for (; i < q.m; i++) strips<T, 1>(q, i);
  }
  return true;
}

template bool gemm_direct(Product<float>);
template bool gemm_direct(Product<double>);

}  // namespace plait::core
