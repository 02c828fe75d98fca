// Small products of floating-point numbers, whose operands are not packed.
#include "kernel/fused.h"
#include "kernel/transpose.h"
#include "linalg/gemm.h"
#include "linalg/product_sizes.h"
#include "linalg/tile.h"

namespace plait::core {
namespace {

constexpr int64_t kOneRow = 2048;  // elements of an operand that is read for one row
constexpr int64_t kTurned = 4096;  // elements of a transposed operand that are put in order
constexpr int64_t kNarrow = 32;  // rows of a product with fewer columns than a vector has

// Whether a product of the program is computed in each of the ways.
template <class T>
constexpr bool kSelectsNarrow =
    any_product([](const ProductSizes &v) { return !v.is_known || (v.n < kLanes<T> && v.m >= 2); });
constexpr bool kSelectsDense = any_product([](const ProductSizes &v) {
  return !v.is_known || (!v.turned && v.m * v.n * v.k <= (v.m < 2 ? kOneRow : kDirect));
});
constexpr bool kSelectsTurned = any_product([](const ProductSizes &v) {
  return !v.is_known || (v.turned && v.m >= 4 && v.n * v.k <= kTurned);
});

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

// R rows of results. Where each row is a single vector, two groups of four are computed together:
// the additions of four sums alone would wait for each other.
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
  switch (p.m - i) {
    case 3: return strips<T, 3>(p, i);
    case 2: return strips<T, 2>(p, i);
    case 1: return strips<T, 1>(p, i);
  }
}

// The product with N columns, fewer than a vector has: rows of b are copied behind zeros.
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
PLAIT_NOINLINE bool gemm_narrow(const Product<T> &p, const Batch &batch) {
  if (p.m < 2 || p.m > kNarrow || p.k * kLanes<T> > kTurned || p.k > kDepth<T>) return false;
  switch (p.n) {
    case 2: return batch.in_turn(p, narrow<T, 2>), true;
    case 3: return batch.in_turn(p, narrow<T, 3>), true;
    default: break;
  }
  if constexpr (kLanes<T> > 4) switch (p.n) {
      case 4: return batch.in_turn(p, narrow<T, 4>), true;
      case 5: return batch.in_turn(p, narrow<T, 5>), true;
      case 6: return batch.in_turn(p, narrow<T, 6>), true;
      case 7: return batch.in_turn(p, narrow<T, 7>), true;
    }
  return false;
}

// Computes blocks of kDepth products and adds them to c one after the other.
template <class T>
PLAIT_INLINE void blocks(const Product<T> &p) {
  if (p.k <= kDepth<T>) return rows_of_strips(p);
  Product<T> q = p;
  for (int64_t rest = p.k; rest > 0; rest -= kDepth<T>) {
    q.k = rest < kDepth<T> ? rest : kDepth<T>;
    rows_of_strips(q);
    q.a = q.a.at(0, q.k);
    q.b = q.b.at(q.k, 0);
    q.beta = T(1);
  }
}

template <class T>
PLAIT_NOINLINE void turned_blocks(const Product<T> &p) {
  alignas(32) T turned[kTurned];
  transpose_block(reinterpret_cast<char *>(turned), p.n, reinterpret_cast<const char *>(p.b.data),
                  p.b.columns, p.n, p.k, sizeof(T));
  Product<T> q = p;
  q.b = {turned, p.n, 1};
  blocks(q);
}

}  // namespace

template <class T>
bool gemm_direct(const Product<T> &p, const Batch &batch) {
  if (p.n < kLanes<T>) {
    if constexpr (kSelectsNarrow<T>) return gemm_narrow(p, batch);
    return false;
  }
  if (p.m * p.n * p.k > (p.m < 2 ? kOneRow : kDirect)) return false;
  if constexpr (kSelectsDense)
    if (p.b.columns == 1) return batch.in_turn(p, [](const Product<T> &q) { blocks(q); }), true;
  // a few rows with few columns are as fast where they lie
  const int64_t least_rows = p.n < 2 * kLanes<T> ? 8 : 4;
  if (p.b.rows != 1 || p.m < least_rows || p.k * p.n > kTurned) return false;
  if constexpr (kSelectsTurned) return batch.in_turn(p, turned_blocks<T>), true;
  return false;
}

template bool gemm_direct(const Product<float> &, const Batch &);
template bool gemm_direct(const Product<double> &, const Batch &);

}  // namespace plait::core
