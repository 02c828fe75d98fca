// Matrix products of integers: packed panels, a 6 x 2-vector square of results in registers.
#include "linalg/gemm.h"

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
void gemm_integers(const Product<T> &p) {
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

template <class T>
void gemm_integers(const plait_call *c, const Product<T> &p) {
  const int64_t required = p.m * p.n * p.k / kOneUnit;
  if (required < 2) return gemm_integers(p);
  const int64_t even = ceil_div(ceil_div(p.m, required), kRows) * kRows;
  const int64_t rows = even < kBlock ? even : kBlock;
  parallel(c, ceil_div(p.m, rows), [&](int64_t t) {
    Product<T> q = p;
    q.m = p.m - t * rows < rows ? p.m - t * rows : rows;
    q.a = p.a.at(t * rows, 0);
    q.c = p.c + t * rows * p.ldc;
    gemm_integers(q);
  });
}

#define PLAIT_INSTANCE(T)                          \
  template void gemm_integers(const Product<T> &); \
  template void gemm_integers(const plait_call *, const Product<T> &);
PLAIT_INSTANCE(uint8_t)
PLAIT_INSTANCE(uint16_t)
PLAIT_INSTANCE(uint32_t)
PLAIT_INSTANCE(uint64_t)

}  // namespace plait::core
