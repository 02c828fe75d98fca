// 32 bytes of elements at a time, in the compilers' own vector types: the baseline library gets two
// halves of them.
#pragma once
#include "kernel/fused.h"
#include "kernel/kernel.h"

#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC diagnostic ignored "-Wpsabi"  // vectors pass only between functions that are inlined
#endif

// Before a short loop of constant length: it is unrolled before compilers choose registers.
#if defined(__clang__)
#define PLAIT_UNROLL _Pragma("unroll")
#else
#define PLAIT_UNROLL _Pragma("GCC unroll 16")
#endif

namespace plait::core {

template <class T>
struct VecOf {
  typedef T type __attribute__((vector_size(32)));
  typedef T unaligned __attribute__((vector_size(32), aligned(sizeof(T)), may_alias));
};
template <class T>
using Vec = typename VecOf<T>::type;
template <class T>
constexpr int64_t kLanes = 32 / int64_t(sizeof(T));

template <class T>
PLAIT_INLINE Vec<T> load(const T *p) {
  return *reinterpret_cast<const typename VecOf<T>::unaligned *>(p);
}
template <class T>
PLAIT_INLINE void store(T *p, Vec<T> v) {
  *reinterpret_cast<typename VecOf<T>::unaligned *>(p) = v;
}
template <class T>
PLAIT_INLINE Vec<T> splat(T x) {
  return Vec<T>{} + x;
}
PLAIT_INLINE Vec<float> splat(float x) { return Vec<float>{x, x, x, x, x, x, x, x}; }
PLAIT_INLINE Vec<double> splat(double x) { return Vec<double>{x, x, x, x}; }

// Elements I... of a and b side by side; of 4 bytes each, and of 8.
template <int... I, class V>
PLAIT_INLINE V shuffled(V a, V b) {
#if defined(__clang__)
  return __builtin_shufflevector(a, b, I...);
#else
  typedef __typeof__(a != b) Picks;  // integers of the elements' size
  return __builtin_shuffle(a, b, Picks{I...});
#endif
}
template <int... I, class V>
PLAIT_INLINE V shuffled_longs(V a, V b) {
#if defined(__clang__)
  return __builtin_shufflevector(a, b, I...);
#else
  typedef int64_t Picks __attribute__((vector_size(sizeof...(I) * sizeof(int64_t))));
  return __builtin_shuffle(a, b, Picks{I...});
#endif
}

// In every lane: all lanes of v combined by Op::step.
template <class Op, class T>
PLAIT_INLINE Vec<T> in_every_lane(Vec<T> v) {
  if constexpr (kLanes<T> == 8) {
    v = Op::step(v, shuffled<4, 5, 6, 7, 0, 1, 2, 3>(v, v));
    v = Op::step(v, shuffled<2, 3, 0, 1, 6, 7, 4, 5>(v, v));
    return Op::step(v, shuffled<1, 0, 3, 2, 5, 4, 7, 6>(v, v));
  } else {
    v = Op::step(v, shuffled<2, 3, 0, 1>(v, v));
    return Op::step(v, shuffled<1, 0, 3, 2>(v, v));
  }
}

template <class T>
PLAIT_INLINE T sum_of(Vec<T> v) {
  T s[kLanes<T>];
  memcpy(s, &v, 32);
  for (int64_t w = kLanes<T> / 2; w; w /= 2)
    for (int64_t i = 0; i < w; i++) s[i] = T(s[i] + s[i + w]);
  return s[0];
}

}  // namespace plait::core
