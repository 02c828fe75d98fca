// Lines of a tensor, one in each lane: row r of the vectors has number r of every line. A complex
// element is two numbers.
#pragma once
#include "fft/fft_lanes.h"

namespace plait::core::fft {

template <class T>
struct Strands {
  T *line[kLanes<T>];  // lanes without a line have the first one
  int64_t step;  // numbers from an element to the next one
  int count;
  bool is_complex;
  int width() const { return is_complex ? 2 : 1; }
  bool is_dense() const { return step == width(); }
  bool are_adjacent() const {
    if (count != int(kLanes<T>)) return false;
    for (int i = 1; i < count; i++)
      if (line[i] != line[0] + i * width()) return false;
    return true;
  }
  T *number(int lane, int64_t r) const {
    return is_complex ? line[lane] + (r >> 1) * step + (r & 1) : line[lane] + r * step;
  }
};

// Reads numbers 0 to n of the lines; number r becomes the row `row(r)`.
template <class T, class Row>
PLAIT_INLINE void read_rows(const Strands<T> &s, int64_t n, T *to, T scale, Row &&row) {
  constexpr int64_t lanes = kLanes<T>;
  const Vec<T> by = splat(scale);
  int64_t r = 0;
  if (s.is_dense()) {
    for (; r + lanes <= n; r += lanes) {
      Vec<T> a[lanes];
      PLAIT_UNROLL for (int i = 0; i < int(lanes); i++) a[i] = load(s.line[i] + r);
      transpose_square<T>(a);
      PLAIT_UNROLL for (int i = 0; i < int(lanes); i++) store(to + row(r + i) * lanes, a[i] * by);
    }
  } else if (s.are_adjacent()) {
    if (s.is_complex) {
      for (; r < n; r += 2) {
        const Pair<T> v = scaled(load_pairs(s.line[0] + (r >> 1) * s.step), by);
        store(to + row(r) * lanes, v.re);
        store(to + row(r + 1) * lanes, v.im);
      }
    } else {
      for (; r < n; r++) store(to + row(r) * lanes, load(s.line[0] + r * s.step) * by);
    }
  }
  for (; r < n; r++)
    for (int i = 0; i < int(lanes); i++) to[row(r) * lanes + i] = *s.number(i, r) * scale;
}

// Writes numbers 0 to n of the lines from the rows `row(0)`, `row(1)`, ...
template <class T, class Row>
PLAIT_INLINE void write_rows(const Strands<T> &s, int64_t n, const T *from, Row &&row) {
  constexpr int64_t lanes = kLanes<T>;
  int64_t r = 0;
  if (s.is_dense()) {
    for (; r + lanes <= n; r += lanes) {
      Vec<T> a[lanes];
      PLAIT_UNROLL for (int i = 0; i < int(lanes); i++) a[i] = load(from + row(r + i) * lanes);
      transpose_square<T>(a);
      for (int i = 0; i < s.count; i++) store(s.line[i] + r, a[i]);
    }
  } else if (s.are_adjacent()) {
    if (s.is_complex) {
      for (; r < n; r += 2)
        store_pairs(s.line[0] + (r >> 1) * s.step,
                    Pair<T>{load(from + row(r) * lanes), load(from + row(r + 1) * lanes)});
    } else {
      for (; r < n; r++) store(s.line[0] + r * s.step, load(from + row(r) * lanes));
    }
  }
  for (; r < n; r++)
    for (int i = 0; i < s.count; i++) *s.number(i, r) = from[row(r) * lanes + i];
}

}  // namespace plait::core::fft
