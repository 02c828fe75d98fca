// Vectors whose lanes change places: even and odd ones, halves, and squares that are transposed.
#pragma once
#include "kernel/vec.h"

#if defined(__AVX__) && defined(__x86_64__)
#include <immintrin.h>
#endif

namespace plait::core {

// The even elements of a and b side by side, and the odd ones.
template <class V>
PLAIT_INLINE V even_lanes(V a, V b) {
  if constexpr (sizeof(a[0]) == 4)
    return shuffled<0, 2, 4, 6, 8, 10, 12, 14>(a, b);
  else
    return shuffled<0, 2, 4, 6>(a, b);
}
template <class V>
PLAIT_INLINE V odd_lanes(V a, V b) {
  if constexpr (sizeof(a[0]) == 4)
    return shuffled<1, 3, 5, 7, 9, 11, 13, 15>(a, b);
  else
    return shuffled<1, 3, 5, 7>(a, b);
}

template <class T>
constexpr int64_t kHalf = kLanes<T> / 2;

// A vector whose halves are read from two addresses, and one whose halves are stored at two.
template <class T>
PLAIT_INLINE Vec<T> load_halves(const T *low, const T *high) {
#if defined(__AVX__) && defined(__x86_64__)
  const __m128 a = _mm_loadu_ps(reinterpret_cast<const float *>(low)),
               b = _mm_loadu_ps(reinterpret_cast<const float *>(high));
  return Vec<T>(_mm256_insertf128_ps(_mm256_castps128_ps256(a), b, 1));
#else
  T both[kLanes<T>];
  memcpy(both, low, 16);
  memcpy(both + kHalf<T>, high, 16);
  return load(both);
#endif
}
template <class T>
PLAIT_INLINE void store_halves(T *low, T *high, Vec<T> v) {
#if defined(__AVX__) && defined(__x86_64__)
  const __m256 both = __m256(v);
  _mm_storeu_ps(reinterpret_cast<float *>(low), _mm256_castps256_ps128(both));
  _mm_storeu_ps(reinterpret_cast<float *>(high), _mm256_extractf128_ps(both, 1));
#else
  T both[kLanes<T>];
  store(both, v);
  memcpy(low, both, 16);
  memcpy(high, both + kHalf<T>, 16);
#endif
}

// Transposes the low and the high halves of kHalf vectors, each a square.
template <class T>
PLAIT_INLINE void transpose_halves(Vec<T> *v) {
  if constexpr (kLanes<T> == 8) {
    const Vec<T> a = shuffled<0, 8, 1, 9, 4, 12, 5, 13>(v[0], v[1]),
                 b = shuffled<2, 10, 3, 11, 6, 14, 7, 15>(v[0], v[1]),
                 c = shuffled<0, 8, 1, 9, 4, 12, 5, 13>(v[2], v[3]),
                 d = shuffled<2, 10, 3, 11, 6, 14, 7, 15>(v[2], v[3]);
    v[0] = shuffled<0, 1, 8, 9, 4, 5, 12, 13>(a, c);
    v[1] = shuffled<2, 3, 10, 11, 6, 7, 14, 15>(a, c);
    v[2] = shuffled<0, 1, 8, 9, 4, 5, 12, 13>(b, d);
    v[3] = shuffled<2, 3, 10, 11, 6, 7, 14, 15>(b, d);
  } else {
    const Vec<T> a = v[0], b = v[1];
    v[0] = shuffled_longs<0, 4, 2, 6>(a, b);
    v[1] = shuffled_longs<1, 5, 3, 7>(a, b);
  }
}

// Transposes a square.
template <class T>
PLAIT_INLINE void transpose_square(Vec<T> (&v)[kLanes<T>]) {
  constexpr int h = int(kHalf<T>);
  transpose_halves<T>(v);
  transpose_halves<T>(v + h);
  PLAIT_UNROLL for (int i = 0; i < h; i++) {
    const Vec<T> a = v[i], b = v[i + h];
    if constexpr (h == 4) {
      v[i] = shuffled<0, 1, 2, 3, 8, 9, 10, 11>(a, b);
      v[i + h] = shuffled<4, 5, 6, 7, 12, 13, 14, 15>(a, b);
    } else {
      v[i] = shuffled_longs<0, 1, 4, 5>(a, b);
      v[i + h] = shuffled_longs<2, 3, 6, 7>(a, b);
    }
  }
}

}  // namespace plait::core
