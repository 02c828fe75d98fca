// Small products of floating-point numbers, whose operands are not packed.
#include "kernel/fused.h"
#include "kernel/transpose.h"
#include "linalg/gemm.h"
#include "linalg/tile.h"

namespace plait::core {
namespace {

constexpr int64_t kTurned = 4096;  // elements of a transposed operand that are put in order
constexpr int64_t kNarrow = 32;  // rows of a product with fewer columns than a vector has

// R rows and V vectors of results, from operands that are not packed: store(row, vector, sums).
template <class T, int R, int V, class F>
PLAIT_INLINE void strip(const Product<T> &p, int64_t i, int64_t j, const F &store_sums) {
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
    for (int v = 0; v < V; v++) store_sums(p.c + (i + r) * p.ldc + j + v * kLanes<T>, acc[r][v]);
}

template <class T, int R, int V>
PLAIT_INLINE void whole_strip(const Product<T> &p, int64_t i, int64_t j) {
  strip<T, R, V>(p, i, j,
                 [&p](T *to, Vec<T> sums) { store(to, p.beta == T(0) ? sums : load(to) + sums); });
}

// The columns from j on, as the end of a vector that overlaps the one before.
template <class T, int R>
PLAIT_NOINLINE void last_strip(const Product<T> &p, int64_t i, int64_t j) {
  const int64_t begin = p.n - kLanes<T>;
  strip<T, R, 1>(p, i, begin, [&p, from = j - begin](T *to, Vec<T> sums) {
    T each[kLanes<T>];
    store(each, sums);
    for (int64_t s = from; s < kLanes<T>; s++) to[s] = p.beta == T(0) ? each[s] : to[s] + each[s];
  });
}

// R rows of results: twice four where one vector of each is computed, as four sums alone would wait
// for each other.
template <class T, int R>
PLAIT_INLINE void strips(const Product<T> &p, int64_t i) {
  constexpr int kRows = R < 4 ? R : 4;
  int64_t j = 0;
  for (; j + 2 * kLanes<T> <= p.n; j += 2 * kLanes<T>)
    for (int r = 0; r < R; r += kRows) whole_strip<T, kRows, 2>(p, i + r, j);
  if (j + kLanes<T> <= p.n) {
    whole_strip<T, R, 1>(p, i, j);
    j += kLanes<T>;
  }
  if (j < p.n) last_strip<T, R>(p, i, j);
}

template <class T>
PLAIT_INLINE void rows_of_strips(const Product<T> &p) {
  int64_t i = 0;
  for (; i + 8 <= p.m; i += 8) strips<T, 8>(p, i);
  for (; i + 4 <= p.m; i += 4) strips<T, 4>(p, i);
  for (; i < p.m; i++) strips<T, 1>(p, i);
}

// The product with N columns, fewer than a vector has: b's are copied behind as many of zeros.
template <class T, int N>
PLAIT_NOINLINE void narrow(const Product<T> &p) {
  constexpr int64_t first = kLanes<T> - N;
  alignas(32) T b[kTurned], c[kNarrow * kLanes<T>];
  for (int64_t l = 0; l < p.k; l++)
    for (int64_t s = 0; s < kLanes<T>; s++)
      b[l * kLanes<T> + s] = s < first ? T(0) : *p.b.at(l, s - first).data;
  Product<T> q = p;
  q.n = q.ldc = kLanes<T>;
  q.b = {b, kLanes<T>, 1};
  q.c = c;
  q.beta = T(0);
  rows_of_strips(q);
  for (int64_t i = 0; i < p.m; i++)
    for (int s = 0; s < N; s++) {
      T *to = p.c + i * p.ldc + s;
      const T sum = c[i * kLanes<T> + first + s];
      *to = p.beta == T(0) ? sum : *to + sum;
    }
}

template <class T>
PLAIT_NOINLINE bool gemm_narrow(const Product<T> &p) {
  if (p.m < 2 || p.m > kNarrow || p.k * kLanes<T> > kTurned || p.k > kDepth<T>) return false;
  switch (p.n) {
    case 2: return narrow<T, 2>(p), true;
    case 3: return narrow<T, 3>(p), true;
    default: break;
  }
  if constexpr (kLanes<T> > 4) switch (p.n) {
      case 4: return narrow<T, 4>(p), true;
      case 5: return narrow<T, 5>(p), true;
      case 6: return narrow<T, 6>(p), true;
      case 7: return narrow<T, 7>(p), true;
    }
  return false;
}

// In blocks of kDepth products, which are added to c one after the other.
template <class T>
PLAIT_INLINE void blocks(Product<T> &p) {
  for (int64_t rest = p.k; rest > 0; rest -= kDepth<T>) {
    p.k = rest < kDepth<T> ? rest : kDepth<T>;
    rows_of_strips(p);
    p.a = p.a.at(0, p.k);
    p.b = p.b.at(p.k, 0);
    p.beta = T(1);
  }
}

template <class T>
PLAIT_NOINLINE void turned_blocks(Product<T> &p) {
  alignas(32) T turned[kTurned];
  transpose_block(reinterpret_cast<char *>(turned), p.n, reinterpret_cast<const char *>(p.b.data),
                  p.b.columns, p.n, p.k, sizeof(T));
  p.b = {turned, p.n, 1};
  blocks(p);
}

}  // namespace

template <class T>
bool gemm_direct(Product<T> p) {
  if (p.n < kLanes<T>) return gemm_narrow(p);
  if (p.m < 2 || p.m * p.n * p.k > kDirect) return false;
  if (p.b.columns == 1) return blocks(p), true;
  if (p.b.rows != 1 || p.m < 4 || p.k * p.n > kTurned) return false;
  return turned_blocks(p), true;
}

template bool gemm_direct(Product<float>);
template bool gemm_direct(Product<double>);

}  // namespace plait::core
