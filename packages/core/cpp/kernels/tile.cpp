#include "kernels/tile.h"

#include "kernels/transpose.h"

namespace plait::core {
namespace {

constexpr int64_t kRows = 6;  // with two vectors each, their sums fill the registers of AVX2
constexpr int64_t kDepth = 256;  // of a panel that stays in the first-level cache

template <class T, int R>
PLAIT_NOINLINE void square(int64_t k, const T *a, int64_t rows, int64_t columns, const T *b,
                           int64_t step, T *c, int64_t ldc, bool add) {
  Vec<T> sum[R][2];
  for (int r = 0; r < R; r++)
    for (int v = 0; v < 2; v++) sum[r][v] = add ? load(c + r * ldc + v * kLanes<T>) : Vec<T>{};
  for (int64_t l = 0; l < k; l++, a += columns, b += step) {
    const Vec<T> b0 = load(b), b1 = load(b + kLanes<T>);
    for (int r = 0; r < R; r++) {
      const Vec<T> x = splat(a[r * rows]);
      sum[r][0] += x * b0;
      sum[r][1] += x * b1;
    }
  }
  for (int r = 0; r < R; r++)
    for (int v = 0; v < 2; v++) store(c + r * ldc + v * kLanes<T>, sum[r][v]);
}

template <class T>
using Square = void (*)(int64_t, const T *, int64_t, int64_t, const T *, int64_t, T *, int64_t,
                        bool);
template <class T>
Square<T> square_of(int64_t rows) {
  switch (rows) {
    case 1: return square<T, 1>;
    case 2: return square<T, 2>;
    case 3: return square<T, 3>;
    case 4: return square<T, 4>;
    case 5: return square<T, 5>;
    default: return square<T, 6>;
  }
}

}  // namespace

template <class T>
void multiply_tile(int64_t m, int64_t n, int64_t k, Matrix<T> a, Panels<T> b, T *c, int64_t ldc,
                   bool add) {
  if (m == 0) return;
  // groups of rows as even as they come: two rows alone would wait for their own sums
  const int64_t groups = ceil_div(m, kRows), each = m / groups, larger = m % groups;
  const Square<T> few = square_of<T>(each), many = square_of<T>(each + 1);
  for (int64_t l = 0; l < k || l == 0; l += kDepth) {
    const int64_t depth = k - l < kDepth ? k - l : kDepth;
    for (int64_t j = 0; j < n; j += kPanel<T>) {
      const T *panel = b.data + j / kPanel<T> * b.panel + l * b.row;
      for (int64_t g = 0, i = 0; g < groups; g++) {
        const bool more = g < larger;
        (more ? many : few)(depth, a.data + i * a.rows + l * a.columns, a.rows, a.columns, panel,
                            b.row, c + i * ldc + j, ldc, add || l > 0);
        i += each + more;
      }
    }
  }
}

template <class T>
void pack_panels(Matrix<T> a, int64_t rows, int64_t columns, T *to) {
  constexpr int64_t w = kPanel<T>;
  for (int64_t j = 0; j < columns; j += w, to += rows * w) {
    const int64_t wide = columns - j < w ? columns - j : w;
    const Matrix<T> from = a.at(0, j);
    if (a.rows == 1 && wide == w) {
      transpose_block(reinterpret_cast<char *>(to), w, reinterpret_cast<const char *>(from.data),
                      a.columns, w, rows, sizeof(T));
      continue;
    }
    for (int64_t l = 0; l < rows; l++)
      for (int64_t i = 0; i < w; i++)
        to[l * w + i] = i < wide ? from.data[l * a.rows + i * a.columns] : T(0);
  }
}

template <class T>
void pack_rows(Matrix<T> a, int64_t rows, int64_t columns, int64_t width, T factor, T *to) {
  for (int64_t i = 0; i < rows; i++, to += width) {
    const T *from = a.data + i * a.rows;
    if (a.columns == 1)
      for (int64_t j = 0; j < columns; j++) to[j] = from[j] * factor;
    else
      for (int64_t j = 0; j < columns; j++) to[j] = from[j * a.columns] * factor;
    for (int64_t j = columns; j < width; j++) to[j] = T(0);
  }
}

#define PLAIT_INSTANCE(T)                                                                    \
  template void multiply_tile(int64_t, int64_t, int64_t, Matrix<T>, Panels<T>, T *, int64_t, \
                              bool);                                                         \
  template void pack_panels(Matrix<T>, int64_t, int64_t, T *);                               \
  template void pack_rows(Matrix<T>, int64_t, int64_t, int64_t, T, T *);
PLAIT_INSTANCE(float)
PLAIT_INSTANCE(double)

}  // namespace plait::core
