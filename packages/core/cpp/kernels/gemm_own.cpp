// A matrix product for integers and for machines without a BLAS library: packed panels, a 6 x
// 2-vector square of results in registers.
#include "kernels/gemm.h"

namespace plait::core {
namespace {

constexpr int64_t kRows = 6, kDepth = 256;

template <class T>
constexpr int64_t kWide = 2 * kLanes<T>;

// b's columns [j, j + w) and rows [k, k + depth), padded with zeros to kWide
template <class T>
void pack_columns(const Matrix<T> &b, int64_t depth, int64_t w, T *to) {
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

}  // namespace

template <class T>
void gemm_own(const Product<T> &p) {
  alignas(64) T panel_a[kRows * kDepth], panel_b[kDepth * kWide<T>], out[kRows * kWide<T>];
  for (int64_t j = 0; j < p.n; j += kWide<T>) {
    const int64_t w = p.n - j < kWide<T> ? p.n - j : kWide<T>;
    for (int64_t l = 0; l < p.k || l == 0; l += kDepth) {
      const int64_t depth = p.k - l < kDepth ? p.k - l : kDepth;
      pack_columns(p.b.at(l, j), depth, w, panel_b);
      for (int64_t i = 0; i < p.m; i += kRows) {
        const int64_t h = p.m - i < kRows ? p.m - i : kRows;
        pack_rows(p.a.at(i, l), depth, h, panel_a);
        square(panel_a, panel_b, depth, out);
        for (int64_t r = 0; r < h; r++) {
          T *to = p.c + (i + r) * p.ldc + j;
          for (int64_t s = 0; s < w; s++) {
            const T value = T(p.alpha * out[r * kWide<T> + s]);
            to[s] = l ? T(to[s] + value) : p.beta == T(0) ? value : T(p.beta * to[s] + value);
          }
        }
      }
    }
  }
}

template void gemm_own(const Product<float> &);
template void gemm_own(const Product<double> &);
template void gemm_own(const Product<uint8_t> &);
template void gemm_own(const Product<uint16_t> &);
template void gemm_own(const Product<uint32_t> &);
template void gemm_own(const Product<uint64_t> &);

}  // namespace plait::core
