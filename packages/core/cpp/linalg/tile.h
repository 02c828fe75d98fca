// Products of blocks that are in the caches, for attention and recurrent layers, which use their
// operands many times and pack them once.
#pragma once
#include "linalg/matrix.h"

namespace plait::core {

template <class T>
constexpr int64_t kPanel = 2 * kLanes<T>;  // columns of a panel
constexpr int64_t kPadding = 16;  // columns of padded matrices: whole panels of either type
constexpr int64_t padded(int64_t n) { return (n + kPadding - 1) / kPadding * kPadding; }

// Element (l, j) is data[j / kPanel * panel + l * row + j % kPanel].
template <class T>
struct Panels {
  const T *data;
  int64_t panel, row;
  static Panels of_rows(const T *data, int64_t row) { return {data, kPanel<T>, row}; }
  static Panels packed(const T *data, int64_t depth) {
    return {data, depth * kPanel<T>, kPanel<T>};
  }
};

// The number of products that are summed up one after the other. With this number of elements for
// each row, a group of rows stays in the first-level cache.
template <class T>
constexpr int64_t kDepth = 1536 / int64_t(sizeof(T));

// The number of rows of a group, whose results stay in registers.
template <class T>
int64_t tile_rows();

// What is added to the sums of a product before they are stored, and the bounds of the results.
// Each summand is added to the rounded sum of those before it.
template <class T>
struct Finish {
  const T *old = nullptr;  // the first summands, in rows `pitch` apart: those of c, a bias for each
  int64_t pitch = 0;  // column; null: none
  const T *shift = nullptr;  // the last summand of each row, `step` apart; null: none
  int64_t step = 0;
  bool bounded = false;
  T low = 0, high = 0, zero = 0;  // `zero` is added before them: 0 turns -0 into 0, and -0 does not
  const T *residual = nullptr;  // added behind `shift`, in rows `apart` apart; null: none
  int64_t apart = 0;
  bool past = false;  // results, in whole lines of memory, are stored past the caches

  static Finish added(bool add, const T *c, int64_t ldc) { return {add ? c : nullptr, ldc}; }
  Finish at(int64_t i, int64_t j) const {
    Finish f = *this;
    if (old) f.old = old + i * pitch + j;
    if (shift) f.shift = shift + i * step;
    if (residual) f.residual = residual + i * apart + j;
    return f;
  }
  // For one of the blocks that a sum consists of.
  Finish of_block(bool first, bool last, const T *c, int64_t ldc) const {
    Finish f = last ? *this : Finish{old, pitch};
    if (!first) f.old = c, f.pitch = ldc;
    return f;
  }
};

// Memory that is read after a product, for example the next rows of weights. It is fetched into the
// second-level cache while the product is computed, a line with each step of a sum: the first read
// of memory elsewhere takes as long as several steps. Lines come in columns: `high` lines, `apart`
// bytes from one to the next, and then those that are a line further.
struct Ahead {
  const char *data = nullptr;  // the column
  int64_t high = 0, apart = kLine, across = 0, done = 0;  // columns; lines of this one

  template <class T>
  static Ahead of(const T *data, int64_t n) {
    return of_rows(data, ceil_div(n * int64_t(sizeof(T)), kLine), kLine / int64_t(sizeof(T)), 1);
  }
  // n elements of each of `rows` rows.
  template <class T>
  static Ahead of_rows(const T *data, int64_t rows, int64_t distance, int64_t n) {
    const int64_t bytes = int64_t(sizeof(T));
    return {reinterpret_cast<const char *>(data), rows, distance * bytes,
            rows ? ceil_div(n * bytes, kLine) : 0};
  }
  const char *next() const { return data + done * apart; }
  // Leaves the next n lines, of which the last may be behind the end.
  void skip(int64_t n) {
    for (done += n; across && done >= high; done -= high, data += kLine) across--;
  }
  static constexpr int64_t kLine = 64;
};

// c = a b, or c += a b if `add`: a is m x k with any strides, b is k x n, and n is a multiple of
// the panel's width. A result is the sum of its products in their order, in blocks of kDepth, for
// any m and n.
template <class T>
void multiply_tile(int64_t m, int64_t n, int64_t k, Matrix<T> a, Panels<T> b, T *c, int64_t ldc,
                   const Finish<T> &finish, Ahead *ahead = nullptr);
template <class T>
void multiply_tile(int64_t m, int64_t n, int64_t k, Matrix<T> a, Panels<T> b, T *c, int64_t ldc,
                   bool add) {
  multiply_tile(m, n, k, a, b, c, ldc, Finish<T>::added(add, c, ldc));
}

// Rounds of a sum: `count` rounds of k products each, whose operands are `a` and `b` elements
// apart.
struct Rounds {
  int64_t count, a, b;
};

// The number of rounds of `depth` products, at most `count`, that are summed up one after the
// other.
template <class T>
int64_t rounds_at_once(int64_t count, int64_t depth) {
  const int64_t fit = kDepth<T> / (depth < 1 ? 1 : depth);
  return fit < 1 || count < 1 ? 1 : fit < count ? fit : count;
}

// Like multiply_tile, summed over all rounds, for example a window's rows, and these again over
// other images. The sum of no rounds is zero.
template <class T>
void multiply_rounds(int64_t m, int64_t n, int64_t k, Rounds rounds, Rounds again, Matrix<T> a,
                     Panels<T> b, T *c, int64_t ldc, const Finish<T> &finish,
                     Ahead *ahead = nullptr);
template <class T>
void multiply_rounds(int64_t m, int64_t n, int64_t k, Rounds rounds, Rounds again, Matrix<T> a,
                     Panels<T> b, T *c, int64_t ldc, bool add) {
  multiply_rounds(m, n, k, rounds, again, a, b, c, ldc, Finish<T>::added(add, c, ldc));
}

// Panels of a's rows x columns elements; columns beyond the last are zeros.
template <class T>
void pack_panels(Matrix<T> a, int64_t rows, int64_t columns, T *to);

// Rows of `width` elements, `factor` times those of a; columns beyond the last are zeros.
template <class T>
void pack_rows(Matrix<T> a, int64_t rows, int64_t columns, int64_t width, T factor, T *to);

}  // namespace plait::core
