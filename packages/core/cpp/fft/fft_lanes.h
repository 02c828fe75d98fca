// Complex numbers between memory, where real and imaginary parts alternate, and pairs of vectors.
#pragma once
#include "fft/fft_passes.h"
#include "kernel/lanes.h"

namespace plait::core::fft {

template <class T>
PLAIT_INLINE Pair<T> load_pairs(const T *p) {
  const Vec<T> a = load(p), b = load(p + kLanes<T>);
  return {even_lanes(a, b), odd_lanes(a, b)};
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

}  // namespace plait::core::fft
