// Windows of 2 x 2 side by side, several at a time: the pooling of nearly every small network.
#ifndef PLAIT_CORE_POOLING_2X2_H
#define PLAIT_CORE_POOLING_2X2_H
#include <utility>

#include "kernel/vec.h"

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
  template <size_t... I>
  static PLAIT_INLINE Floats evens(Floats a, Floats b, std::index_sequence<I...>) {
    return shuffled<int(2 * I)...>(a, b);
  }
  template <size_t... I>
  static PLAIT_INLINE Floats odds(Floats a, Floats b, std::index_sequence<I...>) {
    return shuffled<int(2 * I + 1)...>(a, b);
  }
  template <size_t... I>  // a[0], b[0], a[1], b[1], ...
  static PLAIT_INLINE void interleave(Floats a, Floats b, float *to, std::index_sequence<I...>) {
    write(to, shuffled<int(I / 2 + I % 2 * L)...>(a, b));
    write(to + L, shuffled<int(L / 2 + I / 2 + I % 2 * L)...>(a, b));
  }
  static constexpr std::make_index_sequence<L> kAll{};

  // The largest element of each window and its index, counted from `at`, the index of row[0]; NaN
  // counts as the largest; the first of equal elements is taken.
  static PLAIT_INLINE void largest(const float *row, int64_t w, int32_t at, float *y,
                                   int64_t *where) {
    const Floats a = read<Floats>(row), b = read<Floats>(row + L);
    const Floats c = read<Floats>(row + w), d = read<Floats>(row + w + L);
    const Floats q[4] = {evens(a, b, kAll), odds(a, b, kAll), evens(c, d, kAll), odds(c, d, kAll)};
    const int32_t step[4] = {0, 1, int32_t(w), int32_t(w) + 1};
    Floats best = q[0];
    Ints offset = {};
    for (int k = 1; k < 4; k++) {
      const Ints take = (q[k] > best) | ((q[k] != q[k]) & (best == best));
      best = take ? q[k] : best;
      offset = take ? Ints{} + step[k] : offset;
    }
    write(y, best);
    write(where, __builtin_convertvector(offset + count(0, 2) + at, Longs));
  }

  // Writes g at the index `where` of each window, and 0 at its other three. The result is nonzero
  // if an index lies outside of its window.
  static PLAIT_INLINE Ints spread(const float *g, const int64_t *where, int64_t w, int64_t at,
                                  float *gx) {
    const Longs distance = read<Longs>(where) - at;
    const Floats x = read<Floats>(g), zero = {};
    const Ints offset = __builtin_convertvector(distance, Ints) - count(0, 2);
    const Ints beyond = __builtin_convertvector(distance >> 31, Ints);
    const Ints hit[4] = {offset == 0, offset == 1, offset == int32_t(w), offset == int32_t(w) + 1};
    interleave(hit[0] ? x : zero, hit[1] ? x : zero, gx, kAll);
    interleave(hit[2] ? x : zero, hit[3] ? x : zero, gx + w, kAll);
    return ~(hit[0] | hit[1] | hit[2] | hit[3]) | beyond;
  }
  static PLAIT_INLINE bool any(Ints v) {
    int32_t seen = 0;
    for (int i = 0; i < L; i++) seen |= v[i];
    return seen != 0;
  }
};

}  // namespace plait::core
#endif  // PLAIT_CORE_POOLING_2X2_H
