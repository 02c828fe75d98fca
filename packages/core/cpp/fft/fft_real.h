// Transforms of 2 h real numbers by those of h complex ones, which have the even numbers as real
// and the odd ones as imaginary parts (Press and others, Numerical Recipes, section 12.3).
#pragma once
#include "fft/fft_lanes.h"

namespace plait::core::fft {

// The frequencies k and h - k of real numbers: the first one, and the conjugate of the second.
template <class T>
struct Frequencies {
  Pair<T> first, second;
};
// From half the transform of the complex numbers: elements k, and h - k; w = exp(-pi i k / h).
template <class T>
PLAIT_INLINE Frequencies<T> real_frequencies(Pair<T> k, Pair<T> h_k, Pair<T> w) {
  const Pair<T> other = conjugate(h_k), s = k + other, p = times(times_minus_i(k - other), w);
  return {s + p, s - p};
}
// The other way round: elements k, and the conjugate of h - k, of what is transformed to complex
// numbers.
template <class T>
PLAIT_INLINE Frequencies<T> complex_frequencies(Pair<T> k, Pair<T> h_k, Pair<T> w) {
  const Pair<T> other = conjugate(h_k), s = k + other;
  const Pair<T> p = times_i(times(k - other, conjugate(w)));
  return {s + p, s - p};
}

// A line in memory: x has n / 2 + 1 elements, or with `mirrored` n = 2 h.
template <class T>
void finish_real_line(const T *z, T *x, int64_t h, const T *halves, bool mirrored) {
  constexpr int64_t lanes = kLanes<T>;
  for (int64_t j = 1;; j += lanes) {
    const int64_t k = j < h - lanes ? j : h - lanes, other = h - k - lanes + 1;
    const Frequencies<T> f = real_frequencies(
        load_pairs(z + 2 * k), reversed<T>(load_pairs(z + 2 * other)), load_pairs(halves + 2 * k));
    store_pairs(x + 2 * k, f.first);
    store_pairs(x + 2 * other, reversed<T>(conjugate(f.second)));
    if (mirrored) {
      store_pairs(x + 2 * (h + other), reversed<T>(conjugate(f.first)));
      store_pairs(x + 2 * (h + k), f.second);
    }
    if (2 * (k + lanes) > h) break;
  }
  x[0] = 2 * (z[0] + z[1]);
  x[1] = 0;
  x[2 * h] = 2 * (z[0] - z[1]);
  x[2 * h + 1] = 0;
}
template <class T>
void prepare_real_line(const T *x, T *z, int64_t h, const T *halves) {
  constexpr int64_t lanes = kLanes<T>;
  for (int64_t j = 1;; j += lanes) {
    const int64_t k = j < h - lanes ? j : h - lanes, other = h - k - lanes + 1;
    const Frequencies<T> f = complex_frequencies(
        load_pairs(x + 2 * k), reversed<T>(load_pairs(x + 2 * other)), load_pairs(halves + 2 * k));
    store_pairs(z + 2 * k, f.first);
    store_pairs(z + 2 * other, reversed<T>(conjugate(f.second)));
    if (2 * (k + lanes) > h) break;
  }
  z[0] = x[0] + x[2 * h];
  z[1] = x[0] - x[2 * h];
}

// Lines in lanes. The last one writes the parts exchanged, for an inverse transform.
template <class T>
void finish_real_rows(const T *z, T *x, int64_t h, const T *halves, bool mirrored) {
  const Pair<T> first = at(z, 0);
  put(x, 0, Pair<T>{(first.re + first.im) * splat(T(2)), Vec<T>{}});
  put(x, h, Pair<T>{(first.re - first.im) * splat(T(2)), Vec<T>{}});
  for (int64_t k = 1; 2 * k <= h; k++) {
    const Frequencies<T> f =
        real_frequencies(at(z, k), at(z, h - k), both<T>(halves[2 * k], halves[2 * k + 1]));
    put(x, k, f.first);
    put(x, h - k, conjugate(f.second));
    if (!mirrored) continue;
    put(x, 2 * h - k, conjugate(f.first));
    put(x, h + k, f.second);
  }
}
template <class T>
void prepare_real_rows(const T *x, T *z, int64_t h, const T *halves) {
  const Vec<T> first = at(x, 0).re, middle = at(x, h).re;
  put(z, 0, Pair<T>{first - middle, first + middle});
  for (int64_t k = 1; 2 * k <= h; k++) {
    const Frequencies<T> f =
        complex_frequencies(at(x, k), at(x, h - k), both<T>(halves[2 * k], halves[2 * k + 1]));
    put(z, k, exchanged(f.first));
    put(z, h - k, exchanged(conjugate(f.second)));
  }
}

}  // namespace plait::core::fft
