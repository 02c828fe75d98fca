// A matrix product for integers, for machines without a BLAS library, and for results that must not
// depend on the batch: packed panels, a 6 x 2-vector square of results in registers. Each result is
// the same sum in the same order, whatever the sizes of the others.
#include "linalg/gemm.h"

#include "kernel/transpose.h"

namespace plait::core {
namespace {

constexpr int64_t kRows = 6, kDepth = 256, kBlock = 16 * kRows;

template <class T>
constexpr int64_t kWide = 2 * kLanes<T>;

// b's columns [j, j + w) and rows [k, k + depth), padded with zeros to kWide
template <class T>
void pack_columns(const Matrix<T> &b, int64_t depth, int64_t w, T *to) {
  if (w == kWide<T> && b.columns == 1) {
    for (int64_t l = 0; l < depth; l++)
      memcpy(to + l * w, b.data + l * b.rows, sizeof(T) * size_t(w));
    return;
  }
  for (int64_t l = 0; l < depth; l++)
    for (int64_t j = 0; j < kWide<T>; j++)
      to[l * kWide<T> + j] = j < w ? b.data[l * b.rows + j * b.columns] : T(0);
}

template <class T>
void pack_rows(const Matrix<T> &a, int64_t depth, int64_t h, T *to) {
  for (int64_t l = 0; l < depth; l++)
    for (int64_t i = 0; i < kRows; i++)
      to[l * kRows + i] = i < h ? a.data[i * a.rows + l * a.columns] : T(0);
}

template <class T>
void square(const T *a, const T *b, int64_t depth, T *out) {
  Vec<T> acc[kRows][2] = {};
  for (int64_t l = 0; l < depth; l++) {
    const Vec<T> b0 = load(b + l * kWide<T>), b1 = load(b + l * kWide<T> + kLanes<T>);
    for (int64_t i = 0; i < kRows; i++) {
      const Vec<T> x = splat(a[l * kRows + i]);
      acc[i][0] += x * b0;
      acc[i][1] += x * b1;
    }
  }
  for (int64_t i = 0; i < kRows; i++) {
    store(out + i * kWide<T>, acc[i][0]);
    store(out + i * kWide<T> + kLanes<T>, acc[i][1]);
  }
}

// Stores a square at row i and column j of the results, or adds it to them.
template <class T>
void add_square(const Product<T> &p, int64_t i, int64_t j, int64_t h, int64_t w, bool more,
                const T *square) {
  for (int64_t r = 0; r < h; r++) {
    T *to = p.c + (i + r) * p.ldc + j;
    for (int64_t s = 0; s < w; s++) {
      const T value = T(p.alpha * square[r * kWide<T> + s]);
      to[s] = more ? T(to[s] + value) : p.beta == T(0) ? value : T(p.beta * to[s] + value);
    }
  }
}

}  // namespace

template <class T>
void gemm_own(const Product<T> &p) {
  alignas(64) T panels_a[kBlock * kDepth], panel_b[kDepth * kWide<T>], out[kRows * kWide<T>];
  for (int64_t top = 0; top < p.m; top += kBlock) {
    const int64_t end = p.m - top < kBlock ? p.m : top + kBlock;
    for (int64_t l = 0; l < p.k || l == 0; l += kDepth) {
      const int64_t depth = p.k - l < kDepth ? p.k - l : kDepth;
      for (int64_t i = top; i < end; i += kRows)
        pack_rows(p.a.at(i, l), depth, end - i < kRows ? end - i : kRows,
                  panels_a + (i - top) * kDepth);
      for (int64_t j = 0; j < p.n; j += kWide<T>) {
        const int64_t w = p.n - j < kWide<T> ? p.n - j : kWide<T>;
        pack_columns(p.b.at(l, j), depth, w, panel_b);
        for (int64_t i = top; i < end; i += kRows) {
          square(panels_a + (i - top) * kDepth, panel_b, depth, out);
          add_square(p, i, j, end - i < kRows ? end - i : kRows, w, l > 0, out);
        }
      }
    }
  }
}

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
      for (int v = 0; v < V; v++) acc[r][v] += x * wide[v];
    }
  }
  for (int r = 0; r < R; r++)
    for (int v = 0; v < V; v++) {
      T *to = p.c + (i + r) * p.ldc + j + v * kLanes<T>;
      Vec<T> value = acc[r][v];
      if (p.alpha != T(1)) value *= splat(p.alpha);
      if (p.beta != T(0)) value += splat(p.beta) * load(to);
      store(to, value);
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
      for (int64_t l = 0; l < p.k; l++) sum += a[l * p.a.columns] * b[l * p.b.rows];
      *to = p.beta == T(0) ? p.alpha * sum : p.beta * *to + p.alpha * sum;
    }
}

}  // namespace

// Sums are cut into runs of k: a result is a sum of sums.
template <class T>
bool gemm_direct(Product<T> p) {
  const bool shallow = p.k < 8 && p.m * p.n > 4096;  // BLAS writes results faster
  if (p.n < kLanes<T> || p.m * p.n * p.k > kDirect || shallow) return false;
  alignas(32) T turned[kTurned];
  if (p.b.columns != 1) {
    if (p.b.rows != 1 || p.m < 4 || p.k * p.n > kTurned) return false;
    transpose_block(reinterpret_cast<char *>(turned), p.n, reinterpret_cast<const char *>(p.b.data),
                    p.b.columns, p.n, p.k, sizeof(T));
    p.b = {turned, p.n, 1};
  }
  in_runs(p.k, [&](int64_t l, int64_t depth) {
    Product<T> q = p;
    q.a = p.a.at(0, l);
    q.b = p.b.at(l, 0);
    q.k = depth;
    if (l) q.beta = T(1);
    int64_t i = 0;
    for (; i + 4 <= q.m; i += 4) strips<T, 4>(q, i);
    for (; i < q.m; i++) strips<T, 1>(q, i);
  });
  return true;
}

template bool gemm_direct(Product<float>);
template bool gemm_direct(Product<double>);
template void gemm_own(const Product<float> &);
template void gemm_own(const Product<double> &);
template void gemm_own(const Product<uint8_t> &);
template void gemm_own(const Product<uint16_t> &);
template void gemm_own(const Product<uint32_t> &);
template void gemm_own(const Product<uint64_t> &);

}  // namespace plait::core
