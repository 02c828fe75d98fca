// Windows of 2 x 2 side by side, several at a time: the pooling of nearly every small network.
#ifndef PLAIT_CORE_POOL_HALVES_H
#define PLAIT_CORE_POOL_HALVES_H
#include "kernels/vec.h"

namespace plait::core {

template <int L>
struct WindowTypes;
template <>
struct WindowTypes<4> {
  typedef float Floats __attribute__((vector_size(16)));
  typedef int32_t Ints __attribute__((vector_size(16)));
  typedef int64_t Longs __attribute__((vector_size(32)));
};
template <>
struct WindowTypes<8> {
  typedef float Floats __attribute__((vector_size(32)));
  typedef int32_t Ints __attribute__((vector_size(32)));
  typedef int64_t Longs __attribute__((vector_size(64)));
};

template <int L>
struct Windows {  // L windows: 2 L columns of two rows
  using Floats = typename WindowTypes<L>::Floats;
  using Ints = typename WindowTypes<L>::Ints;
  using Longs = typename WindowTypes<L>::Longs;

  template <class V, class P>
  static PLAIT_INLINE V read(const P *p) {
    V v;
    memcpy(&v, p, sizeof v);
    return v;
  }
  template <class P, class V>
  static PLAIT_INLINE void write(P *p, V v) {
    memcpy(p, &v, sizeof v);
  }
  static PLAIT_INLINE Ints count(int start, int step) {
    Ints v = {};
    for (int i = 0; i < L; i++) v[i] = start + i * step;
    return v;
  }
  // first[0], second[0], first[1], ... in two vectors
  static PLAIT_INLINE void interleave(Floats first, Floats second, float *to) {
    Ints low = {}, high = {};
    for (int i = 0; i < L; i++) {
      low[i] = i / 2 + i % 2 * L;
      high[i] = L / 2 + i / 2 + i % 2 * L;
    }
    write(to, __builtin_shuffle(first, second, low));
    write(to + L, __builtin_shuffle(first, second, high));
  }

  // The largest element of each window and its place, counted from `at`, the place of row[0]; NaN
  // beats all and the first of equal ones counts.
  static PLAIT_INLINE void largest(const float *row, int64_t w, int32_t at, float *y,
                                   int64_t *where) {
    const Ints evens = count(0, 2), odds = count(1, 2);
    const Floats a = read<Floats>(row), b = read<Floats>(row + L);
    const Floats c = read<Floats>(row + w), d = read<Floats>(row + w + L);
    const Floats q[4] = {__builtin_shuffle(a, b, evens), __builtin_shuffle(a, b, odds),
                         __builtin_shuffle(c, d, evens), __builtin_shuffle(c, d, odds)};
    const int32_t step[4] = {0, 1, int32_t(w), int32_t(w) + 1};
    Floats best = q[0];
    Ints offset = {};
    for (int k = 1; k < 4; k++) {
      const Ints take = (q[k] > best) | ((q[k] != q[k]) & (best == best));
      best = take ? q[k] : best;
      offset = take ? Ints{} + step[k] : offset;
    }
    write(y, best);
    write(where, __builtin_convertvector(offset + evens + at, Longs));
  }

  // g at the place that `where` names in each window, 0 in its other three. Nonzero: a place lies
  // outside its window.
  static PLAIT_INLINE Ints spread(const float *g, const int64_t *where, int64_t w, int64_t at,
                                  float *gx) {
    const Longs places = read<Longs>(where) - at;
    const Floats x = read<Floats>(g), zero = {};
    const Ints offset = __builtin_convertvector(places, Ints) - count(0, 2);
    const Ints beyond = __builtin_convertvector(places >> 31, Ints);
    const Ints hit[4] = {offset == 0, offset == 1, offset == int32_t(w), offset == int32_t(w) + 1};
    interleave(hit[0] ? x : zero, hit[1] ? x : zero, gx);
    interleave(hit[2] ? x : zero, hit[3] ? x : zero, gx + w);
    return ~(hit[0] | hit[1] | hit[2] | hit[3]) | beyond;
  }
  static PLAIT_INLINE bool any(Ints v) {
    int32_t seen = 0;
    for (int i = 0; i < L; i++) seen |= v[i];
    return seen != 0;
  }
};

}  // namespace plait::core
#endif  // PLAIT_CORE_POOL_HALVES_H
