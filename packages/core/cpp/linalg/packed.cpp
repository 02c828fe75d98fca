#include "linalg/packed.h"

namespace plait::core {
namespace {

constexpr int64_t kRows = 48;  // rows of a block of results that are not written in place
constexpr int64_t kWork = 1 << 19;  // multiplications for one unit of parallel work

// Copies m x n elements; `rows` and `columns` are the strides of the target.
template <class T>
void copy_block(int64_t m, int64_t n, Matrix<T> from, T *to, int64_t rows, int64_t columns) {
  for (int64_t i = 0; i < m; i++)
    for (int64_t j = 0; j < n; j++) to[i * rows + j * columns] = *from.at(i, j).data;
}

template <class T>
void multiply(const PackedProduct<T> &p) {
  constexpr int64_t w = kPanel<T>;
  const int64_t whole = p.columns == 1 ? p.n / w * w : 0;
  const Panels<T> b = Panels<T>::packed(p.b, p.k);
  multiply_tile(p.m, whole, p.k, p.a, b, p.c, p.rows, p.add);
  alignas(64) T some[kRows * 2 * w] = {};
  for (int64_t j = whole; j < p.n; j += 2 * w) {
    const int64_t wide = p.n - j < 2 * w ? p.n - j : 2 * w, panels = ceil_div(wide, w);
    for (int64_t i = 0; i < p.m; i += kRows) {
      const int64_t m = p.m - i < kRows ? p.m - i : kRows;
      T *to = p.c + i * p.rows + j * p.columns;
      // the old results are the first summands, as in whole panels
      if (p.add) copy_block<T>(m, wide, {to, p.rows, p.columns}, some, 2 * w, 1);
      multiply_tile(m, panels * w, p.k, p.a.at(i, 0), Panels<T>::packed(p.b + j * p.k, p.k), some,
                    2 * w, p.add);
      copy_block<T>(m, wide, {some, 2 * w, 1}, to, p.rows, p.columns);
    }
  }
}

}  // namespace

template <class T>
void pack_operand(const plait_call *c, Matrix<T> b, int64_t k, int64_t n, T *to) {
  const int64_t panels = ceil_div(n, kPanel<T>);
  parallel_ranges(c, panels, kSerial / (k + 1) / kPanel<T> + 1, [&](int64_t begin, int64_t end) {
    const int64_t from = begin * kPanel<T>, stop = end * kPanel<T> < n ? end * kPanel<T> : n;
    pack_panels(b.at(0, from), k, stop - from, to + from * k);
  });
}

template <class T>
void gemm_packed_serial(const PackedProduct<T> &p) {
  multiply(p);
}

template <class T>
void gemm_packed(const plait_call *c, const PackedProduct<T> &p) {
  constexpr int64_t kHigh = 96, kWide = 8 * kPanel<T>;
  if (p.m * p.n * p.k < 2 * kWork) return multiply(p);
  const int64_t down = ceil_div(p.m, kHigh), across = ceil_div(p.n, kWide);
  parallel(c, down * across, [&](int64_t t) {
    const int64_t i = t % down * kHigh, j = t / down * kWide;
    PackedProduct<T> q = p;
    q.m = p.m - i < kHigh ? p.m - i : kHigh;
    q.n = p.n - j < kWide ? p.n - j : kWide;
    q.a = p.a.at(i, 0);
    q.b = p.b + j * p.k;
    q.c = p.c + i * p.rows + j * p.columns;
    multiply(q);
  });
}

#define PLAIT_INSTANCE(T)                                                           \
  template void pack_operand(const plait_call *, Matrix<T>, int64_t, int64_t, T *); \
  template void gemm_packed_serial(const PackedProduct<T> &);                       \
  template void gemm_packed(const plait_call *, const PackedProduct<T> &);
PLAIT_INSTANCE(float)
PLAIT_INSTANCE(double)

}  // namespace plait::core
