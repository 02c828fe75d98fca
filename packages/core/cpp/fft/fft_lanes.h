// Complex numbers between memory, where real and imaginary parts alternate, and pairs of vectors.
#pragma once
#include "fft/fft_passes.h"

namespace plait::core::fft {

// The even elements of a and b, and the odd ones.
template <class T>
PLAIT_INLINE Pair<T> separated(Vec<T> a, Vec<T> b) {
  if constexpr (kLanes<T> == 8)
    return {shuffled<0, 2, 4, 6, 8, 10, 12, 14>(a, b), shuffled<1, 3, 5, 7, 9, 11, 13, 15>(a, b)};
  else
    return {shuffled<0, 2, 4, 6>(a, b), shuffled<1, 3, 5, 7>(a, b)};
}
template <class T>
PLAIT_INLINE Pair<T> load_pairs(const T *p) {
  return separated<T>(load(p), load(p + kLanes<T>));
}
template <class T>
PLAIT_INLINE void store_pairs(T *p, Pair<T> v) {
  if constexpr (kLanes<T> == 8) {
    const Vec<T> a = shuffled<0, 8, 1, 9, 4, 12, 5, 13>(v.re, v.im);
    const Vec<T> b = shuffled<2, 10, 3, 11, 6, 14, 7, 15>(v.re, v.im);
    store(p, shuffled<0, 1, 2, 3, 8, 9, 10, 11>(a, b));
    store(p + 8, shuffled<4, 5, 6, 7, 12, 13, 14, 15>(a, b));
  } else {
    const Vec<T> a = shuffled<0, 4, 2, 6>(v.re, v.im), b = shuffled<1, 5, 3, 7>(v.re, v.im);
    store(p, shuffled<0, 1, 4, 5>(a, b));
    store(p + 4, shuffled<2, 3, 6, 7>(a, b));
  }
}
template <class T>
PLAIT_INLINE Vec<T> reversed(Vec<T> v) {
  if constexpr (kLanes<T> == 8)
    return shuffled<7, 6, 5, 4, 3, 2, 1, 0>(v, v);
  else
    return shuffled<3, 2, 1, 0>(v, v);
}
template <class T>
PLAIT_INLINE Pair<T> reversed(Pair<T> v) {
  return {reversed<T>(v.re), reversed<T>(v.im)};
}

// A square in registers.
template <class T>
PLAIT_INLINE void transpose(Vec<T> (&a)[kLanes<T>]) {
  if constexpr (kLanes<T> == 8) {
    Vec<T> b[8];
    PLAIT_UNROLL for (int i = 0; i < 8; i += 2) {
      b[i] = shuffled<0, 8, 1, 9, 4, 12, 5, 13>(a[i], a[i + 1]);
      b[i + 1] = shuffled<2, 10, 3, 11, 6, 14, 7, 15>(a[i], a[i + 1]);
    }
    PLAIT_UNROLL for (int i = 0; i < 8; i += 4) {
      PLAIT_UNROLL for (int j = 0; j < 2; j++) {
        a[i + 2 * j] = shuffled<0, 1, 8, 9, 4, 5, 12, 13>(b[i + j], b[i + j + 2]);
        a[i + 2 * j + 1] = shuffled<2, 3, 10, 11, 6, 7, 14, 15>(b[i + j], b[i + j + 2]);
      }
    }
    PLAIT_UNROLL for (int i = 0; i < 4; i++) {
      b[i] = shuffled<0, 1, 2, 3, 8, 9, 10, 11>(a[i], a[i + 4]);
      b[i + 4] = shuffled<4, 5, 6, 7, 12, 13, 14, 15>(a[i], a[i + 4]);
    }
    PLAIT_UNROLL for (int i = 0; i < 8; i++) a[i] = b[i];
  } else {
    const Vec<T> p = shuffled<0, 4, 2, 6>(a[0], a[1]), q = shuffled<1, 5, 3, 7>(a[0], a[1]);
    const Vec<T> r = shuffled<0, 4, 2, 6>(a[2], a[3]), s = shuffled<1, 5, 3, 7>(a[2], a[3]);
    a[0] = shuffled<0, 1, 4, 5>(p, r);
    a[1] = shuffled<0, 1, 4, 5>(q, s);
    a[2] = shuffled<2, 3, 6, 7>(p, r);
    a[3] = shuffled<2, 3, 6, 7>(q, s);
  }
}

}  // namespace plait::core::fft
